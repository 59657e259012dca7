"""The incremental flows of a Session: opened by name, fed and read as Spark frames, visible to its SQL."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, TableNotFound, UnsupportedError
from weirflow.ivm.flow import IncrementalFlow
from weirflow.session.recompute import SparkRecompute
from weirflow.types import Placement, Profile

if TYPE_CHECKING:
    from weirflow.session.session import Session
    from weirflow.spark.frame import DataFrame

_WORD = re.compile(r"\w+")
_FOLDER_NAME = re.compile(r"[\w][\w .-]*")


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
        self._shown: dict[str, tuple[SessionFlow, int]] = {}

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
                    if not _FOLDER_NAME.fullmatch(name):
                        raise ConfigError(
                            f"{name!r} is no name for a durable flow.",
                            hint="use letters, digits, spaces, dots and hyphens, a letter or digit first",
                        )
                    options = {"path": settings.path / "flows" / name, **options}
                flow = self._flows[name] = SessionFlow(self._session, name, **options)
            return flow

    def show(self, query: str) -> None:
        """Register what a query may read of open flows as it is now, each flow's rows at one epoch.

        A table of the Session's own that has the name of a source or view stays what it is.
        """
        for name in [name for name, (flow, _) in self._shown.items() if flow.closed]:
            with suppress(TableNotFound):  # its user may have dropped it
                self._session.drop(name)
            del self._shown[name]
        words = {word.casefold() for word in _WORD.findall(query)}
        for flow in [flow for flow in self._flows.values() if not flow.closed]:
            wanted = [name for name in flow.readable if name.casefold() in words]
            stale = [name for name in wanted if self._shown.get(name) != (flow, flow.epoch)]
            if not stale:
                continue
            own = {table.casefold() for table in self._session.tables()} - {name.casefold() for name in self._shown}
            epoch, rows = flow.snapshots([name for name in stale if name.casefold() not in own])
            for name, table in rows.items():
                self._session.from_arrow(table).createOrReplaceTempView(f"`{name}`")
                self._shown[name] = (flow, epoch)

    def close(self) -> None:
        """Close all flows."""
        for flow in self._flows.values():
            flow.close()
