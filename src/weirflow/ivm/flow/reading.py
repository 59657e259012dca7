"""``Reading``: what comes out: rows, deltas, and how it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.arguments import Count, Name, Positive, Sql, checked
from weirflow.ivm.compiler.program import Mode
from weirflow.ivm.flow.core import FlowCore
from weirflow.ivm.flow.describe import FlowInfo
from weirflow.ivm.flow.explain import explain_view
from weirflow.ivm.flow.graph import FlowGraph
from weirflow.ivm.flow.query import explain_query, run_query
from weirflow.ivm.flow.refusals import require_past
from weirflow.ivm.flow.sinking import Sinking
from weirflow.ivm.flow.sinks import SunkViews, require_no_late
from weirflow.ivm.flow.watch import OverflowPolicy, require_watchable
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate
from weirflow.types import one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from weirflow.checkpoint.storage import CheckpointStorage
    from weirflow.ivm.flow.watch import Watch
    from weirflow.ivm.zset.delta import DeltaBatch


@checked
class Reading(FlowCore, Sinking):
    """What comes out: rows, deltas, and how it is done."""

    def snapshot(self, view: Name, *, epoch: Count | None = None) -> pa.Table:
        """All rows of a view or source, now or after an earlier epoch whose deltas are still kept."""
        with self._lock:
            self._ready()
            rows = self._state.rows(view)
            if epoch is not None and epoch != self.epoch:
                require_past(epoch, self.epoch)
                undone = [delta.negate() for _, delta in self._outputs.history.since(epoch, view)]
                rows = consolidate(Batch.concat([rows, *undone]))
            return self._state.delta(view, rows).inserts()

    def snapshots(self, names: Sequence[Name]) -> tuple[int, dict[str, pa.Table]]:
        """All rows of several views or sources, at the same epoch."""
        with self._lock:
            return self.epoch, {name: self.snapshot(name) for name in names}

    @property
    def readable(self) -> tuple[str, ...]:
        """The sources and views whose rows are kept."""
        with self._lock:
            relations = self._state.program.relations
            return tuple(name for name, relation in relations.items() if relation.store is not None)

    def sql(self, query: Sql, *, tables: Mapping[Name, Any] | None = None) -> pa.Table:
        """The rows that a query returns for the sources and views as they are now, computed in this process.

        It may also read ``tables``, by their names, which go before those of sources and views.
        """
        with self._lock:
            self._ready()
            return run_query(self._state, query, tables or {})

    def schema(self, name: Name) -> pa.Schema:
        """The columns of a source or view."""
        with self._lock:
            self._ready()
            return self._state.schema(self._state.relation(name))

    def watch_output(
        self,
        view: Name,
        *,
        snapshot: bool = False,
        from_epoch: Count | None = None,
        capacity: Positive = 1024,
        policy: OverflowPolicy | str = OverflowPolicy.FAIL,
    ) -> Watch:
        """The deltas of a view from now on, as an iterator of ``(epoch, DeltaBatch)``; nothing is ever left out.

        Args:
            view: the view, or ``"<source>.late"`` for rows that came too late.
            snapshot: begin with all rows of now.
            from_epoch: begin with the deltas after this epoch, where they are still kept.
            capacity: how many deltas may wait for the reader.
            policy: what happens beyond that: ``fail`` the reader, or ``block`` the ticks.
        """
        require_watchable(snapshot=snapshot, from_epoch=from_epoch)
        with self._lock:
            self._require_open()
            self._ready()
            name = self._output(view)
            first: Iterable[tuple[int, Batch]] = ()
            if snapshot:
                first = [(self.epoch, self._state.rows(name))]
            elif from_epoch is not None:
                require_past(from_epoch, self.epoch)
                first = self._outputs.history.since(from_epoch, name)
            return self._outputs.watch(
                name,
                self.epoch,
                first,
                capacity=capacity,
                policy=one_of(OverflowPolicy, policy, "No policy for full watches is called"),
            )

    def on_delta(self, view: Name, callback: Callable[[int, DeltaBatch], None]) -> None:
        """Call a function with ``(epoch, delta)`` after each tick that changes the view, in the tick's thread.

        What it raises is logged; it cannot undo the tick.
        """
        with self._lock:
            self._require_open()
            self._outputs.call(self._output(view), callback)

    def describe(self) -> FlowInfo:
        """Where the flow runs and is kept, and what it is made of."""
        with self._lock:
            self._require_open()
            return FlowInfo(
                name=self.name,
                runs="in this process",
                kept="in memory" if self._store is None else f"in {self._store.folder}",
                epoch=self.epoch,
                nbytes=self._state.nbytes,
                relations=self._state.relations(),
            )

    def graph(self) -> FlowGraph:
        """The flow as a graph, for a notebook or as Mermaid and SVG text."""
        return FlowGraph(self.describe().relations)

    def explain(self, view: Name) -> str:
        """How a view is maintained: its mode and why, and the operators with the rows and bytes they keep."""
        with self._lock:
            self._ready()
            return explain_view(self._state.program, self._state.relation(view))

    def explain_query(self, query: Sql, *, mode: Mode | str = Mode.AUTO) -> str:
        """How a query would be maintained if it were a view; raises what ``register_view`` would."""
        with self._lock:
            self._ready()
            return explain_query(self._state, query, one_of(Mode, mode, "No mode of a view is called"))

    def metrics(self) -> str:
        """What the flow has done and holds, in Prometheus' text format."""
        return self._metrics.text()

    def _kept_in(self) -> CheckpointStorage | None:
        return None if self._store is None else self._store.storage

    def _sunk_views(self, view: str) -> SunkViews:
        self._require_open()
        self._ready()
        require_no_late(self._output(view))
        state = self._state
        return SunkViews(state.epoch, state.views, state.schema, state.kept_rows)
