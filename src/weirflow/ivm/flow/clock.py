"""``FlowClock``: the clock of a flow, a relation of one row that ticks change like a source.

So what is true of sources is true of it: its readings are logged with the ticks that brought them, are part of
checkpoints, and reach every shard.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from weirflow.errors import ConfigError, TableNotFound, WeirflowError
from weirflow.ivm.compiler.program import plan_over
from weirflow.ivm.compiler.view import Mode
from weirflow.ivm.flow.source import Source
from weirflow.ivm.kernel.expressions.rows import numbers
from weirflow.sql.clock.reading import follows_clock, may_follow_clock
from weirflow.sql.clock.relation import CLOCK, CLOCK_SCHEMA, NUMBER, READING
from weirflow.types import ClockKind

if TYPE_CHECKING:
    from weirflow.ivm.compiler.view import View
    from weirflow.ivm.zset.batch import Batch

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9998, 12, 31, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SOURCE: Final = Source(CLOCK, CLOCK_SCHEMA, (NUMBER,))


class ClockHost(Protocol):
    """A flow, as far as its clock knows it."""

    @property
    def sources(self) -> Mapping[str, Source]:
        """Its sources, and its clock once there is one."""

    @property
    def follows_clock(self) -> bool:
        """Whether a view reads the clock."""

    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of all sources, and of all views that do not wait."""

    def take_clock(self, source: Source) -> None:
        """Take on the clock, which has no reading yet."""

    def move_clock(self, delta: Mapping[str, Any]) -> None:
        """Tick the clock alone."""

    def rows_of(self, name: str) -> Batch:
        """All rows of a source."""


class FlowClock:
    """The clock of one flow. Whoever calls keeps others from changing the flow.

    Attributes:
        kind: what moves it.
    """

    def __init__(self, host: ClockHost, kind: ClockKind) -> None:
        self._host = host
        self.kind = kind

    @property
    def reading(self) -> int | None:
        """In microseconds since 1970; None before the first."""
        if CLOCK not in self._host.sources:
            return None
        rows = self._host.rows_of(CLOCK)
        return int(numbers(rows.columns[1])[0]) if len(rows) else None

    @property
    def shown(self) -> str | None:
        """What moves it, and its reading, for people; None where no view follows it."""
        if not self._host.follows_clock:
            return None
        reading = self.reading
        return f"{self.kind}, {'not read yet' if reading is None else shown(reading)}"

    def take(self, views: Iterable[View]) -> None:
        """Have a clock if a view follows it that is to be registered; the system's is read then."""
        if not any(self._is_followed(view) for view in views):
            return
        self._declare()
        if self.kind is ClockKind.SYSTEM:
            self._host.move_clock(self._moved(self._system()))

    def with_reading(self, deltas: Mapping[str, Any]) -> Mapping[str, Any]:
        """The deltas of a tick, with a reading of the system's clock where views follow it."""
        if self.kind is not ClockKind.SYSTEM or CLOCK in deltas or not self._host.follows_clock:
            return deltas
        return {**deltas, **self._moved(self._system())}

    def moved_to(self, moment: datetime | None) -> Mapping[str, Any]:
        """The delta that brings the clock to a moment, or to the system's time; none if it is there.

        Raises:
            ConfigError: the moment is before the clock's reading, or has no time zone, or there is no such reading.
        """
        now = self.reading
        wanted = self._system() if moment is None else _micros(moment)
        if now is not None and wanted < now:
            raise ConfigError(
                f"The clock is at {shown(now)}; it cannot go back to {shown(wanted)}.",
                hint="advance() to a later time, or open the flow as it was: snapshot(epoch=...)",
            )
        self._declare()
        return self._moved(wanted)

    def _declare(self) -> None:
        if CLOCK not in self._host.sources:
            self._host.take_clock(_SOURCE)

    def _moved(self, wanted: int) -> dict[str, Any]:
        if wanted == self.reading:
            return {}
        return {CLOCK: clock_row(wanted)}

    def _system(self) -> int:
        """The system's time; where that was put back, what it was before."""
        return max(system_time(), self.reading or 0)

    def _is_followed(self, view: View) -> bool:
        """Whether a view follows the clock; one that waits may."""
        if view.mode is Mode.DIFF or view.forced or not may_follow_clock(view.sql, view.plan):
            return False
        try:
            return follows_clock(plan_over(view, self._host.schemas()))
        except TableNotFound:
            return True
        except WeirflowError:  # raised again when the view is compiled, or it is recomputed
            return False


def system_time() -> int:
    """The time of this machine, in microseconds since 1970."""
    return time.time_ns() // 1000


def clock_row(reading: int) -> pa.Table:
    """The row of the clock's relation."""
    moment = pa.array([reading], pa.int64()).cast(CLOCK_SCHEMA.field(READING).type)
    return pa.table([pa.array([0], pa.int8()), moment], schema=CLOCK_SCHEMA)


def moment_of(reading: int) -> datetime:
    """A reading as a time in UTC."""
    return _EPOCH + timedelta(microseconds=reading)


def shown(reading: int) -> str:
    """A reading for people."""
    return moment_of(reading).isoformat(sep=" ")


def _micros(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise ConfigError(
            f"{moment.isoformat(sep=' ')} has no time zone.", hint="say which: datetime(..., tzinfo=UTC), for example"
        )
    if not _EPOCH <= moment <= _LAST:
        raise ConfigError(
            f"The clock cannot be at {moment.isoformat(sep=' ')}.", hint="use a time from 1970 to the end of 9998"
        )
    return (moment - _EPOCH) // _MICROSECOND
