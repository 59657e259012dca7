"""Listeners of streaming queries: each has a thread of its own, so that none can slow a query or another listener."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.arguments import require_plain_methods
from weirflow.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from weirflow.errors import WeirflowError
    from weirflow.streaming.query.progress import QueryProgress

_log = logging.getLogger(__name__)

_WAITING = 1000
_CLOSE_SECONDS = 1.0


@dataclass(frozen=True)
class QueryStarted:
    """A query was started, or started again."""

    query_id: str
    run_id: str
    name: str | None


@dataclass(frozen=True)
class QueryProgressed:
    """A batch is done."""

    query_id: str
    run_id: str
    name: str | None
    progress: QueryProgress


@dataclass(frozen=True)
class QueryIdle:
    """A query has had nothing to read for a while; Spark says so every ten seconds."""

    query_id: str
    run_id: str
    name: str | None


@dataclass(frozen=True)
class QueryTerminated:
    """A query has ended.

    Attributes:
        exception: what ended it; None if it was stopped or is done.
        last_progress: its last batch; None if there was none.
        restarting: whether its restart policy has it started again.
    """

    query_id: str
    run_id: str
    name: str | None
    exception: WeirflowError | None
    last_progress: QueryProgress | None
    restarting: bool


Event = QueryStarted | QueryProgressed | QueryIdle | QueryTerminated


class StreamingQueryListener:
    """A listener to the events of queries; override the methods that you need.

    A listener's methods are called one after the other, in the order of events, in a thread of the listener's own. What
    they raise is logged. While a method blocks, batches continue. If more than a thousand events wait, only starts and
    ends are kept.
    """

    def __init_subclass__(cls) -> None:
        """Refuse methods that do nothing when they are called."""
        require_plain_methods(cls)

    def on_started(self, event: QueryStarted) -> None:
        """A query was started."""
        self.on_query_started(event)

    def on_progress(self, event: QueryProgressed) -> None:
        """A batch is done."""
        self.on_query_progress(event)

    def on_idle(self, event: QueryIdle) -> None:
        """A query waits for rows."""
        self.on_query_idle(event)

    def on_terminated(self, event: QueryTerminated) -> None:
        """A query has ended."""
        self.on_query_terminated(event)

    def on_query_started(self, event: QueryStarted) -> None:
        """``on_started`` by its longer name; called if you do not override that one."""

    def on_query_progress(self, event: QueryProgressed) -> None:
        """``on_progress`` by its longer name."""

    def on_query_idle(self, event: QueryIdle) -> None:
        """``on_idle`` by its longer name."""

    def on_query_terminated(self, event: QueryTerminated) -> None:
        """``on_terminated`` by its longer name."""


_METHODS = tuple(name for name in vars(StreamingQueryListener) if name.startswith("on_"))


def require_listening(listener: StreamingQueryListener) -> None:
    """Refuse a listener that would never be told anything, because it overrides no method by its name."""
    kind = type(listener)
    if any(getattr(kind, name) is not getattr(StreamingQueryListener, name) for name in _METHODS):
        return
    own = [name for name in dir(kind) if not name.startswith("_") and name not in _METHODS]
    meant = [hint for hint in (did_you_mean(name, _METHODS) for name in own) if hint]
    raise ConfigError(
        f"The listener {kind.__name__} has none of the methods that would be called.",
        hint=meant[0] if meant else f"override one of {', '.join(_METHODS[:4])}",
    )


class ListenerThread:
    """Calls one listener, event by event."""

    def __init__(self, listener: StreamingQueryListener) -> None:
        self.listener = listener
        self.dropped = 0
        self._events: deque[Event] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._deliver, name="weirflow-stream-listener", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        """Have the listener told; returns at once."""
        with self._changed:
            if len(self._events) >= _WAITING and isinstance(event, QueryProgressed | QueryIdle):
                self.dropped += 1
                return
            self._events.append(event)
            self._changed.notify()

    def close(self) -> None:
        """Deliver what waits, and end; a listener that blocks is left behind after a second."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_SECONDS)

    def _deliver(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._events or self._closed)
                if not self._events:
                    return
                event = self._events.popleft()
            try:
                _tell(self.listener, event)
            except Exception:  # noqa: BLE001 - a listener must not end its thread
                _log.exception("a listener of streaming queries failed on %s", type(event).__name__)


def _tell(listener: StreamingQueryListener, event: Event) -> None:
    match event:
        case QueryStarted():
            listener.on_started(event)
        case QueryProgressed():
            listener.on_progress(event)
        case QueryIdle():
            listener.on_idle(event)
        case QueryTerminated():
            listener.on_terminated(event)
