"""Correlated predicates: how a subquery's rows depend on the row of the query around it.

While a subquery is being merged, a column of the query around it is an ``OuterColumn`` of depth 0 (``HERE``); deeper
ones belong to queries further out and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from weirflow.sql.expr import Call, Column, Expr, OuterColumn
from weirflow.sql.passes.conditions import conjunction
from weirflow.sql.plan import Aggregate, Distinct, Field, Join, JoinKind, Plan, Project
from weirflow.sql.traverse import columns, expressions, inputs, map_expressions, nodes, parts, rewrite, with_inputs
from weirflow.sql.types import BOOLEAN
from weirflow.stack import grows

HERE = 0


@dataclass(frozen=True)
class PulledPlan:
    """A plan that no longer depends on the query around it, and the predicates that do.

    Predicates read ``OuterColumn`` of depth 0 and columns of the plan, whose first columns are those it had before.
    """

    plan: Plan
    predicates: tuple[Expr, ...] = ()


@grows
def merged_one_level(plan: Plan) -> Plan:
    """A subquery's plan seen from the query it is merged into: every reference outwards is one level nearer."""
    if not plan.reaches_out:
        return plan
    below = with_inputs(plan, tuple(merged_one_level(child) for child in inputs(plan)))
    return map_expressions(below, lambda expr: rewrite(expr, _nearer))


def _nearer(part: Expr) -> Expr | None:
    return replace(part, depth=part.depth - 1) if isinstance(part, OuterColumn) else None


def outer_references(expr: Expr) -> list[OuterColumn]:
    """The columns of the query around that ``expr`` reads, each once."""
    return list(dict.fromkeys(part for part in parts(expr) if isinstance(part, OuterColumn) and part.depth == HERE))


def is_correlated(plan: Plan) -> bool:
    """Whether the plan reads columns of the query around it."""
    return plan.reaches_out and any(outer_references(expr) for node in nodes(plan) for expr in expressions(node))


def domain(outer: Plan, references: Iterable[OuterColumn]) -> Plan:
    """The different values that these columns take in the query around."""
    listed = tuple(references)
    fields = tuple(Field(outer.fields[part.index].name, part.type) for part in listed)
    source, places = _origin(outer, [part.index for part in listed])
    chosen = (Column(index, part.name, part.type) for index, part in zip(places, listed, strict=True))
    return Distinct(Project(source, tuple(chosen), fields))


def _origin(plan: Plan, indexes: list[int]) -> tuple[Plan, list[int]]:
    """The plan below in which these columns take the same values already, and where they are there."""
    while True:
        if isinstance(plan, Project):
            below = [one.index for index in indexes if isinstance(one := plan.expressions[index], Column)]
            if len(below) < len(indexes):
                return plan, indexes
            plan, indexes = plan.input, below
        elif isinstance(plan, Join) and _keeps_left(plan) and all(index < len(plan.left.fields) for index in indexes):
            plan = plan.left
        else:
            return plan, indexes


def _keeps_left(plan: Join) -> bool:
    """Whether each row of the left side is in the join, once or several times."""
    if plan.kind is JoinKind.INNER:
        return not plan.left_keys and plan.residual is None and has_one_row(plan.right)
    return plan.kind is JoinKind.LEFT


def has_one_row(plan: Plan) -> bool:
    """Whether the plan is an aggregate without keys, under projections."""
    while isinstance(plan, Project):
        plan = plan.input
    return isinstance(plan, Aggregate) and not plan.keys and plan.grouping_sets is None


def columns_of(plan: Plan) -> tuple[Column, ...]:
    """The plan's own columns."""
    return tuple(Column(index, field.name, field.type) for index, field in enumerate(plan.fields))


def first_columns(plan: Plan, width: int) -> Plan:
    """The plan without what comes behind its first columns."""
    if len(plan.fields) == width:
        return plan
    return Project(plan, columns_of(plan)[:width], plan.fields[:width])


