"""Partitions laid out in order: where each begins and ends, which rows are peers, and what a frame covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.ordering import SortColumn, sort_words
from weirflow.ivm.zset.batch import take_columns
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import equal_rows_at
from weirflow.sql.expr import Frame, FrameUnit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


class OrderedPartitions:
    """Rows sorted by partition, then by sort keys, ties broken by all columns.

    Attributes:
        order: the sorted rows, as indexes into the unsorted ones.
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
        new_peer = self.fresh.copy()
        if keys:
            at = np.arange(1, count)
            sorted_keys = take_columns(keys, self.order)
            new_peer[1:] |= ~equal_rows_at(sorted_keys, at, sorted_keys, at - 1, Equality.GROUPING)
        self.new_peer = new_peer
        self.peer_begin, self.peer_end = _bounds(new_peer)

    def frame(self, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
        """For each sorted row, the first row of its frame and the row behind the last; empty where they meet."""
        here = np.arange(self.count)
        if frame.unit is FrameUnit.ROWS:
            low = self.begin if frame.start is None else np.maximum(self.begin, here + frame.start)
            high = self.end if frame.end is None else np.minimum(self.end, here + frame.end + 1)
        else:
            low = self.begin if frame.start is None else self.peer_begin
            high = self.end if frame.end is None else self.peer_end
        low = np.minimum(low, self.end)
        return low, np.maximum(high, low)


def _bounds(fresh: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each place, where its stretch begins and where the next one does."""
    starts = np.flatnonzero(fresh)
    sizes = np.diff(starts, append=len(fresh))
    return np.repeat(starts, sizes), np.repeat(starts + sizes, sizes)
