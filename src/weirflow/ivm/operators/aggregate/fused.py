"""Counts, sums and averages whose groups are replaced by one compiled kernel, from the delta's rows to the view's.

One call of it replaces the groups of as many aggregates as there are jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm import compiled
from weirflow.ivm.kernel import sums
from weirflow.ivm.kernel.runs.run import BLOCK
from weirflow.ivm.operators.aggregate.functions import LinearCall, TouchedCall
from weirflow.ivm.operators.aggregate.totals import linear
from weirflow.ivm.operators.aggregate.totals.doubles import DoubleAverage, DoubleSum
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.layout import Layout
from weirflow.ivm.zset.lazy import LazyColumns

if TYPE_CHECKING:
    from weirflow.ivm.kernel.additive import AdditiveArrangement
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.operators.aggregate.functions import TotalsSlot
    from weirflow.ivm.operators.aggregate.groups import Groups, TakenKeys
    from weirflow.ivm.zset.batch import Int64s

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
_BITS = 64
_FIELDS = 5
_WEIGHT, _CODE, _RESULTS = range(1, 4)
"""What is told of each row behind its group."""
_NOT_THERE = -1


class FusedCalls:
    """The calls of an aggregate, as the kernel reads them.

    Attributes:
        types: of the results.
        key_count: how many columns come before them.
        width: how many totals a group has.
        words: what its jobs have in common.
    """

    def __init__(self, calls: Sequence[LinearCall], slots: Sequence[TotalsSlot], first_argument: int) -> None:
        of = {slot.call.summand: slot for slot in slots}
        self.types = [call.type for call in calls]
        self.key_count = first_argument
        self.width = 1 + sum(slot.call.width for slot in slots)
        self._slots = np.array([_described(slot, first_argument) for slot in slots], np.int64).reshape(-1, 4)
        self._calls = np.array(
            [(_KINDS[call.function][1], of[call.summand].columns.start) for call in calls], np.int64
        ).reshape(-1, 2)
        self._bounds = np.array([*sums.bounds(sums.VALUES), sums.VALUES.lowest_bit, sums.VALUES.limbs], np.int64)
        self._has_arguments = bool((self._slots[:, 1:3] != _NOT_THERE).any())
        described = (_address(self._slots), len(slots), _address(self._calls), len(calls), _address(self._bounds))
        self.words = (*described, first_argument, self.width)

    def __reduce__(self) -> NoReturn:
        raise TypeError("words of jobs are addresses of this process")

    @classmethod
    def of(
        cls, calls: Sequence[LinearCall | TouchedCall], slots: Iterable[TotalsSlot], first_argument: int
    ) -> FusedCalls | None:
        """None if the kernel does not know all of the calls; ``first_argument`` is the first column behind the keys."""
        known = [call for call in calls if isinstance(call, LinearCall) and _is_known(call)]
        return cls(known, tuple(slots), first_argument) if first_argument and len(known) == len(calls) else None

    def job(
        self, groups: Groups, arguments: Layout | None, weights: Int64s, totals: AdditiveArrangement, *, updates: bool
    ) -> ReplaceJob | None:
        """What is to be done for rows with these arguments and weights; None if it is not for the kernel.

        With ``updates``, the totals may be updated instead of what is added being kept beside them.
        """
        if groups.place is None or (arguments is None and self._has_arguments):
            return None
        old = totals.updatable(groups.count) if updates else None
        if old is None:
            runs = totals.searched
            if runs is None and totals.row_count:
                return None
            return ReplaceJob(self, groups, arguments, weights, Totals(runs, None))
        places = [place for run in old if (place := run.place) is not None]
        if len(places) < len(old):
            return None
        return ReplaceJob(self, groups, arguments, weights, Totals(np.array(places, np.int64), old))


class Totals(NamedTuple):
    """The state of an aggregate, as a job finds it.

    Attributes:
        runs: as kernels read it; None if there is nothing.
        updatable: all runs of it, where these may be replaced; None if they are to stay.
    """

    runs: Int64s | None
    updatable: tuple[Run, ...] | None


class ReplaceJob:
    """The groups of one aggregate that are to be replaced, and room for what the kernel makes of them.

    Attributes:
        words: as ``compiled.groups.replace_groups`` reads them.
        calls, groups: the aggregate's.
        most: how many rows it may tell.
        block, buffer: where it tells them, and the same for Arrow.
        added: what is added to the totals of each group, once it is done.
        updates: runs that may be updated, and where their values are to be written.
    """

    __slots__ = ("_held", "added", "block", "buffer", "calls", "groups", "most", "updates", "words")

    def __init__(
        self, calls: FusedCalls, groups: Groups, arguments: Layout | None, weights: Int64s, totals: Totals
    ) -> None:
        assert groups.place is not None
        count, many = groups.count, len(calls.types)
        self.calls = calls
        self.groups = groups
        self.most = most = 2 * count
        self.added = np.zeros((count, calls.width), np.int64)
        words = (_RESULTS + many) * most + many * -(-most // _BITS) + many
        self.block = np.empty(words + _FIELDS * (calls.key_count + many), np.int64)
        self.buffer = pa.py_buffer(self.block)
        runs, old = totals
        self.updates = rooms = None
        if old is not None:
            new = [np.empty((len(run), calls.width), np.int64) for run in old]
            rooms = np.array([_address(values) for values in new], np.int64)
            self.updates = old, new
        self._held = (arguments, weights, runs, rooms)
        self.words = (
            *calls.words,
            _address(weights),
            *groups.place,
            0 if arguments is None else arguments.address,
            0 if runs is None else _address(runs),
            0 if runs is None else len(runs),
            _address(self.added),
            self.buffer.address,
            0 if rooms is None else _address(rooms),
        )

    def rows(self, count: int) -> Batch:
        """The so many rows by which the groups change."""
        told = _ToldColumns(self.groups.taken(self.block[:count]), self, count)
        return Batch.of_lazy(told, self.block[_WEIGHT * self.most : _WEIGHT * self.most + count])


class Replaced(NamedTuple):
    """What came of a job.

    Attributes:
        told: how many rows; below 0 if it is to be done otherwise.
        greatest: the magnitude of what is added.
        is_updated: whether the new values of runs are written.
    """

    told: int
    greatest: int
    is_updated: int


def replace_groups(jobs: Sequence[ReplaceJob]) -> list[Replaced]:
    """Do the jobs."""
    words = np.array([job.words for job in jobs], np.int64)
    return list(map(Replaced._make, compiled.kernels.replace_groups(words, BLOCK).tolist()))


class _ToldColumns(LazyColumns):
    """Keys of groups and the results of calls, which lie in a block as ``compiled.groups`` writes them."""

    __slots__ = ("_block", "_buffer", "_calls", "_keys", "_most")

    def __init__(self, keys: TakenKeys, job: ReplaceJob, length: int) -> None:
        super().__init__(length)
        self._keys = keys
        self._calls = job.calls
        self._block = job.block
        self._buffer = job.buffer
        self._most = job.most

    @property
    @override
    def types(self) -> Sequence[pa.DataType]:
        return [*self._keys.types, *self._calls.types]

    @property
    @override
    def held(self) -> int:
        return int(self._block.nbytes + self._keys.held)

    @override
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice) or index not in range(self._calls.key_count):
            return self.arrays[index]
        return self._keys.columns[index]

    @override
    def _made(self) -> tuple[pa.Array, ...]:
        many = len(self._calls.types)
        bits, stride = (_RESULTS + many) * self._most * _WORD, -(-self._most // _BITS) * _WORD
        nulls = self._block[self._end - many : self._end].tolist()
        columns = list(self._keys.columns)
        for call, (kind, absent) in enumerate(zip(self._calls.types, nulls, strict=True)):
            values = self._buffer.slice((_RESULTS + call) * self._most * _WORD, self.length * _WORD)
            bitmap = self._buffer.slice(bits + call * stride, stride) if absent else None
            columns.append(pa.Array.from_buffers(kind, self.length, [bitmap, values], absent))
        return tuple(columns)

    @override
    def _laid_out(self) -> Layout | None:
        keys = self._keys.table
        if keys is None:
            return None
        begin = self._end
        table = self._block[begin:].reshape(-1, _FIELDS)
        table[: len(keys)] = keys
        layout = Layout(table, self.length, self._keys, self._buffer.address + begin * _WORD)
        layout.identities = self._block[_CODE * self._most : _CODE * self._most + self.length].view(np.uint64)
        return layout

    @property
    def _end(self) -> int:
        """Where the table begins, behind everything else."""
        return len(self._block) - _FIELDS * (self._calls.key_count + len(self._calls.types))


def _address(values: Int64s) -> int:
    return int(pa.py_buffer(values).address)


def _is_known(call: LinearCall) -> bool:
    is_plain = not call.distinct and len(call.arguments) <= 1
    return is_plain and call.function in _KINDS and call.type in {pa.int64(), pa.float64()}


def _described(slot: TotalsSlot, first_argument: int) -> tuple[int, int, int, int]:
    """A summand as the kernel reads it: its kind, its argument, its condition and its first total."""
    call = slot.call
    argument = call.arguments[0] - first_argument if call.arguments else _NOT_THERE
    condition = _NOT_THERE if call.filter is None else call.filter - first_argument
    return _KINDS[call.function][0], argument, condition, slot.columns.start
