"""SessionWindow gives each row the session it is in: rows of equal keys, each within a gap of the next in time.

A delta re-merges the sessions it touches, splits or bridges, whatever else their keys hold. Rows are kept by key and by
bucket of time, a gap long: the rows of a bucket are always in one session, and a session goes on at most in the next
bucket. So the old rows around the delta are found by reading outwards, bucket by bucket, until there is a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.expressions.compile import compile_expression, compile_expressions
from weirflow.ivm.kernel.expressions.failures import overflow
from weirflow.ivm.operators.aggregate.groups import Groups
from weirflow.ivm.operators.floats import normalized
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.buffers import raw_values
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.zset.batch import Bools, Int64s
    from weirflow.sql.expr import Expr

_LAST_MOMENT = 2**63 - 1
_GROWTH = 2


class SessionWindow(Operator):
    """The input's columns, then struct<start,end>: the first time of the row's session, and its last plus the gap.

    A row that comes exactly a gap after another is still in its session. ``time`` is never NULL. Keys compare as
    GROUP BY does. With a gap that is not positive there are no rows at all, as in Spark.
    """

    def __init__(self, types: Sequence[pa.DataType], keys: Sequence[Expr], time: Expr, gap: int) -> None:
        self._window = pa.struct([pa.field("start", time.type), pa.field("end", time.type)])
        super().__init__([*types, self._window])
        self.keys = tuple(keys)
        self._gap = gap
        self._keys = compile_expressions(keys)
        self._time = compile_expression(time)
        self._first_column = len(keys) + 1
        self._rows = Arrangement((*(key.type for key in keys), pa.int64(), *types), self._first_column)

    @property
    def states(self) -> Sequence[State]:
        """All rows, by key and bucket of time."""
        return (self._rows,)

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        delta = consolidate(deltas[0])
        if not len(delta) or self._gap <= 0:
            return self.nothing
        keys = tuple(normalized(key) for key in self._keys(delta.columns, len(delta)))
        times = self._times(delta.columns, len(delta))
        if times.max() > _LAST_MOMENT - self._gap:
            raise overflow("long", None)
        groups = Groups(keys, len(delta))
        stored = Batch((*keys, pa.array(times // self._gap), *delta.columns), delta.weights)
        self._stage(lambda: self._rows.insert(stored))
        numbers = groups.numbers
        before = self._around(groups.keys, numbers, times)
        after = consolidate(Batch.concat([before, Batch((pa.array(numbers), *delta.columns), delta.weights)]))
        return consolidate(Batch.concat([self._merged(before).negate(), self._merged(after)]))

    def _around(self, keys: Sequence[pa.Array], numbers: Int64s, times: Int64s) -> Batch:
        """The old rows, behind the numbers of their keys, that were or will be in a session with a row of the delta.

        What else is found on the way is in it too. Each time a session is followed further, it is twice as far.
        """
        found = Batch.empty((pa.int64(), *self.types[:-1]))
        if not self._rows.row_count:
            return found
        beside = np.repeat(times // self._gap, 3) + np.tile([-1, 0, 1], len(times))
        wanted = _different(np.column_stack([np.repeat(numbers, 3), beside]))
        read = wanted
        reach = _GROWTH
        while len(wanted):
            found = Batch.concat([found, self._probe(keys, wanted)])
            old_times = self._times(found.columns[1:], len(found))
            ends = self._ends(
                np.concatenate([numbers, raw_values(found.columns[0])]),
                np.concatenate([times, old_times]),
                np.arange(len(times) + len(found)) < len(times),
            )
            wanted = _missing(read, ends, reach)
            read = np.concatenate([read, wanted])
            reach *= _GROWTH
        return found

    def _probe(self, keys: Sequence[pa.Array], buckets: Int64s) -> Batch:
        """The old rows of (number of the key, bucket) pairs, behind that number."""
        probe = (*take_columns(keys, buckets[:, 0]), pa.array(np.ascontiguousarray(buckets[:, 1])))
        old = self._rows.probe(probe, consolidated=True, count=len(buckets))
        numbers = pa.array(buckets[:, 0][old.probe_index])
        return Batch((numbers, *old.batch.columns[self._first_column :]), old.batch.weights)

    def _ends(self, numbers: Int64s, times: Int64s, new: Bools) -> Int64s:
        """Rows of (number of the key, next bucket, direction): where sessions with a new row could go on."""
        order = np.lexsort((times, numbers))
        starts = self._starts(numbers[order], times[order])
        touched = np.logical_or.reduceat(new[order], starts)
        first, last = order[starts], order[np.append(starts[1:], len(order)) - 1]
        before = np.column_stack([numbers[first], times[first] // self._gap - 1, np.full(len(first), -1)])
        behind = np.column_stack([numbers[last], times[last] // self._gap + 1, np.full(len(last), 1)])
        return np.concatenate([before[touched], behind[touched]])

    def _merged(self, numbered: Batch) -> Batch:
        """Rows behind the numbers of their keys, with their sessions behind them instead."""
        rows = numbered.filter(numbered.weights > 0)
        if not len(rows):
            return self.nothing
        numbers, times = raw_values(rows.columns[0]), self._times(rows.columns[1:], len(rows))
        order = np.lexsort((times, numbers))
        times = times[order]
        starts = self._starts(numbers[order], times)
        sizes = np.diff(starts, append=len(order))
        bounds = (times[starts], times[starts + sizes - 1] + self._gap)
        kind = self._window.field(0).type
        windows = pa.StructArray.from_arrays(
            [pa.array(np.repeat(bound, sizes)).view(kind) for bound in bounds], fields=list(self._window)
        )
        ordered = rows.take(order)
        return Batch((*ordered.columns[1:], windows), ordered.weights)

    def _starts(self, numbers: Int64s, times: Int64s) -> Int64s:
        """Where sessions begin among rows sorted by key and time, of which there is at least one."""
        fresh = np.ones(len(times), np.bool_)
        fresh[1:] = (numbers[1:] != numbers[:-1]) | (times[1:] > times[:-1] + self._gap)
        return np.flatnonzero(fresh)

    def _times(self, columns: Sequence[pa.Array], length: int) -> Int64s:
        return raw_values(self._time(columns, length))


def _different(pairs: Int64s) -> Int64s:
    """Each different row of ``pairs`` once, sorted."""
    ordered = pairs[np.lexsort(pairs.T[::-1])]
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[fresh]


def _unread(read: Int64s, wanted: Int64s) -> Bools:
    """Which pairs of ``wanted`` are not among those of ``read``."""
    both = np.concatenate([read, wanted])
    order = np.lexsort(both.T[::-1])
    ordered = both[order]
    known = np.concatenate([np.zeros(1, np.bool_), (ordered[1:] == ordered[:-1]).all(axis=1)])
    # The sort is stable: of equal pairs, those read come first, and all others are known from them.
    unread = np.ones(len(both), np.bool_)
    unread[order] = ~known
    return unread[len(read) :]


def _missing(read: Int64s, ends: Int64s, reach: int) -> Int64s:
    """The pairs (number of the key, bucket) to read next, ``reach`` of them from each end that was not looked at."""
    open_ends = ends[_unread(read, ends[:, :2])]
    number, bucket, direction = open_ends.T
    steps = np.tile(np.arange(reach), len(open_ends))
    further = np.repeat(bucket, reach) + np.repeat(direction, reach) * steps
    pairs = _different(np.column_stack([np.repeat(number, reach), further]))
    return pairs[_unread(read, pairs)]
