"""``TableFeed``: the versions of a table, each one tick of a flow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from weirflow.arguments import Seconds, checked
from weirflow.errors import FlowError, StreamConflict, UnsupportedError
from weirflow.flows.feeds.change_frames import weighted_frame
from weirflow.flows.feeds.table_changes import OP, TableChanges
from weirflow.flows.feeds.table_kinds import CHANGES
from weirflow.flows.own_session import own_session, provider
from weirflow.ivm.flow.position import Position
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.sql.types import nullable

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession
    from weirflow.streaming.sinks.flow import FeedTarget


class TableFeed(AbstractContextManager["TableFeed"]):
    """A table that feeds a source of a flow; ``flow.attach_table`` makes it. Stop it when done, best by ``with``.

    Attributes:
        name: under which the flow remembers the table's last version.
        source: the source that the changes go to.
        exception: why polling in the background ended; None while it goes on.
    """

    def __init__(
        self,
        flow: FeedTarget,
        session: FlowSession,
        table: str,
        source: str,
        name: str,
        *,
        start: int | str | None,
    ) -> None:
        self.name = name
        self.source = source
        self.exception: BaseException | None = None
        self._flow = flow
        self._session = session
        self._table = table
        self._start = None if start is None else str(start)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        main = session.spark
        self._native = self._run("look at", lambda: own_session(main))
        self._changes = self._run("look at", self._open)
        self._origin = self._same_origin()
        if source not in flow.sources:
            flow.register_source(source, self._run("look at", self._schema))

    @property
    def version(self) -> str | None:
        """The version that the flow is at; a snapshot's id for Iceberg. None before the first."""
        found = self._flow.position(self.name)
        return None if found is None else found.at

    @property
    def active(self) -> bool:
        """Whether it is still attached."""
        return not self._stop.is_set()

    def poll(self) -> int:
        """Tick the flow with every version that is new, the first one as a snapshot; returns how many ticks it took.

        Raises:
            StreamConflict: the table is another one than before, or does not have the flow's version any more.
        """
        with self._lock:
            if self._stop.is_set():
                raise FlowError(f"The table {self._table} is no longer attached.", hint="attach it again to continue")
            return self._poll()

    @checked
    def start(self, every: Seconds) -> None:
        """Poll in the background, with pauses of so many seconds."""
        self._thread = threading.Thread(
            target=self._keep_polling, args=(every,), name=f"weirflow-{self.name}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End polling after the version it is at. Attached again under this name, it goes on from there."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<TableFeed {self._table} to {self._flow.name}.{self.source}>"

    # Inner workings

    def _poll(self) -> int:
        self._origin = self._same_origin()
        latest: str | None = self._run("look at", self._changes.latest)
        if latest is None:
            return 0
        ticks = 0
        if self.version is None:
            first = self._start or latest
            self._feed(self._run("read", lambda: self._rows(self._changes.snapshot(first))), first)
            ticks += 1
        reached = self.version
        assert reached is not None
        while reached != latest and not self._stop.is_set():
            for version, delta in self._changes_between(reached, latest):
                if delta is not None:
                    self._feed(delta, version)
                    ticks += 1
                reached = version
        return ticks

    def _rows(self, native: Any) -> Any:
        """The rows as the flow takes them: as the frame that they are, or here."""
        return native if self._flow.takes_frames else native.toArrow()

    def _changes_between(self, after: str, upto: str) -> list[tuple[str, Any]]:
        """The next versions, each with what it changed; None for one that changed no rows."""
        versions = self._run("list the versions of", lambda: self._changes.versions(after, upto))
        deltas: dict[str, Any] = self._run("read the changes of", lambda: self._deltas(after, versions))
        return [(version, deltas.get(version)) for version in versions]

    def _deltas(self, after: str, versions: list[str]) -> dict[str, Any]:
        """The deltas of those versions that changed rows."""
        column = self._changes.version
        changes = self._changes.read(after, versions[-1])
        if self._flow.takes_frames:
            changed = [row[0] for row in changes.select(column).distinct().collect()]
            own = {one: changes.where(f"{column} = {int(one)}").drop(column) for one in changed}
            return {str(one): weighted_frame(rows, OP) for one, rows in own.items()}
        rows = changes.toArrow()
        of = {one: rows.filter(pc.equal(rows[column], one)) for one in pc.unique(rows[column]).to_pylist()}
        return {str(one): DeltaBatch.from_changes(part.drop_columns([column]), op=OP) for one, part in of.items()}

    def _same_origin(self) -> str:
        found: str = self._run("look at", self._changes.origin)
        last = self._flow.position(self.name)
        if last is not None and last.origin != found:
            raise StreamConflict(
                f"The table {self._table} is not the one that the flow has read as {self.name!r}.",
                hint="drop the source and attach the table under another name=, to begin with a snapshot",
            )
        return found

    def _feed(self, delta: Any, version: str) -> None:
        self._flow.feed(self.source, delta, position=Position(self.name, self._origin, version))

    def _keep_polling(self, every: float) -> None:
        try:
            while not self._stop.is_set():
                self.poll()
                self._stop.wait(every)
        except BaseException as error:  # noqa: BLE001 - kept for whoever asks
            if not self._stop.is_set():
                self.exception = error

    def _open(self) -> TableChanges:
        kind = provider(self._native, self._table)
        if kind not in CHANGES:
            raise UnsupportedError(
                f"The {kind} table {self._table} does not record its changes.",
                hint="attach a Delta table with a change data feed, or an Iceberg table",
            )
        changes = CHANGES[kind](self._native, self._table)
        changes.require_recorded()
        return changes

    def _schema(self) -> pa.Schema:
        from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark

        found = frame_schema(self._native.table(self._table))
        return pa.schema([(field.name, nullable(field.type)) for field in found])

    def _run(self, what: str, call: Callable[[], Any]) -> Any:
        return self._session.operations.run(f"{what} {self._table}", call)
