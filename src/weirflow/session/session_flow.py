"""``SessionFlow``: an incremental flow in this process, wired to a Session's Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.ivm.flow import IncrementalFlow
from weirflow.session.feeds import Feeds, check_name
from weirflow.session.recompute import SparkRecompute
from weirflow.session.table_sink import TableTarget

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weirflow.ivm.flow.sink import Target
    from weirflow.session.attachment import Attachment
    from weirflow.session.session import Session
    from weirflow.session.table_feed import TableFeed
    from weirflow.spark.frame import DataFrame


class SessionFlow(IncrementalFlow):
    """A flow whose views may also be recomputed by Spark, and whose rows come back as Spark frames.

    Deltas and loads may be frames too. The circuit runs in this process.
    """

    def __init__(self, session: Session, name: str, **options: Any) -> None:
        self._session = session
        engine = SparkRecompute(lambda: session.spark.newSession(), session.operations.run)  # noqa: PLW0108 - starts Spark
        super().__init__(name, engine=engine, **options)
        self._feeds = Feeds(session, self)

    def frame(self, view: str, *, epoch: int | None = None) -> DataFrame:
        """All rows of a view or source as a Spark frame; see ``snapshot``."""
        return self._session.from_arrow(self.snapshot(view, epoch=epoch))

    def frames(self, names: Sequence[str]) -> tuple[int, dict[str, DataFrame]]:
        """All rows of several views or sources, at the same epoch, as Spark frames."""
        epoch, rows = self.snapshots(names)
        return epoch, {name: self._session.from_arrow(table) for name, table in rows.items()}

    def attach(
        self,
        stream: Any,
        source: str,
        *,
        name: str | None = None,
        checkpoint: str | Path | None = None,
        trigger: str | None = None,
        changes: str | None = None,
    ) -> Attachment:
        """Tick a source with every batch of a Structured Streaming frame, each exactly once.

        The flow remembers the stream's last batch in one step with its rows. A durable flow and the stream so go on
        together when the process is killed. A tick that fails ends the stream; restarted, it brings the batch again.

        Args:
            stream: a streaming frame, PySpark's or ours. A column ``_weight`` holds weights: -1 retracts a row.
            source: a source of the flow with the stream's columns.
            name: under which the flow remembers the stream; the source's name if None.
            checkpoint: the folder of Spark's checkpoint. None keeps it in the flow's folder, or for a flow without one
                in a temporary folder that goes with the attachment.
            trigger: the pause between batches, such as ``"1 second"``, or ``"available now"`` to end when all is read;
                None runs a batch as soon as there are rows.
            changes: a column with the kind of each change (insert, delete, ...); see ``DeltaBatch.from_changes``.
        """
        chosen = check_name(name or source)
        folder = self.path / "streams" / chosen if checkpoint is None and self.path else checkpoint
        return self._feeds.attach(stream, source, name=chosen, checkpoint=folder, trigger=trigger, changes=changes)

    def attach_table(
        self,
        table: str,
        source: str | None = None,
        *,
        name: str | None = None,
        start: int | str | None = None,
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
        return self._feeds.attach_table(self, table, source, name=name, start=start, every=every)

    def _table_target(self, table: str, mode: str, key: str | Sequence[str] | None) -> Target:
        return TableTarget(self._session, table, mode, key)

    def close(self) -> None:
        """Stop what is attached, end all watches and sinks, and let go of the flow's path. What was ticked stays."""
        try:
            self._feeds.close()
        finally:
            super().close()
