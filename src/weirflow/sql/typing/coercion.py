"""Spark's implicit casts in ANSI mode: which type two expressions meet in, what a function's argument may become."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRAL_DIGITS,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    array_of,
    is_array,
    is_atomic,
    is_datetime,
    is_decimal,
    is_integral,
    is_interval,
    is_numeric,
    type_name,
)
from weirflow.sql.typing import decimals
from weirflow.sql.typing.casts import can_cast
from weirflow.sql.typing.moments import moment

_INTEGRAL_ORDER = tuple(INTEGRAL_DIGITS)
_EXACT = Context(prec=100)


@dataclass(frozen=True)
class Family:
    """A set of types a function takes; ``default`` is what strings and NULL become."""

    name: str
    accepts: Callable[[pa.DataType], bool]
    default: pa.DataType
    casts: bool = True
    """Whether other types are cast to the default; if not, only NULL is."""


ANY = Family("any type", lambda _: True, NULL)
NUMERIC = Family("numeric", is_numeric, DOUBLE)
INTEGRAL = Family("integral", is_integral, BIGINT)
ONLY_INTEGRAL = Family("integral", is_integral, BIGINT, casts=False)
ONLY_NUMERIC = Family("numeric", is_numeric, DOUBLE, casts=False)
ONLY_INT = Family("int", lambda kind: bool(kind == INT), INT, casts=False)
ONLY_STRING = Family("string", lambda kind: bool(kind == STRING), STRING, casts=False)
ONLY_TIMESTAMP = Family("timestamp", lambda kind: bool(kind == TIMESTAMP), TIMESTAMP, casts=False)
ANY_TIMESTAMP = Family("timestamp", lambda kind: kind in (TIMESTAMP, TIMESTAMP_NTZ), TIMESTAMP)
NESTED_ARRAY = Family("array of arrays", lambda kind: is_array(kind) and is_array(kind.value_type), NULL, casts=False)
ARRAY = Family("array", is_array, array_of(NULL))
MAP = Family("map", lambda kind: bool(pa.types.is_map(kind)), pa.map_(STRING, NULL))
INTERVAL = Family("interval", is_interval, NULL)
DECIMAL = Family("decimal", is_decimal, pa.decimal128(10, 0))
ONLY_DECIMAL = Family("decimal", is_decimal, pa.decimal128(10, 0), casts=False)

Expected: TypeAlias = "pa.DataType | Family | tuple[Any, ...]"
"""What an argument must be: a type, a family of types, or the first that fits of several."""


def cast(expr: Expr, kind: pa.DataType, position: SqlPosition | None = None) -> Expr:
    """``expr`` as ``kind``: itself, a literal that holds the same value exactly, or an explicit ``cast`` call.

    Raises:
        NotIncremental: it is a constant text that ``moments.moment`` refuses.
    """
    if expr.type == kind:
        return expr
    folded = _cast_literal(expr, kind) if isinstance(expr, Literal) else None
    folded = moment(expr, kind, position) if folded is None else folded
    return Call("cast", (expr,), kind, position) if folded is None else folded


def explicit_cast(expr: Expr, kind: pa.DataType, position: SqlPosition | None = None) -> Expr:
    """``CAST(expr AS kind)``; ``SqlTypeError`` when there is no such cast."""
    if not can_cast(expr.type, kind):
        raise SqlTypeError(f"{type_name(expr.type)} cannot be cast to {type_name(kind)}.", position=position)
    return cast(expr, kind, position)


def common_type(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    """The type that CASE, COALESCE, IN, UNION and arrays give values of these types; None if there is none."""
    return reduce(_wider, kinds, NULL)


def unify(expressions: Iterable[Expr], what: str, position: SqlPosition | None = None) -> tuple[Expr, ...]:
    """All expressions in their common type; ``SqlTypeError`` about ``what`` if they have none."""
    listed = tuple(expressions)
    kind = common_type(expr.type for expr in listed)
    if kind is None:
        names = ", ".join(dict.fromkeys(type_name(expr.type) for expr in listed))
        raise SqlTypeError(f"{what} mixes types that do not fit together: {names}.", position=position)
    return tuple(cast(expr, kind, position) for expr in listed)


def comparable(left: Expr, right: Expr, what: str, position: SqlPosition | None = None) -> tuple[Expr, Expr]:
    """Both sides of a comparison in the type Spark compares them in."""
    left_type, right_type = _decimal_if_mixed(left, right), _decimal_if_mixed(right, left)
    kind = _wider(left_type, right_type)
    if kind is None:
        raise SqlTypeError(
            f"{what} cannot compare {type_name(left.type)} with {type_name(right.type)}.", position=position
        )
    return cast(left, kind, position), cast(right, kind, position)


def implicit(  # noqa: PLR0911 - one return for each rule
    expr: Expr, expected: Expected, position: SqlPosition | None = None
) -> Expr | None:
    """``expr`` as a function's argument of type ``expected``, or None when Spark does not cast it by itself."""
    if isinstance(expected, tuple):
        exact = next((option for option in expected if _accepts(option, expr.type)), None)
        if exact is not None:
            return expr
        tried = (implicit(expr, option, position) for option in expected)
        return next((found for found in tried if found is not None), None)
    if _accepts(expected, expr.type):
        return expr
    target = expected.default if isinstance(expected, Family) else expected
    if expr.type == NULL:
        return cast(expr, target, position)
    if isinstance(expected, Family) and not expected.casts:
        return None
    if expr.type == STRING:
        castable = is_atomic(target) and not is_interval(target)
        return cast(expr, target, position) if castable else None
    if isinstance(expected, Family):
        if expected is DECIMAL and is_integral(expr.type):
            return cast(expr, decimals.for_integral(expr.type), position)
        widened = expected is NUMERIC and is_numeric(expr.type)
        dated = expected is ANY_TIMESTAMP and expr.type == DATE
        return cast(expr, target, position) if widened or dated else None
    return cast(expr, target, position) if _assignable(expr.type, target) else None


