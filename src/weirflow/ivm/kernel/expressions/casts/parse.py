"""Casts from STRING: what Spark accepts as a boolean, a number, a date or a time, in ANSI mode."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions.casts.numbers import nearest_float
from weirflow.ivm.kernel.expressions.casts.parse_times import BLANKS, parse_date, parse_timestamp
from weirflow.ivm.kernel.expressions.failures import decimal_overflow, failure, shown
from weirflow.ivm.kernel.expressions.numbers.decimal_words import MAX_DIGITS, plain_text
from weirflow.ivm.kernel.expressions.rows import on_arrays

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.casts.context import Cast
    from weirflow.ivm.kernel.expressions.signature import Kernel

JAVA_BLANKS = BLANKS[:-1]
"""What Java's ``trim`` takes away."""

_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
# Possessive: digits that were taken are not given back, so that a text is read once, however long it is.
_INTEGER = re.compile(r"[+-]?(0*+)([0-9]*+)")
_FLOATING = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?[fFdD]?)")
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?|\.[0-9a-fA-F]++)[pP][+-]?[0-9]++)[fFdD]?")
_SPECIAL = {
    "inf": "inf",
    "+inf": "inf",
    "infinity": "inf",
    "+infinity": "inf",
    "-inf": "-inf",
    "-infinity": "-inf",
    "nan": "nan",
}
_DECIMAL = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE]([+-]?\d{1,10}))?")
_EXPONENT_LIMIT = 1 << 31
_LONGEST_INTEGER = 19
_DECIMAL_DIGITS = 2 * MAX_DIGITS + 2
"""So many digits, from the first that is not 0, decide about any decimal: how large it is, and how it is rounded."""
_FLOAT_DIGITS = 800
"""So many digits tell a number from any that lies halfway between two doubles, if it is known that more follow."""


def to_boolean(cast: Cast) -> Kernel:
    """``t true y yes 1`` and ``f false n no 0``, in any case."""
    return _one_by_one(cast, _boolean)


def to_integer(cast: Cast) -> Kernel:
    """A sign and digits; no fraction, no exponent."""
    info = np.iinfo(cast.target.to_pandas_dtype())

    def integer(text: str) -> int:
        trimmed = text.strip(BLANKS)
        found = _INTEGER.fullmatch(trimmed)
        if not found or not (found[1] or found[2]) or len(found[2]) > _LONGEST_INTEGER:
            raise ValueError(text)
        number = int(found[2] or "0")
        number = -number if trimmed[0] == "-" else number
        if not info.min <= number <= info.max:
            raise ValueError(text)
        return number

    return _one_by_one(cast, integer)


def to_double(cast: Cast) -> Kernel:
    """What ``Double.parseDouble`` takes, and ``inf``, ``infinity`` and ``nan`` in any case."""
    return _one_by_one(cast, _double)


