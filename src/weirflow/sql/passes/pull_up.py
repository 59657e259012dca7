"""Taking correlation out of a subquery's plan, node by node from the leaves up.

Each rule keeps a node's output columns where they are and adds behind them those that the predicates still need.
Where a predicate cannot pass a node, the node computes its result for every value the query around can have (its
domain), and only equalities with those values pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.expr import Call, Column, Expr, Literal, OuterColumn, SortKey, WindowCall
from weirflow.sql.passes.conditions import conjunction, conjuncts, split_condition
from weirflow.sql.passes.correlation import (
    PulledPlan,
    columns_of,
    domain,
    hold,
    is_correlated,
    outer_references,
    with_domain,
    with_key_columns,
)
from weirflow.sql.plan import (
    Aggregate,
    Distinct,
    Field,
    Filter,
    Generate,
    Join,
    JoinKind,
    Plan,
    Project,
    SetOperation,
    TopK,
    Union,
    Window,
)
from weirflow.sql.traverse import columns, expressions, map_arguments, map_call, remap, rewrite, shift
from weirflow.sql.types import BOOLEAN, INT
from weirflow.stack import grows

if TYPE_CHECKING:
    import pyarrow as pa


@grows
def pull_up(plan: Plan, outer: Plan, *, empty_groups: bool = True) -> PulledPlan:  # noqa: C901, PLR0911 - one per node
    """``plan`` without its references to ``outer``, the input of the query around, and the predicates it had on it.

    Args:
        plan: a subquery seen from the query it is merged into.
        outer: what the references stand for columns of.
        empty_groups: whether an aggregate without keys must have a row also where the subquery has none. Only a
            caller that supplies that row itself may say no.
    """
    if not is_correlated(plan):
        return PulledPlan(plan)
    match plan:
        case Filter():
            return _filter(plan, outer, empty_groups=empty_groups)
        case Project():
            return _project(plan, outer, empty_groups=empty_groups)
        case Aggregate():
            return _aggregate(plan, outer, empty_groups=empty_groups)
        case Distinct():
            projected, tied = with_key_columns(pull_up(plan.input, outer), outer, len(plan.fields))
            return PulledPlan(Distinct(projected), tuple(tied))
        case TopK():
            return _top(plan, outer)
        case Window():
            return _window(plan, outer)
        case Generate():
            return _generate(plan, outer)
        case Join():
            return _join(plan, outer)
        case Union() | SetOperation():
            return _branches(plan, outer)
        case _:
            raise NotIncremental(
                f"A correlated subquery through {type(plan).__name__} has no incremental form.",
                reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
                hint="rewrite the subquery as a join",
            )


def _settled(pulled: PulledPlan, own: Iterable[Expr], outer: Plan) -> tuple[PulledPlan, Callable[[Expr], Expr]]:
    """The input such that a node's own expressions need no reference outwards, and how to rewrite them."""
    needed = [part for expr in own for part in outer_references(expr)]
    if not needed:
        return pulled, lambda expr: expr
    beside, held = with_domain(pulled, outer, needed)
    return beside, lambda expr: hold(expr, held)


def _filter(plan: Filter, outer: Plan, *, empty_groups: bool) -> PulledPlan:
    pulled = pull_up(plan.input, outer, empty_groups=empty_groups)
    tied = [part for part in conjuncts(plan.predicate) if outer_references(part)]
    rest = conjunction(part for part in conjuncts(plan.predicate) if part not in tied)
    kept = pulled.plan if rest is None else Filter(pulled.plan, rest)
    return PulledPlan(kept, pulled.predicates + tuple(tied))


def _project(plan: Project, outer: Plan, *, empty_groups: bool) -> PulledPlan:
    pulled, change = _settled(pull_up(plan.input, outer, empty_groups=empty_groups), plan.expressions, outer)
    exprs = [change(expr) for expr in plan.expressions]
    fields = list(plan.fields)
    places: dict[int, int] = {}
    for index in sorted({column for part in pulled.predicates for column in columns(part)}):
        field = pulled.plan.fields[index]
        column = Column(index, field.name, field.type)
        if column not in exprs:
            exprs.append(column)
            fields.append(field)
        places[index] = exprs.index(column)
    predicates = tuple(remap(part, places.__getitem__) for part in pulled.predicates)
    return PulledPlan(Project(pulled.plan, tuple(exprs), tuple(fields)), predicates)


