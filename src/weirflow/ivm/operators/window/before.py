"""What running window functions need to know of the rows before a stretch: how many there are, and their totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.kernel.stretches import BEFORE, Stretches
from weirflow.ivm.operators.aggregate.functions import is_linear, linear_function
from weirflow.ivm.operators.aggregate.totals.linear import present_rows
from weirflow.ivm.operators.window.functions import FUNCTIONS, as_aggregate
from weirflow.ivm.operators.window.ordered import RowsBefore, WholeNeeded
from weirflow.ivm.zset.batch import take_columns
from weirflow.ivm.zset.rows import expand_ranges
from weirflow.sql.traverse import columns as read_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.ordered import OrderedArrangement
    from weirflow.ivm.kernel.places import Span
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.zset.batch import Int64s
    from weirflow.sql.expr import WindowCall

_ROWS_AT_ONCE = 1 << 16
_BLOCK = 1024
_LONG = 4
"""Ranges of more blocks than that are added up from blocks."""


class RunningTotals:
    """What rows add to a call that runs from the beginning of its partition."""

    def __init__(self, call: WindowCall) -> None:
        self.call = call
        self._function = linear_function(as_aggregate(call))
        self.width = self._function.width
        self._arguments = compile_expressions(call.arguments)
        self._marks: WeakKeyDictionary[Run, Int64s] = WeakKeyDictionary()
        self._reads = set().union(*(read_columns(argument) for argument in call.arguments))

    @staticmethod
    def of(calls: Sequence[WindowCall]) -> list[RunningTotals]:
        """Those of the calls that run."""
        running = [call for call in calls if call.function not in FUNCTIONS and is_linear(as_aggregate(call))]
        return [RunningTotals(call) for call in running if call.frame is not None and call.frame.start is None]

    def of_rows(self, rows: Sequence[pa.Array], weights: Int64s) -> Int64s | None:
        """What each row adds, times its weight; None if integers do not hold it."""
        arguments = self._arguments(rows, len(weights))
        counted = np.ones(len(weights), np.bool_)
        for each in arguments:
            counted = present_rows(each, counted)
        added = np.zeros((len(weights), self.width), np.int64)
        held = self._function.encode(arguments, np.where(counted, weights, 0), added)
        return added if held else None

    def of_ranges(self, span: Span, first_column: int, begin: Int64s, end: Int64s) -> Int64s:
        """What the rows of the span's run from each ``begin`` to its ``end`` add together.

        Raises:
            WholeNeeded: integers do not hold it.
        """
        long = np.flatnonzero(end - begin > _LONG * _BLOCK)
        if not len(long):
            return self._added(span.run, first_column, begin, end)
        # Whole blocks are added up once for a run; of a long range only what is beside them is looked at.
        marks = self._marks.get(span.run)
        if marks is None:
            marks = self._marks[span.run] = self._of_blocks(span.run, first_column)
        inner_begin, inner_end = -(-begin // _BLOCK), end // _BLOCK
        head_end, tail_begin = end.copy(), end.copy()
        head_end[long], tail_begin[long] = inner_begin[long] * _BLOCK, inner_end[long] * _BLOCK
        totals = self._added(span.run, first_column, begin, head_end)
        totals += self._added(span.run, first_column, tail_begin, end)
        totals[long] += marks[inner_end[long]] - marks[inner_begin[long]]
        return totals

    def _of_blocks(self, run: Run, first_column: int) -> Int64s:
        """What the rows before each whole block of a run add, and what all of these blocks do."""
        edges = np.arange(0, len(run) + 1, _BLOCK)
        return np.concatenate(
            [np.zeros((1, self.width), np.int64), self._added(run, first_column, edges[:-1], edges[1:]).cumsum(axis=0)]
        )

    def _added(self, run: Run, first_column: int, begin: Int64s, end: Int64s) -> Int64s:
        totals = np.zeros((len(begin), self.width), np.int64)
        owner = np.repeat(np.arange(len(begin)), end - begin)
        at = expand_ranges(begin, end - begin)
        columns = run.columns[first_column:-1]
        for some in range(0, len(at), _ROWS_AT_ONCE):
            here = at[some : some + _ROWS_AT_ONCE]
            rows = [take_columns([one], here)[0] if index in self._reads else one for index, one in enumerate(columns)]
            added = self.of_rows(rows, run.values[here, 0])
            if added is None:
                raise WholeNeeded
            owners = owner[some : some + _ROWS_AT_ONCE]
            starts = np.flatnonzero(np.diff(owners, prepend=-1))
            totals[owners[starts]] += np.add.reduceat(added, starts, axis=0)
        return totals


def rows_before(
    state: OrderedArrangement,
    spans: Sequence[Span],
    found: Stretches,
    first_column: int,
    running: Sequence[RunningTotals],
) -> RowsBefore:
    """What comes before the first row of each stretch that was found.

    Raises:
        WholeNeeded: there are doubles that are too large, too small or no numbers.
    """
    stretches = len(found.cut)
    context = found.zone == BEFORE
    count = np.zeros(stretches, np.int64)
    np.add.at(count, found.number[context], -found.old[context])
    totals = {one.call: np.zeros((stretches, one.width), np.int64) for one in running}
    rows = take_columns(found.columns[first_column:], np.flatnonzero(context)) if context.any() else ()
    for one in running:
        if rows:
            added = one.of_rows(rows, -found.old[context])
            if added is None:
                raise WholeNeeded
            np.add.at(totals[one.call], found.number[context], added)
        for span in spans:
            totals[one.call] += one.of_ranges(span, first_column, span.start, span.low)
    for span in spans:
        count += state.weight(span, span.start, span.low)
    return RowsBefore(count, totals)
