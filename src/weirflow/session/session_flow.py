"""``SessionFlow``: an incremental flow in this process, wired to a Session's Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.arguments import Count, Name, checked
from weirflow.ivm.flow import IncrementalFlow
from weirflow.session.fed_flow import STREAMS, FedFlow
from weirflow.session.feeds import Feeds
from weirflow.session.recompute import SparkRecompute

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weirflow.session.session import Session
    from weirflow.spark.frame import DataFrame


@checked
class SessionFlow(FedFlow, IncrementalFlow):
    """A flow whose views may also be recomputed by Spark, and whose rows come back as Spark frames.

    Deltas and loads may be frames too. The circuit runs in this process.
    """

    def __init__(self, session: Session, name: Name, **options: Any) -> None:
        self._session = session
        engine = SparkRecompute(
            lambda: session.spark.newSession(),  # noqa: PLW0108 - starts Spark
            session.operations.run_for_tick,
        )
        super().__init__(name, engine=engine, **options)
        self._feeds = Feeds(self)

    def frame(self, view: Name, *, epoch: Count | None = None) -> DataFrame:
        """All rows of a view or source as a Spark frame; see ``snapshot``."""
        return self._session.from_arrow(self.snapshot(view, epoch=epoch))

    def frames(self, names: Sequence[Name]) -> tuple[int, dict[str, DataFrame]]:
        """All rows of several views or sources, at the same epoch, as Spark frames."""
        epoch, rows = self.snapshots(names)
        return epoch, {name: self._session.from_arrow(table) for name, table in rows.items()}

    def _stream_place(self, name: str) -> Path | None:
        return None if self.path is None else self.path / STREAMS / name

    def close(self) -> None:
        """Stop what is attached, end all watches and sinks, and let go of the flow's path. What was ticked stays."""
        self._require_outside()
        try:
            self._feeds.close()
        finally:
            super().close()
