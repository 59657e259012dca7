"""LATERAL: the join of each row with the rows that a query over it has, as joins without references outwards."""

from __future__ import annotations

from dataclasses import replace

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.expr import Call, Column, Expr, Literal
from weirflow.sql.passes.conditions import conjunction, conjuncts
from weirflow.sql.passes.correlation import (
    columns_of,
    first_columns,
    has_one_row,
    is_correlated,
    merged_one_level,
    over_both,
    tied_over_both,
)
from weirflow.sql.passes.decorrelate import decorrelate
from weirflow.sql.passes.failure import null_folded
from weirflow.sql.passes.nearest import nearest_join
from weirflow.sql.passes.pull_up import columns_over_nothing, join_on, pull_up, with_marker
from weirflow.sql.plan import Filter, Generate, JoinKind, Plan, Project, Values
from weirflow.sql.traverse import map_arguments, nodes
from weirflow.sql.types import BOOLEAN
from weirflow.stack import grows


def lateral_join(left: Plan, right: Plan, kind: JoinKind, predicate: Expr | None = None) -> Plan:
    """Each row of ``left`` beside the rows of ``right``, whose outer columns of depth 1 are the columns of that row.

    Args:
        left: what stands before LATERAL.
        right: the query, or the generator over a single row.
        kind: INNER, or LEFT to keep rows for which ``right`` has none.
        predicate: over the columns of both.
    """
    inner = merged_one_level(decorrelate(right))
    if kind is JoinKind.LEFT and predicate is None and _makes_rows_of_one(inner):
        raise NotIncremental(
            "LEFT JOIN LATERAL of a generator needs ON: without it, Spark leaves out rows that generate none.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint="write ON true, or JOIN without LEFT",
        )
    always = isinstance(predicate, Literal) and predicate.value is True
    condition = None if always else predicate
    found = _in_place(left, inner, kind, condition)
    if found is not None:
        return found
    if has_one_row(inner) and is_correlated(inner) and (kind is JoinKind.INNER or condition is None):
        return _chosen(_one_row_each(left, inner), condition)
    if kind is JoinKind.INNER or (kind is JoinKind.LEFT and condition is None):
        nearest = nearest_join(left, inner, outer=kind is JoinKind.LEFT)
        if nearest is not None:
            return _chosen(nearest, condition)
    pulled = pull_up(inner, left)
    width = len(left.fields)
    both = conjunction([*conjuncts(condition), *conjuncts(tied_over_both(pulled.predicates, width))])
    return first_columns(join_on(left, pulled.plan, kind, both), width + len(right.fields))


def _chosen(plan: Plan, condition: Expr | None) -> Plan:
    return plan if condition is None else Filter(plan, condition)


def _in_place(left: Plan, inner: Plan, kind: JoinKind, condition: Expr | None) -> Plan | None:
    """What reads no relation of its own, computed over the rows of ``left`` itself; None if it is no such query."""
    if kind is JoinKind.LEFT:
        if condition is not None or not _is_plain(inner):
            return None
        inner = replace(inner, outer=True) if isinstance(inner, Generate) else inner
    placed = _over(left, inner)
    return None if placed is None else _chosen(placed, condition)


def _makes_rows_of_one(inner: Plan) -> bool:
    """Whether a generator, and nothing that reads a relation, makes the rows."""
    return any(isinstance(node, Generate) for node in nodes(inner)) and _over(inner, inner) is not None


def _is_plain(inner: Plan) -> bool:
    """Whether it has a row for each of the left side's, but for a generator on top that can make one of nothing."""
    if isinstance(inner, Generate):
        inner = inner.input
    while isinstance(inner, Project):
        inner = inner.input
    return isinstance(inner, Values)


@grows
def _over(left: Plan, inner: Plan) -> Plan | None:
    """The columns of ``left``, then those of ``inner``, if that is made of a single row without columns."""
    width = len(left.fields)
    match inner:
        case Values(rows=((),)):
            return left
        case Project() | Filter() | Generate():
            below = _over(left, inner.input)
        case _:
            return None
    if below is None:
        return None
    if isinstance(inner, Filter):
        return Filter(below, over_both(inner.predicate, width))
    if isinstance(inner, Generate):
        call = map_arguments(inner.generator, lambda part: over_both(part, width))
        made = inner.fields[len(inner.input.fields) :]
        return Generate(below, call, inner.outer, below.fields + made)
    own = columns_of(left)
    return Project(below, own + tuple(over_both(part, width) for part in inner.expressions), left.fields + inner.fields)


def _one_row_each(left: Plan, inner: Plan) -> Plan:
    """An aggregate without keys has one row for each row on the left, also where there is nothing to aggregate."""
    width = len(left.fields)
    pulled = pull_up(inner, left, empty_groups=False)
    marked, marker = with_marker(pulled.plan, width)
    joined = join_on(left, marked, JoinKind.LEFT, tied_over_both(pulled.predicates, width))
    values: list[Expr] = []
    for index, (default, field) in enumerate(zip(columns_over_nothing(inner), inner.fields, strict=True)):
        value = Column(width + index, field.name, field.type)
        absent = null_folded(over_both(default, width))
        is_null = isinstance(absent, Literal) and absent.value is None
        missing = Call("is_null", (marker,), BOOLEAN)
        values.append(value if is_null else Call("case", (missing, absent, value), field.type))
    return Project(joined, (*columns_of(left), *values), left.fields + inner.fields)
