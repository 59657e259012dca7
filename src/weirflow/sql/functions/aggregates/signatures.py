"""Aggregate functions: argument types and result types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.errors import NotIncremental, Reason, SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.rules import Arguments, FunctionSignature, ResultType, result_type, same_as
from weirflow.sql.functions.vectors import AVERAGE
from weirflow.sql.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DAY_TIME_INTERVAL,
    DOUBLE,
    INT,
    STRING,
    YEAR_MONTH_INTERVAL,
    array_of,
    is_array,
    is_atomic,
    is_decimal,
    is_integral,
    is_interval,
    is_orderable,
    type_name,
)
from weirflow.sql.typing import decimals
from weirflow.sql.typing.coercion import ANY, INTEGRAL, NUMERIC, ONLY_INTEGRAL

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate: its canonical name, its parameters, its result."""

    signature: FunctionSignature

    @property
    def name(self) -> str:
        """The canonical name."""
        return self.signature.name

    def bind(self, given: Arguments, position: SqlPosition | None) -> tuple[Arguments, pa.DataType]:
        """The arguments as they are evaluated, and the result's type."""
        arguments = self.signature.arguments(given, position)
        if self.name in ("min", "max") and not is_orderable(arguments[0].type):
            raise SqlTypeError(f"{self.name}() cannot order {type_name(arguments[0].type)}.", position=position)
        if self.name in _PERCENTILES and not _is_share(arguments[1]):
            raise NotIncremental(
                f"The share of {self.name}() is a literal between 0 and 1, or an array of such, where views are "
                "maintained by deltas.",
                reason=Reason.FUNCTION_NOT_PROVEN,
                position=position,
            )
        return arguments, result_type(self.signature.result, arguments)


def has_mode(kind: pa.DataType) -> bool:
    """Whether ``mode`` counts equal values of a type; of binary ones Spark counts each for itself."""
    return is_atomic(kind) and kind != BINARY


def _is_share(expr: Expr) -> bool:
    if isinstance(expr, Literal):
        return expr.value is not None and 0 <= expr.value <= 1
    return isinstance(expr, Call) and expr.function in ("array", "cast") and all(map(_is_share, expr.arguments))


def _sum(arguments: Arguments) -> pa.DataType:
    kind = arguments[0].type
    if is_decimal(kind):
        return decimals.bounded(kind.precision + 10, kind.scale)
    if is_integral(kind):
        return BIGINT
    return kind if is_interval(kind) else DOUBLE


def _average(arguments: Arguments) -> pa.DataType:
    kind = arguments[0].type
    if is_decimal(kind):
        return decimals.bounded(kind.precision + 4, kind.scale + 4)
    return kind if is_interval(kind) else DOUBLE


def _list(arguments: Arguments) -> pa.DataType:
    return array_of(arguments[0].type)


def _percentile(arguments: Arguments) -> pa.DataType:
    return array_of(DOUBLE) if is_array(arguments[1].type) else DOUBLE


def _aggregate(
    name: str, *parameters: object, result: ResultType, optional: int = 0, repeats: bool = False
) -> AggregateFunction:
    optional = 1 if repeats else optional
    return AggregateFunction(FunctionSignature(name, parameters, result, optional=optional, repeats=repeats))


_NUMBER_OR_INTERVAL = (NUMERIC, DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL)
_ONE_DOUBLE = ("stddev_samp", "stddev_pop", "var_samp", "var_pop", "skewness", "kurtosis")
_TWO_DOUBLES = (
    *("corr", "covar_pop", "covar_samp", "regr_sxx", "regr_syy", "regr_sxy"),
    *("regr_slope", "regr_intercept", "regr_r2"),
)
_PERCENTILES = ("percentile", "percentile_disc")
_ALL = (
    _aggregate("count", ANY, result=BIGINT, repeats=True),
    *(_aggregate(name, _NUMBER_OR_INTERVAL, result=_sum) for name in ("sum", "try_sum")),
    *(_aggregate(name, _NUMBER_OR_INTERVAL, result=_average) for name in ("avg", "try_avg")),
    *(_aggregate(name, ANY, result=same_as(0)) for name in ("min", "max")),
    *(_aggregate(name, ANY, ANY, result=same_as(0)) for name in ("min_by", "max_by")),
    *(_aggregate(name, DOUBLE, result=DOUBLE) for name in _ONE_DOUBLE),
    *(_aggregate(name, DOUBLE, DOUBLE, result=DOUBLE) for name in _TWO_DOUBLES),
    _aggregate("regr_count", NUMERIC, NUMERIC, result=BIGINT),
    _aggregate("regr_avgx", NUMERIC, NUMERIC, result=lambda arguments: _average(arguments[1:])),
    _aggregate("regr_avgy", NUMERIC, NUMERIC, result=_average),
    *(_aggregate(name, BOOLEAN, result=BOOLEAN) for name in ("bool_and", "bool_or")),
    *(_aggregate(name, ONLY_INTEGRAL, result=same_as(0)) for name in ("bit_and", "bit_or", "bit_xor")),
    _aggregate("collect_list", ANY, result=_list),
    _aggregate("collect_set", ANY, result=_list),
    *(
        _aggregate(name, DOUBLE, (DOUBLE, array_of(DOUBLE)), INTEGRAL, BOOLEAN, result=_percentile, optional=2)
        for name in _PERCENTILES
    ),
    _aggregate("mode", ANY, BOOLEAN, result=same_as(0)),
    _aggregate("listagg", (STRING, BINARY), (STRING, BINARY), result=same_as(0)),
    _aggregate("approx_count_distinct", BIGINT, INT, result=BIGINT),
    _aggregate("count_min_sketch", INTEGRAL, DOUBLE, DOUBLE, INT, result=BINARY),
    _aggregate(AVERAGE, array_of(DOUBLE), result=array_of(DOUBLE)),
    _aggregate("bitmap_construct_agg", BIGINT, result=BINARY),
    *(_aggregate(name, BINARY, result=BINARY) for name in ("bitmap_or_agg", "bitmap_and_agg")),
    *(_aggregate(name, ANY, result=same_as(0)) for name in ("first", "last", "any_value")),
    _aggregate("single_value", ANY, result=same_as(0)),
    _aggregate("squared_deviations", DOUBLE, result=DOUBLE),
)
AGGREGATES: dict[str, AggregateFunction] = {function.name: function for function in _ALL}
INTERNAL_AGGREGATES = frozenset({"single_value", "squared_deviations"})
"""Made by the binder and its passes; not to be called by name."""
