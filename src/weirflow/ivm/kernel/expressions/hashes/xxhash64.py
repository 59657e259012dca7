"""``xxhash64``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hashes: TypeAlias = NDArray[np.uint64]

_ALL = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_STRIPE = 32


class XxHash64:
    """Hashes of values, each begun with the hash of what came before."""

    result = pa.int64()
    dtype = np.dtype(np.uint64)

    def ints(self, values: NDArray[np.int32], seeds: Hashes) -> Hashes:
        """Of integers of 32 bits."""
        hashes = seeds + np.uint64((_P5 + 4) & _ALL)
        return _finished(_with_int(hashes, values.view(np.uint32).astype(np.uint64)))

    def longs(self, values: NDArray[np.int64], seeds: Hashes) -> Hashes:
        """Of integers of 64 bits."""
        return _finished(_with_long(seeds + np.uint64((_P5 + 8) & _ALL), values.view(np.uint64)))

    def short_bytes(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], seeds: Hashes
    ) -> Hashes:
        """Of pieces of a buffer, a word of each at a time."""
        hashes = seeds + np.uint64(_P5)
        rows = np.flatnonzero(lengths >= _STRIPE)
        if len(rows):
            hashes[rows] = _stripes(data, starts[rows], lengths[rows], seeds[rows])
        hashes += lengths.astype(np.uint64)
        at = lengths - lengths % _STRIPE
        while len(rows := np.flatnonzero(lengths - at >= 8)):  # noqa: PLR2004 - bytes of a word
            hashes[rows] = _with_long(hashes[rows], _word(data, (starts + at)[rows], 8))
            at[rows] += 8
        rows = np.flatnonzero(lengths - at >= 4)  # noqa: PLR2004 - bytes of half a word
        if len(rows):
            hashes[rows] = _with_int(hashes[rows], _word(data, (starts + at)[rows], 4))
            at[rows] += 4
        while len(rows := np.flatnonzero(lengths > at)):
            values = data[(starts + at)[rows]].astype(np.uint64)
            hashes[rows] = _rotated(hashes[rows] ^ (values * np.uint64(_P5)), 11) * np.uint64(_P1)
            at[rows] += 1
        return _finished(hashes)

    def long_bytes(self, data: bytes, seed: int) -> int:
        """Of one piece of any length."""
        stripes = len(data) - len(data) % _STRIPE
        words = memoryview(data)[:stripes].cast("Q")
        sums = [(seed + _P1 + _P2) & _ALL, (seed + _P2) & _ALL, seed, (seed - _P1) & _ALL]
        for place in range(0, len(words), 4):
            for lane in range(4):
                sums[lane] = _round(sums[lane], words[place + lane])
        lanes = [np.array([one], np.uint64) for one in sums]
        hashes = _joined(lanes) + np.uint64(len(data))
        rest = np.frombuffer(data, np.uint8, offset=stripes)
        return int(_finished(_with_rest(hashes, rest))[0])


def _round(total: int, word: int) -> int:
    total = (total + word * _P2) & _ALL
    return (total << 31 | total >> 33) * _P1 & _ALL


def _with_rest(hashes: Hashes, rest: NDArray[np.uint8]) -> Hashes:
    """Of one piece, with the bytes behind its stripes."""
    place = np.zeros(1, np.int64)
    while len(rest) - place[0] >= 8:  # noqa: PLR2004 - bytes of a word
        hashes, place = _with_long(hashes, _word(rest, place, 8)), place + 8
    if len(rest) - place[0] >= 4:  # noqa: PLR2004 - bytes of half a word
        hashes, place = _with_int(hashes, _word(rest, place, 4)), place + 4
    for byte in rest[place[0] :].astype(np.uint64):
        hashes = _rotated(hashes ^ (byte * np.uint64(_P5)), 11) * np.uint64(_P1)
    return hashes


def _stripes(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], seeds: Hashes) -> Hashes:
    lanes = [seeds + np.uint64((_P1 + _P2) & _ALL), seeds + np.uint64(_P2), seeds.copy(), seeds - np.uint64(_P1)]
    at, rows = 0, np.arange(len(starts))
    while len(rows):
        for lane, sums in enumerate(lanes):
            words = _word(data, starts[rows] + at + 8 * lane, 8)
            sums[rows] = _rotated(sums[rows] + words * np.uint64(_P2), 31) * np.uint64(_P1)
        at += _STRIPE
        rows = rows[lengths[rows] >= at + _STRIPE]
    return _joined(lanes)


def _joined(lanes: list[Hashes]) -> Hashes:
    hashes = _rotated(lanes[0], 1) + _rotated(lanes[1], 7) + _rotated(lanes[2], 12) + _rotated(lanes[3], 18)
    for sums in lanes:
        mixed = _rotated(sums * np.uint64(_P2), 31) * np.uint64(_P1)
        hashes = (hashes ^ mixed) * np.uint64(_P1) + np.uint64(_P4)
    return hashes


def _word(data: NDArray[np.uint8], places: NDArray[np.int64], size: int) -> Hashes:
    words = np.zeros(len(places), np.uint64)
    for byte in range(size):
        words |= data[places + byte].astype(np.uint64) << np.uint64(8 * byte)
    return words


def _rotated(values: Hashes, by: int) -> Hashes:
    return (values << np.uint64(by)) | (values >> np.uint64(64 - by))


def _with_int(hashes: Hashes, words: Hashes) -> Hashes:
    return _rotated(hashes ^ (words * np.uint64(_P1)), 23) * np.uint64(_P2) + np.uint64(_P3)


def _with_long(hashes: Hashes, words: Hashes) -> Hashes:
    mixed = _rotated(words * np.uint64(_P2), 31) * np.uint64(_P1)
    return _rotated(hashes ^ mixed, 27) * np.uint64(_P1) + np.uint64(_P4)


def _finished(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * np.uint64(_P2)
    hashes = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(_P3)
    return hashes ^ (hashes >> np.uint64(32))
