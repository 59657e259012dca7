"""Hashes of values, the twin of ``zset.hashing``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, int32, int64, types, uint64

from weirflow.ivm.compiled.signatures import BYTES, INTS, NEW_WORDS, OFFSETS, compiled

_STEP = np.uint64(0x9E3779B97F4A7C15)


@compiled(uint64(uint64))
def mixed(word: Any) -> Any:
    """The finalizer of splitmix64."""
    word ^= word >> np.uint64(30)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(27)
    word *= np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled(NEW_WORDS(INTS))
def hash_integers(values: Any) -> Any:
    """Hashes of single 64-bit words."""
    hashes = np.empty(len(values), np.uint64)
    for row in range(len(values)):
        hashes[row] = mixed(np.uint64(values[row]) + _STEP)
    return hashes


@compiled(NEW_WORDS(OFFSETS, BYTES))
def hash_bytes(offsets: Any, data: Any) -> Any:
    """Hashes of the byte strings between offsets: a sum over their words and the words' positions."""
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for row in range(len(hashes)):
        start, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        total = mixed(np.uint64(end - start) + _STEP)
        salt = _STEP
        at = start
        while True:
            word = np.uint64(0)
            size: Any = min(end - at, 8)
            for index in range(size):
                word |= np.uint64(data[at + index]) << np.uint64(8 * index)
            total += mixed(word + salt)
            salt += _STEP
            at += 8
            if at >= end:
                break
        hashes[row] = total
    return hashes


_COLUMN = np.uint64(0xD1342543DE82EF95)
_SHORT_FLOATS, _LONG_FLOATS = (types.Array(kind, 1, "C", readonly=True) for kind in (int32, int64))


@compiled([NEW_WORDS(kind, INTS, int64, int64, int64, boolean) for kind in (_SHORT_FLOATS, _LONG_FLOATS)])
def hash_floats(values: Any, offsets: Any, size: int, infinite: int, nan: int, grouping: bool) -> Any:  # noqa: FBT001 - numba
    """Hashes of arrays of floats between offsets, a sum over their mixed elements and the elements' positions.

    Elements are given as the integers of their bits: ``size`` are the bits of their size without a sign, and beyond
    ``infinite`` they are NaN, of which there is one. ``grouping`` makes -0.0 and 0.0 one.
    """
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for row in range(len(hashes)):
        start, end = offsets[row], offsets[row + 1]
        total = np.uint64(end - start) * _COLUMN
        salt = np.uint64(0)
        for at in range(start, end):
            word: Any = np.int64(values[at])
            if word & size > infinite:
                word = nan
            elif grouping and word & size == 0:
                word = np.int64(0)
            total += mixed(mixed(np.uint64(word) + _STEP) + salt)
            salt += _STEP
        hashes[row] = mixed(total)
    return hashes
