"""Window appends window functions to each row; a delta recomputes the stretches of partitions that it reaches."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from weirflow.errors import DataError
from weirflow.ivm.kernel.bounds import require_copies, row_bytes
from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.kernel.ordered import OrderedArrangement
from weirflow.ivm.kernel.places import Span, between
from weirflow.ivm.kernel.sort_keys import SortColumn, prefixes
from weirflow.ivm.kernel.stretches import Change, Stretches, StretchReader
from weirflow.ivm.operators.floats import normalized
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.operators.window.before import RunningTotals, rows_before
from weirflow.ivm.operators.window.changes import Evaluated, Limit, difference
from weirflow.ivm.operators.window.ordered import OrderedPartitions, RowsBefore, WholeNeeded, sorted_rows
from weirflow.ivm.operators.window.reach import common_reach, order_of, reads_peers
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.hashing import has_floats
from weirflow.ivm.zset.rows import consolidate, group_rows
from weirflow.sql.expr import Column, Expr, WindowCall

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.zset.batch import Bools, Int64s

_MANY = 4
"""A delta of more than this part of all rows reaches most of every partition."""


class Extent(Enum):
    """How much of a partition is computed when a row of it changes."""

    FIRST = auto()
    """Its first rows."""
    STRETCH = auto()
    """The rows from the change as far as it reaches."""
    WHOLE = auto()
    """All of it."""


class Window(Operator):
    """The input's columns, then one for each call; all calls partition the rows alike.

    With a ``limit`` it has only the rows that it lets pass; every call's value then comes from rows before, or with
    equal sort keys.
    """

    def __init__(self, types: Sequence[pa.DataType], calls: Sequence[WindowCall], limit: Limit | None = None) -> None:
        super().__init__([*types, *(call.type for call in calls)])
        self._calls = tuple(calls)
        self._limit = limit
        self.partition_by = calls[0].partition_by
        self._keys = compile_expressions(self.partition_by)
        self._key_count = len(self.partition_by)
        self._inputs = [compile_expressions(_inputs(call)) for call in calls]
        self._order = order_of(calls)
        computed = [key.expr for key in self._order if not _is_kept(key.expr)]
        self._sort_keys = compile_expressions(computed)
        self._first_column = self._key_count + len(computed)
        self._reach = common_reach(calls)
        self._running = RunningTotals.of(calls) if self._reach is not None and self._reach.onwards else []
        kept = (*(key.type for key in self.partition_by), *(expr.type for expr in computed), *types)
        self._rows = OrderedArrangement(kept, self._key_count, self._sort_columns())

    @property
    def states(self) -> Sequence[State]:
        """All rows, by partition and in order."""
        return (self._rows,)

    @property
    def extent(self) -> Extent:
        """What of the partitions that a change touches is computed."""
        if self._limit is not None:
            return Extent.FIRST
        return Extent.WHOLE if self._reach is None else Extent.STRETCH

    @property
    def course(self) -> str:
        """What is computed for a change, for people."""
        if self._limit is not None:
            return f"the first {self._limit.most} of each partition"
        if self._reach is None:
            return "partitions that change, whole; only rows that differ come out"
        if self._reach.onwards:
            return "the stretch that changes, which may be all that follows in its partition"
        return "the stretch that changes"

    @override
    def evaluate(self, rows: Batch) -> None:
        for expressions in (self._keys, *self._inputs):
            expressions(rows.columns, len(rows))

    @override
    def adopt(self, runs: Sequence[Sequence[Run]]) -> None:
        """See ``Operator``. Earlier versions kept the rows by partition alone: these are put in order."""
        (own,) = runs
        width = self._key_count + len(self.types) - len(self._calls)
        if all(len(run.columns) != width for run in own):
            super().adopt(runs)
            return
        ordered = OrderedArrangement(self._rows.types, self._key_count, self._rows.order)
        for run in own:
            columns = run.columns[self._key_count :]
            sort_keys = self._sort_keys(columns, len(run))
            ordered.insert(Batch((*run.columns[: self._key_count], *sort_keys, *columns), run.values[:, 0]))
        super().adopt([ordered.runs])

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        delta = consolidate(deltas[0])
        if not len(delta):
            return self.nothing
        keys = tuple(normalized(key) for key in self._keys(delta.columns, len(delta)))
        rows = (*keys, *self._sort_keys(delta.columns, len(delta)), *delta.columns)
        self._stage(lambda: self._rows.insert(Batch(rows, delta.weights)))
        touched, numbers = _partitions(keys, len(delta))
        change = Change(numbers, rows, prefixes(rows, self._rows.order, len(delta)), delta.weights)
        spans = self._rows.spans(touched, len(touched[0]) if touched else 1)
        few = _MANY * len(delta) <= self._rows.row_count
        try:
            if self._limit is not None:
                self.evaluate(delta)  # rows that rank behind the first must not fail later
                return self._first(spans, touched, change, self._limit)
            if self._reach is not None and few:
                return self._stretches(spans, touched, change)
        except (DataError, WholeNeeded):
            # Rows at the edge of a stretch are computed from a part of what they need: whole partitions tell.
            pass
        return self._whole(spans, touched, change)

    # What of the partitions is computed

    def _whole(self, spans: Sequence[Span], keys: Sequence[pa.Array], change: Change) -> Batch:
        whole = [span.whole() for span in spans]
        return self._difference(StretchReader(whole, keys, change, self._rows.order).around(0), None)

    def _first(self, spans: Sequence[Span], keys: Sequence[pa.Array], change: Change, limit: Limit) -> Batch:
        """The first rows of each partition, as far as the limit lets pass any, whatever is retracted."""
        retracted = np.zeros(len(keys[0]) if keys else 1, np.int64)
        np.add.at(retracted, change.number, np.maximum(-change.weights, 0))
        most = retracted + limit.most
        ranks = self._calls[limit.column].function
        by_rows = ranks == "row_number" and not any(map(reads_peers, self._calls))

        def enough(found: Stretches) -> Bools:
            """Whether an old row of each partition is known that ranks behind all that may pass."""
            there = np.flatnonzero(found.old > 0)
            partitions = OrderedPartitions(
                found.number[there], take_columns(self._sorted_by(found.columns), there), descending=False
            )
            weights = found.old[there]
            before = np.cumsum(weights) - weights
            if by_rows:
                place = before + weights - before[partitions.begin]
            elif ranks == "dense_rank":
                place = np.cumsum(partitions.new_peer)
                place = place - place[partitions.begin] + 1
            else:
                place = before[partitions.peer_begin] - before[partitions.begin] + 1
            far = np.zeros(len(most), np.int64)
            np.maximum.at(far, found.number[there], place)
            return far > most

        reader = StretchReader([span.at_start() for span in spans], keys, change, self._rows.order)
        return self._difference(reader.first(most, enough), None)

    def _stretches(self, spans: Sequence[Span], keys: Sequence[pa.Array], change: Change) -> Batch:
        """Where the change is, and as far from there as it reaches."""
        assert self._reach is not None
        reach = self._reach
        if not all(span.is_exact for span in spans) or (reach.spread and self._has_null(change)):
            raise WholeNeeded
        placed = sorted_rows(change.number, (), self._rows.order, change.columns)
        change = change.taken(placed)
        begins, goes_on = self._begins(change)
        first, last = np.flatnonzero(begins), np.append(np.flatnonzero(begins)[1:], len(begins)) - 1
        partition, own_keys, goes_on = change.number[first], take_columns(keys, change.number[first]), goes_on[last]
        whole = [span.taken(partition) for span in spans]
        edges = take_columns(change.columns, first), take_columns(change.columns, last)
        spans = between(whole, *edges, goes_on, self._rows.order, of_peers=reach.peers, spread=reach.spread)
        rows = reach.rows
        if rows and reach.peers:
            # What is near may be computed from all that sorts as it does.
            own = change._replace(number=np.cumsum(begins) - 1)
            found = StretchReader(spans, own_keys, own, self._rows.order).around(rows)
            ends = np.flatnonzero(np.diff(found.number, append=-1))
            if len(ends) < len(partition):
                raise WholeNeeded  # what is retracted was not there
            edges = take_columns(found.columns, np.append(0, ends[:-1] + 1)), take_columns(found.columns, ends)
            spans, rows = between(whole, *edges, goes_on, self._rows.order, of_peers=True), 0
        # Stretches that are near each other are one.
        near = (partition[1:] == partition[:-1]) & (self._between(spans, len(partition) - 1) <= 2 * rows)
        joined = np.concatenate([[True], ~near])
        firsts = np.flatnonzero(joined)
        spans = [span.joined(firsts, np.append(firsts[1:], len(joined)) - 1) for span in spans]
        change = change._replace(number=(np.cumsum(joined) - 1)[np.cumsum(begins) - 1])
        found = StretchReader(spans, take_columns(own_keys, firsts), change, self._rows.order).around(rows)
        before = None
        if reach.onwards:
            before = rows_before(self._rows, spans, found, self._first_column, self._running)
        return self._difference(found, before, is_whole=False)

    def _begins(self, change: Change) -> tuple[Bools, Bools]:
        """Of rows in order: which begin a stretch, and behind which the change still has an effect."""
        assert self._reach is not None
        count = len(change.number)
        if not self._reach.onwards:
            return np.ones(count, np.bool_), np.zeros(count, np.bool_)
        fresh = np.ones(count, np.bool_)
        fresh[1:] = change.number[1:] != change.number[:-1]
        effects = [change.weights[:, None]]
        for one in self._running:
            added = one.of_rows(change.columns[self._first_column :], change.weights)
            if added is None:
                raise WholeNeeded
            effects.append(added)
        running = np.cumsum(np.concatenate(effects, axis=1), axis=0)
        partition = np.cumsum(fresh) - 1
        starts = np.flatnonzero(fresh)
        before = np.concatenate([np.zeros((1, running.shape[1]), np.int64), running])[starts]
        goes_on = (running != before[partition]).any(axis=1)
        fresh[1:] |= ~goes_on[:-1]
        return fresh, goes_on

    def _has_null(self, change: Change) -> bool:
        """Whether a sort key is NULL: it may decide whether bounds of others are computed, however far they are."""
        return any(key.null_count for key in self._sorted_by(change.columns))

    def _between(self, spans: Sequence[Span], count: int) -> Int64s:
        """How many rows there are from the end of each of ``count`` stretches to the beginning of the next."""
        between_ = np.zeros(count, np.int64)
        for span in spans:
            between_ += self._rows.weight(span, span.high[:-1], span.low[1:])
        return between_

    def _difference(self, found: Stretches, before: RowsBefore | None, *, is_whole: bool = True) -> Batch:
        for times in (found.old, found.new):
            require_copies(times, row_bytes(self.types), "A window")
        kept = self._order, self._sorted_by(found.columns)
        rows = Evaluated(
            self._calls,
            self._inputs,
            found.number,
            found.columns[self._first_column :],
            kept=kept,
            before=before,
            is_whole=is_whole,
        )
        return difference(rows, found.old, found.new, self._limit)

    # How rows are kept

    def _sort_columns(self) -> list[SortColumn]:
        columns, computed = [], self._key_count
        for key in self._order:
            if _is_kept(key.expr):
                assert isinstance(key.expr, Column)
                at = self._first_column + key.expr.index
            else:
                at, computed = computed, computed + 1
            columns.append(SortColumn(at, key.descending, key.nulls_first))
        return columns

    def _sorted_by(self, columns: Sequence[pa.Array]) -> tuple[pa.Array, ...]:
        """The sort keys of rows as they are kept."""
        return tuple(columns[one.index] for one in self._rows.order)


def _is_kept(key: Expr) -> bool:
    """Whether a sort key is a column of the rows that tells them apart as well as it sorts them."""
    return isinstance(key, Column) and not has_floats(key.type)


def _inputs(call: WindowCall) -> list[Expr]:
    return [*call.arguments, *(key.expr for key in call.order_by)]


def _partitions(keys: Sequence[pa.Array], length: int) -> tuple[tuple[pa.Array, ...], np.ndarray]:
    """The different keys, and for each row the number of its own."""
    if not keys:
        return (), np.zeros(length, np.int64)
    order, starts, _ = group_rows(keys, length)
    numbers = np.empty(length, np.int64)
    numbers[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=length))
    return take_columns(keys, order[starts]), numbers
