"""The passes that every plan goes through before it is lowered; their order is this tuple."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirflow.sql.plan import Plan

PASSES: tuple[Callable[[Plan], Plan], ...] = ()


def rewrite(plan: Plan) -> Plan:
    """The plan after all passes."""
    for one in PASSES:
        plan = one(plan)
    return plan