def expected_name(expected: Expected) -> str:
    """What to call an expected type in an error."""
    if isinstance(expected, tuple):
        return " or ".join(expected_name(option) for option in expected)
    return expected.name if isinstance(expected, Family) else type_name(expected)


def decimal_operand(expr: Expr) -> pa.DataType:
    """The decimal an integer operand stands for beside a decimal; a literal needs just its own digits."""
    if is_integral(expr.type):
        return decimals.for_integral(expr.type, expr.value if isinstance(expr, Literal) else None)
    return expr.type


def _decimal_if_mixed(expr: Expr, other: Expr) -> pa.DataType:
    return decimal_operand(expr) if is_decimal(other.type) else expr.type


def _accepts(expected: pa.DataType | Family, kind: pa.DataType) -> bool:
    return expected.accepts(kind) if isinstance(expected, Family) else bool(expected == kind)


def _assignable(source: pa.DataType, target: pa.DataType) -> bool:
    """ANSI store assignment between types that are not strings."""
    if is_numeric(source) and is_numeric(target):
        return True
    if is_datetime(source) and is_datetime(target):
        return True
    if target == STRING:
        return is_atomic(source)
    if is_array(source) and is_array(target):
        return source.value_type == NULL or _assignable(source.value_type, target.value_type)
    return False


def _wider(left: pa.DataType | None, right: pa.DataType | None) -> pa.DataType | None:  # noqa: PLR0911 - one per rule
    if left is None or right is None:
        return None
    if right in (left, NULL):
        return left
    if left == NULL:
        return right
    if is_numeric(left) and is_numeric(right):
        return _wider_number(left, right)
    if is_datetime(left) and is_datetime(right):
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    if STRING in (left, right):
        return _wider_than_string(right if left == STRING else left)
    if pa.types.is_nested(left) and pa.types.is_nested(right):
        return _wider_nested(left, right)
    return None


def _wider_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if is_integral(left) and is_integral(right):
        return max(left, right, key=_INTEGRAL_ORDER.index)
    if left in (FLOAT, DOUBLE) or right in (FLOAT, DOUBLE):
        return DOUBLE  # also for float with an integer or decimal, which float might not hold
    parts = [decimals.for_integral(kind) if is_integral(kind) else kind for kind in (left, right)]
    return decimals.wider(*parts)


def _wider_than_string(other: pa.DataType) -> pa.DataType | None:
    if is_integral(other):
        return BIGINT
    if is_numeric(other):
        return DOUBLE
    return other if is_atomic(other) and not is_interval(other) else None


def _wider_nested(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if is_array(left) and is_array(right):
        element = _wider(left.value_type, right.value_type)
        return None if element is None else array_of(element)
    if pa.types.is_map(left) and pa.types.is_map(right):
        key, item = _wider(left.key_type, right.key_type), _wider(left.item_type, right.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if pa.types.is_struct(left) and pa.types.is_struct(right) and left.num_fields == right.num_fields:
        kinds = [_wider(a.type, b.type) for a, b in zip(left, right, strict=True)]
        same_names = all(a.name.casefold() == b.name.casefold() for a, b in zip(left, right, strict=True))
        if same_names and all(kind is not None for kind in kinds):
            return pa.struct([pa.field(part.name, kind) for part, kind in zip(left, kinds, strict=True)])
    return None


def _cast_literal(literal: Literal, kind: pa.DataType) -> Literal | None:
    """The literal in another type when no rule of casting can matter; None otherwise."""
    value = literal.value
    if value is None:
        return Literal(None, kind)
    if isinstance(value, bool) or kind == BOOLEAN or not (is_numeric(literal.type) and is_numeric(kind)):
        return None
    if is_integral(literal.type) and is_integral(kind):
        fits = -(1 << (kind.bit_width - 1)) <= value < (1 << (kind.bit_width - 1))
        return Literal(value, kind) if fits else None
    if is_decimal(kind) and isinstance(value, int | Decimal):
        scaled = Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
        return Literal(scaled, kind) if scaled == value and _fits(scaled, kind) else None
    if kind == DOUBLE and isinstance(value, int | Decimal):
        return Literal(float(value), kind)
    return None


def _fits(value: Decimal, kind: pa.DataType) -> bool:
    return value == 0 or value.adjusted() + 1 <= kind.precision - kind.scale
