"""Mathematical functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, alike, check_count, same_as
from weirflow.sql.types import (
    BIGINT,
    BOOLEAN,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    decimal,
    is_decimal,
    is_orderable,
    type_name,
)
from weirflow.sql.typing import decimals
from weirflow.sql.typing.coercion import DECIMAL, INTEGRAL, NUMERIC, ONLY_DECIMAL, cast, unify

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBER_OR_INTERVAL = (NUMERIC, DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL)
_AS_DECIMAL = {
    DOUBLE: decimal(30, 15),
    FLOAT: decimal(14, 7),
    **{kind: decimals.for_integral(kind) for kind in (TINYINT, SMALLINT, INT, BIGINT)},
}
_DOUBLE_NAMES = """
sqrt cbrt exp expm1 ln log10 log2 log1p sin cos tan cot sec csc asin acos atan sinh cosh tanh asinh acosh atanh
degrees radians rint
"""
_DOUBLE_FUNCTIONS = _DOUBLE_NAMES.split()


def _whole(name: str) -> Rule:
    """``ceil`` and ``floor``: a bigint, or a decimal without fraction."""
    one = FunctionSignature(name, ((DOUBLE, DECIMAL, BIGINT),), _whole_type)

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        return _to_scale(name, given, position) if len(given) == 2 else one(given, position)  # noqa: PLR2004 - a scale

    return rule


def _to_scale(name: str, given: Arguments, position: SqlPosition | None) -> Expr:
    """With a literal scale, of a decimal: doubles become one of 15 digits behind the point."""
    if given[0].type == NULL:
        raise SqlTypeError(f"{name}() with a scale takes a number, not NULL.", position=position)
    made = (as_decimal(given[0], position), given[1])
    number, scale = FunctionSignature(name, (ONLY_DECIMAL, INT), same_as(0)).arguments(made, position)
    if not isinstance(scale, Literal) or scale.value is None:
        raise SqlTypeError(f"The scale of {name}() must be a number, not an expression.", position=position)
    return Call(name, (number, scale), decimals.rounded(number.type, scale.value), position)


def as_decimal(number: Expr, position: SqlPosition | None) -> Expr:
    """A number where Spark wants a decimal."""
    return cast(number, _AS_DECIMAL[number.type], position) if number.type in _AS_DECIMAL else number


def _whole_type(arguments: Arguments) -> pa.DataType:
    kind = arguments[0].type
    if not is_decimal(kind):
        return BIGINT
    return decimals.bounded(kind.precision - kind.scale + 1, 0) if kind.scale else decimal(kind.precision, 0)


def _rounding(name: str) -> Rule:
    """``round`` and ``bround``; the scale is a literal because the result's type depends on it."""
    two = FunctionSignature(name, (NUMERIC, INT), same_as(0), (Literal(0, INT),))

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        number, scale = two.arguments(given, position)
        if not isinstance(scale, Literal) or scale.value is None:
            raise SqlTypeError(f"The scale of {name}() must be a number, not an expression.", position=position)
        kind = decimals.rounded(number.type, scale.value) if is_decimal(number.type) else number.type
        return Call(name, (number, scale), kind, position)

    return rule


def _logarithm(given: Arguments, position: SqlPosition | None) -> Expr:
    """``log(x)`` is natural; ``log(base, x)`` is its own function."""
    if len(given) == 1:
        return FunctionSignature("ln", (DOUBLE,), DOUBLE)(given, position)
    return FunctionSignature("log", (DOUBLE, DOUBLE), DOUBLE)(given, position)


def _constant(name: str, value: float) -> Rule:
    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count(name, given, 0, 0, position)
        return Literal(value, DOUBLE)

    return rule


def _nanvl(given: Arguments, position: SqlPosition | None) -> Expr:
    """The second number, which is evaluated for no other row, where the first is NaN."""
    either = (DOUBLE, FLOAT)
    number, other = FunctionSignature("nanvl", (either, either), DOUBLE).arguments(given, position)
    if given[1].type == NULL:
        other = Literal(None, number.type)
    if number.type != other.type:
        number, other = cast(number, DOUBLE, position), cast(other, DOUBLE, position)
    is_nan = Call("is_nan", (number,), BOOLEAN, position)
    return Call("case", (is_nan, other, number), number.type, position)


def _extreme(name: str) -> Rule:
    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        call = alike(name, mixes_strings=False)(given, position)
        if not is_orderable(call.type):
            raise SqlTypeError(f"{name}() cannot order {type_name(call.type)}.", position=position)
        return call

    return rule


def _bitwise(name: str) -> Rule:
    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count(name, given, 2, 2, position)
        pair = unify(given, name, position)
        arguments = FunctionSignature(name, (INTEGRAL, INTEGRAL), same_as(0)).arguments(pair, position)
        return Call(name, arguments, arguments[0].type, position)

    return rule


NUMBERS: dict[str, Rule] = {
    **{name: FunctionSignature(name, (DOUBLE,), DOUBLE) for name in _DOUBLE_FUNCTIONS},
    **{name: FunctionSignature(name, (DOUBLE, DOUBLE), DOUBLE) for name in ("power", "atan2", "hypot")},
    "log": _logarithm,
    "pi": _constant("pi", math.pi),
    "e": _constant("e", math.e),
    "nanvl": _nanvl,
    "width_bucket": FunctionSignature("width_bucket", (DOUBLE, DOUBLE, DOUBLE, BIGINT), BIGINT),
    "abs": FunctionSignature("abs", (_NUMBER_OR_INTERVAL,), same_as(0)),
    "sign": FunctionSignature("sign", ((DOUBLE, DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL),), DOUBLE),
    "positive": lambda given, position: FunctionSignature("positive", (_NUMBER_OR_INTERVAL,), same_as(0)).arguments(
        given, position
    )[0],
    "ceil": _whole("ceil"),
    "floor": _whole("floor"),
    "round": _rounding("round"),
    "bround": _rounding("bround"),
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "factorial": FunctionSignature("factorial", (INT,), BIGINT),
    **{name: _bitwise(name) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{name: FunctionSignature(name, ((INT, BIGINT), INT), same_as(0)) for name in ("shiftleft", "shiftright")},
    "is_nan": FunctionSignature("is_nan", ((DOUBLE, FLOAT),), BOOLEAN),
}
