"""Columns that nobody reads are dropped where they arise, and projections of projections become one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from weirflow.sql.expr import Column, Expr, Literal
from weirflow.sql.plan import (
    Aggregate,
    Filter,
    Generate,
    Join,
    JoinKind,
    Nearest,
    Plan,
    Project,
    Scan,
    SessionWindow,
    TopK,
    Union,
    Values,
    Window,
)
from weirflow.sql.traverse import (
    columns,
    expressions,
    inputs,
    map_call,
    map_expressions,
    map_order,
    parts,
    remap,
    rewrite,
    with_inputs,
)
from weirflow.stack import grows

Places = dict[int, int]
"""Where each column that was kept is now."""


def prune_columns(plan: Plan) -> Plan:
    """The same output, computed from no more columns than it needs."""
    pruned, places = _prune(plan, set(range(len(plan.fields))))
    return _in_order(pruned, places, range(len(plan.fields)))


@grows
def _prune(plan: Plan, needed: set[int]) -> tuple[Plan, Places]:  # noqa: C901, PLR0911 - one return for each kind of node
    match plan:
        case Scan():
            kept = sorted(needed)
            return _in_order(plan, {index: index for index in kept}, kept), _renumbered(kept)
        case Values():
            kept = sorted(needed)
            rows = tuple(tuple(row[index] for index in kept) for row in plan.rows)
            return Values(rows, tuple(plan.fields[index] for index in kept)), _renumbered(kept)
        case Project():
            return _project(plan, needed)
        case Filter() | TopK():
            below, places = _prune(plan.input, needed | _read(plan))
            return map_expressions(replace(plan, input=below), lambda expr: remap(expr, places.__getitem__)), places
        case Join():
            return _join(plan, needed)
        case Aggregate():
            return _aggregate(plan, needed)
        case Window():
            return _window(plan, needed)
        case Generate() | SessionWindow():
            return _widening(plan, needed)
        case Nearest():
            return _nearest(plan, needed)
        case Union():
            kept = sorted(needed)
            sides = tuple(_in_order(*_prune(one, needed), kept) for one in plan.inputs)
            return Union(sides, tuple(plan.fields[index] for index in kept)), _renumbered(kept)
        case _:
            whole = tuple(prune_columns(child) for child in inputs(plan))
            return with_inputs(plan, whole), {index: index for index in range(len(plan.fields))}


def _renumbered(kept: Iterable[int]) -> Places:
    return {before: after for after, before in enumerate(kept)}


def _read(plan: Plan) -> set[int]:
    return {index for expr in expressions(plan) for index in columns(expr)}


def _in_order(plan: Plan, places: Places, wanted: Iterable[int]) -> Plan:
    """The plan's columns in the given order, without a projection if they are so already."""
    order = [places[index] for index in wanted]
    if order == list(range(len(plan.fields))):
        return plan
    chosen = tuple(Column(index, plan.fields[index].name, plan.fields[index].type) for index in order)
    return collapsed(Project(plan, chosen, tuple(plan.fields[index] for index in order)))


def _project(plan: Project, needed: set[int]) -> tuple[Plan, Places]:
    kept = sorted(needed)
    exprs = [plan.expressions[index] for index in kept]
    below, places = _prune(plan.input, {index for expr in exprs for index in columns(expr)})
    moved = tuple(remap(expr, places.__getitem__) for expr in exprs)
    return collapsed(Project(below, moved, tuple(plan.fields[index] for index in kept))), _renumbered(kept)


def collapsed(plan: Project) -> Plan:
    """One projection in place of two, unless that would compute something twice; none where it changes nothing."""
    below = plan.input
    if isinstance(below, Project):
        uses = Counter(part.index for expr in plan.expressions for part in parts(expr) if isinstance(part, Column))
        cheap = all(
            isinstance(below.expressions[index], Column | Literal) or count <= 1 for index, count in uses.items()
        )
        if cheap:
            merged = tuple(_inlined(expr, below.expressions) for expr in plan.expressions)
            return collapsed(Project(below.input, merged, plan.fields))
    same = len(plan.expressions) == len(below.fields) and all(
        isinstance(expr, Column) and expr.index == index for index, expr in enumerate(plan.expressions)
    )
    return below if same and plan.fields == below.fields else plan


def _inlined(expr: Expr, below: tuple[Expr, ...]) -> Expr:
    return rewrite(expr, lambda part: below[part.index] if isinstance(part, Column) else None)


