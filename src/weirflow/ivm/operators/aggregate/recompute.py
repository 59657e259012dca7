"""Aggregates that read the touched group again: any function of a group's rows, at the cost of those rows."""

from __future__ import annotations

import decimal
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.errors import DataError
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.bounds import require_copies, row_bytes
from weirflow.ivm.kernel.deadline import checked
from weirflow.ivm.operators.aggregate.functions import ColumnChange, TouchedCall, added
from weirflow.ivm.operators.floats import normalized
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.operators.aggregate.functions import CallTotals, Stage
    from weirflow.ivm.operators.aggregate.groups import Groups
    from weirflow.sql.expr import AggregateCall, Expr

    Rows = list[tuple[Any, ...]]
    """The arguments of a group's rows, each as often as it occurs."""


class RecomputeCall(TouchedCall):
    """A call whose rows are kept by group and read anew whenever the group changes."""

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        self._type = call.type
        self._function = call.function
        self._distinct = call.distinct
        self._key_count = len(key_types)
        self._arguments = added(expressions, call.arguments)
        self._filter = added(expressions, [call.filter])[0] if call.filter is not None else None
        types = [argument.type for argument in call.arguments]
        self._rows = Arrangement((*key_types, *types), self._key_count)

    @property
    def states(self) -> Sequence[State]:
        """The rows, by group."""
        return (self._rows,)

    @override
    def of_nothing(self) -> pa.Array:
        types = (pa.int64(), *self._rows.types[self._key_count :])
        return self._results(Batch.empty(types), 1)

    @override
    def step(
        self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups, totals: CallTotals, stage: Stage
    ) -> ColumnChange:
        own, numbers = self._own_rows(evaluated, weights, groups)
        old = self._rows.probe(groups.keys, consolidated=True, count=groups.count)
        before = _numbered(old.probe_index, old.batch.columns[self._key_count :], old.batch.weights)
        after = consolidate(Batch.concat([before, _numbered(numbers, own.columns[self._key_count :], own.weights)]))
        if len(own):
            stage(lambda: self._rows.insert(own))
        return ColumnChange(self._results(before, groups.count), self._results(after, groups.count), totals.own)

    def _own_rows(self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups) -> tuple[Batch, np.ndarray]:
        """The delta's rows that the call counts, as (key, arguments), and the groups they belong to."""
        numbers = groups.numbers
        arguments = [evaluated[index] for index in self._arguments]
        batch = Batch((*take_columns(groups.keys, numbers), *arguments), weights)
        if self._filter is None:
            return batch, numbers
        kept = np.flatnonzero(true_rows(evaluated[self._filter]))
        return batch.take(kept), numbers[kept]

    @abstractmethod
    def _results(self, rows: Batch, count: int) -> pa.Array:
        """The column of ``count`` groups that have these rows of (number of the group, arguments)."""

    def _counted(self, rows: Batch) -> Batch:
        """The rows with how often each counts as its weight: once if the call is DISTINCT."""
        if self._distinct:
            rows = consolidate(Batch(tuple(normalized(column) for column in rows.columns), rows.weights))
        copies = (rows.weights > 0).astype(np.int64) if self._distinct else np.maximum(rows.weights, 0)
        require_copies(copies, row_bytes(rows.types), self._function)
        return Batch(rows.columns, copies)


class FoldCall(RecomputeCall):
    """A call that folds the rows of a group, one after the other."""

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        super().__init__(call, key_types, expressions)
        self._fold = FOLDS[call.function](call)

    @override
    def _results(self, rows: Batch, count: int) -> pa.Array:
        collected: list[Rows] = [[] for _ in range(count)]
        counted = self._counted(rows)
        columns = [column.to_pylist() for column in counted.columns]
        for group, *values, times in checked(zip(*columns, counted.weights.tolist(), strict=True)):
            collected[group].extend([tuple(values)] * times)
        return pa.array([self._fold(group) for group in checked(collected)], self._type)


def _numbered(numbers: np.ndarray, columns: Sequence[pa.Array], weights: np.ndarray) -> Batch:
    return Batch((pa.array(numbers), *columns), weights)


def _collect_list(call: AggregateCall) -> Callable[[Rows], Any]:
    del call
    return lambda rows: [value for (value,) in _in_order(rows)]


def _collect_set(call: AggregateCall) -> Callable[[Rows], Any]:
    del call

    def fold(rows: Rows) -> Any:
        kept: list[Any] = []
        for (value,) in _in_order(rows):
            if not kept or kept[-1] != value:
                kept.append(value)
        return kept

    return fold


def _in_order(rows: Rows) -> Rows:
    """Spark leaves the order of collected values open; a fixed one makes the result a function of the rows."""
    return sorted((row for row in rows if row[0] is not None), key=lambda row: (repr(type(row[0])), _sortable(row[0])))


def _sortable(value: Any) -> Any:
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)  # NaN is the largest
    return value if isinstance(value, int | str | bytes | decimal.Decimal) else repr(value)


def _single_value(call: AggregateCall) -> Callable[[Rows], Any]:
    """The value of a scalar subquery, which may have one row at most."""

    def fold(rows: Rows) -> Any:
        if len(rows) > 1:
            raise DataError(
                "A scalar subquery returned more than one row.",
                condition="SCALAR_SUBQUERY_TOO_MANY_ROWS",
                position=call.position,
            )
        return rows[0][0] if rows else None

    return fold


FOLDS: dict[str, Callable[[AggregateCall], Callable[[Rows], Any]]] = {
    "collect_list": _collect_list,
    "collect_set": _collect_set,
    "single_value": _single_value,
}
