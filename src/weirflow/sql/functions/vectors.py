"""Functions of vectors: arrays of FLOAT or DOUBLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.errors import SqlPosition, SqlTypeError, did_you_mean
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.rules import Arguments, Rule, check_count
from weirflow.sql.types import DOUBLE, FLOAT, NULL, STRING, array_of, is_array, is_numeric, type_name
from weirflow.sql.typing.coercion import cast
from weirflow.types import VectorMetric

if TYPE_CHECKING:
    import pyarrow as pa

DISTANCE = "vector_distance"
NORM = "vector_norm"
AVERAGE = "vector_avg"
"""An aggregate."""


def _distance(given: Arguments, position: SqlPosition | None) -> Expr:
    """``vector_distance(a, b, metric)``: the smaller, the nearer; the metric is a literal."""
    check_count(DISTANCE, given, 3, 3, position)
    one, other = (vector(part, DISTANCE, position) for part in given[:2])
    metric = given[2]
    if not isinstance(metric, Literal) or metric.type != STRING or metric.value is None:
        raise SqlTypeError(
            f"The third argument of {DISTANCE}() is a literal: {', '.join(repr(str(one)) for one in VectorMetric)}.",
            position=position,
        )
    name = metric.value.casefold()
    if name not in list(VectorMetric):
        raise SqlTypeError(
            f"There is no metric {metric.value!r}; there are {', '.join(VectorMetric)}.",
            hint=did_you_mean(name, VectorMetric),
            position=position,
        )
    return Call(DISTANCE, (one, other, Literal(name, STRING)), DOUBLE, position)


def _norm(given: Arguments, position: SqlPosition | None) -> Expr:
    """``vector_norm(a)``: the square root of the sum of squares."""
    check_count(NORM, given, 1, 1, position)
    return Call(NORM, (vector(given[0], NORM, position),), DOUBLE, position)


def vector(expr: Expr, function: str, position: SqlPosition | None) -> Expr:
    """An argument as a vector: numbers other than FLOAT and DOUBLE become DOUBLE."""
    if expr.type == NULL:
        return Literal(None, array_of(DOUBLE))
    if not is_array(expr.type) or not (is_numeric(expr.type.value_type) or expr.type.value_type == NULL):
        raise SqlTypeError(
            f"{function}() takes arrays of numbers, not {type_name(expr.type)}.",
            hint="CAST it to ARRAY<FLOAT> or ARRAY<DOUBLE>",
            position=position,
        )
    return expr if is_vector(expr.type) else cast(expr, array_of(DOUBLE))


def is_vector(kind: pa.DataType) -> bool:
    """Whether a type is ARRAY<FLOAT> or ARRAY<DOUBLE>."""
    return is_array(kind) and kind.value_type in (FLOAT, DOUBLE)


VECTORS: dict[str, Rule] = {DISTANCE: _distance, NORM: _norm}
