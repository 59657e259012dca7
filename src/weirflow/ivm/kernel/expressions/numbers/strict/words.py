"""Doubles as two words of 32 bits, which is how ``StrictMath`` is defined."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles: TypeAlias = NDArray[np.float64]
    Words: TypeAlias = NDArray[np.int64]
    Mask: TypeAlias = NDArray[np.bool_]

MAGNITUDE = 0x7FFFFFFF
FRACTION = 0x000FFFFF
INFINITE = 0x7FF00000
_HIGH = -0x100000000
_LOW = 0xFFFFFFFF


def high(x: Doubles) -> Words:
    """The word with the sign and the exponent, negative for negative numbers."""
    return x.view(np.int64) >> 32


def low(x: Doubles) -> Words:
    """The other word, which has no sign."""
    return x.view(np.int64) & _LOW


def without_low(x: Doubles) -> Doubles:
    """The numbers with zero for their low word."""
    return (x.view(np.int64) & _HIGH).view(np.float64)


def with_high(x: Doubles, word: Words) -> Doubles:
    """The numbers with another high word."""
    return ((x.view(np.int64) & _LOW) | (word << 32)).view(np.float64)


def of_high(word: Words) -> Doubles:
    """The numbers that have this high word, and zero for their low one."""
    return (word << 32).view(np.float64)


def scaled(x: Doubles, exponent: Words) -> Doubles:
    """The numbers with this added to their exponents, whatever comes of it."""
    return (x.view(np.int64) + (exponent << 52)).view(np.float64)


def polynomial(x: Doubles, *coefficients: float) -> Doubles:
    """The constant first, evaluated from the other end."""
    total = np.full_like(x, coefficients[-1])
    for one in reversed(coefficients[:-1]):
        total = one + x * total
    return total
