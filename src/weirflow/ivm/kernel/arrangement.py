"""``Arrangement``: weighted rows indexed by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm import compiled
from weirflow.ivm.kernel.codes import EVERYTHING, NOTHING, RowCodes
from weirflow.ivm.kernel.runs.gathered import LazyRun, gather, layouts_of
from weirflow.ivm.kernel.runs.merge import CodeOrder, RunMerge
from weirflow.ivm.kernel.runs.run import BLOCK, Run
from weirflow.ivm.kernel.runs.search import Needles
from weirflow.ivm.kernel.runs.spine import SpineState
from weirflow.ivm.kernel.state import ProbeResult
from weirflow.ivm.zset.batch import Batch, add_segments, take_columns
from weirflow.ivm.zset.hashing import Equality, RowHash, hash_rows
from weirflow.ivm.zset.layout import Layout
from weirflow.ivm.zset.rows import group_rows

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.ivm.zset.batch import Int64s, UInt64s

_ROWS_PER_BATCH = 1 << 16
_MANY = 1 << 16
"""More needles than that are sorted before they are looked for, so that a search touches each part of a run once."""
_FEW = 256
_ALL = 2**62


class Arrangement(SpineState):
    """Weighted rows by key; the key is the first ``key_count`` of the columns.

    Keys compare as GROUP BY does (-0.0 equals 0.0, NaN equals NaN, NULL equals NULL); rows add up when they are
    identical. Insertion and probing cost what the batch weighs and the logarithm of what is stored.

    A row's code has the key's hash in its upper half and the row's in its lower half, so that the rows of a key lie
    together and equal rows side by side. Codes only guide: keys and rows are always compared themselves.

    With a folder ``spill``, large runs lie in nameless files there instead of in memory.
    """

    def __init__(
        self,
        types: Iterable[pa.DataType],
        key_count: int,
        *,
        runs: Iterable[Run] = (),
        row_hash: RowHash = hash_rows,
        spill: Path | None = None,
    ) -> None:
        self.types = tuple(types)
        self.key_count = key_count
        self._hash = row_hash
        self._order = CodeOrder(Equality.IDENTITY)
        self._codes = RowCodes(self.types, key_count, row_hash)
        self._span = self._codes.span
        super().__init__(self._order, runs, spill, self._codes)

    def insert(self, batch: Batch) -> None:
        """Add the rows' weights to the stored ones: positive to insert, negative to retract.

        Nothing is checked against the stored rows: a weight may become negative. On an error nothing has changed.
        """
        if len(batch) == 0:
            return
        weights = np.ascontiguousarray(batch.weights).reshape(-1, 1)
        layout = None
        if compiled.kernels is not None and self._hash is hash_rows:
            # Where others wait already, nobody looks between ticks: the codes of all of them are found together.
            layout = batch.known_layout if self._spine.is_waiting else batch.layout
        if layout is None:
            self._spine.insert(batch.columns, weights)
            return
        codes, lazy = self._codes.of_layout(layout), batch.lazy
        self._spine.append(
            LazyRun(codes, lazy, weights) if lazy is not None else Run(codes, batch.columns, weights, layout)
        )

    def probe(
        self,
        keys: Sequence[pa.Array],
        *,
        consolidated: bool = False,
        count: int | None = None,
        most: int | None = None,
        columns: Sequence[int] | None = None,
        layout: Layout | None = None,
    ) -> ProbeResult:
        """All stored rows whose key equals that of a probe row. The order of matches is unspecified.

        The same row may be found several times with weights that are to be added, unless ``consolidated``. Without
        key columns every stored row matches each of ``count`` (default 1) probe rows. ``TooManyPairs`` if there may be
        more than ``most`` matches. With ``columns``, just these of the stored rows are returned. ``layout`` is that of
        columns which begin with the keys, where the caller has it.
        """
        runs = self._spine.runs
        if (matches := self._found(runs, keys, most, columns, layout)) is not None:
            return _consolidated(matches, self._hash) if consolidated and len(runs) > 1 else matches
        chosen = range(len(self.types)) if columns is None else columns
        hits = []
        if runs:
            needles = self._needles(keys, len(keys[0]) if keys else 1 if count is None else count)
            hits = needles.candidates(runs, most)
        if not hits:
            return ProbeResult(np.empty(0, np.int64), Batch.empty([self.types[one] for one in chosen]))
        probe = np.concatenate([probe for _, probe, _ in hits])
        # What is compared, then what is wanted beside it.
        taken = [*range(self.key_count), *sorted({one for one in chosen if one >= self.key_count})]
        parts = [(take_columns([run.columns[one] for one in taken], at), run.values[at, 0]) for run, _, at in hits]
        found = Batch.concat([Batch(*part) for part in parts])
        equal = needles.equal(found.columns, probe)
        if not equal.all():
            probe, found = probe[equal], found.filter(equal)
        matches = ProbeResult(probe, found.select([taken.index(one) for one in chosen]))
        return _consolidated(matches, self._hash) if consolidated and len(hits) > 1 else matches

    def _found(
        self,
        runs: Sequence[Run],
        keys: Sequence[pa.Array],
        most: int | None,
        columns: Sequence[int] | None,
        layout: Layout | None,
    ) -> ProbeResult | None:
        """What ``probe`` finds, by compiled kernels; None if it is not for these."""
        if compiled.kernels is None or self._hash is not hash_rows or not keys or len(keys[0]) > _MANY:
            return None
        layout = Layout.of(keys) if layout is None else layout
        places, layouts = self._spine.places, layouts_of(runs)
        if places is None or layout is None or layouts is None:
            return None
        limit = _ALL if most is None else most
        probe, rows, weights = compiled.kernels.find_rows(
            places, BLOCK, layout.address, self._codes.of_keys(layout), self._span, self.key_count, limit
        )
        if len(probe) > limit:
            return None
        return ProbeResult(probe, Batch.of_lazy(gather(runs, layouts, rows, columns), weights))

    def overdrawn(self, batch: Batch) -> Int64s:
        """The rows of the batch that are retracted more often than they are stored; each is in it once."""
        if len(batch) == 0 or batch.weights.min() >= 0:
            return np.empty(0, np.int64)
        fast = compiled.kernels is not None and self._hash is hash_rows and len(batch) <= _MANY
        if fast and (layout := batch.layout) is not None:
            # Few rows are looked for among those that came last as well: to give these a place takes longer.
            places = self._spine.places if len(batch) > _FEW else None
            found = self._spine.unsorted_places if places is None else (places, places[:0])
            if found is not None:
                codes = self._codes.of_layout(layout)
                short: Int64s = compiled.kernels.overdrawn(
                    *found, BLOCK, layout.address, codes, len(self.types), batch.weights
                )
                return short
        retracted = np.flatnonzero(batch.weights < 0)
        stored = self.weights_of(batch.take(retracted))
        return retracted[stored + batch.weights[retracted] < 0]

    def weights_of(self, batch: Batch) -> Int64s:
        """The stored weight of each row of ``batch``, 0 where it is not stored; the batch's weights are ignored."""
        total = np.zeros(len(batch), np.int64)
        codes = self._codes(batch.columns, len(batch))
        needles = Needles(batch.columns, codes, NOTHING, Equality.IDENTITY)
        for run, probe, position in needles.matches(self._spine.runs):
            # A run holds a row once, so no probe row occurs twice and plain indexing adds up.
            total[probe] += run.values[position, 0]
        return total

    def codes_of(self, batch: Batch) -> UInt64s:
        """The codes that rows have in runs: equal for identical rows, and almost always different for others."""
        return self._codes(batch.columns, len(batch))

    def places_of(self, batch: Batch) -> list[tuple[Run, Int64s]]:
        """Where rows identical to those of ``batch`` are stored, whatever their weights; each is in the batch once."""
        needles = Needles(batch.columns, self.codes_of(batch), NOTHING, Equality.IDENTITY)
        return [(run, position) for run, _, position in needles.matches(self._spine.runs)]

    def rows(self) -> Iterator[Batch]:
        """All stored rows, each once with its weight, in batches of about 65,536 rows and in no useful order.

        What is inserted while the iterator is in use is not in it.
        """
        merge = RunMerge(self._spine.runs, self._order, keep=False)
        while not merge.finished:
            batch = merge.advance(_ROWS_PER_BATCH).batch
            if len(batch):
                yield batch

    def _needles(self, keys: Sequence[pa.Array], length: int) -> Needles:
        assert len(keys) == self.key_count
        if self._span == EVERYTHING:
            return Needles(keys, np.zeros(length, np.uint64), self._span, Equality.GROUPING)
        codes = self._hash(keys, length, Equality.GROUPING)
        return Needles(keys, codes & ~self._span, self._span, Equality.GROUPING)


def _consolidated(found: ProbeResult, row_hash: RowHash) -> ProbeResult:
    """Add up the weights of equal rows found for the same probe row."""
    columns = (pa.array(found.probe_index), *found.batch.columns)
    order, starts, _ = group_rows(columns, len(found), row_hash=row_hash)
    weights = add_segments(found.batch.weights[order], starts)
    kept = np.flatnonzero(weights)
    rows = order[starts[kept]]
    return ProbeResult(found.probe_index[rows], Batch(take_columns(found.batch.columns, rows), weights[kept]))
