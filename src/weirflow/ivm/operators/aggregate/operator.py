"""Aggregate keeps one row for each group of equal keys; a delta replaces the rows of the groups it touches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.errors import DataError
from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.operators.aggregate.dispatch import make_call
from weirflow.ivm.operators.aggregate.escapes import EscapeTable
from weirflow.ivm.operators.aggregate.functions import LinearCall, TouchedCall
from weirflow.ivm.operators.floats import normalized
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.rows import consolidate, group_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirflow.ivm.kernel.state import State
    from weirflow.sql.expr import AggregateCall, Expr


class Groups:
    """The groups that a delta touches: their keys, and which rows of the delta belong to each.

    Attributes:
        keys: one row for each group.
        order, starts: the delta's rows in group order, and where each group begins.
        count: how many groups there are.
    """

    def __init__(self, keys: Sequence[pa.Array], length: int) -> None:
        if keys:
            self.order, self.starts = group_rows(keys, length)
            self.keys = take_columns(keys, self.order[self.starts])
        else:
            self.order, self.starts = np.arange(length), np.zeros(1, np.int64)
            self.keys = ()
        self.count = len(self.starts)

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """(rows, width) integers added up within each group."""
        totals: np.ndarray = np.add.reduceat(rows[self.order], self.starts, axis=0)
        return totals

    def numbers(self) -> np.ndarray:
        """For each row of the delta, the number of its group."""
        sizes = np.diff(self.starts, append=len(self.order))
        numbers = np.empty(len(self.order), np.int64)
        numbers[self.order] = np.repeat(np.arange(self.count), sizes)
        return numbers


class Aggregate(Operator):
    """GROUP BY ``keys`` with aggregate ``calls``. Without keys there is one group, and it is never gone."""

    def __init__(self, keys: Sequence[Expr], calls: Sequence[AggregateCall]) -> None:
        super().__init__([*(key.type for key in keys), *(call.type for call in calls)])
        self._key_count = len(keys)
        expressions = list(keys)
        self._calls = [make_call(call, self.types[: self._key_count], expressions) for call in calls]
        self._evaluate = compile_expressions(expressions)
        self._linear = [call for call in self._calls if isinstance(call, LinearCall)]
        self._touched = [call for call in self._calls if isinstance(call, TouchedCall)]
        width = 1 + sum(call.width for call in self._linear)
        self._totals = AdditiveArrangement(self.types[: self._key_count], width)
        self._escapes = EscapeTable(self.types[: self._key_count])

    @property
    def states(self) -> Sequence[State]:
        """Totals, the side table of far doubles, and what single calls keep."""
        own = [state for call in self._calls for state in call.states]
        return [self._totals, self._escapes.state, *own]

    def start(self) -> Batch:
        """Nothing, or without keys the one row over nothing."""
        if self._key_count:
            return Batch.empty(self.types)
        nothing = np.zeros((1, self._totals.width), np.int64)
        columns = self._columns((), nothing, None, [call.of_nothing() for call in self._touched])
        return Batch(columns, np.ones(1, np.int64))

    def step(self, deltas: Sequence[Batch]) -> Batch:
        """See ``Operator``."""
        (delta,) = deltas
        if not len(delta):
            return Batch.empty(self.types)
        evaluated = self._evaluate(delta.columns, len(delta))
        keys = [normalized(column) for column in evaluated[: self._key_count]]
        groups = Groups(keys, len(delta))
        old, new = self._step_totals(evaluated, delta.weights, groups)
        before, after = self._alive(old), self._alive(new)
        touched = [call.step(evaluated, delta.weights, groups, self._stage) for call in self._touched]
        return self._replaced(groups, (old, new), (before, after), touched)

    def _step_totals(
        self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups
    ) -> tuple[np.ndarray, np.ndarray]:
        """The totals of the touched groups before and after the delta."""
        rows = np.empty((len(weights), self._totals.width), np.int64)
        rows[:, 0] = weights
        at = 1
        for number, call in enumerate(self._linear):
            own, escaped = call.encode(evaluated, weights, groups, self._stage)
            rows[:, at : at + call.width] = own
            at += call.width
            if escaped is not None:
                self._escapes.stage(groups, number, escaped, self._stage)
        partial = groups.sums(rows)
        old = self._totals.lookup(groups.keys)
        new = old + partial
        if np.any(new[:, 0] < 0):
            raise DataError(
                "A retraction takes away a row that is not there.",
                hint="send a retraction only for a row that was inserted, with equal values in every column",
            )
        self._stage(lambda: self._totals.add(groups.keys, partial))
        return old, new

    def _alive(self, totals: np.ndarray) -> np.ndarray:
        return totals[:, 0] > 0 if self._key_count else np.ones(len(totals), np.bool_)

    def _replaced(
        self,
        groups: Groups,
        totals: tuple[np.ndarray, np.ndarray],
        alive: tuple[np.ndarray, np.ndarray],
        touched: Sequence[tuple[pa.Array, pa.Array]],
    ) -> Batch:
        """The old rows of the touched groups taken back, the new ones given; what did not change cancels."""
        before, after = (np.flatnonzero(mask) for mask in alive)
        both = np.concatenate([before, after])
        keys = take_columns(groups.keys, both)
        stacked = np.concatenate([totals[0][before], totals[1][after]])
        escaped = self._escapes.read(groups, before, after)
        others = [pa.concat_arrays([old.take(pa.array(before)), new.take(pa.array(after))]) for old, new in touched]
        weights = np.ones(len(both), np.int64)
        weights[: len(before)] = -1
        return consolidate(Batch(self._columns(keys, stacked, escaped, others), weights))

    def _columns(
        self,
        keys: Sequence[pa.Array],
        totals: np.ndarray,
        escaped: dict[int, dict[int, list[tuple[int, int]]]] | None,
        touched: Sequence[pa.Array],
    ) -> tuple[pa.Array, ...]:
        columns = list(keys)
        at, linear, others = 1, 0, iter(touched)
        for call in self._calls:
            if isinstance(call, LinearCall):
                own = totals[:, at : at + call.width]
                columns.append(call.decode(own, (escaped or {}).get(linear, {})))
                at += call.width
                linear += 1
            else:
                columns.append(next(others))
        return tuple(columns)
