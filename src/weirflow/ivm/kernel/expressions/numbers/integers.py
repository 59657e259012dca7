"""``factorial``, ``conv`` and ``width_bucket``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.failures import overflow
from weirflow.ivm.kernel.expressions.numbers.math import as_long
from weirflow.ivm.kernel.expressions.rows import like_nulls, numbers, on_arrays
from weirflow.ivm.kernel.expressions.strings.texts import one_by_one

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_INT, _LONG, _DOUBLE = pa.int32(), pa.int64(), pa.float64()
_FACTORIALS = np.array([math.factorial(number) for number in range(21)], np.int64)
_LARGEST = np.iinfo(np.int64).max
_UNSIGNED = 1 << 64
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BASES = range(2, len(_DIGITS) + 1)


def factorial(signature: CallSignature) -> Kernel | None:
    """NULL for what is negative, or greater than 20."""
    if signature.types != (_INT,):
        return None

    def run(array: pa.Array) -> pa.Array:
        values = numbers(array)
        inside = (values >= 0) & (values < len(_FACTORIALS))
        found = like_nulls(_FACTORIALS[np.where(inside, values, 0)], _LONG, array)
        return found if inside.all() else pc.if_else(pa.array(inside), found, None)

    return on_arrays(run)


def width_bucket(signature: CallSignature) -> Kernel | None:
    """The number of the bucket a value is in, from 1; 0 and one more than there are for what is outside."""
    if signature.types != (_DOUBLE, _DOUBLE, _DOUBLE, _LONG):
        return None

    def run(values: pa.Array, starts: pa.Array, ends: pa.Array, counts: pa.Array) -> pa.Array:
        value, start, end, count = (numbers(one) for one in (values, starts, ends, counts))
        with np.errstate(all="ignore"):
            meant = (count > 0) & (count < _LARGEST) & ~np.isnan(value) & (start != end)
            meant &= np.isfinite(start) & np.isfinite(end)
            lower, upper = np.minimum(start, end), np.maximum(start, end)
            many = count.astype(np.float64)
            rising = start < end
            way = np.where(rising, value - lower, upper - value)
            inside = as_long(np.trunc(many * way / (upper - lower))) + 1
            before = np.where(rising, value < lower, value > upper)
            behind = np.where(rising, value >= upper, value <= lower)
            buckets = np.where(before, 0, np.where(behind, count + 1, inside))
        found = like_nulls(buckets, _LONG, values, starts, ends, counts)
        return found if meant.all() else pc.if_else(pa.array(meant), found, None)

    return on_arrays(run)


def conv(signature: CallSignature) -> Kernel | None:
    """``conv(digits, from, to)``: a number of 64 bits, written in another base; signed if that base is negative.

    What has more bits is an error, unless the function's name says that it is the largest number.
    """
    if signature.types != (pa.string(), _INT, _INT):
        return None
    wraps, position = signature.function.startswith("wrapping_"), signature.position

    def converted(text: str, source: int, target: int) -> str | None:
        text = text.strip(" ")
        if source not in _BASES or abs(target) not in _BASES or not text:
            return None
        negative = text.startswith("-")
        value = _value(text[negative:], source)
        if value >= _UNSIGNED:
            if not wraps:
                raise overflow(f"conv({text!r}, {source}, {target})", position)
            value = _UNSIGNED - 1
        if negative and target > 0:
            value = _UNSIGNED - 1 if value > _LARGEST else -value % _UNSIGNED
        if target < 0 and value > _LARGEST:
            value, negative = _UNSIGNED - value, True
        written = _written(value, abs(target))
        return f"-{written}" if negative and target < 0 else written

    return one_by_one(converted, pa.string())


def _value(text: str, base: int) -> int:
    """Of the digits up to the first that is none."""
    value = 0
    for character in text:
        digit = _DIGITS.find(character.upper()) if character.isascii() else -1
        if not 0 <= digit < base or value >= _UNSIGNED:
            break
        value = value * base + digit
    return value


def _written(value: int, base: int) -> str:
    digits = []
    while value:
        value, digit = divmod(value, base)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)) or "0"


FUNCTIONS: dict[str, Builder] = {
    "factorial": factorial,
    "width_bucket": width_bucket,
    "conv": conv,
    "wrapping_conv": conv,
}
