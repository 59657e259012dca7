"""``cbrt`` and ``hypot``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.expressions.numbers.strict.words import (
    high,
    of_high,
    with_high,
    without_low,
)

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.numbers.strict.words import Doubles

_NORMAL_GUESS = 715094163
_SUBNORMAL_GUESS = 696219795
_C = 5.42857142857142815906e-01
_D = -7.05306122448979611050e-01
_E = 1.41428571428571436819e00
_F = 1.60714285714285720630e00
_G = 3.57142857142857150787e-01
_SCALE = 0x25800000
_LEAST_NORMAL = 2.2250738585072014e-308


def cbrt(x: Doubles) -> Doubles:
    """``StrictMath.cbrt``."""
    plain = np.isfinite(x) & (x != 0)
    size = np.where(plain, np.abs(x), 1.0)
    hx = high(size)
    lifted = size * 2.0**54
    t = np.where(
        hx < 0x00100000,  # noqa: PLR2004 - the least exponent
        with_high(lifted, high(lifted) // 3 + _SUBNORMAL_GUESS),
        of_high(hx // 3 + _NORMAL_GUESS),
    )
    r = t * t / size
    s = _C + r * t
    t = t * (_G + _F / (s + _E + _D / s))
    t = without_low(t)
    t = with_high(t, high(t) + 1)
    s = t * t
    r = size / s
    r = (r - t) / ((t + t) + r)
    t = t + t * r
    return np.where(plain, np.where(x < 0, -t, t), x)


def hypot(x: Doubles, y: Doubles) -> Doubles:
    """``StrictMath.hypot``."""
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = np.abs(x), np.abs(y)
    infinite = np.isinf(x) | np.isinf(y)
    a = np.where(finite, np.maximum(x, y), 1.0)
    b = np.where(finite, np.minimum(x, y), 1.0)
    ha, hb = high(a), high(b)
    simple = ((ha - hb) > 0x3C00000) | (b == 0)  # noqa: PLR2004 - 2**60
    whole = a + b
    large = ha > 0x5F300000  # noqa: PLR2004 - 2**500
    ha, hb = np.where(large, ha - _SCALE, ha), np.where(large, hb - _SCALE, hb)
    a, b = np.where(large, a * 2.0**-600, a), np.where(large, b * 2.0**-600, b)
    small = b < 2.0**-500
    tiny = b < _LEAST_NORMAL
    up = small & ~tiny
    ha, hb = np.where(up, ha + _SCALE, ha), np.where(up, hb + _SCALE, hb)
    factor = np.where(tiny, 2.0**1022, np.where(small, 2.0**600, 1.0))
    a, b = a * factor, b * factor
    back = np.where(large, 2.0**600, 1.0) * np.where(tiny, 2.0**-1022, np.where(small, 2.0**-600, 1.0))
    w = a - b
    t1 = of_high(ha)
    t2 = a - t1
    apart = np.sqrt(t1 * t1 - (b * (-b) - t2 * (a + t1)))
    double = a + a
    y1 = of_high(hb)
    y2 = b - y1
    t1 = of_high(ha + 0x00100000)
    t2 = double - t1
    close = np.sqrt(t1 * y1 - (w * (-w) - (t1 * y2 + t2 * b)))
    result = np.where(w > b, apart, close) * back
    result = np.where(simple, whole, result)
    return np.where(infinite, np.inf, np.where(finite, result, np.nan))