def to_float(cast: Cast) -> Kernel:
    """As ``to_double``, rounded once."""

    def single(text: str) -> float:
        double = _double(text)
        if double != double or double in (0.0, float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
            return double
        digits = text.strip(JAVA_BLANKS).rstrip("fFdD")
        if "x" in digits or "X" in digits:
            return float(np.float32(double))
        exact = Fraction(_shortened(Decimal(digits)))
        return float(nearest_float(exact.numerator, exact.denominator))

    def run(array: pa.Array) -> pa.Array:
        return pa.array(cast.parsed(array.to_pylist(), single), pa.float64()).cast(pa.float32(), safe=False)

    return on_arrays(run)


def to_decimal(cast: Cast) -> Kernel:
    """Digits, a point, an exponent; rounded half up to the scale."""
    target = cast.target

    def run(array: pa.Array) -> pa.Array:
        results: list[Decimal | None] = []
        for text, parsed in zip(array.to_pylist(), cast.parsed(array.to_pylist(), _trimmed), strict=True):
            try:
                results.append(None if parsed is None else rounded(parsed, text, cast))
            except DataError:
                if not cast.tolerant:
                    raise
                results.append(None)
        return pa.array(results, target)

    return on_arrays(run)


def to_binary(cast: Cast) -> Kernel:
    """The bytes of its UTF-8."""
    return lambda value: value.cast(cast.target)


def to_date(cast: Cast) -> Kernel:
    """``yyyy``, ``yyyy-M`` or ``yyyy-M-d``, the last with anything behind a space or T."""
    return _on_numbers(cast, pa.int32(), parse_date)


def to_timestamp(cast: Cast, moment: Callable[[int], int] | None = None) -> Kernel:
    """A date, or a date and a time with six digits of fraction and a zone; without one, in UTC or by ``moment``."""
    position = cast.position
    return _on_numbers(cast, pa.int64(), lambda text: parse_timestamp(text, position, zoned=True, moment=moment))


def to_timestamp_ntz(cast: Cast) -> Kernel:
    """As ``to_timestamp``; a zone is read and means nothing."""
    position = cast.position
    return _on_numbers(cast, pa.int64(), lambda text: parse_timestamp(text, position, zoned=False))


def _one_by_one(cast: Cast, parse: Callable[[str], Any]) -> Kernel:
    return on_arrays(lambda array: cast.to(cast.parsed(array.to_pylist(), parse)))


def _on_numbers(cast: Cast, storage: pa.DataType, parse: Callable[[str], int]) -> Kernel:
    def run(array: pa.Array) -> pa.Array:
        return pa.array(cast.parsed(array.to_pylist(), parse), storage).view(cast.target)

    return on_arrays(run)


def _boolean(text: str) -> bool:
    word = text.strip(BLANKS).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(text)


def _double(text: str) -> float:
    trimmed = text.strip(JAVA_BLANKS)
    if _FLOATING.fullmatch(trimmed):
        return float(trimmed.rstrip("fFdD") if trimmed[-1] in "fFdD" else trimmed)
    hexadecimal = _HEXADECIMAL.fullmatch(trimmed)
    if hexadecimal:
        try:
            return float.fromhex(hexadecimal[1])
        except OverflowError:
            return float("-inf" if trimmed.startswith("-") else "inf")
    special = _SPECIAL.get(trimmed.lower())
    if special is None:
        raise ValueError(text)
    return float(special)


def _trimmed(text: str) -> tuple[int, int]:
    return unscaled(text.strip(JAVA_BLANKS))


def unscaled(text: str) -> tuple[int, int]:
    """The integer and the scale that Java's ``BigDecimal`` reads; ``ValueError`` if it reads none."""
    found = _DECIMAL.fullmatch(text)
    if not found:
        raise ValueError(text)
    exponent = int(found[1] or 0)
    number = text[: found.start(1) - 1] if found[1] else text
    _, _, fraction = number.partition(".")
    scale = len(fraction) - exponent
    if abs(exponent) >= _EXPONENT_LIMIT or abs(scale) >= _EXPONENT_LIMIT:
        raise ValueError(text)
    digits = number.replace(".", "").lstrip("+-")
    if not digits.isascii():  # digits of other scripts
        digits = "".join(str(int(each)) for each in digits)
    digits = digits.lstrip("0")
    dropped = max(len(digits) - _DECIMAL_DIGITS, 0)
    size = int(digits[: len(digits) - dropped] or "0")
    return -size if number[0] == "-" else size, scale - dropped


def rounded(parsed: tuple[int, int], text: str, cast: Cast) -> Decimal:
    """An integer and its scale as a value of the target type; ``DataError`` if it has too many digits."""
    size, scale = parsed
    target = cast.target
    if len(str(abs(size))) - scale > MAX_DIGITS:
        message = f"The value {shown(text)!r} has more than {MAX_DIGITS} integral digits."
        raise failure("NUMERIC_OUT_OF_SUPPORTED_RANGE", message, cast.position)
    shift = target.scale - scale
    if shift >= 0:
        size *= 10**shift
    elif -shift > len(str(abs(size))) + 1:
        size = 0
    else:
        power = 10**-shift
        half = (2 * abs(size) + power) // (2 * power)
        size = half if size >= 0 else -half
    if abs(size) >= 10**target.precision:
        raise decimal_overflow(text.strip(), target, cast.position)
    return Decimal(plain_text(size, target.scale))


def _shortened(number: Decimal) -> Decimal:
    """A number of fewer digits that is nearest to the same float: a last 1 stands for what was left out."""
    sign, digits, exponent = number.as_tuple()
    if len(digits) <= _FLOAT_DIGITS:
        return number
    assert isinstance(exponent, int), "not infinite"
    more = int(any(digits[_FLOAT_DIGITS:]))
    return Decimal((sign, (*digits[:_FLOAT_DIGITS], more), exponent + len(digits) - _FLOAT_DIGITS - 1))
