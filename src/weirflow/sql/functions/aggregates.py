"""Aggregate functions: argument types, result types, and what their result depends on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.rules import Arguments, FunctionSignature, ResultType, result_type, same_as
from weirflow.sql.refusal import NotIncremental, Reason
from weirflow.sql.types import (
    BIGINT,
    BOOLEAN,
    DAY_TIME_INTERVAL,
    DOUBLE,
    YEAR_MONTH_INTERVAL,
    array_of,
    is_array,
    is_decimal,
    is_integral,
    is_interval,
    is_orderable,
    type_name,
)
from weirflow.sql.typing import decimals
from weirflow.sql.typing.coercion import ANY, INTEGRAL, NUMERIC

if TYPE_CHECKING:
    import pyarrow as pa


class Stability(StrEnum):
    """What else than the group's rows, as a multiset, the result depends on."""

    EXACT = "exact"
    """Nothing: equal rows give an equal result."""
    TIES = "ties"
    """The order of rows that tie: ``max_by``, ``mode``."""
    ORDER = "order"
    """The order of all rows: ``first``, ``collect_list``."""


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate: its canonical name, its parameters, its result."""

    signature: FunctionSignature
    stability: Stability = Stability.EXACT

    @property
    def name(self) -> str:
        """The canonical name."""
        return self.signature.name

    def bind(self, given: Arguments, position: SqlPosition | None) -> tuple[Arguments, pa.DataType]:
        """The arguments as they are evaluated, and the result's type."""
        arguments = self.signature.arguments(given, position)
        if self.name in ("min", "max") and not is_orderable(arguments[0].type):
            raise SqlTypeError(f"{self.name}() cannot order {type_name(arguments[0].type)}.", position=position)
        if self.name == "percentile" and not _is_share(arguments[1]):
            raise NotIncremental(
                "The share of percentile() is a literal between 0 and 1, or an array of such, where views are "
                "maintained by deltas.",
                reason=Reason.FUNCTION_NOT_PROVEN,
                position=position,
            )
        return arguments, result_type(self.signature.result, arguments)


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
    name: str, *parameters: object, result: ResultType, stability: Stability = Stability.EXACT, repeats: bool = False
) -> AggregateFunction:
    optional = 1 if repeats else 0
    return AggregateFunction(FunctionSignature(name, parameters, result, optional=optional, repeats=repeats), stability)


_NUMBER_OR_INTERVAL = (NUMERIC, DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL)
_ONE_DOUBLE = ("stddev_samp", "stddev_pop", "var_samp", "var_pop", "skewness", "kurtosis")
_TWO_DOUBLES = ("corr", "covar_pop", "covar_samp")
_ALL = (
    _aggregate("count", ANY, result=BIGINT, repeats=True),
    *(_aggregate(name, _NUMBER_OR_INTERVAL, result=_sum) for name in ("sum", "try_sum")),
    *(_aggregate(name, _NUMBER_OR_INTERVAL, result=_average) for name in ("avg", "try_avg")),
    *(_aggregate(name, ANY, result=same_as(0)) for name in ("min", "max")),
    *(_aggregate(name, ANY, ANY, result=same_as(0), stability=Stability.TIES) for name in ("min_by", "max_by")),
    *(_aggregate(name, DOUBLE, result=DOUBLE) for name in _ONE_DOUBLE),
    *(_aggregate(name, DOUBLE, DOUBLE, result=DOUBLE) for name in _TWO_DOUBLES),
    *(_aggregate(name, BOOLEAN, result=BOOLEAN) for name in ("bool_and", "bool_or")),
    *(_aggregate(name, INTEGRAL, result=same_as(0)) for name in ("bit_and", "bit_or", "bit_xor")),
    _aggregate("collect_list", ANY, result=_list, stability=Stability.ORDER),
    _aggregate("collect_set", ANY, result=_list, stability=Stability.ORDER),
    _aggregate("percentile", DOUBLE, (DOUBLE, array_of(DOUBLE)), result=_percentile),
    _aggregate("mode", ANY, result=same_as(0), stability=Stability.TIES),
    *(_aggregate(name, ANY, result=same_as(0), stability=Stability.ORDER) for name in ("first", "last", "any_value")),
    _aggregate("single_value", ANY, result=same_as(0)),
)
AGGREGATES: dict[str, AggregateFunction] = {function.name: function for function in _ALL}
INTERNAL_AGGREGATES = frozenset({"single_value"})
"""Made by the binder and its passes; not to be called by name."""