def _join(plan: Join, needed: set[int]) -> tuple[Plan, Places]:
    width = len(plan.left.fields)
    residual = set() if plan.residual is None else columns(plan.residual)
    wanted = needed | residual
    left_needed = {index for index in wanted if index < width}
    left_needed |= {index for key in plan.left_keys for index in columns(key)}
    right_needed = {index - width for index in wanted if index >= width}
    right_needed |= {index for key in plan.right_keys for index in columns(key)}
    left, left_places = _prune(plan.left, left_needed)
    right, right_places = _prune(plan.right, right_needed)
    grown = len(left.fields)
    places = left_places | {width + before: grown + after for before, after in right_places.items()}
    joined = replace(
        plan,
        left=left,
        right=right,
        left_keys=tuple(remap(key, left_places.__getitem__) for key in plan.left_keys),
        right_keys=tuple(remap(key, right_places.__getitem__) for key in plan.right_keys),
        residual=None if plan.residual is None else remap(plan.residual, places.__getitem__),
    )
    return joined, (left_places if plan.kind in (JoinKind.SEMI, JoinKind.ANTI) else places)


def _nearest(plan: Nearest, needed: set[int]) -> tuple[Plan, Places]:
    """Of both sides, what is shown and what the order reads; the distance, and the rank if it is there, stay."""
    width, made = len(plan.left_columns), len(plan.left_columns) + len(plan.right_columns)
    kept = [at for at in range(len(plan.fields)) if at in needed or at >= made]
    shown = [plan.left_columns[at] for at in kept if at < width]
    found = [plan.right_columns[at - width] for at in kept if width <= at < made]
    left, left_places = _prune(plan.left, {*shown, *columns(plan.query)})
    inner = {index for key in plan.order for index in columns(key.expr)} | columns(plan.document)
    right, right_places = _prune(plan.right, {*found, *inner})
    slim = replace(
        plan,
        left=left,
        right=right,
        query=remap(plan.query, left_places.__getitem__),
        document=remap(plan.document, right_places.__getitem__),
        order=map_order(plan.order, lambda expr: remap(expr, right_places.__getitem__)),
        left_columns=tuple(left_places[at] for at in shown),
        right_columns=tuple(right_places[at] for at in found),
    )
    return slim, _renumbered(kept)


def _aggregate(plan: Aggregate, needed: set[int]) -> tuple[Plan, Places]:
    """Keys stay, since they make the groups; calls that nobody reads go."""
    keys = len(plan.keys)
    calls = [index for index in range(len(plan.calls)) if keys + index in needed]
    kept = [*range(keys), *(keys + index for index in calls)]
    if plan.grouping_sets is not None:
        kept.append(len(plan.fields) - 1)
    slim = replace(
        plan, calls=tuple(plan.calls[index] for index in calls), fields=tuple(plan.fields[index] for index in kept)
    )
    below, places = _prune(plan.input, _read(slim))
    moved = map_expressions(replace(slim, input=below), lambda expr: remap(expr, places.__getitem__))
    return moved, _renumbered(kept)


def _window(plan: Window, needed: set[int]) -> tuple[Plan, Places]:
    width = len(plan.input.fields)
    calls = [index for index in range(len(plan.calls)) if width + index in needed]
    used = tuple(plan.calls[index] for index in calls)
    below_needed = {index for index in needed if index < width}
    below_needed |= _read(replace(plan, calls=used))
    below, places = _prune(plan.input, below_needed)
    if not used:
        return below, places
    moved = tuple(map_call(call, lambda expr: remap(expr, places.__getitem__)) for call in used)
    grown = len(below.fields)
    made = tuple(plan.fields[width + index] for index in calls)
    after = places | {width + index: grown + place for place, index in enumerate(calls)}
    return Window(below, moved, below.fields + made), after


def _widening(plan: Generate | SessionWindow, needed: set[int]) -> tuple[Plan, Places]:
    """Nodes that add columns behind their input's."""
    width = len(plan.input.fields)
    below, places = _prune(plan.input, {index for index in needed if index < width} | _read(plan))
    made = plan.fields[width:]
    slim = replace(plan, input=below, fields=below.fields + made)
    after = places | {width + index: len(below.fields) + index for index in range(len(made))}
    return map_expressions(slim, lambda expr: remap(expr, places.__getitem__)), after
