"""Partitions laid out in order: where each begins and ends, which rows are peers, and what a frame covers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.sort_keys import SortColumn, sort_words
from weirflow.ivm.operators.window.value_range import ValueBound
from weirflow.ivm.zset.batch import take_columns
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import equal_rows_at
from weirflow.sql.expr import Frame, FrameUnit, WindowCall

if TYPE_CHECKING:
    import pyarrow as pa

_WHOLE = Frame(FrameUnit.RANGE, None, None)


class OrderedPartitions:
    """Rows sorted by partition, then by sort keys, ties broken by all columns.

    Attributes:
        order: the sorted rows, as indexes into the unsorted ones.
        keys: the sort keys of the sorted rows.
        descending: whether the first of them is sorted from large to small.
        begin, end: for each sorted row, the bounds of its partition.
        peer_begin, peer_end: the bounds of the rows whose sort keys equal its own.
    """

    def __init__(
        self, partition: np.ndarray, keys: Sequence[pa.Array], order: Sequence[SortColumn], rows: Sequence[pa.Array]
    ) -> None:
        count = len(partition)
        # Sort keys first, so that their places are those the order names; all columns break ties.
        words = sort_words((*keys, *rows), order)
        self.order = np.lexsort([*reversed(words), partition]) if words else np.argsort(partition, kind="stable")
        sorted_partition = partition[self.order]
        self.count = count
        self.fresh = np.ones(count, np.bool_)
        self.fresh[1:] = sorted_partition[1:] != sorted_partition[:-1]
        self.begin, self.end = _bounds(self.fresh)
        self.keys = take_columns(keys, self.order)
        self.descending = bool(order) and order[0].descending
        new_peer = self.fresh.copy()
        if keys:
            at = np.arange(1, count)
            new_peer[1:] |= ~equal_rows_at(self.keys, at, self.keys, at - 1, Equality.GROUPING)
        self.new_peer = new_peer
        self.peer_begin, self.peer_end = _bounds(new_peer)

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
        if end:
            end.check(last_high < self.end, call.position)
        if start:
            start.check((last_low < last_high) | (last_high < high), call.position)
        return low, high


def _bounds(fresh: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each place, where its stretch begins and where the next one does."""
    starts = np.flatnonzero(fresh)
    sizes = np.diff(starts, append=len(fresh))
    return np.repeat(starts, sizes), np.repeat(starts + sizes, sizes)
