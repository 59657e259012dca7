"""``SparkFlow``: what a flow of a Session has beyond any flow: frames, what feeds it, and tables it writes to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from weirflow.arguments import Count, Name, Uri, checked
from weirflow.flows.clock_timer import ClockTimer
from weirflow.flows.feeds.feeds import Feeds, as_stream, as_trigger, check_name
from weirflow.flows.feeds.table import TableFeed
from weirflow.flows.own_session import settings_of
from weirflow.flows.session_tables import SessionTables
from weirflow.flows.sinks.table import TableTarget
from weirflow.ivm.flow.flow import Flow
from weirflow.sql.stored import not_there
from weirflow.sql.typing.durations import duration_micros
from weirflow.streaming.query.checkpoints import OPTION, spark_uri

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from weirflow.flows.host import FlowSession
    from weirflow.flows.view_reader import ViewReader
    from weirflow.ivm.flow.sinks.sink import SinkTarget
    from weirflow.spark.frames.frame import DataFrame
    from weirflow.sql.settings import SqlSettings
    from weirflow.streaming.query.handle import StreamingQuery
    from weirflow.streaming.query.restart import RestartPolicy

CLOCK_EVERY = 1.0
"""The seconds between two looks whether time has brought a row to where a view changes."""
_SMALL = 8 << 20
STREAMS = "streams"
"""The folder of a flow that has the checkpoints of its streams."""


@checked
class SparkFlow(Flow):
    """A flow whose rows come and go as frames of its Session, and that streams and tables can be attached to."""

    def _wire(
        self,
        session: FlowSession,
        reader: ViewReader,
        place: str | Path | None,
        held: ExitStack | None = None,
        *,
        clock_every: float = CLOCK_EVERY,
    ) -> None:
        """Called once, by a constructor whose backend runs.

        Args:
            session: whose flow it is.
            reader: has its Spark read views.
            place: where it can keep the checkpoints of streams; None if nowhere.
            held: what is let go of when the flow is closed.
            clock_every: the seconds between two looks whether rows are due, where views follow the system's clock.
        """
        self._session = session
        self._session_tables = SessionTables(session)
        self._reader = reader
        self._place = place
        self._held = held or ExitStack()
        self._feeds = Feeds()
        self._owner = os.getpid()
        self._timer = ClockTimer(self._backend, clock_every)
        self._timer.look()

    def _when_closed(self, call: Callable[[], object]) -> None:
        """Have something called once the flow is closed, by whoever closes it; not by a forked child."""
        self._held.callback(call)

    @override
    def _defined(self) -> None:
        self._timer.look()

    def table(self, name: Name) -> DataFrame:
        """The columns of a source or view as a Spark frame without rows, to build a view from; ``frame`` has the rows.

        >>> flow.register_view("totals", flow.table("orders").groupBy("customer").sum("amount"))  # doctest: +SKIP
        """
        schemas = self._schemas()
        if name not in schemas:
            raise not_there(name, schemas)
        settings = settings_of(self._session.spark)
        native = self._session.operations.run("plan a view", lambda: self._reader.table(name, schemas, settings))
        return self._session._wrapped(native)  # noqa: SLF001 - a frame of this Session

    @override
    def _frame_view(self, frame: Any) -> tuple[str, str, SqlSettings]:
        from weirflow.spark.frames.frame import unwrap  # noqa: PLC0415 - imports pyspark

        native = unwrap(frame)
        if not hasattr(native, "sparkSession"):
            return super()._frame_view(frame)
        run = self._session.operations.run
        tables = self._session_tables
        read = {parts: tables.called(parts) for parts in run("read a view", lambda: self._reader.outside(native))}
        snapshots = {parts: self._backend.snapshot_of(table) for parts, table in read.items()}
        schemas = {**self._schemas(), **{name: self.schema(name) for name in snapshots.values()}}
        found: tuple[str, str, SqlSettings] = run(
            "read a view", lambda: self._reader.read_frame(native, schemas, snapshots)
        )
        return found

    @override
    @contextmanager
    def _kept_still(self, query: Any) -> Iterator[None]:
        """While a frame is read: what was read of a table stays until the view is there, and goes if it is not."""
        with nullcontext() if isinstance(query, str) else self.exclusive():
            try:
                yield
            finally:
                if not isinstance(query, str):
                    self._backend.sweep()

    def _schemas(self) -> dict[str, pa.Schema]:
        waiting = self.waiting
        return {name: self.schema(name) for name in (*self.sources, *self.views) if name not in waiting}

    def frame(self, view: Name, *, epoch: Count | None = None) -> DataFrame:
        """All rows of a view or source as a Spark frame; see ``snapshot``.

        If the flow is in shards, the rows stay on the executors; rows of an earlier epoch pass through this process.
        """
        if not self.takes_frames or epoch not in (None, self.epoch):
            return self._in_spark(self.snapshot(view, epoch=epoch))
        return self.frames([view])[1][view]

    def _in_spark(self, rows: pa.Table) -> DataFrame:
        """Rows of this process as a frame; few of them in one partition, so that nothing is shuffled to query them."""
        frame = self._session.from_arrow(rows)
        return frame.coalesce(1) if rows.nbytes <= _SMALL else frame

    def frames(self, names: Sequence[Name]) -> tuple[int, dict[str, DataFrame]]:
        """All rows of several views or sources, at the same epoch, as Spark frames."""
        if not self.takes_frames:
            epoch, rows = self.snapshots(names)
            return epoch, {name: self._in_spark(table) for name, table in rows.items()}
        epoch, found = self._backend.frames(names)
        wrapped = self._session._wrapped  # noqa: SLF001 - frames of this Session
        return epoch, {name: wrapped(native) for name, native in found.items()}

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

        The flow records the stream's last batch together with its rows, in one step. So a durable flow and the stream
        continue together after the process was killed. A tick that fails ends the stream; after a restart, it sends the
        batch again. If the flow is in shards, rows stay on the executors. The query is listed in ``session.streams`` as
        ``<flow>/<name>``. It runs until you stop it or close the flow.

        Args:
            stream: a streaming frame, PySpark's or ours. A column ``_weight`` holds weights: -1 retracts a row.
            source: a source of the flow with the stream's columns.
            name: the name under which the flow remembers the stream; the source's name if None.
            checkpoint: the folder of Spark's checkpoint. None keeps it in the flow's folder, or, for a flow without a
                folder, in a temporary one that is deleted with the query.
            trigger: the pause between batches, such as ``"1 second"``, or ``"available now"`` to end when everything is
                read; None runs a batch as soon as there are rows.
            changes: a column with the kind of each change (insert, delete, ...); see ``DeltaBatch.from_changes``.
            restart: whether and when the query is started again after an error; None ends it.
        """
        chosen = check_name(name or source)
        writer = as_stream(stream, self._session).write_stream().flow(self, source, chosen, changes)
        writer.query_name(f"{self.name}/{chosen}")
        own = None if self._place is None else spark_uri(f"{self._place}/{STREAMS}/{chosen}")
        place = own if checkpoint is None else checkpoint
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
        """Tick a source with every version of a Delta or Iceberg table: first all rows, then the changes.

        Args:
            table: its name in SQL. A Delta table needs its change data feed (``delta.enableChangeDataFeed``).
            source: the source; it is created with the table's columns if it does not exist. None gives it the table's
                name.
            name: the name under which the flow remembers the table's version; the table's name if None.
            start: the version (for Iceberg the snapshot's id) to begin with; None for the current one.
            every: poll in the background with pauses such as ``"10 seconds"``; None leaves it to ``poll()``.
        """
        seconds = None if every is None else duration_micros(every) / 1e6
        called, chosen = name or table, source or table.rpartition(".")[2].strip("`")
        feed = self._feeds.begin(called, lambda: TableFeed(self, self._session, table, chosen, called, start=start))
        if seconds is not None:
            feed.start(seconds)
        return feed

    def close(self) -> None:
        """Stop what is attached, and close the flow. A temporary flow is then deleted.

        Raises:
            SinkFailed: a sink could not write what it still had; the flow is closed nevertheless.
            StorageError: the last writes could not be synced; the flow is closed nevertheless.
        """
        if os.getpid() != self._owner:  # Spark, too, belongs to the process that this one was forked from
            super().close()
            return
        self._backend.require_outside("close the flow")  # before anything is stopped
        with self._held:
            try:
                self._timer.stop()
                self._feeds.close()
            finally:
                super().close()

    def _table_target(self, table: str, mode: str, key: str | Sequence[str] | None) -> SinkTarget:
        return TableTarget(self._session, table, mode, key)
