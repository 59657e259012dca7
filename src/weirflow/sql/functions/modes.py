"""What becomes of a value that has no place in a type: which function means it, by Spark's evaluation mode.

Functions are named for ANSI mode, in which they raise. Without ANSI (``LEGACY``) integers wrap around and almost all
else is NULL; under ``TRY``, in Spark's ``try_add`` and its like, everything is. Each meaning has a name of its own, so
that a plan says it:

- ``wrapping_add``: integers keep their low bits, as Java's do.
- ``try_add``: NULL where ``add`` raises; a division by zero is NULL before its other side is looked at.
- ``legacy_cast``: a cast without ANSI.
- ``try``: NULL where its argument raises.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from weirflow.sql.expr import AggregateCall, Call, Expr, Literal
from weirflow.sql.types import INT, STRING, is_decimal, is_integral
from weirflow.sql.typing.casts import never_fails
from weirflow.sql.typing.coercion import cast

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.errors import SqlPosition


class EvalMode(StrEnum):
    """Spark's evaluation modes, by its names."""

    ANSI = "ANSI"
    LEGACY = "LEGACY"
    TRY = "TRY"


_WRAPPING = frozenset({"add", "subtract", "multiply", "negate", "abs", "round", "bround", "integral_divide", "sum"})
"""What integers wrap around in without ANSI."""
_NULL_FOR_INTEGERS = frozenset({"add", "subtract", "multiply", "sum"})
"""What ``TRY`` has a form of, and only integers and decimals can leave their type in."""
_NULL_FOR_DECIMALS = _NULL_FOR_INTEGERS | {"integral_divide", "avg"}
_NULL_FOR_ALL = frozenset(
    {"divide", "remainder", "pmod", "element_at", "get_array_item", "make_date", "elt", "parse_url"}
    | {"make_timestamp", "next_day", "parse_timestamp"}
)
_NO_TRY = frozenset({"integral_divide", "round", "bround", "negate", "abs", "pmod"})
"""What Spark has no ``TRY`` form of."""
_DIVIDING = frozenset({"corr", "skewness", "kurtosis", "regr_r2"})
"""Aggregates that divide at the end."""
_NO_SUCH_VALUE = -1
"""The size of NULL without ANSI."""


def name_in(mode: EvalMode, function: str, kind: pa.DataType) -> str | None:
    """The function that means ``function`` of arguments of this type in a mode; None if Spark has none.

    >>> import pyarrow as pa
    >>> name_in(EvalMode.LEGACY, "add", pa.int32()), name_in(EvalMode.LEGACY, "add", pa.decimal128(38, 2))
    ('wrapping_add', 'try_add')
    """
    if mode is EvalMode.ANSI:
        return function
    if mode is EvalMode.TRY and function in _NO_TRY:
        return None
    if mode is EvalMode.LEGACY and (function == "conv" or (function in _WRAPPING and is_integral(kind))):
        return f"wrapping_{function}"
    if (
        function in _NULL_FOR_ALL
        or function in _DIVIDING
        or (function in _NULL_FOR_INTEGERS and is_integral(kind))
        or (function in _NULL_FOR_DECIMALS and is_decimal(kind))
    ):
        return f"try_{function}"
    return function


def call_in(mode: EvalMode, call: Expr) -> Expr | None:
    """A call as the rules for ANSI mode make it, but with what it means in a mode; None if Spark has no such call."""
    if mode is EvalMode.ANSI or not isinstance(call, Call) or not call.arguments:
        return call
    if mode is EvalMode.LEGACY and call.function == "size":
        return Call("coalesce", (call, Literal(_NO_SUCH_VALUE, INT)), INT, call.position)
    name = name_in(mode, call.function, call.arguments[0].type)
    return None if name is None else replace(call, function=name)


def aggregate_in(mode: EvalMode, call: AggregateCall) -> AggregateCall | None:
    """As ``call_in``, for aggregates; windows have the names of aggregates."""
    name = name_in(mode, call.function, call.arguments[0].type) if call.arguments else call.function
    return None if name is None else replace(call, function=name)


def cast_in(mode: EvalMode, expr: Expr, kind: pa.DataType, position: SqlPosition | None = None) -> Expr:
    """A cast, of which Spark has said that there is one in the mode; in UTC."""
    exact = cast(expr, kind, position)
    if mode is EvalMode.ANSI or exact is expr or isinstance(exact, Literal):
        return exact
    if mode is EvalMode.TRY:
        return Call("try_cast", (expr,), kind, position)
    same = never_fails(expr.type, kind) and not (is_decimal(expr.type) and kind == STRING)
    return exact if same else Call("legacy_cast", (expr,), kind, position)
