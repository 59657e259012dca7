"""Exact sums as additive 64-bit integers, so that a retraction takes back just what an insertion added.

A sum is kept in *limbs*: int64 columns, each counting in units of a power of 2**32. Adding two states adds their
limbs; only reading carries from one limb to the next. Up to 2**31 rows can be added before a limb could overflow,
which the additive state checks.

Integers and decimals up to 18 digits take two limbs, longer decimals four. A double is split into the limbs of a
fixed-point window (2**-128 to 2**128); the rare values outside it, infinities and NaN are the caller's to keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from weirflow.ivm import compiled

LIMB_BITS = 32
_MASK = np.int64(0xFFFFFFFF)

INTEGER_LIMBS = 2
WIDE_LIMBS = 4
_MANTISSA_BITS = 53


@dataclass(frozen=True)
class LimbRange:
    """The bits that limbs of doubles hold: ``limbs`` times 32, from 2**lowest_bit up."""

    lowest_bit: int
    limbs: int


VALUES = LimbRange(-128, 8)
SQUARES = LimbRange(-256, 13)
CUBES = LimbRange(-384, 19)
FOURTHS = LimbRange(-512, 25)


def split_integers(values: np.ndarray) -> np.ndarray:
    """int64 values as (n, 2) limbs, lowest first."""
    limbs = np.empty((len(values), INTEGER_LIMBS), np.int64)
    limbs[:, 0] = values & _MASK
    limbs[:, 1] = values >> LIMB_BITS
    return limbs


def join_halves(limbs: np.ndarray) -> np.ndarray:
    """The int64 values of (n, 2) limbs that ``split_integers`` made and nothing was added to."""
    values: np.ndarray = (limbs[:, 1] << LIMB_BITS) | limbs[:, 0]
    return values


def split_wide(words: np.ndarray) -> np.ndarray:
    """128-bit integers, given as (n, 2) int64 words in two's complement with the low word first, as (n, 4) limbs."""
    low, high = words[:, 0], words[:, 1]
    limbs = np.empty((len(words), WIDE_LIMBS), np.int64)
    limbs[:, 0] = low & _MASK
    limbs[:, 1] = (low >> LIMB_BITS) & _MASK
    limbs[:, 2] = high & _MASK
    limbs[:, 3] = high >> LIMB_BITS
    return limbs


def narrowed(limbs: np.ndarray) -> np.ndarray:
    """As (n, 2) limbs what (n, 4) limbs of ``split_wide`` add up to that were all made of int64 values.

    They are those that ``split_integers`` makes of the values, so that either may be added to and taken from.
    """
    narrow = np.empty((len(limbs), INTEGER_LIMBS), np.int64)
    narrow[:, 0] = limbs[:, 0]
    # The highest limb counts in units of 2**64 here, which is nothing where integers wrap.
    narrow[:, 1] = limbs[:, 1] + (limbs[:, 2] << LIMB_BITS)
    return narrow


def in_window(values: np.ndarray, window: LimbRange = VALUES) -> np.ndarray:
    """Which doubles the limbs of ``split_doubles`` hold without loss."""
    # A sum needs room above its parts: one limb stays free at the top. NaN is in no range.
    lowest = 2.0 ** (window.lowest_bit + _MANTISSA_BITS - 1)
    highest = 2.0 ** (window.lowest_bit + LIMB_BITS * (window.limbs - 1))
    magnitude = np.abs(values)
    held: np.ndarray = ((magnitude >= lowest) & (magnitude < highest)) | (values == 0)
    return held


def split_doubles(values: np.ndarray, window: LimbRange = VALUES) -> np.ndarray:
    """Doubles for which ``in_window`` holds, as (n, limbs) limbs, lowest first."""
    limbs = np.zeros((len(values), window.limbs), np.int64)
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, _MANTISSA_BITS).astype(np.int64)  # value = whole * 2**lowest, exactly
    lowest = exponent.astype(np.int64) - _MANTISSA_BITS - window.lowest_bit
    lowest[whole == 0] = 0
    limb, shift = lowest >> 5, lowest & (LIMB_BITS - 1)
    sign = np.where(whole < 0, np.int64(-1), np.int64(1))
    magnitude = np.abs(whole)
    rows = np.arange(len(values))
    first = (magnitude & _MASK) << shift
    second = (magnitude >> LIMB_BITS) << shift
    # 53 bits shifted by up to 31 span three limbs.
    parts = (first & _MASK, (first >> LIMB_BITS) + (second & _MASK), second >> LIMB_BITS)
    for offset, part in enumerate(parts):
        limbs[rows, limb + offset] += sign * part
    return limbs


