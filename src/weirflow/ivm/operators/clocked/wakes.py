"""When conditions on the clock change: for each row the next moment at which one of them may.

Most conditions change once, at a moment that is the difference of their sides away. Those that round, or look at a
calendar, are searched by halving. What zones and months may turn back for a while is searched piece by piece: between
two times of day at which a clock is changed, or midnight, nothing turns back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions.compile import compile_expression, compile_expressions
from weirflow.ivm.kernel.expressions.rows import numbers
from weirflow.ivm.kernel.expressions.times.clocks import clock_of
from weirflow.ivm.kernel.schedule import BEFORE_ALL, NEVER
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import take_columns
from weirflow.sql.clock.reading import is_clock, reads_clock
from weirflow.sql.expr import Call, Column, Expr
from weirflow.sql.foreign import is_foreign
from weirflow.sql.traverse import columns, parts, rewrite

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.zset.batch import Int64s
    from weirflow.sql.clock.conditions import ClockCondition
    from weirflow.sql.clock.trend import Turn

    Bools = NDArray[np.bool_]
    Test = Callable[[Int64s, Int64s], Bools]
    """Rows and a moment for each to whether something is true then."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_END = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
"""Later than any reading; conditions that change after it never do."""
_DAY = 86_400_000_000
_FIRST_STEP = 3_600_000_000
_STEP_GROWTH = 16
_MONTHS_SLACK = 4 * _DAY
"""How much longer or shorter some months are than as many others, and a day."""
_MOMENT = pa.timestamp("us", "UTC")
_BOOL = pa.bool_()


class Wakes:
    """The next changes of several conditions of rows."""

    def __init__(self, conditions: Sequence[ClockCondition]) -> None:
        self._conditions = [_Changes(one) for one in conditions]

    def after(self, columns: Sequence[pa.Array], length: int, reading: int | None) -> Int64s:
        """For each row a moment after the reading until which no condition changes; ``NEVER`` if none will.

        Without a reading all change with the first one. Where a side of a condition cannot be computed (it may stand
        behind another condition that guards it), the row is looked at whenever the clock moves.
        """
        if reading is None:
            return np.full(length, BEFORE_ALL, np.int64)
        soonest = np.full(length, NEVER, np.int64)
        try:
            for one in self._conditions:
                soonest = np.minimum(soonest, one.after(columns, length, reading))
        except DataError:
            return np.full(length, reading + 1, np.int64)
        return soonest


