"""``log``, ``log1p`` and ``log10``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.expressions.numbers.strict.words import (
    FRACTION,
    INFINITE,
    MAGNITUDE,
    high,
    polynomial,
    with_high,
)

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.numbers.strict.words import Doubles, Mask, Words

_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_TWO_54 = 2.0**54
_L = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
_PER_LN10 = 4.34294481903251816668e-01
_LOG10_2_HIGH = 3.01029995663611771306e-01
_LOG10_2_LOW = 3.69423907715893078616e-13


def log(x: Doubles) -> Doubles:
    """``StrictMath.log``."""
    result = _log(np.where((x > 0) & np.isfinite(x), x, 1.0))
    return _with_limits(x, result)


def _with_limits(x: Doubles, result: Doubles) -> Doubles:
    """The logarithms of positive numbers, and those of all others."""
    result = np.where(x == 0, -np.inf, result)
    result = np.where(x < 0, np.nan, result)
    return np.where(np.isfinite(x) | (x < 0), result, x)


def _normal(x: Doubles) -> tuple[Doubles, Words]:
    """Positive numbers without those that are subnormal, and what that adds to their exponents."""
    subnormal = high(x) < 0x00100000  # noqa: PLR2004 - the least exponent
    return np.where(subnormal, x * _TWO_54, x), np.where(subnormal, -54, 0)


def _log(x: Doubles) -> Doubles:
    x, k = _normal(x)
    hx = high(x)
    k = k + (hx >> 20) - 1023
    hx = hx & FRACTION
    i = (hx + 0x95F64) & 0x100000
    k = k + (i >> 20)
    f = with_high(x, hx | (i ^ 0x3FF00000)) - 1.0
    dk, none = k.astype(np.float64), k == 0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    t1 = w * polynomial(w, _L[1], _L[3], _L[5])
    t2 = z * polynomial(w, _L[0], _L[2], _L[4], _L[6])
    total = t2 + t1
    half = 0.5 * f * f
    upper = np.where(
        none, f - (half - s * (half + total)), dk * _LN2_HIGH - ((half - (s * (half + total) + dk * _LN2_LOW)) - f)
    )
    lower = np.where(none, f - s * (f - total), dk * _LN2_HIGH - ((s * (f - total) - dk * _LN2_LOW) - f))
    result = np.where(((hx - 0x6147A) | (0x6B851 - hx)) > 0, upper, lower)
    near: Mask = (FRACTION & (2 + hx)) < 3  # noqa: PLR2004 - as it is defined
    short = f * f * (0.5 - 0.33333333333333333 * f)
    close = np.where(none, f - short, dk * _LN2_HIGH - ((short - dk * _LN2_LOW) - f))
    close = np.where(f == 0, np.where(none, 0.0, dk * _LN2_HIGH + dk * _LN2_LOW), close)
    return np.where(near, close, result)


def log10(x: Doubles) -> Doubles:
    """``StrictMath.log10``."""
    positive, k = _normal(np.where((x > 0) & np.isfinite(x), x, 1.0))
    hx = high(positive)
    k = k + (hx >> 20) - 1023
    i = (k < 0).astype(np.int64)
    y = (k + i).astype(np.float64)
    part = with_high(positive, (hx & FRACTION) | ((0x3FF - i) << 20))
    return _with_limits(x, (y * _LOG10_2_LOW + _PER_LN10 * log(part)) + y * _LOG10_2_HIGH)


def log1p(x: Doubles) -> Doubles:
    """``StrictMath.log1p``."""
    size = high(x) & MAGNITUDE
    result = _log1p(np.where((x > -1) & (size < INFINITE), x, 0.0))
    short = np.where(size < 0x3C900000, x, x - x * x * 0.5)  # noqa: PLR2004 - 2**-54
    result = np.where(size < 0x3E200000, short, result)  # noqa: PLR2004 - 2**-29
    result = np.where(x == -1, -np.inf, np.where(x < -1, np.nan, result))
    return np.where((size >= INFINITE) & ~(x < 0), x, result)


def _log1p(x: Doubles) -> Doubles:
    hx = high(x)
    # Between the square roots of a half and of two, less one.
    whole: Mask = (hx < 0x3FDA827A) & ((hx > 0) | (hx <= 0xBFD2BEC3 - (1 << 32)))  # noqa: PLR2004 - as defined
    huge = hx >= 0x43400000  # noqa: PLR2004 - 2**53
    u = np.where(huge, x, 1.0 + x)
    hu = high(u)
    k = (hu >> 20) - 1023
    c = np.where(huge, 0.0, np.where(k > 0, 1.0 - (u - x), x - (u - 1.0)) / u)
    hu = hu & FRACTION
    below = hu < 0x6A09E  # noqa: PLR2004 - the square root of two
    k = np.where(below, k, k + 1)
    f = with_high(u, np.where(below, hu | 0x3FF00000, hu | 0x3FE00000)) - 1.0
    hu = np.where(below, hu, (0x00100000 - hu) >> 2)
    f, hu, k = np.where(whole, x, f), np.where(whole, 1, hu), np.where(whole, 0, k)
    c = np.where(whole, 0.0, c)
    dk, none = k.astype(np.float64), k == 0
    half = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    total = z * polynomial(z, *_L)
    result = np.where(
        none,
        f - (half - s * (half + total)),
        dk * _LN2_HIGH - ((half - (s * (half + total) + (dk * _LN2_LOW + c))) - f),
    )
    short = half * (1.0 - 0.66666666666666666 * f)
    close = np.where(none, f - short, dk * _LN2_HIGH - ((short - (dk * _LN2_LOW + c)) - f))
    close = np.where(f == 0, np.where(none, 0.0, dk * _LN2_HIGH + (c + dk * _LN2_LOW)), close)
    return np.where(hu == 0, close, result)
