"""Conditions on the clock go where they are followed: into filters and projections of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.sql.clock.conditions import clock_comparisons, clock_conditions
from weirflow.sql.clock.reading import follows_clock, is_clock, reads_clock
from weirflow.sql.clock.trend import unfollowed
from weirflow.sql.expr import Call, Column, Expr
from weirflow.sql.passes.conditions import conjunction, conjuncts, divided
from weirflow.sql.passes.failure import can_fail
from weirflow.sql.plan import Aggregate, Field, Filter, Join, JoinKind, Plan, Project, Recursive
from weirflow.sql.traverse import expressions, map_expressions, map_plan, parts, rewrite
from weirflow.sql.types import BOOLEAN

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition

_PLACES = {
    "Join": "an outer join's condition",
    "TopK": "ORDER BY with LIMIT",
    "Window": "a window function",
    "Generate": "a generator",
    "SessionWindow": "session_window()",
    "Values": "VALUES",
    "Recursive": "the step of a recursive CTE",
}


def place_clock(plan: Plan) -> Plan:
    """The same rows; only filters and projections read the clock, in conditions that can be followed.

    Raises:
        NotIncremental: the clock stands where it is not followed.
    """
    return map_plan(plan, _placed) if follows_clock(plan) else plan


def _placed(plan: Plan) -> Plan:
    if isinstance(plan, Recursive):
        if follows_clock(plan.step):
            raise unfollowed(f"what it does in {_PLACES['Recursive']}", None)
        return plan
    reading = [expr for expr in expressions(plan) if reads_clock(expr)]
    if not reading:
        return plan
    for expr in reading:
        clock_conditions(expr)  # which refuses what is not followed
    match plan:
        case Project():
            return plan
        case Filter():
            return _below_first(plan)
        case Aggregate():
            return _computed_before(plan, reading)
        case Join(kind=JoinKind.INNER) if not any(map(reads_clock, (*plan.left_keys, *plan.right_keys))):
            followed, plain = divided(conjuncts(plan.residual), reads_clock)
            condition = conjunction(followed)
            assert condition is not None, "the residual reads the clock"
            return Filter(replace(plan, residual=conjunction(plain)), condition)
        case _:
            place = _PLACES.get(type(plan).__name__, "this place")
            raise unfollowed(f"what it does in {place}", _position(reading[0]))


def _below_first(plan: Filter) -> Plan:
    """What does not read the clock is asked first, so that fewer rows are followed."""
    plain, rest = divided(conjuncts(plan.predicate), lambda part: not reads_clock(part) and not can_fail(part))
    below, condition = conjunction(plain), conjunction(rest)
    assert condition is not None, "the predicate reads the clock"
    return plan if below is None else Filter(Filter(plan.input, below), condition)


def _computed_before(plan: Aggregate, reading: list[Expr]) -> Plan:
    """The conditions become columns of the rows that are grouped."""
    fields = plan.input.fields
    found = list(dict.fromkeys(call for expr in reading for call in clock_comparisons(expr)))
    columns = tuple(Column(index, field.name, field.type) for index, field in enumerate(fields))
    added = tuple(Field(f"condition {number}", BOOLEAN) for number in range(len(found)))
    below = Project(plan.input, (*columns, *found), (*fields, *added))
    places = {
        call: Column(len(fields) + at, field.name, BOOLEAN)
        for at, (call, field) in enumerate(zip(found, added, strict=True))
    }
    changed = map_expressions(
        plan, lambda expr: rewrite(expr, lambda part: places.get(part) if isinstance(part, Call) else None)
    )
    assert isinstance(changed, Aggregate), "the same node"
    return replace(changed, input=below)


def _position(expr: Expr) -> SqlPosition | None:
    return next((part.position for part in parts(expr) if isinstance(part, Call) and is_clock(part)), None)
