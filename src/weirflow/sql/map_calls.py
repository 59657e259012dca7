"""Every call of a plan changed, in its subqueries too; what is in several places of the plan is changed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.sql.expr import Call, Exists, Expr, InSubquery, ScalarSubquery
from weirflow.sql.traverse import inputs, map_expressions, rewrite, with_inputs
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.sql.plan import Plan


def map_calls(plan: Plan, change: Callable[[Call], Expr], change_node: Callable[[Plan], Plan]) -> Plan:
    """The plan with each call changed whose arguments are already, and then each node whose inputs are already."""
    return _Mapping(change, change_node).plan(plan)


class _Mapping:
    def __init__(self, change: Callable[[Call], Expr], change_node: Callable[[Plan], Plan]) -> None:
        self._change = change
        self._change_node = change_node
        self._known: dict[int, tuple[Plan, Plan]] = {}

    @grows
    def plan(self, plan: Plan) -> Plan:
        if id(plan) not in self._known:
            below = with_inputs(plan, tuple(self.plan(one) for one in inputs(plan)))
            made = self._change_node(map_expressions(below, lambda expr: rewrite(expr, self._part)))
            self._known[id(plan)] = (plan, made)  # the plan, too, so that nothing else gets its id
        return self._known[id(plan)][1]

    def _part(self, part: Expr) -> Expr | None:
        if isinstance(part, Call):
            return self._change(replace(part, arguments=tuple(rewrite(one, self._part) for one in part.arguments)))
        if isinstance(part, InSubquery):
            values = tuple(rewrite(one, self._part) for one in part.values)
            return replace(part, plan=self.plan(part.plan), values=values)
        if isinstance(part, ScalarSubquery | Exists):
            return replace(part, plan=self.plan(part.plan))
        return None
