"""Orders that sort codes, the twin of ``zset.sorting``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, void

from weirflow.ivm.compiled.signatures import INTS, NEW_INTS, NEW_WORDS, WORDS, compiled, several

_SHORT = 32
_UPPER, _LOWER = 1 << 11, 1 << 8
_FEW_STRETCHES = 16
_SOME, _VERY_MANY = 64, 1 << 19


@compiled(void(WORDS, NEW_INTS))
def _insertion_order(codes: Any, order: Any) -> None:
    for row in range(len(codes)):
        code, at = codes[row], row
        while at > 0 and codes[order[at - 1]] > code:
            order[at] = order[at - 1]
            at -= 1
        order[at] = row


@compiled(NEW_INTS(WORDS))
def stable_order(codes: Any) -> Any:
    """The stable order that sorts codes; merges stretches that are sorted already, as runs one after another are."""
    length = len(codes)
    order = np.empty(length, np.int64)
    if length <= _SHORT:
        _insertion_order(codes, order)
        return order
    # Natural merge sort: short stretches are made of _SHORT rows by insertion.
    bounds = np.empty(length // _SHORT * 2 + 3, np.int64)
    bounds[0], count, at = 0, 0, 0
    while at < length:
        end = at + 1
        while end < length and codes[end - 1] <= codes[end]:
            end += 1
        if end - at < _SHORT:
            end = min(at + _SHORT, length)
            _insertion_order(codes[at:end], order[at:end])
            for row in range(at, end):
                order[row] += at
        else:
            for row in range(at, end):
                order[row] = row
        count += 1
        bounds[count] = at = end
    other = np.empty(length, np.int64)
    while count > 1:
        merged = 0
        for pair in range(0, count, 2):
            begin, middle = bounds[pair], bounds[pair + 1]
            end = bounds[pair + 2] if pair + 2 <= count else middle
            left, right = begin, middle
            for out in range(begin, end):
                if right >= end or (left < middle and codes[order[left]] <= codes[order[right]]):
                    other[out] = order[left]
                    left += 1
                else:
                    other[out] = order[right]
                    right += 1
            merged += 1
            bounds[merged] = end
        count = merged
        order, other = other, order
    return order


@compiled(int64(WORDS))
def _stretches(codes: Any) -> Any:
    count = 1
    for row in range(1, len(codes)):
        if codes[row] < codes[row - 1]:
            count += 1
    return count


@compiled(NEW_INTS(WORDS))
def _radix_order(codes: Any) -> Any:
    """The stable order of many codes in no order: by their upper 11 bits, then by 8 more, then few are left to sort."""
    length = len(codes)
    starts = np.zeros(_UPPER + 1, np.int64)
    for row in range(length):
        starts[np.int64(codes[row] >> np.uint64(53)) + 1] += 1
    largest: Any = 0
    for bucket in range(_UPPER):
        largest = max(largest, starts[bucket + 1])
        starts[bucket + 1] += starts[bucket]
    keys, rows = np.empty(length, np.uint64), np.empty(length, np.int64)
    ends = starts[:-1].copy()
    for row in range(length):
        own = np.int64(codes[row] >> np.uint64(53))
        keys[ends[own]] = codes[row]
        rows[ends[own]] = row
        ends[own] += 1
    own_keys, own_rows = np.empty(largest, np.uint64), np.empty(largest, np.int64)
    inner = np.empty(_LOWER + 1, np.int64)
    for bucket in range(_UPPER):
        begin, end = starts[bucket], starts[bucket + 1]
        inner[:] = 0
        for at in range(begin, end):
            inner[np.int64(keys[at] >> np.uint64(45)) % _LOWER + 1] += 1
        for part in range(_LOWER):
            inner[part + 1] += inner[part]
        for at in range(begin, end):
            own = np.int64(keys[at] >> np.uint64(45)) % _LOWER
            own_keys[inner[own]] = keys[at]
            own_rows[inner[own]] = rows[at]
            inner[own] += 1
        first: Any = 0
        for part in range(_LOWER):
            last = inner[part]  # moved by the rows put in: where the next part begins
            if last - first > 2 * _SHORT:
                order = stable_order(own_keys[first:last])
                for at in range(last - first):
                    rows[begin + first + at] = own_rows[first + order[at]]
            else:
                for at in range(first, last):
                    key, row, place = own_keys[at], own_rows[at], at
                    while place > first and own_keys[place - 1] > key:
                        own_keys[place] = own_keys[place - 1]
                        own_rows[place] = own_rows[place - 1]
                        place -= 1
                    own_keys[place], own_rows[place] = key, row
                rows[begin + first : begin + last] = own_rows[first:last]
            first = last
    return rows


@compiled(NEW_INTS(WORDS))
def _spread_order(codes: Any) -> Any:
    """The stable order of some thousand codes in no order: by as many upper bits as leave about four to a bucket."""
    length = len(codes)
    bits = 1
    while (4 << bits) < length:
        bits += 1
    shift = np.uint64(64 - bits)
    starts = np.zeros((1 << bits) + 1, np.int64)
    for row in range(length):
        starts[np.int64(codes[row] >> shift) + 1] += 1
    for bucket in range(1 << bits):
        starts[bucket + 1] += starts[bucket]
    keys, rows, ends = np.empty(length, np.uint64), np.empty(length, np.int64), starts[:-1].copy()
    for row in range(length):
        own = np.int64(codes[row] >> shift)
        keys[ends[own]] = codes[row]
        rows[ends[own]] = row
        ends[own] += 1
    for bucket in range(1 << bits):
        begin, end = starts[bucket], starts[bucket + 1]
        if end - begin > 2 * _SHORT:
            order = stable_order(keys[begin:end])
            rows[begin:end] = rows[begin:end][order]
            continue
        for at in range(begin + 1, end):
            key, row, place = keys[at], rows[at], at
            while place > begin and keys[place - 1] > key:
                keys[place], rows[place] = keys[place - 1], rows[place - 1]
                place -= 1
            keys[place], rows[place] = key, row
    return rows


@compiled(NEW_INTS(WORDS))
def code_order(codes: Any) -> Any:
    """The stable order that sorts any number of codes, in no order or of a few sorted stretches."""
    if len(codes) <= _SOME or _stretches(codes) <= _FEW_STRETCHES:
        return stable_order(codes)
    return _radix_order(codes) if len(codes) > _VERY_MANY else _spread_order(codes)


@compiled(several(NEW_WORDS, NEW_INTS)(WORDS, INTS))
def in_order(codes: Any, order: Any) -> Any:
    """The codes in an order that sorts them, and the positions in it whose code is that of the one before."""
    ordered = np.empty(len(codes), np.uint64)
    repeats = 0
    for row in range(len(codes)):
        ordered[row] = codes[order[row]]
        if row and ordered[row] == ordered[row - 1]:
            repeats += 1
    repeated = np.empty(repeats, np.int64)
    repeats = 0
    for row in range(1, len(codes)):
        if ordered[row] == ordered[row - 1]:
            repeated[repeats] = row
            repeats += 1
    return ordered, repeated
