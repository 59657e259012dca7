"""Doubles with so many digits behind the point, as Java's formats round the digits that it prints."""

from __future__ import annotations

from fractions import Fraction

from weirflow.ivm.kernel.expressions.numbers.java_double import digits_of

_LEAST_EXPONENT = 2
"""Digits that an exponent has at least."""


def fixed(value: float, places: int) -> str:
    """A finite number that is not negative, as ``%f`` has it: halves up.

    >>> fixed(0.125, 2), fixed(1.0, 0)
    ('0.13', '1')
    """
    return pointed(_rounded(value, places), places)


def scientific(value: float, places: int) -> str:
    """A finite number that is not negative, as ``%e`` has it: halves up.

    >>> scientific(12345.0, 2)
    '1.23e+04'
    """
    if value == 0:
        return f"{pointed(0, places)}e+00"
    exponent = digits_of(value).exponent - 1
    size = _rounded(value, places - exponent)
    if len(str(size)) > places + 1:  # rounded up to one more digit
        size, exponent = size // 10, exponent + 1
    sign = "-" if exponent < 0 else "+"
    return f"{pointed(size, places)}e{sign}{str(abs(exponent)).rjust(_LEAST_EXPONENT, '0')}"


def half_even(value: float, places: int) -> int:
    """A finite number that is not negative, times ten to the power of ``places``; halves of the number itself to even.

    A half of the digits that Java prints is none of the number's, unless these are all that it has.
    """
    if value == 0:
        return 0
    size, rest, power = _divided(value, places)
    if 2 * rest != power:
        return size + (2 * rest > power)
    exact = Fraction(value) * Fraction(10) ** places - size
    return size + (exact > Fraction(1, 2) or (exact == Fraction(1, 2) and size % 2 == 1))


def pointed(size: int, places: int) -> str:
    """An integer with a point before the last so many digits."""
    if places == 0:
        return str(size)
    digits = str(size).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"


def _rounded(value: float, places: int) -> int:
    if value == 0:
        return 0
    size, rest, power = _divided(value, places)
    return size + (2 * rest >= power)


def _divided(value: float, places: int) -> tuple[int, int, int]:
    """The printed number times ten to the power of ``places``: the whole of it, and the rest as a fraction."""
    digits, exponent = digits_of(value)
    shift = exponent - len(digits) + places
    if shift >= 0:
        return int(digits + "0" * shift), 0, 1
    power: int = 10**-shift
    whole, rest = divmod(int(digits), power)
    return whole, rest, power
