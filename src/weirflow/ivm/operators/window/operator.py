"""Window appends window functions to each row; a delta recomputes the partitions it touches, old and new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.bounds import require_copies, row_bytes
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.kernel.sort_keys import SortColumn
from weirflow.ivm.operators.floats import normalized
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.operators.window.functions import evaluate
from weirflow.ivm.operators.window.ordered import OrderedPartitions
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.rows import consolidate, group_rows

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import State
    from weirflow.sql.expr import Expr, WindowCall


class Window(Operator):
    """The input's columns, then one for each call; all calls partition the rows alike."""

    def __init__(self, types: Sequence[pa.DataType], calls: Sequence[WindowCall]) -> None:
        super().__init__([*types, *(call.type for call in calls)])
        self._width = len(types)
        self._calls = tuple(calls)
        self.partition_by = calls[0].partition_by
        self._keys = compile_expressions(self.partition_by)
        self._key_count = len(self.partition_by)
        self._inputs = [compile_expressions(_inputs(call)) for call in calls]
        self._rows = Arrangement((*(key.type for key in self.partition_by), *types), self._key_count)

    @property
    def states(self) -> Sequence[State]:
        """All rows, by partition."""
        return (self._rows,)

    @override
    def evaluate(self, rows: Batch) -> None:
        for expressions in (self._keys, *self._inputs):
            expressions(rows.columns, len(rows))

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        delta = consolidate(deltas[0])
        if not len(delta):
            return self.nothing
        keys = tuple(normalized(key) for key in self._keys(delta.columns, len(delta)))
        keyed = Batch((*keys, *delta.columns), delta.weights)
        self._stage(lambda: self._rows.insert(keyed))
        touched, numbers = _partitions(keys, len(delta))
        old = self._rows.probe(touched, consolidated=True, count=len(touched[0]) if touched else 1)
        before = Batch((pa.array(old.probe_index), *old.batch.columns[self._key_count :]), old.batch.weights)
        after = consolidate(Batch.concat([before, Batch((pa.array(numbers), *delta.columns), delta.weights)]))
        return consolidate(Batch.concat([self._windowed(before).negate(), self._windowed(after)]))

    def _windowed(self, numbered: Batch) -> Batch:
        """Rows behind their partition's number, with the calls' columns instead; a row of weight n counts n times."""
        times = np.maximum(numbered.weights, 0)
        require_copies(times, row_bytes(self.types), "A window")
        copies = np.repeat(np.arange(len(numbered)), times)
        partition = numbered.columns[0].to_numpy()[copies]
        rows = take_columns(numbered.columns[1:], copies)
        count = len(copies)
        columns = list(rows)
        for call, inputs in zip(self._calls, self._inputs, strict=True):
            check()
            if not count:
                columns.append(pa.array([], call.type))
                continue
            evaluated = inputs(rows, count)
            keys = evaluated[len(call.arguments) :]
            order = [SortColumn(at, key.descending, key.nulls_first) for at, key in enumerate(call.order_by)]
            ordered = OrderedPartitions(partition, keys, order, rows)
            arguments = take_columns(evaluated[: len(call.arguments)], ordered.order)
            back = np.empty(count, np.int64)
            back[ordered.order] = np.arange(count)
            columns.append(evaluate(ordered, arguments, call).take(pa.array(back)))
        return Batch(tuple(columns), np.ones(count, np.int64))


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
