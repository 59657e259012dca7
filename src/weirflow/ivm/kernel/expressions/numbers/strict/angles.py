"""``asin``, ``acos``, ``atan`` and ``atan2``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.expressions.numbers.strict.words import (
    INFINITE,
    MAGNITUDE,
    high,
    polynomial,
    without_low,
)

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.numbers.strict.words import Doubles

_PI = 3.14159265358979311600e00
_PI_LOW = 1.2246467991473531772e-16
_HALF_PI_HIGH = 1.57079632679489655800e00
_HALF_PI_LOW = 6.12323399573676603587e-17
_QUARTER_PI = 7.85398163397448278999e-01
_PS = (
    1.66666666666666657415e-01,
    -3.25565818622400915405e-01,
    2.01212532134862925881e-01,
    -4.00555345006794114027e-02,
    7.91534994289814532176e-04,
    3.47933107596021167570e-05,
)
_QS = (
    1.0,
    -2.40339491173441421878e00,
    2.02094576023350569471e00,
    -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)
_ATAN_HIGH = (4.63647609000806093515e-01, 7.85398163397448278999e-01, 9.82793723247329054082e-01, _HALF_PI_HIGH)
_ATAN_LOW = (2.26987774529616870924e-17, 3.06161699786838301793e-17, 1.39033110312309984516e-17, _HALF_PI_LOW)
_T = (
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
)
_HALF = 0x3FE00000


def _ratio(t: Doubles) -> Doubles:
    return t * polynomial(t, *_PS) / polynomial(t, *_QS)


def asin(x: Doubles) -> Doubles:
    """``StrictMath.asin``."""
    size = high(x) & MAGNITUDE
    t = x * x
    near = np.where(size < 0x3E400000, x, x + x * _ratio(t))  # noqa: PLR2004 - 2**-27
    t = (1.0 - np.abs(x)) * 0.5
    s = np.sqrt(t)
    ratio = _ratio(t)
    close = _HALF_PI_HIGH - (2.0 * (s + s * ratio) - _HALF_PI_LOW)
    w = without_low(s)
    c = (t - w * w) / (s + w)
    p = 2.0 * s * ratio - (_HALF_PI_LOW - 2.0 * c)
    q = _QUARTER_PI - 2.0 * w
    far = np.where(size >= 0x3FEF3333, close, _QUARTER_PI - (p - q))  # noqa: PLR2004 - 0.975
    result = np.where(size < _HALF, near, np.where(high(x) > 0, far, -far))
    result = np.where(np.abs(x) == 1, x * _HALF_PI_HIGH + x * _HALF_PI_LOW, result)
    return np.where(np.abs(x) <= 1, result, np.nan)


def acos(x: Doubles) -> Doubles:
    """``StrictMath.acos``."""
    hx = high(x)
    size = hx & MAGNITUDE
    near = _HALF_PI_HIGH - (x - (_HALF_PI_LOW - x * _ratio(x * x)))
    near = np.where(size <= 0x3C600000, _HALF_PI_HIGH + _HALF_PI_LOW, near)  # noqa: PLR2004 - 2**-57
    z = (1.0 + x) * 0.5
    s = np.sqrt(z)
    negative = _PI - 2.0 * (s + (_ratio(z) * s - _HALF_PI_LOW))
    z = (1.0 - x) * 0.5
    s = np.sqrt(z)
    df = without_low(s)
    c = (z - df * df) / (s + df)
    positive = 2.0 * (df + (_ratio(z) * s + c))
    result = np.where(size < _HALF, near, np.where(hx < 0, negative, positive))
    result = np.where(x == 1, 0.0, np.where(x == -1, _PI + 2.0 * _HALF_PI_LOW, result))
    return np.where(np.abs(x) <= 1, result, np.nan)


def atan(x: Doubles) -> Doubles:
    """``StrictMath.atan``."""
    size, y = high(x) & MAGNITUDE, np.abs(x)
    inside = size < 0x3FDC0000  # noqa: PLR2004 - 7/16
    place = np.select([size < 0x3FE60000, size < 0x3FF30000, size < 0x40038000], [0, 1, 2], 3)  # noqa: PLR2004 - bounds
    parts = [(2.0 * y - 1.0) / (2.0 + y), (y - 1.0) / (y + 1.0), (y - 1.5) / (1.0 + 1.5 * y), -1.0 / y]
    r = np.where(inside, x, np.choose(place, parts))
    z = r * r
    w = z * z
    s1 = z * polynomial(w, *_T[0::2])
    s2 = w * polynomial(w, *_T[1::2])
    base, rest = np.array(_ATAN_HIGH)[place], np.array(_ATAN_LOW)[place]
    far = base - ((r * (s1 + s2) - rest) - r)
    result = np.where(inside, r - r * (s1 + s2), np.where(high(x) < 0, -far, far))
    result = np.where(size < 0x3E200000, x, result)  # noqa: PLR2004 - 2**-29
    limit = _HALF_PI_HIGH + _HALF_PI_LOW
    result = np.where(size >= 0x44100000, np.where(high(x) > 0, limit, -limit), result)  # noqa: PLR2004 - 2**66
    return np.where(np.isnan(x), x, result)


def atan2(y: Doubles, x: Doubles) -> Doubles:
    """``StrictMath.atan2``."""
    hx, hy = high(x), high(y)
    sx, sy = hx & MAGNITUDE, hy & MAGNITUDE
    apart = (sy - sx) >> 20
    z = atan(np.abs(y / x))
    z = np.where((hx < 0) & (apart < -60), 0.0, z)  # noqa: PLR2004 - bits
    z = np.where(apart > 60, _HALF_PI_HIGH + 0.5 * _PI_LOW, z)  # noqa: PLR2004 - bits
    right = np.where(hy < 0, -z, z)
    left = np.where(hy < 0, (z - _PI_LOW) - _PI, _PI - (z - _PI_LOW))
    result = np.where(hx < 0, left, right)
    sign = np.where(hy < 0, -1.0, 1.0)
    result = np.where(sy == INFINITE, sign * _HALF_PI_HIGH, result)
    to_infinity = np.where(
        sy == INFINITE,
        np.where(hx < 0, 3.0 * _QUARTER_PI, _QUARTER_PI),
        np.where(hx < 0, _PI, 0.0),
    )
    result = np.where(sx == INFINITE, sign * to_infinity, result)
    result = np.where(x == 0, sign * _HALF_PI_HIGH, result)
    result = np.where(y == 0, np.where(hx < 0, sign * _PI, y), result)
    result = np.where(x == 1, atan(y), result)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, result)
