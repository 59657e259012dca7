"""Filters go as near to the sources as they mean the same, and equalities between relations become join keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weirflow.sql.expr import Column, Expr
from weirflow.sql.passes.conditions import conjunction, conjuncts, divided, factored
from weirflow.sql.passes.failure import can_fail, rejects_nulls
from weirflow.sql.passes.join_cluster import flatten, is_key, join_all, owners
from weirflow.sql.passes.pull_up import join_on
from weirflow.sql.plan import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    JoinKind,
    Nearest,
    Plan,
    Project,
    SetOperation,
    TopK,
    Union,
    Window,
)
from weirflow.sql.traverse import columns, inputs, remap, rewrite, shift, with_inputs
from weirflow.stack import grows

_LARGEST = 1000
"""Nodes of a predicate that may go below a projection: each column it reads becomes the expression it stands for."""


def push_filters(plan: Plan) -> Plan:
    """The same rows, filtered earlier.

    A predicate that can fail does not pass a join, a set operation or another filter. Comma joins come out as joins on
    keys, in an order that avoids cross joins where the predicates allow it.
    """
    return _push(plan, [])


@grows
def _push(plan: Plan, pending: list[Expr]) -> Plan:  # noqa: C901, PLR0911, PLR0912 - one return for each node
    """``plan`` with the ``pending`` predicates over its columns applied, as deep as possible."""
    match plan:
        case Filter():
            own = [part for one in conjuncts(plan.predicate) for part in conjuncts(factored(one))]
            return _push(plan.input, own + pending)
        case Project():
            return _through_project(plan, pending)
        case Join(kind=JoinKind.INNER):
            return _inner(plan, pending)
        case Join(kind=JoinKind.LEFT | JoinKind.RIGHT):
            return _outer(plan, pending)
        case Join(kind=JoinKind.SEMI | JoinKind.ANTI):
            return _left_only(plan, pending)
        case Aggregate(grouping_sets=None) if plan.keys:
            keys = len(plan.keys)
            return _split(plan, pending, lambda part: max(columns(part), default=keys) < keys, plan.keys)
        case Distinct():
            return Distinct(_push(plan.input, pending))
        case Union():
            return replace(plan, inputs=tuple(_push(one, pending) for one in plan.inputs))
        case SetOperation():
            moved, kept = divided(pending, lambda part: not can_fail(part))
            return filtered(replace(plan, left=_push(plan.left, moved), right=_push(plan.right, moved)), kept)
        case Window():
            return _split(plan, pending, lambda part: columns(part) <= _partition_columns(plan))
        case Generate():
            width = len(plan.input.fields)
            return _split(plan, pending, lambda part: max(columns(part), default=0) < width)
        case Nearest():
            return _beside_nearest(plan, pending)
        case TopK():
            return filtered(replace(plan, input=_push(plan.input, [])), pending)
        case _:
            children = tuple(_push(child, []) for child in inputs(plan))
            return filtered(with_inputs(plan, children), pending)


def _beside_nearest(plan: Nearest, pending: list[Expr]) -> Plan:
    """What only chooses rows of the left side goes there; what is near to the others does not change."""
    width = len(plan.left_columns)
    moved, kept = divided(
        pending, lambda part: bool(columns(part)) and max(columns(part)) < width and not can_fail(part)
    )
    left = _push(plan.left, [remap(part, plan.left_columns.__getitem__) for part in moved])
    return filtered(replace(plan, left=left, right=_push(plan.right, [])), kept)


def filtered(plan: Plan, predicates: list[Expr]) -> Plan:
    """The predicates in their order; one that can fail is a filter of its own, above those that may guard it."""
    safe: list[Expr] = []
    for part in predicates:
        if not can_fail(part):
            safe.append(part)
            continue
        plan = Filter(_all(plan, safe), part)
        safe = []
    return _all(plan, safe)


def _all(plan: Plan, predicates: list[Expr]) -> Plan:
    condition = conjunction(predicates)
    return plan if condition is None else Filter(plan, condition)


def _through_project(plan: Project, pending: list[Expr]) -> Plan:
    def below(part: Expr) -> Expr:
        return rewrite(part, lambda node: plan.expressions[node.index] if isinstance(node, Column) else None)

    movable, kept = [], []
    for part in pending:
        pushed = below(part)
        if pushed.size > max(_LARGEST, part.size) or can_fail(pushed):
            kept.append(part)
        else:
            movable.append(pushed)
    return filtered(replace(plan, input=_push(plan.input, movable)), kept)


def _split(
    plan: Aggregate | Window | Generate,
    pending: list[Expr],
    passes: Callable[[Expr], bool],
    stand_for: tuple[Expr, ...] | None = None,
) -> Plan:
    """Predicates that pass go below; column i stands for the i-th of ``stand_for`` there, or for itself."""

    def below(part: Expr) -> Expr:
        if stand_for is None:
            return part
        return rewrite(part, lambda node: stand_for[node.index] if isinstance(node, Column) else None)

    moved, kept = divided(pending, lambda part: passes(part) and not can_fail(below(part)))
    return filtered(replace(plan, input=_push(plan.input, [below(part) for part in moved])), kept)


def _partition_columns(plan: Window) -> set[int]:
    """The columns by which every window function partitions."""
    found = [{part.index for part in call.partition_by if isinstance(part, Column)} for call in plan.calls]
    return set.intersection(*found) if found else set()


def _inner(plan: Join, pending: list[Expr]) -> Plan:
    """A cluster of inner joins: each relation takes its own predicates, then they are joined along the others."""
    relations, conditions = flatten(Filter(plan, kept) if (kept := conjunction(pending)) is not None else plan)
    conditions = [part for one in conditions for part in conjuncts(factored(one))]
    owner = owners(relations)
    last, conditions = divided(conditions, lambda part: can_fail(part) and not _is_foreign_key(part, owner))
    unclaimed = [(part, columns(part)) for part in conditions]
    parts = []
    start = 0
    for relation in relations:
        end = start + len(relation.fields)
        here = range(start, end)
        own = [part for part, read in unclaimed if read and all(index in here for index in read)]
        unclaimed = [(part, read) for part, read in unclaimed if not (read and all(index in here for index in read))]
        parts.append(_push(relation, [shift(part, -start) for part in own]))
        start = end
    return filtered(join_all(parts, [part for part, _ in unclaimed]), last)


def _is_foreign_key(part: Expr, owner: dict[int, int]) -> bool:
    """Whether relations are joined by what Spark or Python computes; for keys of all rows Spark would, too."""
    return is_key(part, owner) and not can_fail(part, foreign=False)


def _outer(plan: Join, pending: list[Expr]) -> Plan:
    """A filter that no padded row can pass makes the join an inner one; others reach the side that is kept whole."""
    width, total = len(plan.left.fields), len(plan.fields)
    padded = range(width, total) if plan.kind is JoinKind.LEFT else range(width)
    if any(rejects_nulls(part, padded) for part in pending):
        return _push(replace(plan, kind=JoinKind.INNER), pending)
    own = _over_both(plan)
    kept_side = set(range(total)) - set(padded)
    moved = [part for part in pending if columns(part) <= kept_side and columns(part) and not can_fail(part)]
    rest = [part for part in pending if part not in moved]
    inside = [part for part in own if columns(part) <= set(padded) and columns(part) and not can_fail(part)]
    condition = conjunction(part for part in own if part not in inside)
    left_is_kept = plan.kind is JoinKind.LEFT
    left = _push(plan.left, moved if left_is_kept else inside)
    right = _push(plan.right, [shift(part, -width) for part in (inside if left_is_kept else moved)])
    return filtered(join_on(left, right, plan.kind, condition), rest)


def _left_only(plan: Join, pending: list[Expr]) -> Plan:
    width = len(plan.left.fields)
    moved, kept = divided(pending, lambda part: not can_fail(part))
    if plan.null_aware:
        return filtered(replace(plan, left=_push(plan.left, moved), right=_push(plan.right, [])), kept)
    own = _over_both(plan)
    there = [part for part in own if columns(part) and min(columns(part)) >= width and not can_fail(part)]
    here: list[Expr] = []
    if plan.kind is JoinKind.SEMI:
        here = [part for part in own if columns(part) and max(columns(part)) < width and not can_fail(part)]
    condition = conjunction(part for part in own if part not in there and part not in here)
    left = _push(plan.left, moved + here)
    right = _push(plan.right, [shift(part, -width) for part in there])
    return filtered(join_on(left, right, plan.kind, condition), kept)


def _over_both(plan: Join) -> list[Expr]:
    """The join's whole condition as conjuncts over both sides' columns."""
    _, conditions = flatten(replace(plan, kind=JoinKind.INNER), deep=False)
    return [part for one in conditions for part in conjuncts(factored(one))]
