"""Doubles times a power of ten, rounded half up as the decimal numbers that Java prints them as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weirflow.ivm.kernel.expressions.numbers.java_double import digits_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EXACT_POWER = 22
"""Ten to this power, and all lower ones, are doubles without rounding."""
_SAFE = float(1 << 52)
_DOUBT = 2.0**-49


def scaled_integers(values: NDArray[np.float64], scale: int, *, half_even: bool = False) -> NDArray[Any]:
    """Each finite value times ten to the power of ``scale``, to the nearest integer, halves up (away from zero).

    What Java prints is within a gap or two of the value, so only values that close to a half need its digits.
    """
    if abs(scale) > _EXACT_POWER:
        return np.array([_slowly(value, scale, half_even=half_even) for value in values.tolist()], object)
    power = 10.0 ** abs(scale)
    with np.errstate(over="ignore"):
        sizes = np.abs(values * power if scale >= 0 else values / power)
    sizes = np.minimum(sizes, _SAFE)  # beyond, every value is an integer
    whole = np.floor(sizes)
    fraction = sizes - whole
    sure = (sizes < _SAFE) & (np.abs(fraction - 0.5) > sizes * _DOUBT)
    rounded = np.where(sure, np.copysign(whole + (fraction > 0.5), values), 0.0)  # noqa: PLR2004 - a half
    results: NDArray[Any] = rounded.astype(np.int64).astype(object)
    for row in np.flatnonzero(~sure):
        results[row] = _slowly(float(values[row]), scale, half_even=half_even)
    return results


def _slowly(value: float, scale: int, *, half_even: bool) -> int:
    if value == 0:
        return 0
    digits, exponent = digits_of(abs(value))
    shift = exponent - len(digits) + scale
    size: int = int(digits)
    if shift >= 0:
        size = int(digits + "0" * shift)
    else:
        power: int = 10**-shift
        size, rest = divmod(size, power)
        up = 2 * rest > power or (2 * rest == power and (not half_even or size % 2 == 1))
        size += up
    return size if value > 0 else -size
