"""Counts, sums and averages whose groups are replaced by one compiled kernel, from the delta's rows to the view's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from weirflow.ivm import compiled
from weirflow.ivm.kernel import sums
from weirflow.ivm.kernel.runs.run import BLOCK
from weirflow.ivm.operators.aggregate.functions import LinearCall, TouchedCall
from weirflow.ivm.operators.aggregate.totals import linear
from weirflow.ivm.operators.aggregate.totals.doubles import DoubleAverage, DoubleSum
from weirflow.ivm.zset.batch import Batch, take_columns

if TYPE_CHECKING:
    from weirflow.ivm.kernel.additive import AdditiveArrangement
    from weirflow.ivm.operators.aggregate.functions import TotalsSlot
    from weirflow.ivm.operators.aggregate.groups import Groups
    from weirflow.ivm.zset.batch import Int64s
    from weirflow.ivm.zset.layout import Layout

_COUNT, _INTEGER, _DOUBLE = range(3)
_OF_ROWS, _SUM, _AVERAGE, _DOUBLE_SUM, _DOUBLE_AVERAGE = range(5)
_KINDS: dict[type[linear.LinearFunction], tuple[int, int]] = {
    linear.Count: (_COUNT, _OF_ROWS),
    linear.IntegerSum: (_INTEGER, _SUM),
    linear.IntegerAverage: (_INTEGER, _AVERAGE),
    DoubleSum: (_DOUBLE, _DOUBLE_SUM),
    DoubleAverage: (_DOUBLE, _DOUBLE_AVERAGE),
}
"""Of each function how it is added up and how its result is told, as ``compiled.groups`` numbers them."""
_WORD = 8
_NO_RUNS = np.empty((0, 7), np.int64)
_NOT_THERE = -1


class Replaced(NamedTuple):
    """What a delta does to the groups it touches: their rows change, and something is added to their totals."""

    rows: Batch
    added: Int64s


class FusedCalls:
    """The calls of an aggregate, as the kernel reads them."""

    def __init__(self, calls: Sequence[LinearCall], slots: Sequence[TotalsSlot], first_argument: int) -> None:
        of = {slot.call.summand: slot for slot in slots}
        self._types = [call.type for call in calls]
        self._slots = np.array([_described(slot, first_argument) for slot in slots], np.int64).reshape(-1, 4)
        self._calls = np.array(
            [(_KINDS[call.function][1], of[call.summand].columns.start) for call in calls], np.int64
        ).reshape(-1, 2)
        self._bounds = np.array([*sums.bounds(sums.VALUES), sums.VALUES.lowest_bit, sums.VALUES.limbs], np.int64)
        self._arguments = bool((self._slots[:, 1:3] != _NOT_THERE).any())

    @classmethod
    def of(
        cls, calls: Sequence[LinearCall | TouchedCall], slots: Iterable[TotalsSlot], first_argument: int
    ) -> FusedCalls | None:
        """None if the kernel does not know all of the calls; ``first_argument`` is the first column behind the keys."""
        known = [call for call in calls if isinstance(call, LinearCall) and _is_known(call)]
        return cls(known, tuple(slots), first_argument) if first_argument and len(known) == len(calls) else None

    def replaced(
        self, groups: Groups, arguments: Layout | None, weights: Int64s, totals: AdditiveArrangement
    ) -> Replaced | None:
        """What rows with these arguments and weights do; None if it is to be found out otherwise."""
        keys, codes = groups.layout, groups.codes
        if compiled.kernels is None or keys is None or codes is None or (self._arguments and arguments is None):
            return None
        runs = totals.searched
        if runs is None:
            if totals.row_count:
                return None
            runs = _NO_RUNS
        most = 2 * groups.count
        added = np.zeros((groups.count, totals.width), np.int64)
        told = np.empty((2 + len(self._types), most), np.int64)
        valid = np.zeros((len(self._types), -(-most // 8)), np.uint8)
        nulls = np.zeros(len(self._types), np.int64)
        table = 0 if arguments is None else arguments.address
        count = compiled.kernels.replace_groups(
            table, self._slots, self._calls, self._bounds, weights, groups.order, groups.starts,
            runs, BLOCK, keys.address, codes, len(groups.keys), added, told, valid, nulls,
        )  # fmt: skip
        if count < 0:
            return None
        columns = self._columns(count, told, valid, nulls)
        return Replaced(Batch((*take_columns(groups.keys, told[0, :count]), *columns), told[1, :count]), added)

    def _columns(self, count: int, told: Int64s, valid: np.ndarray, nulls: Int64s) -> list[pa.Array]:
        """The results of all calls."""
        words, stride = pa.py_buffer(told), told.shape[1] * _WORD
        columns = []
        for call, (kind, absent) in enumerate(zip(self._types, nulls.tolist(), strict=True)):
            bitmap = pa.py_buffer(valid[call]) if absent else None
            values = words.slice((2 + call) * stride, count * _WORD)
            columns.append(pa.Array.from_buffers(kind, count, [bitmap, values], absent))
        return columns


def _is_known(call: LinearCall) -> bool:
    is_plain = not call.distinct and len(call.arguments) <= 1
    return is_plain and call.function in _KINDS and call.type in {pa.int64(), pa.float64()}


def _described(slot: TotalsSlot, first_argument: int) -> tuple[int, int, int, int]:
    """A summand as the kernel reads it: its kind, its argument, its condition and its first total."""
    call = slot.call
    argument = call.arguments[0] - first_argument if call.arguments else _NOT_THERE
    condition = _NOT_THERE if call.filter is None else call.filter - first_argument
    return _KINDS[call.function][0], argument, condition, slot.columns.start