def _aggregate(plan: Aggregate, outer: Plan, *, empty_groups: bool) -> PulledPlan:
    """The links to the query around become keys, placed first so that grouping ids keep their bits."""
    pulled, change = _settled(pull_up(plan.input, outer), expressions(plan), outer)
    width = len(pulled.plan.fields)
    source, tied = with_key_columns(pulled, outer, width)
    extra = tuple(
        Column(width + index, f"_link{index}", source.fields[width + index].type) for index in range(len(tied))
    )
    added = len(extra)
    sets = plan.grouping_sets and tuple(
        (*range(added), *(index + added for index in chosen)) for chosen in plan.grouping_sets
    )
    keys = extra + tuple(change(key) for key in plan.keys)
    calls = tuple(map_call(call, change) for call in plan.calls)
    key_fields = source.fields[width:]
    grouped = Aggregate(source, keys, calls, key_fields + plan.fields, sets)
    reordered = _reordered(grouped, (*range(added, len(grouped.fields)), *range(added)))
    links = tuple(
        rewrite(part, lambda node: _moved(node, lambda index: index - width + len(plan.fields))) for part in tied
    )
    if plan.keys or plan.grouping_sets is not None or not empty_groups:
        return PulledPlan(reordered, links)
    return _with_empty_groups(plan, reordered, links, outer)


def _with_empty_groups(plan: Aggregate, grouped: Plan, links: tuple[Expr, ...], outer: Plan) -> PulledPlan:
    """One row for every value of the query around: the group's, or what the aggregates give over nothing."""
    references = list(dict.fromkeys(part for one in links for part in outer_references(one)))
    base = domain(outer, references)
    held: dict[OuterColumn, Expr] = {part: Column(index, part.name, part.type) for index, part in enumerate(references)}
    width = len(references)
    marked, marker = with_marker(grouped, width)
    condition = conjunction(
        hold(rewrite(one, lambda node: _moved(node, lambda index: index + width)), held) for one in links
    )
    joined = join_on(base, marked, JoinKind.LEFT, condition)
    values = tuple(
        over_nothing(call.function, Column(width + index, field.name, field.type), marker)
        for index, (call, field) in enumerate(zip(plan.calls, plan.fields, strict=True))
    )
    kept = tuple(Column(index, part.name, part.type) for index, part in enumerate(references))
    fields = plan.fields + tuple(Field(part.name, part.type) for part in references)
    tied = tuple(
        Call("equal_null_safe", (part, Column(len(values) + index, part.name, part.type)), BOOLEAN)
        for index, part in enumerate(references)
    )
    return PulledPlan(Project(joined, values + kept, fields), tied)


def over_nothing(function: str, value: Expr, marker: Expr) -> Expr:
    """An aggregate's value after an outer join that may have found no group."""
    nothing = value_of_nothing(function, value.type)
    if nothing.value is None:
        return value
    return Call("case", (Call("is_null", (marker,), BOOLEAN), nothing, value), value.type)


_OVER_NOTHING: dict[str, Any] = {
    "count": 0,
    "approx_count_distinct": 0,
    "collect_list": (),
    "collect_set": (),
    "bitmap_construct_agg": bytes(4096),
    "bitmap_or_agg": bytes(4096),
    "bitmap_and_agg": b"\xff" * 4096,
}


def value_of_nothing(function: str, kind: pa.DataType) -> Literal:
    """What an aggregate gives over no rows: counts are 0, collections empty, all others NULL."""
    if function == "count_min_sketch":  # which is as large as it is told
        raise NotIncremental(
            "count_min_sketch() in a correlated subquery has no incremental form.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint="compute it in a subquery in FROM",
        )
    return Literal(_OVER_NOTHING.get(function), kind)


def with_marker(plan: Plan, width: int = 0) -> tuple[Plan, Column]:
    """The plan with a last column that is true, so that an outer join's NULL tells that there was no match.

    Also that column, behind ``width`` others.
    """
    marked = Project(
        plan, (*columns_of(plan), Literal(value=True, type=BOOLEAN)), (*plan.fields, Field("_matched", BOOLEAN))
    )
    return marked, Column(width + len(plan.fields), "_matched", BOOLEAN)


def columns_over_nothing(plan: Plan) -> tuple[Expr, ...]:
    """What an aggregate without keys, under projections, gives over no rows: literals and outer columns."""
    return tuple(_column_over_nothing(plan, index) for index in range(len(plan.fields)))


