"""In which evaluation mode Spark means a node, from the field that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.sql.functions.modes import EvalMode

if TYPE_CHECKING:
    from weirflow.sql.resolved.node import Node

_LEGACY_IF_TRUE = "legacySizeOfNull"


def eval_mode(node: Node, name: str) -> EvalMode | None:
    """The mode by a field that Spark fills in from the session's settings; None if it says more than a mode."""
    found = node.value(name)
    if isinstance(found, bool):
        return EvalMode.LEGACY if found == (name == _LEGACY_IF_TRUE) else EvalMode.ANSI
    if isinstance(found, tuple):  # with whether decimals may lose digits, which changes their types
        mode, may_lose_digits = found
        return EvalMode(mode) if may_lose_digits else None
    return EvalMode(found)