def over_both(expr: Expr, width: int) -> Expr:
    """What reads the query around and a plan, over the ``width`` columns around followed by the plan's."""

    def place(part: Expr) -> Expr | None:
        if isinstance(part, Column):
            return replace(part, index=part.index + width)
        if isinstance(part, OuterColumn) and part.depth == HERE:
            return Column(part.index, part.name, part.type)
        return None

    return rewrite(expr, place)


def tied_over_both(predicates: Iterable[Expr], width: int) -> Expr | None:
    """Predicates between the two levels, as a condition over the outer columns followed by the inner ones."""
    return conjunction(over_both(part, width) for part in predicates)


def with_domain(
    pulled: PulledPlan, outer: Plan, references: Iterable[OuterColumn]
) -> tuple[PulledPlan, dict[OuterColumn, Expr]]:
    """The plan beside every value of ``references``, and which of its columns now holds each.

    Predicates that read only those references become part of the join; each reference adds ``outer <=> its column``.
    """
    listed = list(dict.fromkeys(references))
    width = len(pulled.plan.fields)
    held: dict[OuterColumn, Expr] = {
        part: Column(width + index, part.name, part.type) for index, part in enumerate(listed)
    }
    inside = [part for part in pulled.predicates if set(outer_references(part)) <= held.keys()]
    outside = tuple(part for part in pulled.predicates if part not in inside)
    condition = conjunction(hold(part, held) for part in inside)
    joined = Join(pulled.plan, domain(outer, listed), JoinKind.INNER, (), (), condition)
    links = tuple(Call("equal_null_safe", (part, column), BOOLEAN) for part, column in held.items())
    return PulledPlan(joined, outside + links), held


def hold(expr: Expr, held: dict[OuterColumn, Expr]) -> Expr:
    """``expr`` with references outwards replaced by the columns that hold them."""
    return rewrite(expr, lambda part: held.get(part) if isinstance(part, OuterColumn) else None)


@dataclass(frozen=True)
class Link:
    """An equality between an expression over the query around and one over the plan."""

    outer: Expr
    inner: Expr
    null_safe: bool

    def predicate(self, inner: Expr) -> Expr:
        """The equality, with another expression on the plan's side."""
        return Call("equal_null_safe" if self.null_safe else "equal", (self.outer, inner), BOOLEAN)


def link(predicate: Expr) -> Link | None:
    """The predicate as an equality between the two sides, or None if it is something else."""
    if not isinstance(predicate, Call) or predicate.function not in ("equal", "equal_null_safe"):
        return None
    null_safe = predicate.function == "equal_null_safe"
    for one, other in (predicate.arguments, predicate.arguments[::-1]):
        if outer_references(one) and not columns(one) and not outer_references(other) and columns(other):
            return Link(one, other, null_safe)
    return None


def keyed(pulled: PulledPlan, outer: Plan) -> tuple[PulledPlan, list[Link]]:
    """The plan with all its predicates as equalities; the others are settled against the domain first."""
    others = [part for part in pulled.predicates if link(part) is None]
    if others:
        pulled, _ = with_domain(pulled, outer, (part for other in others for part in outer_references(other)))
    links = [link(part) for part in pulled.predicates]
    return pulled, [one for one in links if one is not None]


def with_key_columns(pulled: PulledPlan, outer: Plan, width: int) -> tuple[Plan, list[Expr]]:
    """A projection of the plan's first ``width`` columns and one column for each equality.

    Also the equalities, each between the query around and its key column.
    """
    settled, links = keyed(pulled, outer)
    kept = tuple(Column(index, field.name, field.type) for index, field in enumerate(settled.plan.fields[:width]))
    fields = settled.plan.fields[:width] + tuple(
        Field(f"_link{index}", one.inner.type) for index, one in enumerate(links)
    )
    plan = Project(settled.plan, kept + tuple(one.inner for one in links), fields)
    tied = [one.predicate(Column(width + index, f"_link{index}", one.inner.type)) for index, one in enumerate(links)]
    return plan, tied
