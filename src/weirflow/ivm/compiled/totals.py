"""Adding up rows of integers and exact sums of doubles, the twin of ``zset.batch`` and ``kernel.sums``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import boolean, float64, int64, void

from weirflow.ivm.compiled.signatures import INTS, NEW_ROWS, ROWS, compiled, several

_MASK = np.int64(0xFFFFFFFF)
_MANTISSA = np.int64(0xFFFFFFFFFFFFF)
_HIDDEN = np.int64(0x10000000000000)
_WORD_BITS = 62


@compiled(void(NEW_ROWS, INTS, ROWS, INTS))
def add_rows(totals: Any, into: Any, values: Any, position: Any) -> None:
    """Add rows of values to rows of totals."""
    for row in range(len(into)):
        for column in range(totals.shape[1]):
            totals[into[row], column] += values[position[row], column]


@compiled(several(NEW_ROWS, boolean)(ROWS, INTS, INTS))
def sum_groups(rows: Any, order: Any, starts: Any) -> Any:
    """Rows taken in ``order`` and added up from start to start, and whether no sum left 64 bits."""
    width = rows.shape[1]
    totals = np.zeros((len(starts), width), np.int64)
    fits = True
    for group in range(len(starts)):
        end = starts[group + 1] if group + 1 < len(starts) else len(order)
        for at in range(starts[group], end):
            for column in range(width):
                value = rows[order[at], column]
                total = totals[group, column]
                added = total + value
                fits &= ((total ^ added) & (value ^ added)) >= 0
                totals[group, column] = added
    return totals, fits


@compiled(several(int64, int64)(ROWS))
def extremes(rows: Any) -> Any:
    """The least and the greatest of all values, 0 among them."""
    least = greatest = np.int64(0)
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            least, greatest = min(least, rows[row, column]), max(greatest, rows[row, column])
    return least, greatest


@compiled(int64(int64))
def _bit_length(value: Any) -> Any:
    length = np.int64(0)
    while value:
        value >>= 1
        length += 1
    return length


@compiled(boolean(int64, int64, int64, int64, int64, int64[:, :], int64, int64))
def add_double(
    bits: Any, weight: Any, lowest: Any, highest: Any, lowest_bit: Any, totals: Any, row: Any, first: Any
) -> bool:
    """Add the limbs of a double, times its weight, to those of a row from ``first`` on; whether they have room for it.

    It is given by its bits, as are the bounds, which are positive and normal: it has to be 0, or its magnitude from
    ``lowest`` up to ``highest``.
    """
    magnitude = bits & np.int64(0x7FFFFFFFFFFFFFFF)
    if magnitude == 0:
        return True
    if magnitude < lowest or magnitude >= highest:
        return False
    whole = (magnitude & _MANTISSA) | _HIDDEN
    bit = (magnitude >> 52) - 1075 - lowest_bit
    limb, shift = first + (bit >> 5), bit & 31
    signed = weight if bits >= 0 else -weight
    low, high = (whole & _MASK) << shift, (whole >> 32) << shift
    totals[row, limb] += signed * (low & _MASK)
    totals[row, limb + 1] += signed * ((low >> 32) + (high & _MASK))
    totals[row, limb + 2] += signed * (high >> 32)
    return True


@compiled(boolean(INTS, INTS, int64, int64, int64, int64[:, :]))
def encode_doubles(values: Any, weights: Any, lowest: int, highest: int, lowest_bit: int, into: Any) -> bool:
    """Write the limbs of each value, times its weight; whether ``add_double`` has room for every value."""
    inside = True
    for row in range(len(values)):
        for limb in range(into.shape[1]):
            into[row, limb] = 0
        inside &= add_double(values[row], weights[row], lowest, highest, lowest_bit, into, row, 0)
    return inside


@compiled(float64[::1](int64[:, :], int64))
def double_totals(limbs: Any, lowest_bit: int) -> Any:
    """The totals of limbs as doubles, each rounded once, half to even."""
    count = limbs.shape[1]
    totals = np.empty(len(limbs), np.float64)
    digits = np.empty(count, np.int64)
    for row in range(len(limbs)):
        carry = np.int64(0)
        for limb in range(count):
            carry += limbs[row, limb]
            digits[limb] = carry & _MASK
            carry >>= 32
        negative = carry < 0
        if negative:
            carry = np.int64(0)
            for limb in range(count):
                carry -= limbs[row, limb]
                digits[limb] = carry & _MASK
                carry >>= 32
        top = count - 1
        while top > 0 and digits[top] == 0:
            top -= 1
        if digits[top] == 0:
            totals[row] = 0.0
            continue
        # The highest 62 bits go into one word, whose last bit also says whether anything is below: converting it to a
        # double then rounds as if every bit were seen.
        word, bits, limb = np.int64(0), 0, top
        while limb >= 0 and (bits == 0 or bits + 32 <= _WORD_BITS):
            word = (word << 32) | digits[limb]
            bits = bits + 32 if bits else _bit_length(digits[limb])
            limb -= 1
        exponent = lowest_bit + 32 * (limb + 1)
        rest = False
        if limb >= 0:
            spare = _WORD_BITS - bits
            word = (word << spare) | (digits[limb] >> (32 - spare))
            rest = (digits[limb] << spare) & _MASK != 0
            exponent -= spare
            limb -= 1
        while limb >= 0:
            rest |= digits[limb] != 0
            limb -= 1
        value = math.ldexp(np.float64(word | np.int64(rest)), exponent)
        totals[row] = -value if negative else value
    return totals
