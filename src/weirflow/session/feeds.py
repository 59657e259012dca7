"""``Feeds``: the streams and tables that are attached to a flow."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, FlowError
from weirflow.session.attachment import Attachment, Fed
from weirflow.session.table_feed import TableFeed
from weirflow.sql.literals import duration_micros

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.session.session import Session

_NAME = re.compile(r"\w[\w .-]*")


class Feeds:
    """What feeds a flow. Each has a name, under which the flow remembers where it is."""

    def __init__(self, session: Session, flow: Fed) -> None:
        self._session = session
        self._flow = flow
        self._lock = threading.Lock()
        self._feeds: dict[str, Attachment | TableFeed | None] = {}

    def attach(
        self,
        stream: Any,
        source: str,
        *,
        name: str,
        checkpoint: Path | str | None,
        trigger: str | None,
        changes: str | None,
    ) -> Attachment:
        """Start a query that feeds a source."""
        if source not in self._flow.sources:
            raise ConfigError(f"The flow has no source {source!r}.", hint="register_source() it first")
        self._take(name)
        try:
            attachment = Attachment(self._flow, source, name, changes=changes, detach=self._detach)
            attachment.start(stream, checkpoint=checkpoint, trigger=trigger)
        except BaseException:
            self._feeds.pop(name)
            raise
        self._feeds[name] = attachment
        return attachment

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
            feed = TableFeed(self._flow, self._session, table, chosen, name or table, start=start, detach=self._detach)
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

    def _take(self, name: str) -> None:
        with self._lock:
            if name in self._feeds:
                raise FlowError(f"Something is attached as {name!r} already.", hint="stop() it, or pass another name=")
            self._feeds[name] = None

    def _detach(self, feed: Attachment | TableFeed) -> None:
        self._feeds.pop(feed.name, None)


def check_name(name: str) -> str:
    """The name, if a folder can have it."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is no name for a stream.",
            hint="use letters, digits, spaces, dots and hyphens, a letter or digit first",
        )
    return name
