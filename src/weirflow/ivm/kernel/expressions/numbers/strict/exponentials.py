"""``exp``, ``expm1`` and the hyperbolic functions that are made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.expressions.numbers.strict.words import (
    INFINITE,
    MAGNITUDE,
    high,
    low,
    of_high,
    polynomial,
    scaled,
)

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.numbers.strict.words import Doubles, Mask, Words

_LARGEST = 7.09782712893383973096e02
_SMALLEST = -7.45133219101941108420e02
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_PER_LN2 = 1.44269504088896338700e00
_TINY = 2.0**-1000
P = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
"""Of the exponential function near zero; ``power`` uses it, too."""
_Q = (
    1.0,
    -3.33333333333331316428e-02,
    1.58730158725481460165e-03,
    -7.93650757867487942473e-05,
    4.00821782732936239552e-06,
    -2.01099218183624371326e-07,
)
_HALF_LN2 = 0x3FD62E42
_ONE_AND_A_HALF_LN2 = 0x3FF0A2B2
_TWENTY_TWO = 0x40360000
_OVERFLOWS = 0x40862E42


def exp(x: Doubles) -> Doubles:
    """``StrictMath.exp``."""
    size = high(x) & MAGNITUDE
    finite = np.where((size < INFINITE) & (x <= _LARGEST) & (x >= _SMALLEST), x, 0.0)
    k, hi, lo = _reduced(finite, size)
    r = hi - lo
    t = r * r
    c = r - t * polynomial(t, *P)
    y = np.where(k == 0, 1.0 - ((r * c) / (c - 2.0) - r), 1.0 - ((lo - (r * c) / (2.0 - c)) - hi))
    normal = k >= -1021  # noqa: PLR2004 - the exponent of what is not subnormal
    result = np.where(normal, scaled(y, np.where(normal, k, 0)), scaled(y, np.where(normal, 0, k + 1000)) * _TINY)
    result = np.where(size < 0x3E300000, 1.0 + x, result)  # noqa: PLR2004 - 2**-28
    result = np.where(x > _LARGEST, np.inf, np.where(x < _SMALLEST, 0.0, result))
    return np.where(np.isnan(x), x, result)


def _reduced(x: Doubles, size: Words) -> tuple[Words, Doubles, Doubles]:
    """A multiple of ln 2, and what remains as a difference."""
    negative = x < 0
    near = size < _ONE_AND_A_HALF_LN2
    k = np.where(near, np.where(negative, -1, 1), (_PER_LN2 * x + np.where(negative, -0.5, 0.5)).astype(np.int64))
    k = np.where(size > _HALF_LN2, k, 0)
    t = k.astype(np.float64)
    return k, x - t * _LN2_HIGH, t * _LN2_LOW


def expm1(x: Doubles) -> Doubles:
    """``StrictMath.expm1``."""
    size = high(x) & MAGNITUDE
    huge = size >= 0x4043687A  # noqa: PLR2004 - 56 ln 2
    result = _expm1(np.where((size < INFINITE) & (x <= _LARGEST) & ~(huge & (x < 0)), x, 0.0), size)
    result = np.where(size < 0x3C900000, x, result)  # noqa: PLR2004 - 2**-54
    result = np.where(huge & (x < 0), -1.0, result)
    result = np.where(x > _LARGEST, np.inf, result)
    return np.where(np.isnan(x), x, result)


def _expm1(x: Doubles, size: Words) -> Doubles:
    k, hi, lo = _reduced(x, size)
    x = hi - lo
    c = (hi - x) - lo
    half = 0.5 * x
    hxs = x * half
    r1 = polynomial(hxs, *_Q)
    t = 3.0 - r1 * half
    e = hxs * ((r1 - t) / (6.0 - x * t))
    small = x - (x * e - hxs)
    e = (x * (e - c) - c) - hxs
    one = np.where(x < -0.25, -2.0 * (e - (x + 0.5)), 1.0 + 2.0 * (x - e))  # noqa: PLR2004 - as it is defined
    few, many = (k >= 2) & (k < 20), (k >= 20) & (k <= 56)  # noqa: PLR2004 - bits
    with_few = scaled(of_high(0x3FF00000 - (0x200000 >> np.where(few, k, 0))) - (e - x), np.where(few, k, 0))
    with_many = scaled((x - (e + of_high((0x3FF - np.where(many, k, 0)) << 20))) + 1.0, np.where(many, k, 0))
    far = scaled(1.0 - (e - x), k) - 1.0
    chosen: list[Mask] = [k == 0, k == -1, k == 1, few, many]
    return np.select(chosen, [small, 0.5 * (x - e) - 0.5, one, with_few, with_many], far)


def sinh(x: Doubles) -> Doubles:
    """``StrictMath.sinh``."""
    size, positive = high(x) & MAGNITUDE, np.abs(x)
    h = np.where(high(x) < 0, -0.5, 0.5)
    t = expm1(positive)
    near = np.where(size < 0x3FF00000, h * (2.0 * t - t * t / (t + 1.0)), h * (t + t / (t + 1.0)))  # noqa: PLR2004 - 1
    w = exp(0.5 * positive)
    far = np.where(size < _OVERFLOWS, h * exp(positive), np.where(_fits_twice(x), (h * w) * w, x * np.inf))
    result = np.where(size < _TWENTY_TWO, np.where(size < 0x3E300000, x, near), far)  # noqa: PLR2004 - 2**-28
    return np.where(size >= INFINITE, x, result)


def cosh(x: Doubles) -> Doubles:
    """``StrictMath.cosh``."""
    size, positive = high(x) & MAGNITUDE, np.abs(x)
    t = expm1(positive)
    w = 1.0 + t
    near = np.where(size < 0x3C800000, w, 1.0 + (t * t) / (w + w))  # noqa: PLR2004 - 2**-55
    e = exp(positive)
    middle = np.where(size < _TWENTY_TWO, 0.5 * e + 0.5 / e, 0.5 * e)
    w = exp(0.5 * positive)
    far = np.where(size < _OVERFLOWS, middle, np.where(_fits_twice(x), (0.5 * w) * w, np.inf))
    result = np.where(size < _HALF_LN2 + 1, near, far)
    return np.where(size >= INFINITE, x * x, result)


def _fits_twice(x: Doubles) -> Mask:
    """Whether half of the exponential, if not the whole of it, is a double."""
    size = high(x) & MAGNITUDE
    fits: Mask = (size < 0x408633CE) | ((size == 0x408633CE) & (low(x) <= 0x8FB9F87D))  # noqa: PLR2004 - as defined
    return fits


def tanh(x: Doubles) -> Doubles:
    """``StrictMath.tanh``."""
    size, positive = high(x) & MAGNITUDE, np.abs(x)
    above = size >= 0x3FF00000  # noqa: PLR2004 - one
    t = expm1(np.where(above, 2.0, -2.0) * positive)
    z = np.where(above, 1.0 - 2.0 / (t + 2.0), -t / (t + 2.0))
    z = np.where(size < _TWENTY_TWO, z, 1.0)
    result = np.where(high(x) < 0, -z, z)
    result = np.where(size < 0x3C800000, x * (1.0 + x), result)  # noqa: PLR2004 - 2**-55
    return np.where(np.isnan(x), x, result)
