"""The digits Java prints for a DOUBLE or FLOAT, on which Spark's casts to STRING and DECIMAL and its ``round`` rest.

Java 17, which Spark runs on, does not always print the shortest digits that identify a number (later Javas do):
integers beyond 2**53 keep more of them, and the last ones are found by a test that is the same on both sides of the
number although its neighbours may not be. ``digits_of`` gives what Java 17 prints.
"""

from __future__ import annotations

import math
from typing import NamedTuple

DOUBLE_BITS = 53
FLOAT_BITS = 24
_MIN_EXPONENT = -1022
_MIN_FLOAT_EXPONENT = -126
_LOSSY = 25
_LONG_BITS = 62
_PLAIN_BELOW = 8
_PLAIN_ABOVE = -3


class Digits(NamedTuple):
    """A positive number: 0.d1d2d3... times ten to the power of ``exponent``."""

    digits: str
    exponent: int


def java_text(number: float, bits: int = DOUBLE_BITS) -> str:
    """The number as ``Double.toString`` has it, or, with the bits of a FLOAT, ``Float.toString``.

    >>> [java_text(each) for each in (1.0, 1e10, 0.001, -1.5e-5, float("nan"))]
    ['1.0', '1.0E10', '0.001', '-1.5E-5', 'NaN']
    """
    if number != number:  # noqa: PLR0124 - NaN
        return "NaN"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if math.isinf(number):
        return sign + "Infinity"
    if number == 0:
        return sign + "0.0"
    return sign + laid_out(digits_of(abs(number), bits))


def laid_out(number: Digits) -> str:
    """Digits with a point, and an exponent unless the number is at least 0.001 and less than ten million."""
    digits, exponent = number
    if 0 < exponent < _PLAIN_BELOW:
        padded = digits.ljust(exponent, "0")
        return f"{padded[:exponent]}.{padded[exponent:] or '0'}"
    if _PLAIN_ABOVE < exponent <= 0:
        return f"0.{'0' * -exponent}{digits}"
    return f"{digits[0]}.{digits[1:] or '0'}E{exponent - 1}"


def digits_of(number: float, bits: int = DOUBLE_BITS) -> Digits:
    """What Java 17 prints of a positive, finite number with a significand of so many bits."""
    fraction, exponent = math.frexp(number)
    exponent -= 1  # the number is at least 2**exponent and less than its double
    if exponent <= _LONG_BITS and number.is_integer():
        return _of_integer(int(number), exponent, bits)
    lowest = _MIN_EXPONENT if bits == DOUBLE_BITS else _MIN_FLOAT_EXPONENT
    significant_bits = bits + min(0, exponent - lowest)
    return _generated(int(math.ldexp(fraction, DOUBLE_BITS)), exponent, significant_bits)


def _of_integer(number: int, exponent: int, bits: int) -> Digits:
    """All its digits, less those that the gap to the next number makes meaningless."""
    dropped = 0
    if exponent > bits:
        gap = 1 << (exponent - bits - 1)
        dropped = len(str(gap)) - 1
    if dropped:
        power = 10**dropped
        number, rest = divmod(number, power)
        number += rest >= power // 2
    text = str(number)
    return Digits(text.rstrip("0"), len(text) + dropped)


def _generated(significand: int, exponent: int, significant_bits: int) -> Digits:
    """Digit by digit, until what remains is within half a gap of the number."""
    estimated = decimal_exponent = _estimate(significand, exponent)
    value, half_gap, scale = _scaled(significand, exponent, significant_bits, decimal_exponent)

    def stops() -> tuple[bool, bool]:
        above = value + half_gap
        # Around ten to the power of 25, Java loses the carry of a sum that reaches 2**88.
        lost = estimated == _LOSSY and half_gap * 10**26 < scale << 88 <= above * 10**26
        return value < half_gap, above > scale and not lost

    digit, value = divmod(value, scale)
    low, high = stops()
    digits = []
    if digit == 0 and not high:
        decimal_exponent -= 1
    else:
        digits.append(digit)
    if not _PLAIN_ABOVE <= decimal_exponent < _PLAIN_BELOW:
        low = high = False  # with an exponent there are two digits at least
    while not low and not high:
        digit, value = divmod(value * 10, scale)
        half_gap *= 10
        low, high = stops()
        digits.append(digit)
    if high and (not low or 2 * value > scale or (2 * value == scale and digits[-1] % 2)):
        return _rounded_up(digits, decimal_exponent + 1)
    return Digits(_text(digits), decimal_exponent + 1)


def _scaled(significand: int, exponent: int, significant_bits: int, decimal_exponent: int) -> tuple[int, int, int]:
    """Integers: the number and half the gap to the next, both divided by ten to the power, and their denominator."""
    value, half_gap, scale = significand, 1, 1
    shift, half_shift = exponent - (DOUBLE_BITS - 1), exponent - significant_bits
    if significand & (significand - 1) == 0:
        half_shift -= 1
    lowest = min(shift, half_shift, 0)
    value <<= shift - lowest
    half_gap <<= half_shift - lowest
    scale <<= -lowest
    if decimal_exponent > 0:
        return value, half_gap, scale * 10**decimal_exponent
    power = 10**-decimal_exponent
    return value * power, half_gap * power, scale


def _rounded_up(digits: list[int], exponent: int) -> Digits:
    text = str(int(_text(digits)) + 1).rjust(len(digits), "0")
    if len(text) > len(digits):
        return Digits("1" + "0" * (len(digits) - 1), exponent + 1)
    return Digits(text, exponent)


def _text(digits: list[int]) -> str:
    return "".join(map(str, digits))


def _estimate(significand: int, exponent: int) -> int:
    """The decimal exponent, or one more; Java's own approximation, for the first digit depends on it."""
    fraction = significand / (1 << (DOUBLE_BITS - 1))
    return math.floor((fraction - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981)
