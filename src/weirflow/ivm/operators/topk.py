"""TopK keeps the first rows of an order: after r retractions they are among the first k + r old ones and the new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from weirflow.ivm.kernel.ordered import OrderedArrangement
from weirflow.ivm.kernel.sort_keys import SortColumn, prefixes
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.operators.sorting import sorted_batch
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.kernel.state import State


_GROWTH = 4
_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)


class TopK(Operator):
    """The rows ``offset`` to ``offset + limit`` in the given order; ties are broken by all columns."""

    consolidated = True

    def __init__(self, types: Sequence[pa.DataType], order: Sequence[SortColumn], limit: int, offset: int) -> None:
        super().__init__(types)
        self._order = tuple(order)
        self._limit = limit
        self._offset = offset
        self._rows = OrderedArrangement(self.types, 0, self._order)
        # The prefix of the last row that the limit lets through: what comes and goes behind it changes nothing.
        self._bar: np.uint64 | None = None

    @property
    def states(self) -> Sequence[State]:
        """All rows, in order."""
        return (self._rows,)

    def local(self) -> TopK:
        """The same for a part of the rows: what the first rows of all parts are among."""
        return TopK(self.types, self._order, self._offset + self._limit, 0)

    @property
    def shown(self) -> Batch:
        """The rows that the limit and offset let through now."""
        return self._cut(self._rows.first((), max(self._offset + self._limit, 1)).batch)

    @override
    def adopt(self, runs: Sequence[Sequence[Run]]) -> None:
        super().adopt(runs)
        self._bar = None

    @override
    def mark(self) -> Any:
        return self._bar, super().mark()

    @override
    def rewind(self, mark: Any) -> None:
        self._bar, states = mark
        super().rewind(states)

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        (delta,) = deltas
        if not len(delta):
            return self.nothing
        if self._bar is not None and prefixes(delta.columns, self._order, len(delta)).min() > self._bar:
            self._stage(lambda: self._rows.insert(delta))
            return self.nothing
        changed = consolidate(delta)
        if not len(changed):
            return self.nothing
        self._stage(lambda: self._rows.insert(changed))
        old, near = self._concerned(changed)
        merged = consolidate(Batch.concat([old, near]))
        merged = merged.filter(merged.weights > 0)
        new = sorted_batch(merged, self._order)
        bar = self._last_prefix(new)
        self._stage(lambda: setattr(self, "_bar", bar))
        return consolidate(Batch.concat([self._cut(old).negate(), self._cut(new)]))

    def _concerned(self, changed: Batch) -> tuple[Batch, Batch]:
        """The first old rows, in order, and those changes that together with them tell the first new rows.

        A change concerns old rows only if it does not lie behind them all: most of a large delta does.
        """
        end = self._offset + self._limit
        of = prefixes(changed.columns, self._order, len(changed))
        gone = np.maximum(-changed.weights, 0)
        count = max(end, 1)
        while True:
            old = self._rows.first((), count).batch
            near = np.ones(len(changed), np.bool_)
            if int(old.weights.sum()) < count:  # these are all
                break
            near = of <= prefixes(old.slice(len(old) - 1, 1).columns, self._order, 1)[0]
            retracted = int(gone[near].sum())
            if count >= end + retracted:
                break
            count = max(end + retracted, _GROWTH * count)
        return old, changed.filter(near & (of <= self._enough(of, changed.weights, end)))

    @staticmethod
    def _enough(of: np.ndarray, weights: np.ndarray, count: int) -> np.uint64:
        """A prefix that is not before that of the ``count``-th inserted row: what lies behind it is not needed."""
        inserted = of[weights > 0]
        if len(inserted) <= count:
            return _LAST
        return np.uint64(np.partition(inserted, count)[count])

    def _last_prefix(self, rows: Batch) -> np.uint64 | None:
        """The prefix of the last of ordered rows that the limit lets through; None if there are fewer."""
        last = int(np.cumsum(rows.weights).searchsorted(self._offset + self._limit))
        if last >= len(rows):
            return None
        row = rows.slice(last, 1)
        return np.uint64(prefixes(row.columns, self._order, 1)[0])

    def _cut(self, rows: Batch) -> Batch:
        """The part of ordered rows that the limit and offset let through; a row of weight n counts n times."""
        end = np.cumsum(rows.weights)
        begin = end - rows.weights
        low = np.clip(begin, self._offset, self._offset + self._limit)
        high = np.clip(end, self._offset, self._offset + self._limit)
        return Batch(rows.columns, high - low).filter(high > low)
