"""Inner joins as one cluster: any number of relations and the predicates between them."""

from __future__ import annotations

from collections.abc import Iterable

from weirflow.sql.expr import Call, Column, Expr
from weirflow.sql.passes.conditions import conjunction, conjuncts
from weirflow.sql.passes.pull_up import join_on
from weirflow.sql.plan import Filter, Join, JoinKind, Plan, Project
from weirflow.sql.traverse import columns, remap, shift
from weirflow.sql.types import BOOLEAN
from weirflow.stack import grows


@grows
def flatten(plan: Plan, *, deep: bool = True) -> tuple[list[Plan], list[Expr]]:
    """The relations that ``plan`` joins, left to right, and its predicates over all their columns in that order."""
    if isinstance(plan, Filter) and deep:
        relations, conditions = flatten(plan.input)
        return relations, conditions + conjuncts(plan.predicate)
    if not isinstance(plan, Join) or plan.kind is not JoinKind.INNER:
        return [plan], []
    width = len(plan.left.fields)
    left, first = flatten(plan.left) if deep else ([plan.left], [])
    right, second = flatten(plan.right) if deep else ([plan.right], [])
    keys = [
        Call("equal", (one, shift(other, width)), BOOLEAN)
        for one, other in zip(plan.left_keys, plan.right_keys, strict=True)
    ]
    return left + right, [*first, *(shift(part, width) for part in second), *keys, *conjuncts(plan.residual)]


def join_all(relations: list[Plan], conditions: list[Expr]) -> Plan:
    """The relations joined so that each has a key to those before it, where there is one; columns as they were."""
    starts, owner = _starts(relations), owners(relations)
    order = _order(relations, conditions, owner)
    places: dict[int, int] = {}
    remaining = list(conditions)
    plan: Plan | None = None
    for place in order:
        offset = len(places)
        places |= {starts[place] + index: offset + index for index in range(len(relations[place].fields))}
        ready = [part for part in remaining if columns(part) <= places.keys()]
        remaining = [part for part in remaining if part not in ready]
        moved = [remap(part, places.__getitem__) for part in ready]
        if plan is None:
            condition = conjunction(moved)
            plan = relations[place] if condition is None else Filter(relations[place], condition)
        else:
            plan = join_on(plan, relations[place], JoinKind.INNER, conjunction(moved))
    assert plan is not None, "a cluster has relations"
    return _as_before(plan, places)


def owners(relations: list[Plan]) -> dict[int, int]:
    """For each column of a cluster the place of the relation that it is of."""
    starts = _starts(relations)
    return {start + index: place for place, start in enumerate(starts) for index in range(len(relations[place].fields))}


def _starts(relations: Iterable[Plan]) -> list[int]:
    starts, total = [], 0
    for relation in relations:
        starts.append(total)
        total += len(relation.fields)
    return starts


def _order(relations: list[Plan], conditions: list[Expr], owner: dict[int, int]) -> list[int]:
    """Left to right, except that a relation with a key to those before it goes ahead of one without."""
    links = [{owner[index] for index in columns(part)} for part in conditions if is_key(part, owner)]
    chosen, waiting = [0], list(range(1, len(relations)))
    while waiting:
        linked = (place for place in waiting if any(place in link and link - {place} <= {*chosen} for link in links))
        nearest = next(linked, waiting[0])
        chosen.append(nearest)
        waiting.remove(nearest)
    return chosen


def is_key(part: Expr, owner: dict[int, int]) -> bool:
    """Whether a predicate is an equality between two relations."""
    if not isinstance(part, Call) or part.function not in ("equal", "equal_null_safe"):
        return False
    sides = [{owner[index] for index in columns(side)} for side in part.arguments]
    return all(sides) and not sides[0] & sides[1]


def _as_before(plan: Plan, places: dict[int, int]) -> Plan:
    order = [places[index] for index in range(len(places))]
    if order == list(range(len(order))):
        return plan
    chosen = tuple(Column(index, plan.fields[index].name, plan.fields[index].type) for index in order)
    return Project(plan, chosen, tuple(plan.fields[index] for index in order))
