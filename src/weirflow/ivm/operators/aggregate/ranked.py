"""Percentiles by rank: a group's values lie in order with sums of their counts, so that few of them are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.kernel.ranked import RankedArrangement
from weirflow.ivm.kernel.sort_keys import double_words, doubles_of
from weirflow.ivm.operators.aggregate.functions import ColumnChange, TouchedCall, added
from weirflow.ivm.operators.aggregate.percentiles import FREQUENCY, Percentile
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.buffers import raw_values, validity
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import consolidate, group_rows
from weirflow.sql.expr import Literal

if TYPE_CHECKING:
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.kernel.selection import RankedValues
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.operators.aggregate.functions import CallTotals, Stage
    from weirflow.ivm.operators.aggregate.groups import Groups
    from weirflow.sql.expr import AggregateCall, Expr


class PercentileCall(TouchedCall):
    """A percentile of all rows of a group, equal ones too, as ``Percentile`` finds it by reading them."""

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        value, share, *others = call.arguments
        counted = [one for one in others[:1] if not (isinstance(one, Literal) and one.value == 1)]
        self._type = call.type
        self._function = Percentile(call)
        self._at = _one_of if call.function == "percentile_disc" else _between
        self._shares = np.atleast_1d(compile_expressions([share])((), 1)[0][0].as_py())
        self._arguments = added(expressions, [value, *counted])
        self._filter = added(expressions, [call.filter])[0] if call.filter is not None else None
        self._values = _Values(key_types)

    @property
    def states(self) -> Sequence[State]:
        """The values, in order within each group."""
        return (self._values,)

    @override
    def of_nothing(self) -> pa.Array:
        return pa.nulls(1, self._type)

    @override
    def step(
        self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups, totals: CallTotals, stage: Stage
    ) -> ColumnChange:
        before = self._values.ranking(groups.keys, groups.codes)
        change = self._change(evaluated, weights, groups)
        if not len(change):
            column = self._column(before.values)
            return ColumnChange(column, column, totals.own)
        after = before.including(change)
        stage(lambda: self._values.insert(change, after))
        column = self._column(before.values.followed_by(after.values))
        return ColumnChange(column[: groups.count], column[groups.count :], totals.own)

    def _change(self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups) -> Run:
        """The delta's rows that count, as the state keeps them."""
        value, *frequency = (evaluated[index] for index in self._arguments)
        there = np.ones(len(weights), np.bool_) if self._filter is None else true_rows(evaluated[self._filter])
        for argument in (value, *frequency):
            valid = validity(argument)
            there = there if valid is None else there & valid
        if frequency:
            times = raw_values(frequency[0]).astype(np.int64)
            self._refuse_negative(value, times, there, weights, groups)
            weights = weights * np.maximum(times, 0)
        rows = np.flatnonzero(there & (weights != 0))
        numbers = groups.numbers[rows]
        codes = None if groups.codes is None else groups.codes[numbers]
        keys = take_columns(groups.keys, numbers)
        return self._values.sorted(keys, double_words(raw_values(value)[rows]), weights[rows], codes)

    def _refuse_negative(
        self, value: pa.Array, times: np.ndarray, there: np.ndarray, weights: np.ndarray, groups: Groups
    ) -> None:
        """A row that the delta brings and takes back at once is none."""
        rows = np.flatnonzero(there & (times < 0))
        if len(rows):
            columns = (pa.array(groups.numbers[rows]), value.take(pa.array(rows)), pa.array(times[rows]))
            left = consolidate(Batch(columns, weights[rows]))
            self._function.check(raw_values(left.columns[-1])[left.weights > 0])

    def _column(self, values: RankedValues) -> pa.Array:
        """The percentiles of each group; NULL for one without values."""
        groups = np.flatnonzero(values.counts > 0)
        absent = np.ones(len(values.counts), np.bool_)
        absent[groups] = False
        ranked = _Ranked(values, groups, len(self._shares), descending=self._function.descending)
        found = self._at(ranked, self._shares)
        if pa.types.is_list(self._type):
            offsets = np.concatenate(([0], np.cumsum(np.where(absent, 0, len(self._shares))))).astype(np.int32)
            shares = pa.array(found.reshape(-1), self._type.value_type)
            return pa.ListArray.from_arrays(pa.array(offsets), shares, self._type, mask=pa.array(absent))
        column = np.zeros(len(absent))
        column[groups] = found[:, 0]
        return pa.array(column, self._type, mask=absent)


class _Ranked:
    """The values of some groups by rank, for a number of shares at a time: all arrays are of (groups, shares)."""

    def __init__(self, values: RankedValues, groups: np.ndarray, shares: int, *, descending: bool) -> None:
        self._values = values
        self._groups = groups.repeat(shares).reshape(-1, shares)
        self._descending = descending
        self.counts = values.counts[self._groups]
        """How many values there are."""

    def __call__(self, *ranks: np.ndarray) -> Any:
        """The values at each of these ranks, from the smallest or the largest value on."""
        wanted = np.stack([self.counts - 1 - rank if self._descending else rank for rank in ranks])
        which = np.broadcast_to(self._groups, wanted.shape)
        words = self._values.at(which.reshape(-1), wanted.reshape(-1))
        return doubles_of(words).reshape(wanted.shape)


def _between(values: _Ranked, shares: np.ndarray) -> np.ndarray:
    """By linear interpolation."""
    places = shares * (values.counts - 1)
    low, high = np.floor(places), np.ceil(places)
    lower, higher = values(low.astype(np.int64), high.astype(np.int64))
    with np.errstate(invalid="ignore", over="ignore"):
        between = (low + 1 - places) * lower + (places - low) * higher
    found: np.ndarray = np.where((low == places) | (lower == higher), lower, between)
    return found


def _one_of(values: _Ranked, shares: np.ndarray) -> np.ndarray:
    """The first value up to which at least the share of all are."""
    found: np.ndarray = values(np.maximum(np.ceil(shares * values.counts).astype(np.int64) - 1, 0))[0]
    return found


class _Values(RankedArrangement):
    """The doubles of each group. Earlier versions stored the rows of (key, value, share, frequency ...) instead."""

    @override
    def adopt(self, runs: Iterable[Run]) -> None:
        runs = list(runs)
        width = len(self.key_types) + 1
        super().adopt(run for run in runs if len(run.columns) == width)
        for run in runs:
            if len(run.columns) != width:
                self._adopt_rows(run)

    def _adopt_rows(self, run: Run) -> None:
        keys, arguments = run.columns[: len(self.key_types)], run.columns[len(self.key_types) :]
        value, weights = arguments[0], run.values[:, 0]
        if len(arguments) > FREQUENCY:
            weights = weights * arguments[FREQUENCY].fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        rows = np.flatnonzero(value.is_valid().to_numpy(zero_copy_only=False) & (weights != 0))
        keys = take_columns(keys, rows)
        order, starts, _ = group_rows(keys, len(rows), Equality.GROUPING)
        change = self.sorted(keys, double_words(raw_values(value)[rows]), weights[rows])
        self.insert(change, self.ranking(take_columns(keys, order[starts])).including(change))
