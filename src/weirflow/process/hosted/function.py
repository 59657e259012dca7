"""``HostedFunction``: a function as another engine runs it: key by key, on that engine's state and timers."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from weirflow.process.function import LATE, KeyedFunction, Row
from weirflow.process.hosted.slots import HostedOpenContext
from weirflow.process.hosted.timers import HostedTimers, fire
from weirflow.process.instance import KeyContext, Moment, copied
from weirflow.process.outputs import FunctionOutputs
from weirflow.process.schemas import output_schema, side_schemas
from weirflow.process.timers import NoTimers
from weirflow.process.user_code import UserCode
from weirflow.state import InMemoryStateBackend, KeyedStateStore, TtlStateBackend
from weirflow.state.backends.ttl import wall_clock

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.errors import WeirflowError
    from weirflow.process.intake import Intake
    from weirflow.state.backends.contract import StateBackend
    from weirflow.state.descriptors import TimeKind, Ttl

OPERATOR = "process"
"""Whose state it is, for the host."""


class Host(Protocol):
    """The state and the timers of another engine, for one key at a time."""

    @property
    def backend(self) -> StateBackend:
        """The state of the current key, at the places that keyed state has."""

    def declare(self, slot: str, kind: str, ttl: Ttl | None) -> None:
        """Make room for a slot; called from ``open`` alone."""

    def begin(self, key: bytes) -> None:
        """The bytes of the key that the engine has made the current one."""

    def timers(self) -> list[int]:
        """The current key's timers."""

    def register(self, at: int) -> None:
        """Add one that is not there."""

    def delete(self, at: int) -> None:
        """Take one back."""


