"""``OrderedArrangement``: weighted rows by key, sorted within each key; the state of MIN, MAX and top-k."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.codes import KeyCodes
from weirflow.ivm.kernel.places import KnownRuns, Span, key_spans
from weirflow.ivm.kernel.runs.merge import RunMerge
from weirflow.ivm.kernel.runs.run import Run
from weirflow.ivm.kernel.runs.search import Needles
from weirflow.ivm.kernel.runs.spine import SpineState
from weirflow.ivm.kernel.sort_keys import SortColumn, prefixes, row_order
from weirflow.ivm.kernel.state import ProbeResult
from weirflow.ivm.zset.batch import Batch, add_segments, concat_columns, take_columns
from weirflow.ivm.zset.buffers import raw_values
from weirflow.ivm.zset.hashing import Equality, RowHash, hash_rows
from weirflow.ivm.zset.rows import equal_rows_at, expand_ranges
from weirflow.rows.arrays import from_numpy

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from weirflow.ivm.zset.batch import Bools, Int64s, UInt64s

_EXACT = np.uint64(0)
_ROWS_PER_BATCH = 1 << 16
_READ_AHEAD = 3
_GROWTH = 4


class OrderedArrangement(SpineState):
    """Weighted rows by key (the first ``key_count`` columns), in a total order within each key.

    Rows are ordered by ``order``, then by all columns, ascending with NULLs first, so that ties are always broken the
    same way. Keys compare as GROUP BY does. Reading the first rows of a key costs what they weigh, not what the key
    has, unless many of its first rows were retracted and are not merged yet.

    In a run each row also has a prefix: 64 bits of the first sort column, as the last column.
    """

    def __init__(
        self,
        types: Iterable[pa.DataType],
        key_count: int,
        order: Sequence[SortColumn],
        *,
        runs: Iterable[Run] = (),
        row_hash: RowHash = hash_rows,
        spill: Path | None = None,
    ) -> None:
        self.types = tuple(types)
        self.key_count = key_count
        self.order = tuple(order)
        self._run_order = OrderedRuns(self.order)
        self._codes = KeyCodes(key_count, row_hash)
        self._known = KnownRuns(key_count)
        super().__init__(self._run_order, runs, spill, self._codes)

    def insert(self, batch: Batch) -> None:
        """Add the rows' weights to the stored ones: positive to insert, negative to retract."""
        if len(batch) == 0:
            return
        prefix = prefixes(batch.columns, self.order, len(batch))
        columns = (*batch.columns, from_numpy(prefix))
        self._spine.insert(columns, batch.weights.reshape(-1, 1))

    def first(self, keys: Sequence[pa.Array], count: int) -> ProbeResult:
        """The first ``count`` rows of each probe row's key, by probe row and then in order.

        A row of weight n counts as n rows, and the last row's weight is cut so that the weights of a probe row add up
        to ``count`` at most. Rows whose weight is negative are passed over. Without key columns there is one key.
        """
        length = len(keys[0]) if keys else 1
        unresolved = np.arange(length)
        found: list[ProbeResult] = []
        ahead = count + _READ_AHEAD
        while len(unresolved):
            part = tuple(keys) if len(unresolved) == length else take_columns(keys, unresolved)
            rows, enough = self._first_of(part, len(unresolved), count, ahead)
            found.append(ProbeResult(unresolved[rows.probe_index], rows.batch))
            unresolved = unresolved[~enough]
            ahead *= _GROWTH
        if len(found) == 1:
            return found[0]
        if not found:
            return ProbeResult(np.empty(0, np.int64), Batch.empty(self.types))
        index = np.concatenate([part.probe_index for part in found])
        by_probe = np.argsort(index, kind="stable")
        return ProbeResult(index[by_probe], Batch.concat([part.batch for part in found]).take(by_probe))

    @property
    def places(self) -> Int64s | None:
        """The runs as compiled kernels read them; None if they do not read one of them, or there are none."""
        return self._spine.places

    def spans(self, keys: Sequence[pa.Array], count: int) -> list[Span]:
        """Where the rows of ``count`` keys are in each run that has any."""
        needles = Needles(keys, self._codes(keys, count), _EXACT, Equality.GROUPING)
        return key_spans(self._spine.runs, self._known, needles, keys, count)

    def weight(self, span: Span, begin: Int64s, end: Int64s) -> Int64s:
        """What rows of the span's run weigh together."""
        return self._known[span.run].weight(begin, end)

    def probe(self, keys: Sequence[pa.Array]) -> ProbeResult:
        """All rows of each probe row's key, consolidated, by probe row and then in order."""
        return self.first(keys, 2**62)

    def rows(self) -> Iterator[Batch]:
        """All stored rows, each once with its weight; those of a key follow each other in order."""
        merge = RunMerge(self._spine.runs, self._run_order, keep=False)
        while not merge.finished:
            run = merge.advance(_ROWS_PER_BATCH)
            if len(run):
                yield Batch(run.columns[:-1], run.values[:, 0])

    def _first_of(self, keys: Sequence[pa.Array], length: int, count: int, ahead: int) -> tuple[ProbeResult, Bools]:
        """The first rows of those keys for which ``ahead`` rows of each run suffice, and which keys these are."""
        needles = Needles(keys, self._codes(keys, length), _EXACT, Equality.GROUPING)
        parts: list[tuple[Int64s, tuple[pa.Array, ...], Int64s, Bools]] = []
        for run in self._spine.runs:
            probe, first, size = needles.ranges(run)
            if len(probe) == 0:
                continue
            read = np.minimum(size, ahead)
            position = expand_ranges(first, read)
            # The last row read of a longer range: what follows it in this run is unknown.
            frontier = np.zeros(len(position), np.bool_)
            frontier[np.cumsum(read)[size > read] - 1] = True
            parts.append((probe.repeat(read), take_columns(run.columns, position), run.values[position, 0], frontier))
        if not parts:
            return ProbeResult(np.empty(0, np.int64), Batch.empty(self.types)), np.ones(length, np.bool_)
        probe = np.concatenate([part[0] for part in parts])
        columns = concat_columns([part[1] for part in parts])
        weights = np.concatenate([part[2] for part in parts])
        frontier = np.concatenate([part[3] for part in parts])
        weights[~equal_rows_at(columns[: self.key_count], np.arange(len(probe)), keys, probe, Equality.GROUPING)] = 0
        return self._select(probe, Batch(columns, weights), frontier, length, count)

    def _select(
        self, probe: Int64s, read: Batch, frontier: Bools, length: int, count: int
    ) -> tuple[ProbeResult, Bools]:
        columns, weights = read.columns, read.weights
        codes = probe.astype(np.uint64)
        order, tied = row_order(codes, raw_values(columns[-1]), columns[:-1], self.order)
        starts = _group_starts(columns[:-1], order, tied)
        rows = order[starts]
        probe, weights = probe[rows], np.maximum(add_segments(weights[order], starts), 0)
        unknown_after = np.logical_or.reduceat(frontier[order], starts)
        first = np.concatenate(([0], np.flatnonzero(probe[1:] != probe[:-1]) + 1))
        size = np.append(first[1:], len(probe)) - first
        # Rows after the first frontier of their probe row may lack weights that were not read.
        weights[_sums_before(unknown_after.astype(np.int64), first, size) > 0] = 0
        before = _sums_before(weights, first, size)
        weights = np.minimum(weights, count - np.minimum(before, count))
        total = np.zeros(length, np.int64)
        np.add.at(total, probe, weights)
        cut_off = np.zeros(length, np.bool_)
        cut_off[probe[unknown_after]] = True
        enough = (total >= count) | ~cut_off
        kept = np.flatnonzero((weights > 0) & enough[probe])
        return ProbeResult(probe[kept], Batch(take_columns(columns[:-1], rows[kept]), weights[kept])), enough