def encode_doubles(values: np.ndarray, weights: np.ndarray, into: np.ndarray, window: LimbRange = VALUES) -> bool:
    """Write the limbs of doubles, times their weights; zeros for those not ``in_window``. Whether all are in it."""
    if compiled.kernels is not None:
        bits = np.ascontiguousarray(values).view(np.int64)
        inside: bool = compiled.kernels.encode_doubles(bits, weights, *bounds(window), window.lowest_bit, into)
        return inside
    held = in_window(values, window)
    into[:] = split_doubles(np.where(held, values, 0.0), window)
    into *= weights[:, None]
    return bool(held.all())


@cache
def bounds(window: LimbRange) -> tuple[int, int]:
    """The bits of the least and of the first too great magnitude that ``in_window`` allows."""
    lowest = 2.0 ** (window.lowest_bit + _MANTISSA_BITS - 1)
    highest = 2.0 ** (window.lowest_bit + LIMB_BITS * (window.limbs - 1))
    low, high = np.array([lowest, highest]).view(np.int64).tolist()
    return low, high


def integer_totals(limbs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The int64 totals of (n, 2) limbs, and which of them do not fit into int64."""
    carry = limbs[:, 0] >> LIMB_BITS
    high = limbs[:, 1] + carry
    low = limbs[:, 0] & _MASK
    overflow = (high >= 2**31) | (high < -(2**31))
    with np.errstate(over="ignore"):
        totals = (high << LIMB_BITS) | low
    return totals, overflow


def wide_totals(limbs: np.ndarray) -> list[int]:
    """The exact totals of (n, k) integer limbs as Python integers."""
    totals = [0] * len(limbs)
    for index in range(limbs.shape[1] - 1, -1, -1):
        totals = [(total << LIMB_BITS) + part for total, part in zip(totals, limbs[:, index].tolist(), strict=True)]
    return totals


def double_totals(limbs: np.ndarray, window: LimbRange = VALUES) -> np.ndarray:
    """The totals of ``split_doubles`` limbs, each rounded once, half to even."""
    if compiled.kernels is not None:
        rounded: np.ndarray = compiled.kernels.double_totals(limbs, window.lowest_bit)
        return rounded
    digits, negative = _magnitudes(limbs)
    top = _top_limb(digits)
    rows = np.arange(len(digits))
    padded = np.concatenate([np.zeros((len(digits), 2), np.int64), digits], axis=1).astype(np.uint64)
    upper, middle, lower = padded[rows, top + 2], padded[rows, top + 1], padded[rows, top]
    rest = np.any(digits * (np.arange(digits.shape[1]) < (top - 2)[:, None]), axis=1)
    # Of the three top limbs, move the highest 62 bits or so into one word and note whether anything is below them:
    # the conversion to a double then rounds as if it saw every bit.
    spare = np.uint64(30) - np.minimum(np.frexp(upper.astype(np.float64))[1], 30).astype(np.uint64)
    wide = upper >= 2**30
    word = (((upper << _WORD) | middle) << spare) | (lower >> (_WORD - spare))
    lost = (lower << spare) & np.uint64(0xFFFFFFFF)
    word = np.where(wide, ((upper << _WORD) | middle) >> np.uint64(2), word)
    lost = np.where(wide, (middle & np.uint64(3)) | lower, lost)
    word |= ((lost != 0) | rest).astype(np.uint64)
    scale = np.where(wide, 2, -spare.astype(np.int64))
    exponent = window.lowest_bit + LIMB_BITS * (top.astype(np.int64) - 1) + scale
    magnitude = np.ldexp(word.astype(np.int64).astype(np.float64), exponent.astype(np.int32))
    totals: np.ndarray = np.where(negative, -magnitude, magnitude)
    return totals


_WORD = np.uint64(LIMB_BITS)


def _magnitudes(limbs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Carry: digits from 0 to 2**32 - 1, lowest first, and which totals are negative."""
    digits = _carried(limbs)
    negative = digits[:, -1] < 0
    if negative.any():
        digits[negative] = _carried(-limbs[negative])
    return digits, negative


def _carried(limbs: np.ndarray) -> np.ndarray:
    digits = limbs.copy()
    for index in range(digits.shape[1] - 1):
        digits[:, index + 1] += digits[:, index] >> LIMB_BITS
        digits[:, index] &= _MASK
    return digits


def _top_limb(digits: np.ndarray) -> np.ndarray:
    """The index of the highest limb that is not zero; 0 when all are."""
    from_top = digits[:, ::-1] != 0
    found = from_top.any(axis=1)
    top: np.ndarray = np.where(found, digits.shape[1] - 1 - from_top.argmax(axis=1), 0)
    return top
