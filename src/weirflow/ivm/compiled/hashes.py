"""Hashes of values, the twin of ``zset.hashing``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import uint64

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
