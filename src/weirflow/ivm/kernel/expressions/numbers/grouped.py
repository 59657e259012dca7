"""``format_number``: digits in groups of three, with so many behind the point."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.ivm.kernel.bounds import require_result
from weirflow.ivm.kernel.expressions.numbers.java_format import half_even, pointed
from weirflow.ivm.kernel.expressions.strings.texts import growing

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_MOST_PLACES = 340
"""Java writes no more digits of a double."""
_EXACT = Context(prec=1000, rounding=ROUND_HALF_EVEN)


def format_number(signature: CallSignature) -> Kernel | None:
    """``format_number(number, places)``: halves to even; NULL for a negative number of places."""
    kind = signature.types[0]
    write = _of_double if pa.types.is_floating(kind) else _of_decimal if pa.types.is_decimal(kind) else _of_integer
    if signature.types[1] != pa.int32() or not (pa.types.is_integer(kind) or write is not _of_integer):
        return None
    return growing(_written(write, signature), signature)


def _written(write: Callable[[Any, int], str], signature: CallSignature) -> Callable[[Any, int], str | None]:
    def written(value: Any, places: int) -> str | None:
        if places < 0:
            return None
        require_result(places, signature.function, signature.position)
        return write(value, places)

    return written


def _of_double(value: float, places: int) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}∞"
    digits = min(places, _MOST_PLACES)
    return sign + _grouped(pointed(half_even(abs(value), digits), digits))


def _of_integer(value: int, places: int) -> str:
    sign = "-" if value < 0 else ""
    digits = min(places, _MOST_PLACES)
    return sign + _grouped(pointed(abs(value) * 10**digits, digits))


def _of_decimal(value: Decimal, places: int) -> str:
    negative, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    size = int("".join(map(str, digits)))
    if places < scale:
        size = int(_EXACT.to_integral_value(_EXACT.scaleb(Decimal(size), places - scale)))
        scale = places
    text = _grouped(pointed(size, scale))
    zeros = "0" * (places - scale)
    point = "." if zeros and not scale else ""
    return ("-" if negative and value else "") + text + point + zeros


def _grouped(digits: str) -> str:
    whole, point, rest = digits.partition(".")
    return format(int(whole), ",") + point + rest


FUNCTIONS: dict[str, Builder] = {"format_number": format_number}
