"""Spark's events about streaming queries, handed on as plain values without keeping Spark waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener


class EventKind(Enum):
    """What happened."""

    STARTED = auto()
    PROGRESS = auto()
    IDLE = auto()
    TERMINATED = auto()


@dataclass(frozen=True)
class SparkEvent:
    """One event.

    Attributes:
        kind: what happened.
        query_id: the query's id.
        run_id: the id of this start of it.
        text: its name at the start, its progress as JSON, the message of the error that ended it.
    """

    kind: EventKind
    query_id: str
    run_id: str
    text: str | None = None


class _Forwarder(StreamingQueryListener):
    def __init__(self, put: Callable[[SparkEvent], None]) -> None:
        self._put = put

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - PySpark's name
        self._put(SparkEvent(EventKind.STARTED, str(event.id), str(event.runId), event.name))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - PySpark's name
        progress = event.progress
        self._put(SparkEvent(EventKind.PROGRESS, str(progress.id), str(progress.runId), progress.json))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - PySpark's name
        self._put(SparkEvent(EventKind.IDLE, str(event.id), str(event.runId)))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - PySpark's name
        self._put(SparkEvent(EventKind.TERMINATED, str(event.id), str(event.runId), event.exception))


def forward_events(session: Any, put: Callable[[SparkEvent], None]) -> Callable[[], None]:
    """Have ``put`` called with each event of the session's queries, in order; returns what ends that."""
    listener = _Forwarder(put)
    session.streams.addListener(listener)
    return lambda: session.streams.removeListener(listener)