class OrderedRuns:
    """How runs are sorted, merged and cut whose last column is a prefix of ``order``."""

    weighs = False  # only merges would save memory, and such states are small beside those of joins

    def __init__(self, order: tuple[SortColumn, ...]) -> None:
        self._order = order

    def sort(self, codes: UInt64s, columns: Sequence[pa.Array], values: Int64s) -> Sequence[Run]:
        """A run of rows in any order."""
        return [self.sorted(codes, columns, values)]

    def sorted(self, codes: UInt64s, columns: Sequence[pa.Array], values: Int64s) -> Run:
        """The one run that ``sort`` gives."""
        order, tied = row_order(codes, raw_values(columns[-1]), columns[:-1], self._order)
        starts = _group_starts(columns[:-1], order, tied)
        if len(starts) < len(order):
            values, order = add_segments(values[order], starts), order[starts]
        else:
            values = values[order]
        kept = np.flatnonzero(values[:, 0])
        if len(kept) < len(order):
            order, values = order[kept], values[kept]
        return Run(codes[order], take_columns(columns, order), values)

    def merge(self, parts: Sequence[Run]) -> Run:
        """One run of all rows."""
        return parts[0] if len(parts) == 1 else self.merge_unsorted(parts)

    def merge_unsorted(self, parts: Sequence[Run]) -> Run:
        """One run of all rows, of which only the first part is sorted."""
        codes = np.concatenate([part.codes for part in parts])
        values = np.concatenate([part.values for part in parts])
        return self.sorted(codes, concat_columns([part.columns for part in parts]), values)

    def end_of(self, run: Run, pivot: Run, at: int) -> int:
        """Behind the last row with the pivot's code and prefix, or one before it."""
        code = pivot.codes[at]
        low, high = int(run.codes.searchsorted(code)), int(run.codes.searchsorted(code, "right"))
        prefix = raw_values(pivot.columns[-1])[at]
        return low + int(raw_values(run.columns[-1])[low:high].searchsorted(prefix, "right"))


def _group_starts(columns: Sequence[pa.Array], order: Int64s, tied: Int64s) -> Int64s:
    """Where different rows begin in ``order``; only rows at ``tied`` may equal the one before them."""
    fresh = np.ones(len(order), np.bool_)
    if len(tied):
        fresh[tied] = ~equal_rows_at(columns, order[tied], columns, order[tied - 1], Equality.IDENTITY)
    return np.flatnonzero(fresh)


def _sums_before(values: Int64s, first: Int64s, size: Int64s) -> Int64s:
    """For each row the sum of the values before it in its group.

    Sums that leave int64 do not matter: weights of one key that add up to 2^63 rows do not exist.
    """
    before = np.cumsum(values) - values
    sums: Int64s = before - before[first].repeat(size)
    return sums
