"""``HostedFunction``: a function as another engine runs it: key by key, on that engine's state and timers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from weirflow.arguments import shown
from weirflow.errors import ConfigError, UnsupportedError
from weirflow.process.function import LATE, KeyedFunction, ProcessFunction, Row
from weirflow.process.hosted.slots import HostedOpenContext
from weirflow.process.hosted.timers import HostedTimers, fire
from weirflow.process.instance import KeyContext, Moment, copied
from weirflow.process.intake import Intake
from weirflow.process.outputs import FunctionOutputs
from weirflow.process.schemas import output_schema, side_schemas
from weirflow.process.timers import NoTimers
from weirflow.process.user_code import UserCode
from weirflow.state import InMemoryStateBackend, KeyedStateStore, TtlStateBackend
from weirflow.state.backends.ttl import wall_clock

if TYPE_CHECKING:
    import pyarrow as pa

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


class HostedFunction:
    """A copy of a function for one task of the engine; pickled before it is opened.

    Args:
        function: what runs.
        columns: the names of the input's columns.
        event_time: the one with the time of the event.
        time: by which time the engine fires timers; None for neither.

    Attributes:
        has_timers: whether timers may fire.
        judges_late: whether the function wants late rows, so that the engine must not drop them.

    Raises:
        ConfigError: it is no ``ProcessFunction``, or its schemas or slots cannot be used.
        UnsupportedError: it needs what only embedded runners have.
    """

    def __init__(
        self, function: Any, columns: Sequence[str], *, event_time: str | None, time: TimeKind | None = None
    ) -> None:
        self.name = type(function).__name__
        if not isinstance(function, ProcessFunction):
            raise _refused(function)
        self.function = function
        self.time = time
        self._columns = tuple(columns)
        self._event_time = event_time
        self.has_timers = type(function).on_timer is not KeyedFunction.on_timer
        self.judges_late = LATE in function.side_outputs and event_time is not None
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
        trial = HostedFunction(copied(self.function), self._columns, event_time=self._event_time, time=self.time)
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
        self._intake = Intake(self._columns, self._event_time, None)
        declaring = HostedOpenContext(self._store, host.declare)
        with self._user_code("open"):
            self.function.open(declaring)
        if declaring.broadcasts:
            raise UnsupportedError(
                f"{self.name} has broadcast state, but a Spark query has no input that every task receives.",
                hint="join the stream with a table instead, or run it embedded",
            )
        self._store.flush()
        self._codec = declaring.codec
        self._timers = None if self._codec is None else HostedTimers(host, self.time, self.name)
        self._context = KeyContext(self._moment, self._outputs, self._timers or NoTimers())  # type: ignore[arg-type]
        self._whole_batches = type(self.function).on_batch is not ProcessFunction.on_batch
        self._now = wall_clock()

    def rows(self, key: Any, rows: Iterable[Sequence[Any]], now: int, watermark: int) -> list[list[dict[str, Any]]]:
        """Run the rows of a key, and return what each output gets.

        Timers by event time that are due fire first: the watermark had passed them before these rows came.
        """
        self._begin(key, now, watermark)
        if self.has_timers and self.time == "event" and self._moment.watermark is not None:
            self._fire(key, self._moment.watermark)
        timed = self._on_time(key, rows)
        if self._whole_batches:
            with self._user_code("on_batch") as user_code:
                user_code.key = key
                self.function.on_batch(self._context, key, timed)
        else:
            on_element, context = self.function.on_element, self._context
            with self._user_code("on_element") as user_code:
                user_code.key = key
                for row in timed:
                    on_element(context, key, row)
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

    def _begin(self, key: Any, now: int, watermark: int) -> None:
        self._moment.now = now if now >= 0 else self._now
        self._moment.watermark = watermark if watermark > 0 else None
        if watermark > 0:
            self._backend.set_watermark(watermark)
        if self._codec is not None:
            self._store.set_key(key)
            self._host.begin(self._codec.encode(key))
        self._context.timestamp = None

    def _end(self) -> list[list[dict[str, Any]]]:
        rows = self._outputs.rows()
        self._outputs.clear()
        self._store.flush()
        if self._timers is not None:
            self._timers.flush()
        return rows

    def _on_time(self, key: Any, rows: Iterable[Sequence[Any]]) -> Iterator[Row]:
        columns, context = self._columns, self._context
        if self._event_time is None:
            for values in rows:
                yield dict(zip(columns, values, strict=True))
            return
        watermark = self._moment.watermark if self.judges_late else None
        keyed = self._codec is not None
        for values in rows:
            row = dict(zip(columns, values, strict=True))
            time = self._intake.time(row)
            if watermark is not None and time is not None and time <= watermark:
                self._outputs.too_late(row)
                continue
            if keyed:
                self._store.set_key(key, time)
            context.timestamp = time
            yield row

    def _fire(self, key: Any, until: int) -> None:
        if self._timers is None:
            return
        kind = self.time
        assert kind is not None, "the engine fires timers"

        def call(at: int) -> None:
            timestamp = at if kind == "event" else None
            self._store.set_key(key, timestamp)
            self._context.timestamp = timestamp
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


def _refused(function: Any) -> ConfigError | UnsupportedError:
    if isinstance(function, KeyedFunction):
        return UnsupportedError(
            f"{type(function).__name__} has two inputs; a Spark query runs functions of one input.",
            hint="run it embedded (run_co_process), or join the streams with join(...)",
        )
    return ConfigError(f"{shown(function)} is not a ProcessFunction.", hint="give an object of a class of your own")
