"""Spark's ``hash``: Murmur3 of 32 bits, in which each byte behind the last whole word counts as a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hashes: TypeAlias = NDArray[np.uint32]

_ALL = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_ADDED = 0xE6546B64


class Murmur3:
    """Hashes of values, each begun with the hash of what came before."""

    result = pa.int32()
    dtype = np.dtype(np.uint32)

    def ints(self, values: NDArray[np.int32], seeds: Hashes) -> Hashes:
        """Of integers of 32 bits."""
        return _finished(_mixed(seeds, values.view(np.uint32)), np.uint32(4))

    def longs(self, values: NDArray[np.int64], seeds: Hashes) -> Hashes:
        """Of integers of 64 bits: the low word first."""
        words = values.view(np.uint64)
        low, high = (words & np.uint64(_ALL)).astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32)
        return _finished(_mixed(_mixed(seeds, low), high), np.uint32(8))

    def short_bytes(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], seeds: Hashes
    ) -> Hashes:
        """Of pieces of a buffer, a word of each at a time."""
        hashes = seeds.copy()
        rows, at = np.flatnonzero(lengths >= 4), 0  # noqa: PLR2004 - bytes of a word
        while len(rows):
            place = starts[rows] + at
            words = sum(data[place + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4))
            hashes[rows] = _mixed(hashes[rows], np.asarray(words, np.uint32))
            at += 4
            rows = rows[lengths[rows] >= at + 4]
        whole = lengths & ~3
        for byte in range(3):
            rows = np.flatnonzero(lengths - whole > byte)
            if len(rows):
                values = data[(starts + whole)[rows] + byte].view(np.int8).astype(np.int32).view(np.uint32)
                hashes[rows] = _mixed(hashes[rows], values)
        return _finished(hashes, lengths.astype(np.uint32))

    def long_bytes(self, data: bytes, seed: int) -> int:
        """Of one piece of any length."""
        hashed, whole = seed, len(data) & ~3
        for word in memoryview(data)[:whole].cast("I"):
            hashed = _mixed_one(hashed, word)
        for byte in data[whole:]:
            hashed = _mixed_one(hashed, (byte - 256) & _ALL if byte > 127 else byte)  # noqa: PLR2004 - bytes have signs
        hashed ^= len(data)
        hashed = (hashed ^ (hashed >> 16)) * 0x85EBCA6B & _ALL
        hashed = (hashed ^ (hashed >> 13)) * 0xC2B2AE35 & _ALL
        return hashed ^ (hashed >> 16)


def _rotated(values: Hashes, by: int) -> Hashes:
    return (values << np.uint32(by)) | (values >> np.uint32(32 - by))


def _mixed(hashes: Hashes, words: Hashes) -> Hashes:
    hashes = hashes ^ (_rotated(words * np.uint32(_C1), 15) * np.uint32(_C2))
    return _rotated(hashes, 13) * np.uint32(5) + np.uint32(_ADDED)


def _finished(hashes: Hashes, lengths: Hashes | np.uint32) -> Hashes:
    hashes = hashes ^ lengths
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes ^ (hashes >> np.uint32(16))


def _mixed_one(hashed: int, word: int) -> int:
    word = word * _C1 & _ALL
    hashed ^= ((word << 15 | word >> 17) & _ALL) * _C2 & _ALL
    return ((hashed << 13 | hashed >> 19) & _ALL) * 5 + _ADDED & _ALL