class _Changes:
    """The changes of one condition.

    Its sides are computed of a column for the clock and one for each part that does not depend on it, which is computed
    once for a row.
    """

    def __init__(self, condition: ClockCondition) -> None:
        self._steady: list[Expr] = []
        rising, other = self._separated(condition.rising), self._separated(condition.other)
        self._even = condition.even
        self._at_equal, self._above = condition.at_equal, condition.above
        self._sides = compile_expressions([rising, other])
        names = [*(["greater_equal"] if condition.at_equal else []), *(["greater"] if condition.above else [])]
        self._tests = [compile_expression(Call(name, (rising, other), _BOOL)) for name in names]
        turns = [one for one in condition.turns if _slack(one)]
        self._turns = [(compile_expression(self._separated(one.shown)), _times_of_day(one.zone)) for one in turns]
        self._slack = sum(map(_slack, turns))
        self._prepare = compile_expressions(self._steady)

    def after(self, columns: Sequence[pa.Array], length: int, reading: int) -> Int64s:
        """See ``Wakes``."""
        steady = self._prepare(columns, length)
        if self._even:
            return self._evenly(steady, length, reading)
        soonest = np.full(length, NEVER, np.int64)
        for test in self._tests:
            holds = _Holds(test, steady)
            found = self._around_turns(holds, steady, length, reading) if self._turns else _once(holds, length, reading)
            soonest = np.minimum(soonest, found)
        return soonest

    def _separated(self, expr: Expr) -> Expr:
        def change(part: Expr) -> Expr | None:
            if is_clock(part):
                return Column(0, "", _MOMENT)
            if reads_clock(part) or not _is_computed(part):
                return None
            if part not in self._steady:
                self._steady.append(part)
            return Column(1 + self._steady.index(part), "", part.type)

        return rewrite(expr, change)

    def _evenly(self, steady: Sequence[pa.Array], length: int, reading: int) -> Int64s:
        rising, other = self._sides([_moments(np.full(length, reading, np.int64)), *steady], length)
        known = np.ones(length, np.bool_)
        for side in (rising, other):
            if side.null_count:
                known &= side.is_valid().to_numpy(zero_copy_only=False)
        ahead = numbers(other).astype(np.float64) - numbers(rising).astype(np.float64)
        known &= np.abs(ahead) < 2.0 * _END
        left = np.where(known, numbers(other), 0) - np.where(known, numbers(rising), 0)
        at = reading + left
        soonest = np.full(length, NEVER, np.int64)
        if self._at_equal:
            soonest = np.where(known & (left > 0), at, soonest)
        if self._above:
            soonest = np.where(known & (left >= 0), np.minimum(soonest, at + 1), soonest)
        return np.where(soonest > _END, NEVER, soonest)

    def _around_turns(self, holds: _Holds, steady: Sequence[pa.Array], length: int, reading: int) -> Int64s:
        """The next change of what is false long before a moment and true long after it, and may change in between.

        All changes are within ``slack`` of each other.
        """
        slack = self._slack
        rows = np.arange(length)
        earlier = holds(rows, np.full(length, reading - slack, np.int64))
        later = holds(rows, np.full(length, reading + slack, np.int64))
        begin = np.full(length, reading, np.int64)
        far = rows[~later]
        if len(far):
            found = _search(holds, far, np.full(len(far), reading + slack, np.int64))
            begin[far] = np.where(found == NEVER, NEVER, np.maximum(found - slack, reading))
        open_ = rows[~(earlier & later) & (begin != NEVER)]
        result = np.full(length, NEVER, np.int64)
        if len(open_):
            result[open_] = self._piecewise(holds, steady, open_, begin[open_])
        return result

    def _piecewise(self, holds: _Holds, steady: Sequence[pa.Array], rows: Int64s, begin: Int64s) -> Int64s:
        result = np.full(len(rows), NEVER, np.int64)
        at, last = begin.copy(), begin + 3 * self._slack + 1
        open_ = np.arange(len(rows))
        now = holds(rows, at)
        while len(open_):
            end = self._next_break(steady, rows[open_], at[open_])
            inside = holds(rows[open_], end - 1) != now[open_]
            hit = open_[inside]
            if len(hit):
                result[hit] = _halved(holds, rows[hit], at[hit], end[inside] - 1, now[hit])
            rest, edge = open_[~inside], end[~inside]
            changed = holds(rows[rest], edge) != now[rest]
            result[rest[changed]] = edge[changed]
            open_ = rest[~changed]
            at[open_] = edge[~changed]
            open_ = open_[at[open_] < last[open_]]
        return result

    def _next_break(self, steady: Sequence[pa.Array], rows: Int64s, at: Int64s) -> Int64s:
        """The first moment behind each that may end a piece.

        Inner turns come first: up to the end of their piece the time that an outer one shows does not fall.
        """
        end = at + _DAY
        for evaluate, times in self._turns:
            place = _Place(evaluate, times, steady)
            time = place.micros(rows, at) % _DAY
            end = np.minimum(end, at + times[np.searchsorted(times, time, side="right")] - time)
            before = place(rows, at)
            # What rounds shows less than it will: the piece may end earlier.
            late = np.flatnonzero(place(rows, end - 1) != before)
            if len(late):
                left = _left(place, rows[late], before[late])
                stays = np.zeros(len(late), np.bool_)
                end[late] = _halved(left, np.arange(len(late)), at[late], end[late] - 1, stays)
        return end


