"""Conditions on the clock go where they are followed: into filters and projections of their own."""

from __future__ import annotations

from collections.abc import Sequence
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
    "Join": "a comparison of both sides of an outer join, or in one that can fail",
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


def _placed(plan: Plan) -> Plan:  # noqa: PLR0911 - one for each kind of node
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
        case Join() if (sides := _sides(plan)) is not None:
            return _computed_beside(plan, *sides)
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
    breadth = len(plan.input.fields)
    found = list(dict.fromkeys(call for expr in reading for call in clock_comparisons(expr)))
    places = {call: Column(breadth + at, f"condition {at}", BOOLEAN) for at, call in enumerate(found)}
    changed = map_expressions(
        plan, lambda expr: rewrite(expr, lambda part: places.get(part) if isinstance(part, Call) else None)
    )
    assert isinstance(changed, Aggregate), "the same node"
    return replace(changed, input=_with_columns(plan.input, found))


def _sides(plan: Join) -> tuple[list[Call], list[Call]] | None:
    """The conditions of a join's residual that read its left rows alone, or none, and those of its right rows alone.

    None if there are others, or if one can fail: it would be computed for rows that no pair is made of.
    """
    if any(map(reads_clock, (*plan.left_keys, *plan.right_keys))) or plan.residual is None:
        return None
    breadth = len(plan.left.fields)
    left: dict[Call, None] = {}
    right: dict[Call, None] = {}
    for call in clock_comparisons(plan.residual):
        places = {part.index < breadth for part in parts(call) if isinstance(part, Column)}
        if len(places) > 1 or can_fail(call):
            return None
        (right if places == {False} else left)[call] = None
    return list(left), list(right)


def _computed_beside(plan: Join, left: list[Call], right: list[Call]) -> Plan:
    """The conditions become columns of the rows that are joined, and are left out of what is joined."""
    breadth, both = len(plan.left.fields), len(plan.left.fields) + len(plan.right.fields)

    def moved(part: Expr, by: int, start: int = 0) -> Expr:
        return replace(part, index=part.index + by) if isinstance(part, Column) and part.index >= start else part

    own = [rewrite(call, lambda part: moved(part, -breadth) if isinstance(part, Column) else None) for call in right]
    places = {
        **{call: Column(breadth + at, f"condition {at}", BOOLEAN) for at, call in enumerate(left)},
        **{call: Column(both + len(left) + at, f"condition {at}", BOOLEAN) for at, call in enumerate(right)},
    }

    def changed(part: Expr) -> Expr | None:
        if isinstance(part, Call) and part in places:
            return places[part]
        return moved(part, len(left), breadth) if isinstance(part, Column) else None

    assert plan.residual is not None, "it reads the clock"
    joined = replace(
        plan,
        left=_with_columns(plan.left, left),
        right=_with_columns(plan.right, own),
        residual=rewrite(plan.residual, changed),
    )
    kept = [*range(breadth), *range(breadth + len(left), both + len(left))][: len(plan.fields)]
    columns = tuple(Column(at, field.name, field.type) for at, field in zip(kept, plan.fields, strict=True))
    return Project(joined, columns, plan.fields)


def _with_columns(plan: Plan, added: Sequence[Expr]) -> Plan:
    if not added:
        return plan
    columns = tuple(Column(at, field.name, field.type) for at, field in enumerate(plan.fields))
    fields = tuple(Field(f"condition {number}", BOOLEAN) for number in range(len(added)))
    return Project(plan, (*columns, *added), (*plan.fields, *fields))


def _position(expr: Expr) -> SqlPosition | None:
    return next((part.position for part in parts(expr) if isinstance(part, Call) and is_clock(part)), None)
