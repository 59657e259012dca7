"""MIN, MAX, MIN_BY and MAX_BY: the first row of a group in some order, found without reading the group.

MIN and MAX of numbers and times also keep their last result, and look for another one only where it is retracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.operators.aggregate.first_rows import FirstRows
from weirflow.ivm.operators.aggregate.functions import ColumnChange, TouchedCall, added
from weirflow.ivm.operators.aggregate.running import RunningExtreme
from weirflow.ivm.operators.aggregate.totals.linear import present_rows
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import Batch, take_columns

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.operators.aggregate.functions import CallTotals, Stage
    from weirflow.ivm.operators.aggregate.groups import Groups
    from weirflow.sql.expr import AggregateCall, Expr

EXTREMES = frozenset({"min", "max", "min_by", "max_by"})
OF_PARTS = frozenset({"min", "max"})
"""Those that give for all rows what they give for what they gave for parts of them."""


class ExtremeCall(TouchedCall):
    """The value of the row that comes first; rows whose ordering value is NULL do not count.

    ``min(x)`` orders by x and returns it; ``min_by(x, y)`` orders by y and returns x.
    """

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        self._type = call.type
        # The ordering value comes first, then the value to return if it is another.
        ordered = tuple(reversed(call.arguments))
        self._arguments = added(expressions, ordered)
        self._filter = added(expressions, [call.filter])[0] if call.filter is not None else None
        descending = call.function.startswith("max")
        types = (*key_types, *(argument.type for argument in ordered))
        self._first = FirstRows(types, len(key_types), [descending])
        self._running = None
        if len(ordered) == 1 and RunningExtreme.holds(ordered[0].type):
            self._running = RunningExtreme(ordered[0].type, descending=descending)

    @property
    def states(self) -> Sequence[State]:
        """The rows, in order within each group."""
        return (self._first.rows,)

    @override
    def of_nothing(self) -> pa.Array:
        return pa.nulls(1, self._type)

    @property
    @override
    def width(self) -> int:
        return self._running.width if self._running is not None else 0

    @override
    def totals_of(self, keys: Sequence[pa.Array], count: int) -> np.ndarray:
        if self._running is None:
            return super().totals_of(keys, count)
        found = self._first.rows.first(keys, 1)
        return self._running.best(found.batch.columns[-1], found.batch.weights, found.probe_index, count)

    @override
    def step(
        self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups, totals: CallTotals, stage: Stage
    ) -> ColumnChange:
        own, numbers = self._own_rows(evaluated, weights, groups)
        if len(own):
            stage(lambda: self._first.rows.insert(own))
        if self._running is None:
            before, after = self._first.values(groups.keys, groups.count, own, numbers)
            return ColumnChange(before, after, totals.own)
        before = self._running.values(totals.own)
        if not len(own):
            return ColumnChange(before, before, totals.own)
        new, doubtful = self._running.advance(totals.own, own.columns[-1], own.weights, numbers)
        gone = totals.rows_left == 0
        if gone.any():  # no need to look: such a group has no extreme
            new[gone], doubtful[gone] = 0, False
        if doubtful.any():
            new[doubtful] = self._doubtful(self._running, groups, doubtful, own, numbers)
        return ColumnChange(before, self._running.values(new), new)

    def _doubtful(
        self, running: RunningExtreme, groups: Groups, doubtful: np.ndarray, own: Batch, numbers: np.ndarray
    ) -> np.ndarray:
        """The running totals after the delta of just these groups, from their first rows and those of the delta."""
        chosen = np.flatnonzero(doubtful)
        place = np.full(groups.count, -1)
        place[chosen] = np.arange(len(chosen))
        concerned = np.flatnonzero(doubtful[numbers])
        into = place[numbers[concerned]]
        found = running.found(self._first.rows, groups, chosen, own, concerned, into)
        if found is not None:
            return found
        delta = own.take(concerned)
        retracted = np.bincount(into, np.maximum(-delta.weights, 0), len(chosen))
        old = self._first.rows.first(take_columns(groups.keys, chosen), 1 + int(retracted.max()))
        values = pa.concat_arrays([old.batch.columns[-1], delta.columns[-1]])
        weights = np.concatenate([old.batch.weights, delta.weights])
        return running.best(values, weights, np.concatenate([old.probe_index, into]), len(chosen))

    def _own_rows(self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups) -> tuple[Batch, np.ndarray]:
        """The delta's rows that count, as the state keeps them, and their groups."""
        ordering = evaluated[self._arguments[0]]
        batch = Batch((*groups.row_keys, *(evaluated[index] for index in self._arguments)), weights)
        if self._filter is None and not ordering.null_count:
            return batch, groups.numbers
        counted = np.ones(len(weights), np.bool_)
        if self._filter is not None:
            counted = true_rows(evaluated[self._filter])
        counted = present_rows(ordering, counted)
        return batch.filter(counted), groups.numbers[counted]
