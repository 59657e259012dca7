"""Java's ``TimSort`` as a generator of its comparisons: what comparators that do not order give is Java's, too."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

Comparisons = Generator[tuple[int, int], Any, list[int]]
"""Yields two places to compare, is sent a number below, equal to or above zero, and returns the places in order."""
_Part = Generator[tuple[int, int], int, int]
_Nothing = Generator[tuple[int, int], int, None]
_MIN_MERGE = 32
_MIN_GALLOP = 7


class IllOrdered(Exception):
    """A comparator contradicts itself, as far as Java notices."""


def steps(size: int) -> Comparisons:
    """The comparisons that sort ``size`` elements."""
    items = list(range(size))
    if size < _MIN_MERGE:
        run = yield from _count_run(items, 0, size)
        yield from _binary_sort(items, 0, size, run)
        return items
    sort = _Sort(items)
    low, remaining, least = 0, size, _min_run(size)
    while remaining:
        run = yield from _count_run(items, low, low + remaining)
        if run < least:
            forced = min(remaining, least)
            yield from _binary_sort(items, low, low + forced, low + run)
            run = forced
        sort.runs.append((low, run))
        yield from sort.collapse()
        low += run
        remaining -= run
    yield from sort.collapse_all()
    return items


def _min_run(size: int) -> int:
    odd = 0
    while size >= _MIN_MERGE:
        odd |= size & 1
        size >>= 1
    return size + odd


def _binary_sort(items: list[int], low: int, high: int, start: int) -> _Nothing:
    """Insert the elements from ``start`` on into those before, which are in order."""
    start += start == low
    for at in range(start, high):
        pivot, left, right = items[at], low, at
        while left < right:
            middle = (left + right) >> 1
            if (yield pivot, items[middle]) < 0:
                right = middle
            else:
                left = middle + 1
        items[left + 1 : at + 1] = items[left:at]
        items[left] = pivot


def _count_run(items: list[int], low: int, high: int) -> _Part:
    """How many elements are in order already; if they fall, they are reversed."""
    end = low + 1
    if end == high:
        return 1
    falls = (yield items[end], items[low]) < 0
    end += 1
    while end < high:
        found = yield items[end], items[end - 1]
        if (found < 0) != falls:
            break
        end += 1
    if falls:
        items[low:end] = items[low:end][::-1]
    return end - low


def _gallop_left(key: int, items: list[int], base: int, length: int, hint: int) -> _Part:
    last, offset = 0, 1
    if (yield key, items[base + hint]) > 0:
        most = length - hint
        while offset < most and (yield key, items[base + hint + offset]) > 0:
            last, offset = offset, (offset << 1) + 1
        offset = min(offset, most)
        last, offset = last + hint, offset + hint
    else:
        most = hint + 1
        while offset < most and (yield key, items[base + hint - offset]) <= 0:
            last, offset = offset, (offset << 1) + 1
        offset = min(offset, most)
        last, offset = hint - offset, hint - last
    last += 1
    while last < offset:
        middle = last + ((offset - last) >> 1)
        if (yield key, items[base + middle]) > 0:
            last = middle + 1
        else:
            offset = middle
    return offset


def _gallop_right(key: int, items: list[int], base: int, length: int, hint: int) -> _Part:
    last, offset = 0, 1
    if (yield key, items[base + hint]) < 0:
        most = hint + 1
        while offset < most and (yield key, items[base + hint - offset]) < 0:
            last, offset = offset, (offset << 1) + 1
        offset = min(offset, most)
        last, offset = hint - offset, hint - last
    else:
        most = length - hint
        while offset < most and (yield key, items[base + hint + offset]) >= 0:
            last, offset = offset, (offset << 1) + 1
        offset = min(offset, most)
        last, offset = last + hint, offset + hint
    last += 1
    while last < offset:
        middle = last + ((offset - last) >> 1)
        if (yield key, items[base + middle]) < 0:
            offset = middle
        else:
            last = middle + 1
    return offset


class _Sort:
    """The runs that are still to be merged."""

    def __init__(self, items: list[int]) -> None:
        self._items = items
        self._gallop = _MIN_GALLOP
        self.runs: list[tuple[int, int]] = []

    def collapse(self) -> _Nothing:
        """Merge runs until they are shorter and shorter."""
        while len(self.runs) > 1:
            sizes = [size for _, size in self.runs]
            at = len(sizes) - 2
            if (at > 0 and sizes[at - 1] <= sizes[at] + sizes[at + 1]) or (
                at > 1 and sizes[at - 2] <= sizes[at] + sizes[at - 1]
            ):
                at -= sizes[at - 1] < sizes[at + 1]
            elif sizes[at] > sizes[at + 1]:
                return
            yield from self._merge_at(at)

    def collapse_all(self) -> _Nothing:
        """Merge all runs."""
        while len(self.runs) > 1:
            sizes = [size for _, size in self.runs]
            at = len(sizes) - 2
            if at > 0 and sizes[at - 1] < sizes[at + 1]:
                at -= 1
            yield from self._merge_at(at)

    def _merge_at(self, at: int) -> _Nothing:
        (base, size), (other_base, other_size) = self.runs[at : at + 2]
        self.runs[at : at + 2] = [(base, size + other_size)]
        items = self._items
        skipped = yield from _gallop_right(items[other_base], items, base, size, 0)
        base, size = base + skipped, size - skipped
        if not size:
            return
        other_size = yield from _gallop_left(items[base + size - 1], items, other_base, other_size, other_size - 1)
        if not other_size:
            return
        if size <= other_size:
            yield from self._merge_low(base, size, other_base, other_size)
        else:
            yield from self._merge_high(base, size, other_base, other_size)

    def _merge_low(self, base: int, size: int, other_base: int, other_size: int) -> _Nothing:  # noqa: C901, PLR0912, PLR0915 - Java's
        items = self._items
        held = items[base : base + size]
        one, other, target = 0, other_base, base
        items[target] = items[other]
        target, other, other_size = target + 1, other + 1, other_size - 1
        if not other_size:
            items[target : target + size] = held[one : one + size]
            return
        if size == 1:
            items[target : target + other_size] = items[other : other + other_size]
            items[target + other_size] = held[one]
            return
        gallop, over = self._gallop, False
        while not over:
            ones = others = 0
            while True:
                if (yield items[other], held[one]) < 0:
                    items[target] = items[other]
                    target, other, other_size = target + 1, other + 1, other_size - 1
                    others, ones = others + 1, 0
                    if not other_size:
                        over = True
                        break
                else:
                    items[target] = held[one]
                    target, one, size = target + 1, one + 1, size - 1
                    ones, others = ones + 1, 0
                    if size == 1:
                        over = True
                        break
                if (ones | others) >= gallop:
                    break
            if over:
                break
            while True:
                ones = yield from _gallop_right(items[other], held, one, size, 0)
                if ones:
                    items[target : target + ones] = held[one : one + ones]
                    target, one, size = target + ones, one + ones, size - ones
                    if size <= 1:
                        over = True
                        break
                items[target] = items[other]
                target, other, other_size = target + 1, other + 1, other_size - 1
                if not other_size:
                    over = True
                    break
                others = yield from _gallop_left(held[one], items, other, other_size, 0)
                if others:
                    items[target : target + others] = items[other : other + others]
                    target, other, other_size = target + others, other + others, other_size - others
                    if not other_size:
                        over = True
                        break
                items[target] = held[one]
                target, one, size = target + 1, one + 1, size - 1
                if size == 1:
                    over = True
                    break
                gallop -= 1
                if ones < _MIN_GALLOP and others < _MIN_GALLOP:
                    break
            if over:
                break
            gallop = max(gallop, 0) + 2
        self._gallop = max(gallop, 1)
        if size == 1:
            items[target : target + other_size] = items[other : other + other_size]
            items[target + other_size] = held[one]
        elif not size:
            raise IllOrdered
        else:
            items[target : target + size] = held[one : one + size]

    def _merge_high(self, base: int, size: int, other_base: int, other_size: int) -> _Nothing:  # noqa: C901, PLR0912, PLR0915 - Java's
        items = self._items
        held = items[other_base : other_base + other_size]
        one, other, target = base + size - 1, other_size - 1, other_base + other_size - 1
        items[target] = items[one]
        target, one, size = target - 1, one - 1, size - 1
        if not size:
            items[target - other_size + 1 : target + 1] = held[:other_size]
            return
        if other_size == 1:
            target, one = target - size, one - size
            items[target + 1 : target + 1 + size] = items[one + 1 : one + 1 + size]
            items[target] = held[other]
            return
        gallop, over = self._gallop, False
        while not over:
            ones = others = 0
            while True:
                if (yield held[other], items[one]) < 0:
                    items[target] = items[one]
                    target, one, size = target - 1, one - 1, size - 1
                    ones, others = ones + 1, 0
                    if not size:
                        over = True
                        break
                else:
                    items[target] = held[other]
                    target, other, other_size = target - 1, other - 1, other_size - 1
                    others, ones = others + 1, 0
                    if other_size == 1:
                        over = True
                        break
                if (ones | others) >= gallop:
                    break
            if over:
                break
            while True:
                ones = size - (yield from _gallop_right(held[other], items, base, size, size - 1))
                if ones:
                    target, one, size = target - ones, one - ones, size - ones
                    items[target + 1 : target + 1 + ones] = items[one + 1 : one + 1 + ones]
                    if not size:
                        over = True
                        break
                items[target] = held[other]
                target, other, other_size = target - 1, other - 1, other_size - 1
                if other_size == 1:
                    over = True
                    break
                others = other_size - (yield from _gallop_left(items[one], held, 0, other_size, other_size - 1))
                if others:
                    target, other, other_size = target - others, other - others, other_size - others
                    items[target + 1 : target + 1 + others] = held[other + 1 : other + 1 + others]
                    if other_size <= 1:
                        over = True
                        break
                items[target] = items[one]
                target, one, size = target - 1, one - 1, size - 1
                if not size:
                    over = True
                    break
                gallop -= 1
                if ones < _MIN_GALLOP and others < _MIN_GALLOP:
                    break
            if over:
                break
            gallop = max(gallop, 0) + 2
        self._gallop = max(gallop, 1)
        if other_size == 1:
            target, one = target - size, one - size
            items[target + 1 : target + 1 + size] = items[one + 1 : one + 1 + size]
            items[target] = held[other]
        elif not other_size:
            raise IllOrdered
        else:
            items[target - other_size + 1 : target + 1] = held[:other_size]
