"""Stretches: rows of a key that follow each other in ordered state, read where they lie and merged with a change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weirflow.ivm.kernel.sort_keys import SortColumn, sort_words
from weirflow.ivm.zset.batch import add_segments, concat_columns, take_columns
from weirflow.ivm.zset.buffers import raw_values
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import equal_rows_at, expand_ranges

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.places import Span
    from weirflow.ivm.zset.batch import Bools, Int64s, UInt64s

BEFORE, INSIDE, BEHIND = -1, 0, 1
_READ_AHEAD = 3
_GROWTH = 4


class Change(NamedTuple):
    """Rows that come and go, each with the number of the stretch it is in; in any order."""

    number: Int64s
    columns: tuple[pa.Array, ...]
    prefix: UInt64s
    weights: Int64s

    def taken(self, at: Int64s) -> Change:
        """The rows at these places, in that order."""
        return Change(self.number[at], take_columns(self.columns, at), self.prefix[at], self.weights[at])


class Stretches(NamedTuple):
    """Rows by stretch and in order, each different row once.

    Attributes:
        number: the stretch of each row.
        columns: the rows.
        old, new: their weights before and after the change; never negative, and not both zero.
        zone: ``BEFORE`` or ``BEHIND`` for rows that were read around the stretch proper, else ``INSIDE``.
        cut: for each stretch, whether its key has rows behind those that were read.
    """

    number: Int64s
    columns: tuple[pa.Array, ...]
    old: Int64s
    new: Int64s
    zone: Int64s
    cut: Bools


class _Part(NamedTuple):
    """Rows read of one run, or of the change; by stretch and in order, or in any order."""

    number: Int64s
    columns: tuple[pa.Array, ...]
    prefix: UInt64s
    old: Int64s
    new: Int64s
    zone: Int64s
    first_known: Bools
    """What comes before this row in its stretch was not read."""
    last_known: Bools
    """What comes behind it was not read."""


class StretchReader:
    """Reads stretches, merged with a change.

    Args:
        spans: where the stretches are in each run.
        keys: the key of each stretch.
        change: rows that come and go, all of them inside of their stretch, or anywhere for ``first``.
        order: in which rows are kept.
    """

    def __init__(
        self, spans: Sequence[Span], keys: Sequence[pa.Array], change: Change, order: Sequence[SortColumn]
    ) -> None:
        self._spans = spans
        self._keys = keys
        self._change = change
        self._order = order
        self._count = len(keys[0]) if keys else int(change.number.max()) + 1

    def around(self, rows: int) -> Stretches:
        """The stretches with so many rows before and behind, equal ones counted apart."""
        slack = _READ_AHEAD
        while True:
            read = np.full(self._count, rows + slack if rows else 0)
            found, more_before = self._read(read, read)
            short = (more_before & (self._copies(found, BEFORE) < rows)) | (
                found.cut & (self._copies(found, BEHIND) < rows)
            )
            if not short.any():
                return found
            slack = _GROWTH * (slack + rows)

    def first(self, wanted: Int64s, enough: Callable[[Stretches], Bools]) -> Stretches:
        """The first rows of each key, so many that there are ``enough``; ``wanted`` is where to begin."""
        ahead = wanted + _READ_AHEAD
        while True:
            found, _ = self._read(np.zeros_like(ahead), ahead)
            short = found.cut & ~enough(found)
            if not short.any():
                return found
            ahead = np.where(short, ahead * _GROWTH, ahead)

    def _copies(self, found: Stretches, zone: int) -> Int64s:
        """How many old rows of a zone were found for each stretch."""
        here = np.flatnonzero(found.zone == zone)
        copies = np.zeros(self._count, np.int64)
        np.add.at(copies, found.number[here], found.old[here])
        return copies

    def _read(self, behind: Int64s, ahead: Int64s) -> tuple[Stretches, Bools]:
        """Up to so many rows of each run around each span; and for which stretches there are more before."""
        more_before, more_behind = np.zeros(self._count, np.bool_), np.zeros(self._count, np.bool_)
        parts = [_of_change(self._change)]
        for span in self._spans:
            begin = np.maximum(span.start, span.low - behind)
            end = np.minimum(span.end, span.high + ahead)
            cut = (behind > 0) & (begin > span.start), (ahead > 0) & (end < span.end)
            more_before |= cut[0]
            more_behind |= cut[1]
            parts.append(_of_run(span, self._keys, (begin, end), cut))
        return _merged(parts, self._order, more_behind), more_before


def _of_change(change: Change) -> _Part:
    count = len(change.number)
    no = np.zeros(count, np.bool_)
    zeros = np.zeros(count, np.int64)
    return _Part(change.number, change.columns, change.prefix, zeros, change.weights, zeros, no, no)


def _of_run(span: Span, keys: Sequence[pa.Array], bounds: tuple[Int64s, Int64s], cut: tuple[Bools, Bools]) -> _Part:
    run, (begin, end) = span.run, bounds
    size = end - begin
    at = expand_ranges(begin, size)
    number = np.repeat(np.arange(len(begin)), size)
    columns = take_columns(run.columns, at)
    weights = run.values[at, 0]
    if not span.is_exact:
        weights = np.where(
            equal_rows_at(columns[: len(keys)], np.arange(len(at)), keys, number, Equality.GROUPING), weights, 0
        )
    zone = np.where(at < np.repeat(span.low, size), BEFORE, np.where(at < np.repeat(span.high, size), INSIDE, BEHIND))
    first_known, last_known = np.zeros(len(at), np.bool_), np.zeros(len(at), np.bool_)
    last = np.cumsum(size)
    first_known[(last - size)[cut[0]]] = True
    last_known[last[cut[1]] - 1] = True
    return _Part(number, columns[:-1], raw_values(columns[-1]), weights, weights, zone, first_known, last_known)


def _merged(parts: Sequence[_Part], order: Sequence[SortColumn], cut: Bools) -> Stretches:
    """The rows of all parts in one order, weights of equal ones added, without those that may lack some."""
    number, prefix, old, new, zone, first_known, last_known = (
        np.concatenate([part[at] for part in parts]) for at in (0, 2, 3, 4, 5, 6, 7)
    )
    columns = concat_columns([part.columns for part in parts])
    placed, tied = _order(number, prefix, columns, order)
    fresh = np.ones(len(placed), np.bool_)
    fresh[tied] = ~equal_rows_at(columns, placed[tied], columns, placed[tied - 1], Equality.IDENTITY)
    starts = np.flatnonzero(fresh)
    rows = placed[starts]
    number, zone = number[rows], zone[rows]
    if len(starts):
        old, new = add_segments(old[placed], starts), add_segments(new[placed], starts)
        kept = np.ones(len(rows), np.bool_)
        if first_known.any() or last_known.any():
            kept = _known(number, *(np.logical_or.reduceat(one[placed], starts) for one in (first_known, last_known)))
        old, new = np.maximum(old, 0), np.maximum(new, 0)
        kept &= (old > 0) | (new > 0)
        if not kept.all():
            at = np.flatnonzero(kept)
            rows, number, zone, old, new = rows[at], number[at], zone[at], old[at], new[at]
    return Stretches(number, take_columns(columns, rows), old, new, zone, cut)


def _order(
    number: Int64s, prefix: UInt64s, columns: Sequence[pa.Array], order: Sequence[SortColumn]
) -> tuple[Int64s, Int64s]:
    """(order, tied): rows by stretch, prefix and then exactly; and where in it rows may equal the one before."""
    placed = np.lexsort((prefix, number))
    numbers, prefixes = number[placed], prefix[placed]
    same = (numbers[1:] == numbers[:-1]) & (prefixes[1:] == prefixes[:-1])
    if not same.any():
        return placed, np.empty(0, np.int64)
    paired = np.zeros(len(placed), np.bool_)
    paired[1:] = same
    paired[:-1] |= same
    at = np.flatnonzero(paired)
    rows = placed[at]
    words = sort_words(take_columns(columns, rows), order)
    placed[at] = rows[np.lexsort([*reversed(words), prefix[rows], number[rows]])]
    return placed, np.flatnonzero(same) + 1


def _known(number: Int64s, first_known: Bools, last_known: Bools) -> Bools:
    """Which rows have all their weights: none behind the last known row of a run, none before the first."""
    size = np.bincount(number)
    end = np.cumsum(size)
    begin = (end - size)[number]
    lasts: Int64s = np.cumsum(last_known) - last_known
    firsts = np.cumsum(first_known)
    before_stretch = np.concatenate(([0], firsts))
    known: Bools = (lasts == lasts[begin]) & (firsts == before_stretch[end[number]])
    return known
