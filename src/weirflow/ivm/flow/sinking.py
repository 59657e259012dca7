"""``Sinking``: how the deltas of a flow's views get to files, functions and tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from weirflow.arguments import Name, Positive, Uri, checked
from weirflow.errors import ConfigError
from weirflow.ivm.flow.foreach_sink import ForeachTarget
from weirflow.ivm.flow.parquet_sink import ParquetTarget
from weirflow.ivm.flow.sinks import require_changelog
from weirflow.types import SinkMode

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from weirflow.checkpoint.storage import CheckpointStorage
    from weirflow.ivm.flow.sink import Sink, Target
    from weirflow.ivm.flow.sinks import Sinks, SunkViews
    from weirflow.ivm.zset.delta import DeltaBatch


@checked
class Sinking(ABC):
    """How the deltas of a flow's views get elsewhere."""

    _lock: threading.RLock
    _sinks: Sinks

    def sink(
        self,
        view: Name,
        to: Uri | Callable[[int, DeltaBatch], object] | None = None,
        *,
        table: Name | None = None,
        mode: str = SinkMode.CHANGELOG,
        key: str | Sequence[str] | None = None,
        name: Name | None = None,
        every: Positive | str = 1,
        on_failure: str = "raise",
        resync: bool = False,
    ) -> Sink:
        """Write the deltas of a view as ticks happen, beginning with its rows of now, or where the target is.

        On a flow that is kept somewhere a folder gets every delta exactly once, also when the process is killed.

        Args:
            view: whose deltas.
            to: a folder or storage URI for Parquet files, which have the view's columns, ``_weight`` and ``_epoch``; or
                a function that is called with ``(epoch, delta)``, after a crash with the last ones again.
            table: an existing table of the flow's Session instead, by its name in SQL. Delta and Iceberg tables get
                every delta exactly once.
            mode: ``changelog``; or, for a table, ``upsert`` by ``key``, so that the table equals the view; Delta and
                Iceberg.
            key: columns that identify the view's rows in a table.
            name: what errors call it; the view's name if None.
            every: write once in so many epochs, or within a time such as ``"5 seconds"``.
            on_failure: what ticks do while the target cannot be written: ``raise`` an error, or go on and ``keep`` the
                deltas as long as they are few.
            resync: replace what is there by the view's rows of now.

        Raises:
            SinkConflict: the target is not one this view of this flow can go on with.
            SinkFailed: the target cannot be written.
        """
        if (to is None) == (table is None):
            raise ConfigError("A sink writes to one place.", hint="pass to= for files or a function, or table=")
        chosen = name or view
        target: Target
        if table is not None:
            target = self._table_target(table, mode, key)
        else:
            assert to is not None
            require_changelog(mode, key)
            target = ForeachTarget(to, chosen, self._kept_in()) if callable(to) else ParquetTarget(to)
        return self._open_sink(view, target, name=chosen, every=every, on_failure=on_failure, resync=resync)

    def _open_sink(
        self, view: str, target: Target, *, name: str, every: int | str, on_failure: str, resync: bool
    ) -> Sink:
        with self._lock:
            views = self._sunk_views(view)
            return self._sinks.open(name, view, target, views, every=every, policy=on_failure, resync=resync)

    def _table_target(self, table: str, mode: str, key: str | Sequence[str] | None) -> Target:  # noqa: ARG002 - see below
        """What writes to a table; a Session's flow has it."""
        raise ConfigError(
            f"{table!r} cannot be a sink: this flow has no Session, whose table it could be.",
            hint="make the flow with session.flow(name)",
        )

    @abstractmethod
    def _kept_in(self) -> CheckpointStorage | None:
        """Where the flow is kept, so that a sink can remember how far it is; None for a flow in memory."""

    @abstractmethod
    def _sunk_views(self, view: str) -> SunkViews:
        """What sinks read of the flow; raises if there can be none for this view now."""