@grows
def _column_over_nothing(plan: Plan, index: int) -> Expr:
    if isinstance(plan, Project):
        source = plan.input
        return rewrite(
            plan.expressions[index],
            lambda part: _column_over_nothing(source, part.index) if isinstance(part, Column) else None,
        )
    assert isinstance(plan, Aggregate), "only projections are above the aggregate"
    return value_of_nothing(plan.calls[index].function, plan.fields[index].type)


def join_on(left: Plan, right: Plan, kind: JoinKind, condition: Expr | None) -> Join:
    """The join on a condition over both sides' columns, its equalities taken as keys."""
    keys, rest = split_condition(condition, len(left.fields))
    right_keys = tuple(shift(key, -len(left.fields)) for _, key in keys)
    return Join(left, right, kind, tuple(key for key, _ in keys), right_keys, conjunction(rest))


def _top(plan: TopK, outer: Plan) -> PulledPlan:
    """The first rows for each value of the query around, by row number."""
    width = len(plan.fields)
    source, tied = with_key_columns(pull_up(plan.input, outer), outer, width)
    keys = tuple(Column(width + index, field.name, field.type) for index, field in enumerate(source.fields[width:]))
    order = plan.order or tuple(
        SortKey(Column(index, field.name, field.type)) for index, field in enumerate(plan.fields)
    )
    call = WindowCall("row_number", (), INT, keys, order, None)
    numbered = Window(source, (call,), (*source.fields, Field("_row", INT)))
    row = Column(len(source.fields), "_row", INT)
    bounds = [] if plan.limit is None else [Call("less_equal", (row, Literal(plan.offset + plan.limit, INT)), BOOLEAN)]
    bounds += [Call("greater", (row, Literal(plan.offset, INT)), BOOLEAN)] if plan.offset else []
    condition = conjunction(bounds)
    limited = numbered if condition is None else Filter(numbered, condition)
    return PulledPlan(_reordered(limited, range(len(source.fields))), tuple(tied))


def _window(plan: Window, outer: Plan) -> PulledPlan:
    pulled, change = _settled(pull_up(plan.input, outer), expressions(plan), outer)
    inner, width = len(plan.input.fields), len(pulled.plan.fields)
    source, tied = with_key_columns(pulled, outer, width)
    keys = tuple(Column(width + index, field.name, field.type) for index, field in enumerate(source.fields[width:]))
    calls = tuple(map_call(call, change) for call in plan.calls)
    calls = tuple(replace(call, partition_by=call.partition_by + keys) for call in calls)
    windowed = Window(source, calls, source.fields + plan.fields[inner:])
    made = range(len(source.fields), len(windowed.fields))
    order = (*range(inner), *made, *range(inner, len(source.fields)))
    return _in_order(windowed, order, tied)


def _generate(plan: Generate, outer: Plan) -> PulledPlan:
    pulled, change = _settled(pull_up(plan.input, outer), expressions(plan), outer)
    inner, width = len(plan.input.fields), len(pulled.plan.fields)
    made = plan.fields[inner:]
    generated = Generate(pulled.plan, map_arguments(plan.generator, change), plan.outer, pulled.plan.fields + made)
    order = (*range(inner), *range(width, width + len(made)), *range(inner, width))
    return _in_order(generated, order, pulled.predicates)


def _join(plan: Join, outer: Plan) -> PulledPlan:
    if plan.kind is JoinKind.FULL:
        raise NotIncremental(
            "A correlated subquery through a FULL JOIN has no incremental form.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint="turn it into a LEFT JOIN",
        )
    if plan.kind is JoinKind.RIGHT:
        return pull_up(_turned(plan), outer)
    left, right = pull_up(plan.left, outer), pull_up(plan.right, outer)
    own = _condition(plan, len(left.plan.fields))
    offset = len(left.plan.fields)
    from_right = [rewrite(part, lambda node: _moved(node, lambda index: index + offset)) for part in right.predicates]
    if plan.kind is JoinKind.INNER:
        return _inner_join(plan, left, right, own, from_right)
    condition = [*own, *from_right]
    needed = [part for expr in condition for part in outer_references(expr)]
    beside, held = with_domain(left, outer, needed) if needed else (left, {})
    grown = len(beside.plan.fields) - offset
    moved = [remap(expr, lambda index: index if index < offset else index + grown) for expr in condition]
    joined = join_on(beside.plan, right.plan, plan.kind, conjunction(hold(part, held) for part in moved))
    if plan.kind is not JoinKind.LEFT:
        return PulledPlan(joined, beside.predicates)
    first, second, width = len(plan.left.fields), len(plan.right.fields), len(beside.plan.fields)
    order = (*range(first), *range(width, width + second), *range(first, width))
    return _in_order(joined, order, beside.predicates)


