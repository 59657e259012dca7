"""``pow``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.expressions.numbers.strict.exponentials import P
from weirflow.ivm.kernel.expressions.numbers.strict.words import (
    FRACTION,
    MAGNITUDE,
    high,
    low,
    of_high,
    polynomial,
    scaled,
    with_high,
    without_low,
)

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.numbers.strict.words import Doubles, Words

_PER_LN2 = 1.44269504088896338700e00
_PER_LN2_HIGH = 1.44269502162933349609e00
_PER_LN2_LOW = 1.92596299112661746887e-08
_CP = 9.61796693925975554329e-01
_CP_HIGH = 9.61796700954437255859e-01
_CP_LOW = -7.02846165095275826516e-09
_DP_HIGH = 5.84962487220764160156e-01
_DP_LOW = 1.35003920212974897128e-08
_L = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)
_OVER = 8.0085662595372944372e-0017
_LG2 = 6.93147180559945286227e-01
_LG2_HIGH = 6.93147182464599609375e-01
_LG2_LOW = -1.90465429995776804525e-09
_HUGE = float.fromhex("0x1.00000ffffffffp31")
_BELOW_ONE = float.fromhex("0x1.fffff00000000p-1")
_ABOVE_ONE = float.fromhex("0x1.00000ffffffffp0")
_LARGEST = 1.7976931348623157e308
_EVEN_ABOVE = 2.0**53


def power(x: Doubles, y: Doubles) -> Doubles:
    """``StrictMath.pow``."""
    size, many = np.abs(x), np.abs(y)
    negative = high(x) < 0
    is_whole = (many >= 1) & (np.floor(many) == many)
    odd = is_whole & (many < _EVEN_ABOVE) & (np.where(many < _EVEN_ABOVE, many, 0.0).astype(np.int64) & 1 == 1)
    sign = np.where(negative & odd, -1.0, 1.0)
    special = (size == 0) | np.isinf(size) | (size == 1) | np.isnan(x) | np.isnan(y) | np.isinf(y) | (y == 0)
    result = sign * _power(np.where(special, 2.0, size), np.where(special, 3.0, y))
    result = np.where(negative & ~is_whole, np.nan, result)
    limit = sign * np.where(y < 0, 1.0 / size, size)
    limit = np.where(negative & (size == 1) & ~is_whole, np.nan, limit)
    result = np.where(special, limit, result)
    at_infinity = np.where((size > 1) == (y > 0), np.inf, 0.0)
    result = np.where(np.isinf(y), np.where(size == 1, np.nan, at_infinity), result)
    result = np.where(y == 1, x, np.where(y == -1, 1.0 / x, result))
    result = np.where((y == 0.5) & (x >= -_LARGEST), np.sqrt(x + 0.0), result)  # noqa: PLR2004 - its own case
    result = np.where(y == 2, x * x, result)  # noqa: PLR2004 - its own case
    result = np.where(np.isnan(x) | np.isnan(y), np.nan, result)
    return np.where(y == 0, 1.0, result)


def _power(x: Doubles, y: Doubles) -> Doubles:
    """Of positive numbers other than one, and finite exponents other than zero."""
    huge = np.abs(y) > _HUGE
    near_high, near_low = _near_one(x)
    far_high, far_low = _logarithm(x)
    t1, t2 = np.where(huge, near_high, far_high), np.where(huge, near_low, far_low)
    y1 = without_low(y)
    p_low = (y - y1) * t1 + y * t2
    p_high = y1 * t1
    z = p_low + p_high
    j, rest = high(z), low(z)
    overflows = (j > 0x40900000) | ((j == 0x40900000) & ((rest != 0) | (p_low + _OVER > z - p_high)))  # noqa: PLR2004 - 1024
    lowest = 0x4090CC00  # 1075, of which the word of the negative number has a sign before it
    size = j & MAGNITUDE
    underflows = (j < 0) & ((size > lowest) | ((size == lowest) & ((rest != 0) | (p_low <= z - p_high))))
    inside = ~(overflows | underflows)
    result = _exponential(np.where(inside, p_high, 0.0), np.where(inside, p_low, 0.0))
    result = np.where(overflows, np.inf, np.where(underflows, 0.0, result))
    below, above = huge & (x < _BELOW_ONE), huge & (x > _ABOVE_ONE)
    return np.where(below | above, np.where(below == (y < 0), np.inf, 0.0), result)


def _near_one(x: Doubles) -> tuple[Doubles, Doubles]:
    """The binary logarithm in two parts, of numbers within 2**-20 of one."""
    t = x - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u = _PER_LN2_HIGH * t
    v = t * _PER_LN2_LOW - w * _PER_LN2
    t1 = without_low(u + v)
    return t1, v - (t1 - u)


def _logarithm(x: Doubles) -> tuple[Doubles, Doubles]:
    """The binary logarithm in two parts."""
    subnormal = high(x) < 0x00100000  # noqa: PLR2004 - the least exponent
    x = np.where(subnormal, x * 2.0**53, x)
    n = np.where(subnormal, -53, 0)
    ix = high(x)
    n = n + (ix >> 20) - 0x3FF
    j = ix & FRACTION
    ix = j | 0x3FF00000
    k = ((j > 0x3988E) & (j < 0xBB67A)).astype(np.int64)  # noqa: PLR2004 - square roots of 3/2 and 3
    over = j >= 0xBB67A  # noqa: PLR2004 - as above
    n, ix = np.where(over, n + 1, n), np.where(over, ix - 0x00100000, ix)
    x = with_high(x, ix)
    middle = k == 1
    base = np.where(middle, 1.5, 1.0)
    dp_high, dp_low = np.where(middle, _DP_HIGH, 0.0), np.where(middle, _DP_LOW, 0.0)
    u = x - base
    v = 1.0 / (x + base)
    ss = u * v
    s_high = without_low(ss)
    t_high = of_high(((ix >> 1) | 0x20000000) + 0x00080000 + (k << 18))
    t_low = x - (t_high - base)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    s2 = ss * ss
    r = s2 * s2 * polynomial(s2, *_L)
    r = r + s_low * (s_high + ss)
    s2 = s_high * s_high
    t_high = without_low(3.0 + s2 + r)
    t_low = r - ((t_high - 3.0) - s2)
    u = s_high * t_high
    v = s_low * t_high + t_low * ss
    p_high = without_low(u + v)
    p_low = v - (p_high - u)
    z_high = _CP_HIGH * p_high
    z_low = _CP_LOW * p_high + p_low * _CP + dp_low
    t = n.astype(np.float64)
    t1 = without_low(((z_high + z_low) + dp_high) + t)
    return t1, z_low - (((t1 - t) - dp_high) - z_high)


def _exponential(p_high: Doubles, p_low: Doubles) -> Doubles:
    """Two to the power of a sum, which is a double."""
    j = high(p_low + p_high)
    n, t = _whole(j)
    p_high = p_high - t
    t = without_low(p_low + p_high)
    u = t * _LG2_HIGH
    v = (p_low - (t - p_high)) * _LG2 + t * _LG2_LOW
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * polynomial(t, *P)
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    z = 1.0 - (r - z)
    subnormal = ((high(z) + (n << 20)) >> 20) <= 0
    return np.where(subnormal, np.ldexp(z, n.astype(np.int32)), scaled(z, np.where(subnormal, 0, n)))


def _whole(j: Words) -> tuple[Words, Doubles]:
    """The nearest integer to the number with this high word, and the same as a double."""
    size = j & MAGNITUDE
    some = size > 0x3FE00000  # noqa: PLR2004 - a half
    k = np.where(some, (size >> 20) - 0x3FF, 0)
    n = j + (0x00100000 >> (k + 1))
    k = np.where(some, ((n & MAGNITUDE) >> 20) - 0x3FF, 0)
    t = of_high(np.where(some, n & ~(FRACTION >> k), 0))
    n = ((n & FRACTION) | 0x00100000) >> (20 - k)
    return np.where(some, np.where(j < 0, -n, n), 0), t
