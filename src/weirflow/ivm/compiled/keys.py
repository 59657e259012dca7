"""Comparing and finding keys, the twin of ``zset.rows`` and ``kernel.search``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, int64, uint64

from weirflow.ivm.compiled.signatures import BYTES, INTS, NEW_BOOLS, NEW_INTS, OFFSETS, WORDS, compiled, several


@compiled(boolean(INTS, INTS, INTS, INTS, NEW_BOOLS))
def equal_integers(left: Any, left_at: Any, right: Any, right_at: Any, equal: Any) -> bool:
    """Clear ``equal`` where the left value differs from the right one; whether all are still equal."""
    every = True
    for row in range(len(equal)):
        if left[left_at[row]] != right[right_at[row]]:
            equal[row] = False
        every &= equal[row]
    return every


@compiled(boolean(OFFSETS, BYTES, INTS, OFFSETS, BYTES, INTS, NEW_BOOLS))
def equal_bytes(
    left: Any, left_data: Any, left_at: Any, right: Any, right_data: Any, right_at: Any, equal: Any
) -> bool:
    """The same for byte strings between offsets."""
    every = True
    for row in range(len(equal)):
        begin, other = np.int64(left[left_at[row]]), np.int64(right[right_at[row]])
        size = np.int64(left[left_at[row] + 1]) - begin
        if size != np.int64(right[right_at[row] + 1]) - other:
            equal[row] = False
        elif begin != other or left_data.ctypes.data != right_data.ctypes.data:
            for index in range(size):
                if left_data[begin + index] != right_data[other + index]:
                    equal[row] = False
                    break
        every &= equal[row]
    return every


@compiled(int64(WORDS, uint64, int64, int64))
def _lower_bound(codes: Any, code: Any, begin: Any, end: Any) -> Any:
    while begin < end:
        middle = (begin + end) >> 1
        if codes[middle] < code:
            begin = middle + 1
        else:
            end = middle
    return begin


@compiled(several(NEW_INTS, NEW_INTS, NEW_INTS)(WORDS, WORDS, int64, WORDS, uint64))
def find_ranges(codes: Any, sample: Any, block: int, low: Any, span: Any) -> Any:
    """(probe rows, first positions, lengths) of the ranges of codes that lie in [low, low | span] of a probe row.

    ``sample`` is every ``block``-th of the codes: it stays in the cache, so that a search waits for memory twice.
    """
    probe, first, length = np.empty(len(low), np.int64), np.empty(len(low), np.int64), np.empty(len(low), np.int64)
    count = 0
    for row in range(len(low)):
        code, last = low[row], low[row] | span
        chosen = _lower_bound(sample, code, 0, len(sample))
        end = chosen * block if chosen < len(sample) else len(codes)
        at = _lower_bound(codes, code, max((chosen - 1) * block, 0), end)
        if at == len(codes) or codes[at] > last:
            continue
        probe[count], first[count] = row, at
        step = 1
        while at + step < len(codes) and codes[at + step] <= last:
            at += step
            step *= 2
        # The code at ``at`` is inside, that at ``at + step`` is not.
        end = min(at + step, len(codes))
        at += 1
        while at < end:
            middle = (at + end) >> 1
            if codes[middle] <= last:
                at = middle + 1
            else:
                end = middle
        length[count] = at - first[count]
        count += 1
    return probe[:count], first[:count], length[:count]
