"""MODE: the value that most rows of a group have, followed by counts.

Rows of (group, value) are counted, and the counts keep (group, count, value) in order: a delta moves just the values
that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.operators.aggregate.first_rows import FirstRows
from weirflow.ivm.operators.aggregate.functions import ColumnChange, TouchedCall, added
from weirflow.ivm.operators.aggregate.totals.linear import present_rows
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate
from weirflow.sql.expr import Literal

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.operators.aggregate.functions import CallTotals, Stage
    from weirflow.ivm.operators.aggregate.groups import Groups
    from weirflow.sql.expr import AggregateCall, Expr


class ModeCall(TouchedCall):
    """``mode(value, largest)``: of the values with the highest count the smallest, or the largest.

    NULLs do not count.
    """

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        value, largest = call.arguments
        assert isinstance(largest, Literal), "the binder gives a constant"
        self._type = call.type
        self._value = added(expressions, [value])[0]
        self._filter = added(expressions, [call.filter])[0] if call.filter is not None else None
        self._counts = Arrangement((*key_types, value.type), len(key_types))
        types = (*key_types, pa.int64(), value.type)
        self._first = FirstRows(types, len(key_types), [True, bool(largest.value)])

    @property
    def states(self) -> Sequence[State]:
        """How often each value is there, and the values of each group by that."""
        return (self._counts, self._first.rows)

    @override
    def of_nothing(self) -> pa.Array:
        return pa.nulls(1, self._type)

    @override
    def step(
        self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups, totals: CallTotals, stage: Stage
    ) -> ColumnChange:
        own = self._own_rows(evaluated, weights, groups)
        number, *columns = own.columns
        counted = Batch(tuple(columns), own.weights)
        old = self._counts.weights_of(counted)
        moved, numbers = self._moved(counted, number.to_numpy(), old)
        if len(counted):
            stage(lambda: self._counts.insert(counted))
            stage(lambda: self._first.rows.insert(moved))
        before, after = self._first.values(groups.keys, groups.count, moved, numbers)
        return ColumnChange(before, after, totals.own)

    def _own_rows(self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups) -> Batch:
        """The delta's rows that count, equal ones added up, as (number of the group, key, value)."""
        value = evaluated[self._value]
        counted = np.ones(len(weights), np.bool_)
        if self._filter is not None:
            counted = true_rows(evaluated[self._filter])
        counted = present_rows(value, counted)
        batch = Batch((pa.array(groups.numbers), *groups.row_keys, value), weights)
        return consolidate(batch.filter(counted))

    def _moved(self, counted: Batch, numbers: np.ndarray, old: np.ndarray) -> tuple[Batch, np.ndarray]:
        """The changes of (key, count, value), and the groups they are in."""
        new = old + counted.weights
        parts, places = [], []
        for counts, weight in ((old, -1), (new, 1)):
            there = np.flatnonzero(counts > 0)
            *keys, value = counted.take(there).columns
            columns = (*keys, pa.array(counts[there]), value)
            parts.append(Batch(columns, np.full(len(there), weight, np.int64)))
            places.append(numbers[there])
        return Batch.concat(parts), np.concatenate(places)
