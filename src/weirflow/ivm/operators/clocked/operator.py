"""Clocked applies a predicate or projections that compare rows with the clock, and does so again when a row is due.

Its inputs are rows and the clock's relation. Of the rows it keeps those for which some condition is still to change, by
the next moment at which one does: when the clock gets there these rows alone are looked at. What it puts out is linear
in the rows, so that a row may be retracted at any time, on any shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.kernel.expressions.rows import numbers
from weirflow.ivm.kernel.schedule import NEVER, Schedule
from weirflow.ivm.operators.clocked.wakes import Wakes
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate
from weirflow.sql.clock.conditions import clock_conditions
from weirflow.sql.clock.reading import with_reading
from weirflow.sql.clock.relation import CLOCK_SCHEMA, READING
from weirflow.sql.expr import Column, Expr

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.zset.batch import Int64s

_MOMENT = pa.timestamp("us", "UTC")
_READING = CLOCK_SCHEMA.get_field_index(READING)


class Clocked(Operator):
    """Rows filtered by a predicate, or projected by expressions, which read the clock in conditions.

    Args:
        rows: the types of the columns of the rows.
        output: the predicate, whose rows come out as they are; or the projections.

    Attributes:
        projections: those; None for a filter.
    """

    def __init__(self, rows: Sequence[pa.DataType], output: Expr | tuple[Expr, ...]) -> None:
        self.projections = output if isinstance(output, tuple) else None
        exprs = output if isinstance(output, tuple) else (output,)
        super().__init__(rows if self.projections is None else [one.type for one in exprs])
        reading = Column(len(rows), "", _MOMENT)
        self._evaluate = compile_expressions([with_reading(one, reading) for one in exprs])
        self._wakes = Wakes(list(dict.fromkeys(one for expr in exprs for one in clock_conditions(expr))))
        self._schedule = Schedule(rows)
        self._clock = Arrangement(CLOCK_SCHEMA.types, 0)

    @property
    def states(self) -> Sequence[State]:
        """The rows to be looked at again, and the clock's reading."""
        return (self._schedule, self._clock)

    @property
    def reading(self) -> int | None:
        """The clock's reading, in microseconds since 1970; None before the first."""
        return _newest(Batch.concat([Batch.empty(CLOCK_SCHEMA.types), *self._clock.rows()]))

    def next_due(self) -> int | None:
        """A moment before which no row is due; None if none ever is."""
        reading = self.reading
        return None if reading is None else self._schedule.next_due(reading)

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        rows, clock = deltas
        before = self.reading
        now = before
        parts = []
        if len(clock):
            self._stage(lambda: self._clock.insert(clock))
            now = _newest(clock)
            assert now is not None and (before is None or now >= before), "clocks do not go back"  # noqa: PT018 - one rule
            due, again = self._schedule.due(before, now)
            if len(again):
                parts += [self._apply(again, before).negate(), self._apply(again, now)]
                gone = again.negate()
                self._stage(lambda: self._schedule.insert(due, gone))
                self._plan(again, now)
        if len(rows):
            parts.append(self._apply(rows, now))
            self._plan(rows, now)
        if not parts:
            return self.nothing
        return parts[0] if len(parts) == 1 else consolidate(Batch.concat(parts))

    def _apply(self, rows: Batch, reading: int | None) -> Batch:
        """What comes out for rows at a reading."""
        told = pa.nulls(len(rows), _MOMENT) if reading is None else _repeated(reading, len(rows))
        made = self._evaluate([*rows.columns, told], len(rows))
        return rows.filter(true_rows(made[0])) if self.projections is None else Batch(tuple(made), rows.weights)

    def _plan(self, rows: Batch, reading: int | None) -> None:
        """Have rows looked at when a condition changes next."""
        due: Int64s = self._wakes.after(rows.columns, len(rows), reading)
        kept = due != NEVER
        if kept.any():
            some, at = rows.filter(kept), due[kept]
            self._stage(lambda: self._schedule.insert(at, some))


def _newest(clock: Batch) -> int | None:
    """The reading that a delta of the clock's relation brings, or that its rows are."""
    there = clock.weights > 0
    return int(numbers(clock.columns[_READING])[there].max()) if there.any() else None


def _repeated(reading: int, length: int) -> pa.Array:
    return pa.array(np.full(length, reading, np.int64)).view(_MOMENT)
