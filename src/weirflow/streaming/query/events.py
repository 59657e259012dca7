"""``EventBus``: from Spark's events to those that listeners get."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from weirflow.errors import QueryError, WeirflowError
from weirflow.streaming.query.listeners import (
    Event,
    ListenerThread,
    QueryIdle,
    QueryProgressed,
    QueryStarted,
    QueryTerminated,
    StreamingQueryListener,
)
from weirflow.streaming.query.progress import QueryProgress

_END = None
_LAST_SECONDS = 2.0


class Outcomes(Protocol):
    """Knows how runs of queries ended."""

    def outcome(self, run_id: str) -> tuple[WeirflowError | None, bool] | None:
        """The error, and whether the query is started again; None for a run that is not ours. May wait a little."""

    def known(self, run_id: str) -> tuple[str | None, QueryProgress | None] | None:
        """The name of the query of this run, and its last batch; None for a run that is not ours."""


class EventBus:
    """Hands on Spark's events, in order, to one thread for each listener.

    Args:
        spark: gives the native session.
        outcomes: asked about each run that has ended.
    """

    def __init__(self, spark: Callable[[], Any], outcomes: Outcomes) -> None:
        self._spark = spark
        self._outcomes = outcomes
        self._lock = threading.RLock()
        self._ended = threading.Condition(self._lock)
        self._listeners: list[ListenerThread] = []
        self._forget: Callable[[], None] | None = None
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._names: dict[str, str | None] = {}
        self._last: dict[str, QueryProgress] = {}

    def add(self, listener: StreamingQueryListener) -> None:
        """Tell this listener from now on."""
        with self._lock:
            if self._forget is None:
                from weirflow.spark.streaming.events import forward_events  # noqa: PLC0415 - imports pyspark

                self._forget = forward_events(self._spark(), self._queue.put)
                self._thread = threading.Thread(target=self._hand_on, name="weirflow-stream-events", daemon=True)
                self._thread.start()
            self._listeners.append(ListenerThread(listener))

    def remove(self, listener: StreamingQueryListener) -> None:
        """Tell this listener no more; one that was never added is not an error."""
        with self._lock:
            gone = [one for one in self._listeners if one.listener is listener]
            self._listeners = [one for one in self._listeners if one.listener is not listener]
        for one in gone:
            one.close()

    def close(self) -> None:
        """End all threads, after what has happened so far was told."""
        with self._lock:
            # Spark tells of the end of a query a moment after it.
            self._ended.wait_for(lambda: not self._names, _LAST_SECONDS)
            forget, self._forget = self._forget, None
            thread, self._thread = self._thread, None
        if forget is not None:
            forget()
        if thread is not None:
            self._queue.put(_END)
            thread.join()
        with self._lock:
            listeners, self._listeners = self._listeners, []
        for one in listeners:
            one.close()

    def _hand_on(self) -> None:
        """Spark tells of a start at once and of all else a moment later: what a restart brings waits for the end."""
        present: dict[str, str] = {}
        held: dict[str, list[Any]] = {}
        again: deque[Any] = deque()
        while (event := again.popleft() if again else self._queue.get()) is not _END:
            if present.setdefault(event.query_id, event.run_id) != event.run_id:
                held.setdefault(event.query_id, []).append(event)
                continue
            self._tell(self._event(event))
            if event.kind.name == "TERMINATED":
                del present[event.query_id]
                again.extend(held.pop(event.query_id, []))

    def _tell(self, event: Event) -> None:
        with self._lock:
            for one in self._listeners:
                one.put(event)
            if isinstance(event, QueryTerminated):
                self._names.pop(event.run_id, None)
                self._ended.notify_all()

    def _event(self, event: Any) -> Event:
        query, run = event.query_id, event.run_id
        match event.kind.name:
            case "STARTED":
                self._names[run] = event.text
                return QueryStarted(query, run, event.text)
            case "PROGRESS":
                progress = self._last[run] = QueryProgress.from_json(event.text)
                return QueryProgressed(query, run, progress.name, progress)
            case "IDLE":
                return QueryIdle(query, run, self._known(run)[0])
            case _:
                ended = self._outcomes.outcome(run)
                error, restarting = ended or (QueryError(event.text) if event.text else None, False)
                name, last = self._known(run)
                self._last.pop(run, None)
                return QueryTerminated(query, run, name, error, last, restarting)

    def _known(self, run: str) -> tuple[str | None, QueryProgress | None]:
        """The name and the last batch of a run, which may have begun before anyone listened."""
        name, last = self._names.get(run), self._last.get(run)
        if name is None or last is None:
            before = self._outcomes.known(run) or (None, None)
            name, last = name or before[0], last or before[1]
        return name, last
