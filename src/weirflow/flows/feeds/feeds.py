"""``Feeds``: the streams and tables that are attached to a flow."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from weirflow.errors import ConfigError, FlowError
from weirflow.streaming.durations import interval_ms
from weirflow.streaming.trigger import Trigger

if TYPE_CHECKING:
    from weirflow.flows.feeds.table import TableFeed
    from weirflow.flows.host import FlowSession
    from weirflow.streaming.frame import StreamingDataFrame
    from weirflow.streaming.query.handle import StreamingQuery

_AVAILABLE_NOW = "available now"
_NAME = re.compile(r"\w[\w .-]*")

F = TypeVar("F", "StreamingQuery", "TableFeed")


class Feeds:
    """What feeds a flow. Each has a name, under which the flow remembers where it is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._feeds: dict[str, StreamingQuery | TableFeed | None] = {}

    def begin(self, name: str, start: Callable[[], F]) -> F:
        """Start what is to feed the flow under a name; ``FlowError`` if something does."""
        with self._lock:
            feed = self._feeds.get(name)
            if name in self._feeds and (feed is None or feed.active):
                raise FlowError(f"Something is already attached as {name!r}.", hint="stop() it, or pass another name=")
            self._feeds[name] = None
        try:
            begun = self._feeds[name] = start()
        except BaseException:
            self._feeds.pop(name)
            raise
        return begun

    def close(self) -> None:
        """Stop everything that feeds the flow. The flow's lock must not be held: a batch may be waiting for it."""
        for feed in list(self._feeds.values()):
            if feed is not None:
                feed.stop()
        self._feeds.clear()


def as_stream(stream: Any, session: FlowSession) -> StreamingDataFrame:
    """A streaming frame, PySpark's or ours, as ours; ``ConfigError`` if it is none."""
    from weirflow.spark.frames.frame import is_frame, unwrap  # noqa: PLC0415 - imports pyspark
    from weirflow.streaming.frame import StreamingDataFrame  # noqa: PLC0415 - imports pyspark

    native = unwrap(stream)
    if not is_frame(native) or not native.isStreaming:
        raise ConfigError(
            "Only a streaming frame can be attached to a flow.",
            hint="make one with session.read_stream; pass existing rows to tick() or load()",
        )
    return stream if isinstance(stream, StreamingDataFrame) else session.streams.frame(native)


def as_trigger(text: str) -> Trigger:
    """When a query runs, from the pause between batches or ``available now``."""
    return Trigger.available_now() if text == _AVAILABLE_NOW else Trigger.processing_time(interval_ms(text))


def check_name(name: str) -> str:
    """The name, if a folder can have it."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a stream.",
            hint="use letters, digits, spaces, dots and hyphens, a letter or digit first",
        )
    return name
