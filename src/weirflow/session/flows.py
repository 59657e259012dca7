"""The incremental flows of a Session: opened by name, fed and read as Spark frames, visible to its SQL."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from weirflow.errors import UnsupportedError
from weirflow.ivm.compiler.program import tables
from weirflow.ivm.flow import IncrementalFlow
from weirflow.session.recompute import SparkRecompute
from weirflow.types import Placement, Profile

if TYPE_CHECKING:
    from weirflow.session.session import Session
    from weirflow.spark.frame import DataFrame


class SessionFlow(IncrementalFlow):
    """A flow whose views may also be recomputed by Spark, and whose rows come back as Spark frames.

    Deltas and loads may be frames too. The circuit runs in this process.
    """

    def __init__(self, session: Session, name: str, **options: Any) -> None:
        self._session = session
        engine = SparkRecompute(lambda: session.spark.newSession(), session.operations.run)  # noqa: PLW0108 - starts Spark
        super().__init__(name, engine=engine, **options)

    def frame(self, view: str, *, epoch: int | None = None) -> DataFrame:
        """All rows of a view or source as a Spark frame; see ``snapshot``."""
        return self._session.from_arrow(self.snapshot(view, epoch=epoch))


class Flows:
    """The flows that a Session has opened."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._flows: dict[str, SessionFlow] = {}
        self._shown: dict[str, tuple[str, int]] = {}

    def open(self, name: str, *, partitions: int | None, options: dict[str, Any]) -> SessionFlow:
        """The flow of this name: the open one, the one that a durable Session keeps, or a new one."""
        settings = self._session.settings
        if partitions is not None or settings.placement is Placement.DISTRIBUTED:
            raise UnsupportedError(
                "A flow that is spread over Spark's executors is not there yet.",
                hint="use an embedded or single-node Session without partitions=, where the flow runs in this process",
            )
        with self._lock:
            flow = self._flows.get(name)
            if flow is None or flow.closed:
                if self._session.describe().profile is Profile.SINGLE_NODE_DURABLE and settings.path is not None:
                    options = {"path": settings.path / "flows" / name, **options}
                flow = self._flows[name] = SessionFlow(self._session, name, **options)
            return flow

    def show(self, query: str) -> None:
        """Register what the query reads of open flows as it is now, each flow's rows at one epoch."""
        flows = [flow for flow in self._flows.values() if not flow.closed]
        if not flows:
            return
        read = tables(query)
        for flow in flows:
            known = {name.casefold(): name for name in flow.readable}
            wanted = [known[name] for name in read if name in known]
            stale = [name for name in wanted if self._shown.get(name) != (flow.name, flow.epoch)]
            if stale:
                epoch, rows = flow.snapshots(stale)
                for name, table in rows.items():
                    self._session.register(name, table)
                    self._shown[name] = (flow.name, epoch)

    def close(self) -> None:
        """Close all flows."""
        for flow in self._flows.values():
            flow.close()