class _Place:
    """In which piece a time of rows is, at a moment for each: the day, and what part of it."""

    def __init__(
        self, evaluate: Callable[[Sequence[pa.Array], int], pa.Array], times: Int64s, steady: Sequence[pa.Array]
    ) -> None:
        self._evaluate = evaluate
        self._times = times
        self._steady = steady

    def micros(self, rows: Int64s, moments: Int64s) -> Int64s:
        """The times themselves."""
        shown = self._evaluate([_moments(moments), *take_columns(self._steady, rows)], len(rows))
        return numbers(shown).astype(np.int64) * (_DAY if pa.types.is_date32(shown.type) else 1)

    def __call__(self, rows: Int64s, moments: Int64s) -> Int64s:
        day, time = np.divmod(self.micros(rows, moments), _DAY)
        found: Int64s = day * len(self._times) + np.searchsorted(self._times, time, side="right")
        return found


def _left(place: _Place, rows: Int64s, before: Int64s) -> Test:
    """Whether rows, by their numbers among these, have left the piece they were in."""
    return lambda some, moments: place(rows[some], moments) != before[some]


class _Holds:
    """A test of rows, at a moment for each."""

    def __init__(self, test: Callable[[Sequence[pa.Array], int], pa.Array], steady: Sequence[pa.Array]) -> None:
        self._test = test
        self._steady = steady

    def __call__(self, rows: Int64s, moments: Int64s) -> Bools:
        if not len(rows):
            return np.empty(0, np.bool_)
        columns = [_moments(moments), *take_columns(self._steady, rows)]
        return true_rows(self._test(columns, len(rows)))


def _once(holds: _Holds, length: int, reading: int) -> Int64s:
    """The change of what becomes true once."""
    rows = np.arange(length)
    result = np.full(length, NEVER, np.int64)
    begin = np.full(length, reading, np.int64)
    open_ = rows[~holds(rows, begin)]
    result[open_] = _search(holds, open_, begin[open_])
    return result


def _search(holds: _Holds, rows: Int64s, low: Int64s) -> Int64s:
    """A moment after ``low``, where it does not hold, at which it begins to; ``NEVER`` if it never does."""
    result = np.full(len(rows), NEVER, np.int64)
    step, open_ = _FIRST_STEP, np.arange(len(rows))
    while len(open_):
        high = np.minimum(low[open_] + step, _END)
        true = holds(rows[open_], high)
        hit = open_[true]
        if len(hit):
            result[hit] = _halved(holds, rows[hit], low[hit], high[true], np.zeros(len(hit), np.bool_))
        going = ~true & (high < _END)
        low = low.copy()
        low[open_[~true]] = high[~true]
        open_ = open_[going]
        step *= _STEP_GROWTH
    return result


def _halved(holds: Test, rows: Int64s, low: Int64s, high: Int64s, before: Bools) -> Int64s:
    """The first moment at which it is not what it was ``before``, as at ``low``; at ``high`` it is not."""
    low, high = low.copy(), high.copy()
    while True:
        open_ = np.flatnonzero(high - low > 1)
        if not len(open_):
            return high
        middle = low[open_] + (high[open_] - low[open_]) // 2
        same = holds(rows[open_], middle) == before[open_]
        low[open_[same]] = middle[same]
        high[open_[~same]] = middle[~same]


def _moments(micros: Int64s) -> pa.Array:
    return pa.array(micros).view(_MOMENT)


def _is_computed(expr: Expr) -> bool:
    """Whether it is to be computed once for a row; constants stay where they are."""
    return bool(columns(expr)) or any(is_foreign(part) for part in parts(expr))


def _slack(turn: Turn) -> int:
    """How far from each other the moments may be at which a condition changes because of a turn."""
    spread = 0 if turn.zone is None else int(np.ptp(clock_of(turn.zone).offsets))
    # Clocks may be put forward between a moment and the one that is computed of it, or back.
    return 2 * spread + (_MONTHS_SLACK if turn.months else 0)


@lru_cache(maxsize=64)
def _times_of_day(zone: str | None) -> Int64s:
    """Midnight and the times of day at which clocks of a zone were ever changed, in order; again for the next day."""
    times = {0}
    if zone is not None:
        clock = clock_of(zone)
        for offsets in (clock.offsets[:-1], clock.offsets[1:]):
            times |= {int(one) for one in np.unique((clock.changes + offsets) % _DAY)}
    ordered = sorted(times)
    return np.array([*ordered, ordered[0] + _DAY], np.int64)
