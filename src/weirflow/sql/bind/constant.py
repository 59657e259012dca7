"""Constants that are written as expressions: the number that LIMIT, or a table function, is given."""

from __future__ import annotations

from collections.abc import Callable

from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.types import STRING, is_integral
from weirflow.stack import grows

_OPERATIONS: dict[str, Callable[..., int]] = {
    "add": lambda one, other: one + other,
    "subtract": lambda one, other: one - other,
    "multiply": lambda one, other: one * other,
    "negate": lambda one: -one,
}


@grows
def whole_number(expr: Expr) -> int | None:
    """The number that a constant is if it is made of whole numbers by sums, products and casts; otherwise None."""
    if not is_integral(expr.type):
        return None
    if isinstance(expr, Literal):
        return None if expr.value is None else int(expr.value)
    if not isinstance(expr, Call):
        return None
    # Without ANSI they have forms of their own, which differ where a result does not fit.
    function = expr.function.removeprefix("legacy_").removeprefix("wrapping_")
    if function == "cast":
        return _fitting(_cast_from(expr.arguments[0]), expr)
    operation = _OPERATIONS.get(function)
    given = [whole_number(part) for part in expr.arguments]
    if operation is None or any(part is None for part in given):
        return None
    return _fitting(operation(*given), expr)


def _cast_from(inner: Expr) -> int | None:
    if isinstance(inner, Literal) and inner.type == STRING:
        text = (inner.value or "").strip()
        return int(text) if text.removeprefix("-").isascii() and text.removeprefix("-").isdecimal() else None
    return whole_number(inner)


def _fitting(number: int | None, expr: Expr) -> int | None:
    """None where Spark would raise or wrap around."""
    bound = 1 << (expr.type.bit_width - 1)
    return number if number is not None and -bound <= number < bound else None
