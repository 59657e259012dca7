"""LATERAL top-k by a distance of vectors: the nearest rows for each row, as one node."""

from __future__ import annotations

from weirflow.sql.expr import AggregateCall, Call, Column, Expr, Literal, OuterColumn, SortKey
from weirflow.sql.functions.vectors import DISTANCE, is_vector
from weirflow.sql.passes.correlation import columns_of, is_correlated, outer_references, over_both
from weirflow.sql.plan import Aggregate, Field, Filter, Join, JoinKind, Nearest, Plan, Project, TopK, Union
from weirflow.sql.traverse import columns, map_order, parts, rewrite
from weirflow.sql.types import BIGINT, BOOLEAN, DOUBLE
from weirflow.types import VectorMetric

_MOST = 10_000
"""Who asks for more of the nearest than that asks for an order of all rows."""
_LARGEST = 10_000
"""An expression does not grow beyond this size by putting projections into each other."""


def nearest_join(left: Plan, inner: Plan, *, outer: bool = False) -> Plan | None:
    """``left`` beside the rows of ``inner``, a query seen from the one it is merged into; None if it is another query.

    It is one if it orders rows by their distance to a vector of the row around, ascending, and takes the first of them,
    and if nothing else chooses rows by the row around. With ``outer``, a row for which there are none is there once.
    """
    shown: list[Expr] = [Column(at, field.name, field.type) for at, field in enumerate(inner.fields)]
    node = inner
    while isinstance(node, Project):
        shown, node = [_within(one, node) for one in shown], node.input
    if not isinstance(node, TopK) or node.limit is None or node.offset or not 0 < node.limit <= _MOST:
        return None
    limit, order, node = node.limit, node.order, node.input
    while isinstance(node, Project) and is_correlated(node):
        shown, order = [_within(one, node) for one in shown], _order_within(order, node)
        node = node.input
        if any(one.size > _LARGEST for one in shown):
            return None
    if not order or is_correlated(node):
        return None
    first, *rest = order
    found = _distance(first)
    if found is None or any(_is_tied(key.expr) for key in rest):
        return None
    query, document, metric = found
    width, whole = len(left.fields), len(left.fields) + len(node.fields)
    distance = Column(whole, "_distance", DOUBLE)
    made = Nearest(
        left,
        node,
        over_both(query, 0),
        document,
        metric,
        tuple(rest),
        limit,
        first.nulls_first,
        tuple(range(width)),
        tuple(range(len(node.fields))),
    )

    def place(part: Expr) -> Expr | None:
        """What reads the distance reads it where it was computed, also where it is written out once more."""
        if part == first.expr:
            return distance
        return over_both(part, width) if isinstance(part, Column | OuterColumn) else None

    own = tuple(Column(at, field.name, field.type) for at, field in enumerate(left.fields))
    beside = Project(made, (*own, *(rewrite(one, place) for one in shown)), left.fields + inner.fields)
    return Union((beside, _alone(left, node, inner.fields)), beside.fields) if outer else beside


def _alone(left: Plan, documents: Plan, missing: tuple[Field, ...]) -> Plan:
    """The rows of ``left`` with NULLs beside them, if there are no documents: as long as there is one, all have some.

    That there are none is a relation of one row, which does not change while there are more or fewer of them.
    """
    count = Column(0, "_count", BIGINT)
    counted = Aggregate(documents, (), (AggregateCall("count", (), BIGINT),), (Field(count.name, BIGINT),))
    none = Filter(counted, Call("equal", (count, Literal(0, BIGINT)), BOOLEAN))
    beside = Join(left, none, JoinKind.INNER, (), ())
    nulls = tuple(Literal(None, field.type) for field in missing)
    return Project(beside, (*columns_of(left), *nulls), left.fields + missing)


def _within(expr: Expr, below: Project) -> Expr:
    return rewrite(expr, lambda part: below.expressions[part.index] if isinstance(part, Column) else None)


def _order_within(order: tuple[SortKey, ...], below: Project) -> tuple[SortKey, ...]:
    return map_order(order, lambda one: _within(one, below))


def _is_tied(expr: Expr) -> bool:
    return bool(outer_references(expr))


def _distance(key: SortKey) -> tuple[Expr, Expr, VectorMetric] | None:
    """The vector around, the row's own, and the metric, of a sort key that is a distance between the two."""
    call = key.expr
    if key.descending or not isinstance(call, Call) or call.function != DISTANCE:
        return None
    *vectors, metric = call.arguments
    for query, document in (vectors, vectors[::-1]):
        around = outer_references(query) and not columns(query)
        own = columns(document) and not any(map(_is_tied, parts(document)))
        if around and own and isinstance(metric, Literal):
            return _plain(query), _plain(document), VectorMetric(metric.value)
    return None


def _plain(vector: Expr) -> Expr:
    """A vector without a cast from FLOAT to DOUBLE, which a distance does itself."""
    if isinstance(vector, Call) and vector.function == "cast" and is_vector(vector.arguments[0].type):
        return vector.arguments[0] if vector.type.value_type == DOUBLE else vector
    return vector
