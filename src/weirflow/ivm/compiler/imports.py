"""What a circuit inside another one reads of it: each part is built outside, once, and is a source inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weirflow.sql.bind.recursive_reference import reads

if TYPE_CHECKING:
    from weirflow.ivm.circuit.circuit import Circuit
    from weirflow.sql.plan import Plan


class Imports:
    """The parts of a recursion's step that do not read the recursion.

    Args:
        recursion: its name in plans.
        inside: the circuit of the step.
        outside: the node of a plan in the circuit around it.

    Attributes:
        sources: the names of the sources inside.
        nodes: the nodes around, in the same order.
    """

    def __init__(self, recursion: str, inside: Circuit, outside: Callable[[Plan], int]) -> None:
        self._recursion = recursion
        self._inside = inside
        self._outside = outside
        self.sources: list[str] = []
        self.nodes: list[int] = []

    def node(self, plan: Plan) -> int | None:
        """The node inside whose output is the plan's; None if the plan reads the recursion, and so belongs inside."""
        if reads(plan, self._recursion):
            return None
        self.nodes.append(self._outside(plan))
        self.sources.append(f"source {len(self.sources)}")
        return self._inside.add_source(self.sources[-1], [field.type for field in plan.fields])
