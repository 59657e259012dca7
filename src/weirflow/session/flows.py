"""The incremental flows of a Session: opened by name, fed and read as Spark frames, visible to its SQL."""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, FlowError, StorageError, UnsupportedError
from weirflow.ivm.flow import IncrementalFlow
from weirflow.session.feeds import Feeds, check_name
from weirflow.session.partitioned_flow import PartitionedIncrementalFlow
from weirflow.session.recompute import SparkRecompute
from weirflow.session.table_sink import TableTarget
from weirflow.types import Placement, Profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from weirflow.errors import WeirflowError
    from weirflow.ivm.flow.sink import Target
    from weirflow.session.attachment import Attachment
    from weirflow.session.session import Session
    from weirflow.session.table_feed import TableFeed
    from weirflow.spark.frame import DataFrame
    from weirflow.sql.relation_name import RelationName

_FOLDER_NAME = re.compile(r"[\w][\w .-]*")


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


class Flows:
    """The flows that a Session has opened."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._flows: dict[str, SessionFlow] = {}
        self._partitioned: dict[str, PartitionedIncrementalFlow] = {}
        self._unopened: dict[str, WeirflowError] = {}

    def open_partitioned(
        self, name: str, *, partitions: int | None, options: dict[str, Any]
    ) -> PartitionedIncrementalFlow:
        """The flow in shards of this name: the open one, the one that is kept, or a new one."""
        with self._lock:
            flow = self._partitioned.get(name)
            if flow is None or flow.closed:
                flow = PartitionedIncrementalFlow(self._session, partitions=partitions, name=name, **options)
                self._partitioned[name] = flow
            elif partitions not in (None, flow.partitions):
                raise ConfigError(
                    f"The flow {name!r} is open with {flow.partitions} partitions, not {partitions}.",
                    hint=f"use flow.rescale({partitions})",
                )
            return flow

    def open(self, name: str, *, options: dict[str, Any]) -> SessionFlow:
        """The flow of this name: the open one, the one that a durable Session keeps, or a new one."""
        if self._session.settings.placement is Placement.DISTRIBUTED:
            raise UnsupportedError(
                "SQL about flows is for flows in this process; those of a distributed Session run on its executors.",
                hint="use session.flow(name) and its methods",
            )
        with self._lock:
            flow = self._flows.get(name)
            if flow is None or flow.closed:
                folder = self._folder()
                if folder is not None:
                    if not _FOLDER_NAME.fullmatch(name):
                        raise ConfigError(
                            f"{name!r} is no name for a durable flow.",
                            hint="use letters, digits, spaces, dots and hyphens, a letter or digit first",
                        )
                    options = {"path": folder / name, **options}
                flow = self._flows[name] = SessionFlow(self._session, name, **options)
            return flow

    @property
    def shown(self) -> tuple[SessionFlow | PartitionedIncrementalFlow, ...]:
        """The open flows, those in shards too, whose sources and views the Session's SQL can read."""
        return (*self.opened, *(flow for flow in list(self._partitioned.values()) if not flow.closed))

    @property
    def opened(self) -> tuple[SessionFlow, ...]:
        """The flows that are open."""
        return tuple(flow for flow in self._flows.values() if not flow.closed)

    def named(self, name: str) -> SessionFlow | None:
        """The flow of this name in any case, opened if the Session keeps it; None if there is none."""
        known = {flow.name: flow for flow in self.opened}
        names = [name, *(one for one in (*known, *self._kept()) if one.casefold() == name.casefold())]
        for one in names:
            if one in known:
                return known[one]
            if one in self._kept():
                return self.open(one, options={})
        return None

    def all(self) -> tuple[SessionFlow, ...]:
        """All flows, those that a durable Session keeps opened."""
        for name in self._kept():
            self.open(name, options={})
        return self.opened

    def find(self, name: RelationName) -> tuple[SessionFlow, str] | None:
        """The flow that has this source or view, and how it spells the name; None if there is none.

        Flows that a durable Session keeps are opened if no open one has it; see ``open_kept``.

        Raises:
            ConfigError: several flows have it.
        """
        if name.flow is not None:
            flow = self.named(name.flow)
            return None if flow is None else _relation(flow, name.name)
        found = self._having(name.name)
        if not found and self.open_kept():
            found = self._having(name.name)
        if len(found) > 1:
            raise ambiguous(name.name, [flow for flow, _ in found])
        return found[0] if found else None

    def open_kept(self) -> bool:
        """Open the flows that a durable Session keeps, but for those that cannot be; whether there are more now."""
        before = len(self.opened)
        for name in set(self._kept()) - {flow.name for flow in self.opened}:
            try:
                self.open(name, options={})
            except (FlowError, StorageError) as error:
                self._unopened[name] = error
            else:
                self._unopened.pop(name, None)
        return len(self.opened) > before

    @property
    def unopened(self) -> str | None:
        """Which flows could not be opened when something was looked for, and why; None if all could."""
        said = [f"the flow {name!r} could not be searched: {error.message}" for name, error in self._unopened.items()]
        return "; ".join(said) or None

    def close(self) -> None:
        """Close all flows, also when a sink of one fails; ``SinkFailed`` then."""
        with ExitStack() as closing:
            for flow in self._flows.values():
                closing.callback(flow.close)
            for partitioned in self._partitioned.values():
                closing.callback(partitioned.close)

    # Inner workings

    def _having(self, name: str) -> list[tuple[SessionFlow, str]]:
        return [found for flow in self.opened if (found := _relation(flow, name)) is not None]

    def _kept(self) -> list[str]:
        """The names of the flows in a durable Session's folder."""
        folder = self._folder()
        if folder is None or not folder.is_dir():
            return []
        return sorted(one.name for one in folder.iterdir() if (one / "identity").is_file())

    def _folder(self) -> Path | None:
        settings = self._session.settings
        durable = self._session.describe().profile is Profile.SINGLE_NODE_DURABLE and settings.path is not None
        return settings.path / "flows" if durable and settings.path is not None else None


def ambiguous(name: str, flows: Iterable[SessionFlow | PartitionedIncrementalFlow]) -> ConfigError:
    """The error for a name that several flows have."""
    choices = " or ".join(f"{flow.name}.{name}" for flow in flows)
    return ConfigError(f"Several flows have a source or view {name!r}.", hint=f"say which: {choices}")


def _relation(flow: SessionFlow, name: str) -> tuple[SessionFlow, str] | None:
    for one in (*flow.sources, *flow.views):
        if one.casefold() == name.casefold():
            return flow, one
    return None