class HostedFunction(ABC):
    """A copy of a function for one task of the engine; pickled before it is opened.

    Args:
        function: what runs.

    Attributes:
        time: by which time the engine fires timers; None for neither.
        has_timers: whether timers may fire.
        wants_late: whether the function has an output for late rows.

    Raises:
        ConfigError: its schemas or slots cannot be used.
        UnsupportedError: it needs what only embedded runners have.
    """

    takes_broadcast = False
    """Whether there is a broadcast input."""

    def __init__(self, function: KeyedFunction) -> None:
        self.name = type(function).__name__
        self.function = function
        self.time: TimeKind | None = None
        self.has_timers = type(function).on_timer is not KeyedFunction.on_timer
        self.wants_late = LATE in function.side_outputs
        self._done: set[Any] = set()

    # Before it runs

    def schemas(self) -> list[pa.Schema]:
        """The columns of the output, and of the side outputs in the order of ``tags``."""
        return [output_schema(self.function), *side_schemas(self.function).values()]

    @property
    def tags(self) -> list[str]:
        """The side outputs."""
        return list(self.function.side_outputs)

    def lifetimes(self) -> set[TimeKind]:
        """By which times slots expire. It opens a copy, so that what cannot be is known before anything runs."""
        trial = copy.copy(self)
        trial.function = copied(self.function)
        host = _Trial()
        trial.open(host)
        trial.close()
        return {ttl.time for ttl in host.lifetimes if ttl is not None}

    # In a task

    def open(self, host: Host) -> None:
        """Declare the state, in the engine's own."""
        self._host = host
        self._moment = Moment()
        self._outputs = FunctionOutputs(self.function)
        self._user_code = UserCode(self.name)
        self._backend = TtlStateBackend(host.backend, lambda: self._moment.now)
        self._store = KeyedStateStore(self._backend, OPERATOR)
        declaring = HostedOpenContext(self._store, host.declare)
        with self._user_code("open"):
            self.function.open(declaring)
        self._broadcasts = declaring.broadcasts
        if self._broadcasts and not self.takes_broadcast:
            raise self._refuse_broadcast()
        self._store.flush()
        self._codec = declaring.codec
        self._timers = None if self._codec is None else HostedTimers(host, self.time, self.name)
        self._context = KeyContext(self._moment, self._outputs, self._timers or NoTimers())  # type: ignore[arg-type]
        self._now = wall_clock()

    def rows(self, key: Any, rows: Iterable[Sequence[Any]], now: int, watermark: int) -> list[list[dict[str, Any]]]:
        """Run the rows of a key, and return what each output gets.

        Timers by event time that are due fire first: the watermark had passed them before these rows came.
        """
        self._begin(key, now, watermark)
        if self.has_timers and self.time == "event" and self._moment.watermark is not None:
            self._fire(key, self._moment.watermark)
        self._feed(key, rows)
        return self._end()

    def due(self, key: Any, now: int, watermark: int) -> list[list[dict[str, Any]]]:
        """Fire all timers of a key that are due, when the engine has found one; once for each key in a task."""
        if key in self._done:
            return []
        self._done.add(key)
        self._begin(key, now, watermark)
        self._fire(key, watermark if self.time == "event" else now)
        assert self._timers is not None, "one of them is due"
        self._timers.engine_removes(watermark if self.time == "event" else now)
        return self._end()

    def close(self) -> None:
        """Close the function."""
        with self._user_code("close"):
            self.function.close()

    def _set_time(self, now: int, watermark: int) -> None:
        self._moment.now = now if now >= 0 else self._now
        self._moment.watermark = watermark if watermark > 0 else None
        if watermark > 0:
            self._backend.set_watermark(watermark)

    def _begin(self, key: Any, now: int, watermark: int) -> None:
        self._set_time(now, watermark)
        self._at(key, None)
        if self._codec is not None:
            self._host.begin(self._codec.encode(key))

    def _end(self) -> list[list[dict[str, Any]]]:
        rows = self._outputs.rows()
        self._outputs.clear()
        self._store.flush()
        if self._timers is not None:
            self._timers.flush()
        return rows

    def _at(self, key: Any, time: int | None) -> None:
        """It is the turn of something that happened to a key at a time."""
        if self._codec is not None:
            self._store.set_key(key, time)
        self._context.timestamp = time

    @abstractmethod
    def _refuse_broadcast(self) -> WeirflowError:
        """What to raise for broadcast state without a broadcast input."""

    @abstractmethod
    def _feed(self, key: Any, rows: Iterable[Sequence[Any]]) -> None:
        """Run the callbacks for rows of a key."""

    def _each(self, callback: str, key: Any, rows: Iterable[Row]) -> None:
        """Run a callback for each of some rows."""
        call, context = getattr(self.function, callback), self._context
        with self._user_code(callback) as user_code:
            user_code.key = key
            for row in rows:
                call(context, key, row)

    def _timed(self, key: Any, rows: Iterable[Row], intake: Intake, *, judges_late: bool) -> Iterator[Row]:
        """The rows, each with its time as that of the context; without those that are late, if they are told here."""
        if intake.event_time is None:
            self._at(key, None)
            yield from rows
            return
        watermark = self._moment.watermark if judges_late else None
        for row in rows:
            time = intake.time(row)
            if watermark is not None and time is not None and time <= watermark:
                self._outputs.too_late(row)
            else:
                self._at(key, time)
                yield row

    def _fire(self, key: Any, until: int) -> None:
        if self._timers is None:
            return
        kind = self.time
        assert kind is not None, "the engine fires timers"

        def call(at: int) -> None:
            self._at(key, at if kind == "event" else None)
            self.function.on_timer(self._context, key, at, kind)

        with self._user_code("on_timer") as user_code:
            user_code.key = key
            fire(self._timers, until, call)


class _Trial:
    """A host that keeps nothing."""

    def __init__(self) -> None:
        self.backend = InMemoryStateBackend()
        self.lifetimes: list[Ttl | None] = []

    def declare(self, slot: str, kind: str, ttl: Ttl | None) -> None:  # noqa: ARG002 - see Host
        self.lifetimes.append(ttl)

    def begin(self, key: bytes) -> None: ...

    def timers(self) -> list[int]:
        return []

    def register(self, at: int) -> None: ...

    def delete(self, at: int) -> None: ...