def _turned(plan: Join) -> Plan:
    """A RIGHT JOIN as the LEFT JOIN of its sides in the other order."""
    first, second = len(plan.left.fields), len(plan.right.fields)
    residual = plan.residual and remap(plan.residual, lambda index: index + second if index < first else index - first)
    turned = Join(plan.right, plan.left, JoinKind.LEFT, plan.right_keys, plan.left_keys, residual)
    return _reordered(turned, (*range(second, second + first), *range(second)))


def _inner_join(plan: Join, left: PulledPlan, right: PulledPlan, own: list[Expr], from_right: list[Expr]) -> PulledPlan:
    tied = [part for part in own if outer_references(part)]
    joined = join_on(left.plan, right.plan, plan.kind, conjunction(part for part in own if part not in tied))
    first, second = len(plan.left.fields), len(plan.right.fields)
    width, total = len(left.plan.fields), len(joined.fields)
    order = (*range(first), *range(width, width + second), *range(first, width), *range(width + second, total))
    predicates = (*left.predicates, *from_right, *tied)
    return _in_order(joined, order, predicates)


def _condition(plan: Join, width: int) -> list[Expr]:
    """The join's whole condition, over a left side that has grown to ``width`` columns."""
    before = len(plan.left.fields)
    equalities: list[Expr] = []
    for one, other in zip(plan.left_keys, plan.right_keys, strict=True):
        pair = (one, shift(other, width))
        same: Expr = Call("equal", pair, BOOLEAN)
        if plan.null_aware:
            unknown = [Call("is_null", (side,), BOOLEAN) for side in pair]
            same = Call("or", (Call("or", (same, unknown[0]), BOOLEAN), unknown[1]), BOOLEAN)
        equalities.append(same)
    rest = conjuncts(plan.residual)
    return equalities + [
        remap(part, lambda index: index if index < before else index - before + width) for part in rest
    ]


def _branches(plan: Union | SetOperation, outer: Plan) -> PulledPlan:
    """Every branch for each value of the query around; the values are further columns of all of them."""
    branches = plan.inputs if isinstance(plan, Union) else (plan.left, plan.right)
    width = len(plan.fields)
    pulled = [pull_up(branch, outer) for branch in branches]
    needed = list(dict.fromkeys(part for one in pulled for expr in one.predicates for part in outer_references(expr)))
    sides = []
    for one in pulled:
        beside, _ = with_domain(one, outer, needed)
        base = len(one.plan.fields)
        sides.append(_reordered(beside.plan, (*range(width), *range(base, base + len(needed)))))
    fields = plan.fields + tuple(Field(part.name, part.type) for part in needed)
    links = tuple(
        Call("equal_null_safe", (part, Column(width + index, part.name, part.type)), BOOLEAN)
        for index, part in enumerate(needed)
    )
    if isinstance(plan, Union):
        return PulledPlan(Union(tuple(sides), fields), links)
    return PulledPlan(replace(plan, left=sides[0], right=sides[1], fields=fields), links)


def _in_order(plan: Plan, order: Sequence[int], predicates: Iterable[Expr]) -> PulledPlan:
    """The plan with its columns in another order, and predicates over it."""
    places = {before: after for after, before in enumerate(order)}
    return PulledPlan(_reordered(plan, order), tuple(remap(part, places.__getitem__) for part in predicates))


def _reordered(plan: Plan, order: Iterable[int]) -> Plan:
    listed = tuple(order)
    if listed == tuple(range(len(plan.fields))):
        return plan
    chosen = tuple(Column(index, plan.fields[index].name, plan.fields[index].type) for index in listed)
    return Project(plan, chosen, tuple(plan.fields[index] for index in listed))


def _moved(node: Expr, place: Callable[[int], int]) -> Expr | None:
    return replace(node, index=place(node.index)) if isinstance(node, Column) else None
