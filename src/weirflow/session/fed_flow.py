"""``FedFlow``: what feeds a flow of a Session, and the tables it writes to, wherever it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Count, Name, Uri, checked
from weirflow.session.feeds import as_stream, as_trigger, check_name
from weirflow.session.table_feed import TableFeed
from weirflow.session.table_sink import TableTarget
from weirflow.sql.literals import duration_micros
from weirflow.streaming.checkpoints import OPTION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from threading import RLock

    from weirflow.ivm.flow.outputs import Outputs
    from weirflow.ivm.flow.sink import Target
    from weirflow.session.feeds import Feeds
    from weirflow.session.session import Session
    from weirflow.streaming.query import StreamingQuery
    from weirflow.streaming.restart import RestartPolicy

STREAMS = "streams"
"""The folder of a flow that has the checkpoints of its streams."""


@checked
class FedFlow(ABC):
    """A flow that streams and tables of its Session can be attached to."""

    _session: Session
    _feeds: Feeds
    _lock: RLock
    _outputs: Outputs

    @abstractmethod
    def _stream_place(self, name: str) -> Path | str | None:
        """Where the checkpoint of a stream is; None if the flow has no place for it."""

    def attach(
        self,
        stream: Any,
        source: Name,
        *,
        name: Name | None = None,
        checkpoint: Uri | None = None,
        trigger: str | None = None,
        changes: Name | None = None,
        restart: RestartPolicy | None = None,
    ) -> StreamingQuery:
        """Tick a source with every batch of a Structured Streaming frame, each exactly once.

        The flow remembers the stream's last batch in one step with its rows. A durable flow and the stream so go on
        together when the process is killed. A tick that fails ends the stream; restarted, it brings the batch again. If
        the flow is in shards, rows stay on the executors. The query is one of ``session.streams``, called
        ``<flow>/<name>``; it runs until it or the flow is stopped.

        Args:
            stream: a streaming frame, PySpark's or ours. A column ``_weight`` holds weights: -1 retracts a row.
            source: a source of the flow with the stream's columns.
            name: under which the flow remembers the stream; the source's name if None.
            checkpoint: the folder of Spark's checkpoint. None keeps it in the flow's folder, or for a flow without one
                in a temporary folder that goes with the query.
            trigger: the pause between batches, such as ``"1 second"``, or ``"available now"`` to end when all is read;
                None runs a batch as soon as there are rows.
            changes: a column with the kind of each change (insert, delete, ...); see ``DeltaBatch.from_changes``.
            restart: whether and when the query is started again after an error; None ends it.
        """
        flow, chosen = self._feeds.flow, check_name(name or source)
        writer = as_stream(stream, self._session).write_stream().flow(flow, source, chosen, changes)
        writer.query_name(f"{flow.name}/{chosen}")
        place = checkpoint if checkpoint is not None else self._stream_place(chosen)
        if place is not None:
            writer.option(OPTION, str(place))
        if trigger is not None:
            writer.trigger(as_trigger(trigger))
        if restart is not None:
            writer.restart(restart)
        return self._feeds.begin(chosen, writer.start)

    def attach_table(
        self,
        table: Name,
        source: Name | None = None,
        *,
        name: Name | None = None,
        start: Count | str | None = None,
        every: str | None = None,
    ) -> TableFeed:
        """Tick a source with every version of a Delta or Iceberg table: first all rows of one, then what changes.

        Args:
            table: its name in SQL. A Delta table needs its change data feed (``delta.enableChangeDataFeed``).
            source: the source; made with the table's columns if there is none. None gives it the table's name.
            name: under which the flow remembers the table's version; the table's name if None.
            start: the version (for Iceberg the snapshot's id) to begin with; None for that of now.
            every: poll in the background with pauses such as ``"10 seconds"``; None leaves it to ``poll()``.
        """
        seconds = None if every is None else duration_micros(every) / 1e6
        flow, session, called = self._feeds.flow, self._session, name or table
        chosen = source or table.rpartition(".")[2].strip("`")
        feed = self._feeds.begin(called, lambda: TableFeed(flow, session, table, chosen, called, start=start))
        if seconds is not None:
            feed.start(seconds)
        return feed

    def _require_outside(self) -> None:
        """``FlowReentered`` if a function that a tick calls wants to close the flow; then nothing is stopped."""
        with self._lock:
            self._outputs.telling.require_over("close the flow")

    def _table_target(self, table: str, mode: str, key: str | Sequence[str] | None) -> Target:
        return TableTarget(self._session, table, mode, key)
