"""``Feeds``: the streams and tables that are attached to a flow."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, FlowError
from weirflow.session.table_feed import TableFeed
from weirflow.sql.literals import duration_micros
from weirflow.streaming.checkpoints import OPTION
from weirflow.streaming.durations import interval_ms
from weirflow.streaming.trigger import Trigger

if TYPE_CHECKING:
    from weirflow.session.session import Session
    from weirflow.streaming.frame import StreamingDataFrame
    from weirflow.streaming.query import StreamingQuery
    from weirflow.streaming.restart import RestartPolicy
    from weirflow.streaming.sinks.flow import Fed

_AVAILABLE_NOW = "available now"
_NAME = re.compile(r"\w[\w .-]*")


class Feeds:
    """What feeds a flow. Each has a name, under which the flow remembers where it is."""

    def __init__(self, session: Session, flow: Fed) -> None:
        self._session = session
        self._flow = flow
        self._lock = threading.Lock()
        self._feeds: dict[str, StreamingQuery | TableFeed | None] = {}

    def attach(
        self,
        stream: Any,
        source: str,
        *,
        name: str,
        checkpoint: str | None,
        trigger: str | None,
        changes: str | None,
        restart: RestartPolicy | None,
    ) -> StreamingQuery:
        """Start a query that feeds a source."""
        writer = self._streaming(stream).write_stream().flow(self._flow, source, name, changes)
        writer.query_name(f"{self._flow.name}/{name}")
        if checkpoint is not None:
            writer.option(OPTION, checkpoint)
        if trigger is not None:
            writer.trigger(_trigger(trigger))
        if restart is not None:
            writer.restart(restart)
        self._take(name)
        try:
            query = self._feeds[name] = writer.start()
        except BaseException:
            self._feeds.pop(name)
            raise
        return query

    def attach_table(
        self,
        table: str,
        source: str | None,
        *,
        name: str | None,
        start: int | str | None,
        every: str | None,
    ) -> TableFeed:
        """Feed a source of the flow with a table's versions."""
        seconds = None if every is None else duration_micros(every) / 1e6
        chosen = source or table.rpartition(".")[2].strip("`")
        self._take(name or table)
        try:
            feed = TableFeed(self._flow, self._session, table, chosen, name or table, start=start)
        except BaseException:
            self._feeds.pop(name or table)
            raise
        self._feeds[feed.name] = feed
        if seconds is not None:
            feed.start(seconds)
        return feed

    def close(self) -> None:
        """Stop everything that feeds the flow. The flow's lock must not be held: a batch may be waiting for it."""
        for feed in list(self._feeds.values()):
            if feed is not None:
                feed.stop()
        self._feeds.clear()

    def _take(self, name: str) -> None:
        with self._lock:
            feed = self._feeds.get(name)
            if name in self._feeds and (feed is None or feed.active):
                raise FlowError(f"Something is attached as {name!r} already.", hint="stop() it, or pass another name=")
            self._feeds[name] = None

    def _streaming(self, stream: Any) -> StreamingDataFrame:
        from weirflow.spark.frame import is_frame, unwrap  # noqa: PLC0415 - imports pyspark
        from weirflow.streaming.frame import StreamingDataFrame  # noqa: PLC0415 - imports pyspark

        native = unwrap(stream)
        if not is_frame(native) or not native.isStreaming:
            raise ConfigError(
                "What is attached to a flow is a streaming frame.",
                hint="make one with session.read_stream; give rows that are there already to tick() or load()",
            )
        return stream if isinstance(stream, StreamingDataFrame) else self._session.streams.frame(native)


def _trigger(text: str) -> Trigger:
    return Trigger.available_now() if text == _AVAILABLE_NOW else Trigger.processing_time(interval_ms(text))


def check_name(name: str) -> str:
    """The name, if a folder can have it."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is no name for a stream.",
            hint="use letters, digits, spaces, dots and hyphens, a letter or digit first",
        )
    return name
