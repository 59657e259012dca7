"""Partitions laid out in order: where each begins and ends, which rows are peers, and what a frame covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.sort_keys import SortColumn, sort_words
from weirflow.ivm.operators.window.value_range import ValueBound
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import equal_rows_at
from weirflow.sql.expr import Frame, FrameUnit, WindowCall

if TYPE_CHECKING:
    import pyarrow as pa

_WHOLE = Frame(FrameUnit.RANGE, None, None)


class WholeNeeded(Exception):
    """What is asked for cannot be told from a part of a partition."""


@dataclass(frozen=True, eq=False)
class RowsBefore:
    """What there is in each partition before the rows that are there.

    Attributes:
        count: how many rows.
        totals: for each call, what they add to its running totals.
    """

    count: np.ndarray
    totals: Mapping[WindowCall, np.ndarray]


class OrderedPartitions:
    """Rows sorted by partition, then by sort keys.

    A partition may be there in part: one that is not ``is_whole`` may lack rows before the first and behind the last.

    Attributes:
        count: how many rows there are.
        keys: their sort keys.
        descending: whether the first of these is sorted from large to small.
        begin, end: for each row, the bounds of its partition.
        before: what is known of the rows before that are not there; None if that is not needed.
    """

    def __init__(
        self,
        partition: np.ndarray,
        keys: Sequence[pa.Array],
        *,
        descending: bool,
        before: RowsBefore | None = None,
        is_whole: bool = True,
    ) -> None:
        count = len(partition)
        self.count = count
        self.partition = partition
        self.fresh = np.ones(count, np.bool_)
        self.fresh[1:] = partition[1:] != partition[:-1]
        self.begin, self.end = _bounds(self.fresh)
        self.keys = keys
        self.descending = descending
        self.before = before
        self._is_whole = is_whole

    @cached_property
    def new_peer(self) -> np.ndarray:
        """Which rows have other sort keys than the one before."""
        new_peer = self.fresh.copy()
        if self.keys:
            at = np.arange(1, self.count)
            new_peer[1:] |= ~equal_rows_at(self.keys, at, self.keys, at - 1, Equality.GROUPING)
        return new_peer

    @cached_property
    def _peers(self) -> tuple[np.ndarray, np.ndarray]:
        return _bounds(self.new_peer)

    @property
    def peer_begin(self) -> np.ndarray:
        """Where the rows begin whose sort keys equal those of each row."""
        return self._peers[0]

    @property
    def peer_end(self) -> np.ndarray:
        """Where they end."""
        return self._peers[1]

    def frame(self, call: WindowCall) -> tuple[np.ndarray, np.ndarray]:
        """For each sorted row, the first row of its frame and the row behind the last; empty where they meet."""
        frame = call.frame or _WHOLE
        if frame.unit is FrameUnit.RANGE:
            return self._range(frame, call)
        here = np.arange(self.count)
        low = self.begin if frame.start is None else np.maximum(self.begin, here + frame.start)
        high = self.end if frame.end is None else np.minimum(self.end, here + frame.end + 1)
        low = np.minimum(low, self.end)
        return low, np.maximum(high, low)

    def _range(self, frame: Frame, call: WindowCall) -> tuple[np.ndarray, np.ndarray]:
        """A frame of peers, or of rows whose sort keys are near enough."""
        start = ValueBound(self, frame.start, frame.clocks, behind=False) if frame.start else None
        end = ValueBound(self, frame.end, frame.clocks, behind=True) if frame.end else None
        low = start.at if start else self.begin if frame.start is None else self.peer_begin
        high = end.at if end else self.end if frame.end is None else self.peer_end
        # Spark computes a bound only if there is a row to compare with it: one not yet in a frame, or one still in it.
        last_low, last_high = (np.where(self.fresh, self.begin, np.roll(bound, 1)) for bound in (low, high))
        if not self._is_whole and any(bound and bound.leaves_type for bound in (start, end)):
            raise WholeNeeded
        if end:
            end.check(last_high < self.end, call.position)
        if start:
            start.check((last_low < last_high) | (last_high < high), call.position)
        return low, high


def sorted_rows(
    partition: np.ndarray, keys: Sequence[pa.Array], order: Sequence[SortColumn], rows: Sequence[pa.Array]
) -> np.ndarray:
    """The order that sorts rows by partition, then by sort keys, ties broken by all columns."""
    # Sort keys first, so that their places are those the order names.
    words = sort_words((*keys, *rows), order)
    return np.lexsort([*reversed(words), partition]) if words else np.argsort(partition, kind="stable")


def _bounds(fresh: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each place, where its stretch begins and where the next one does."""
    starts = np.flatnonzero(fresh)
    sizes = np.diff(starts, append=len(fresh))
    return np.repeat(starts, sizes), np.repeat(starts + sizes, sizes)
