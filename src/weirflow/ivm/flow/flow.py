"""``IncrementalFlow``: views over changing sources, kept up to date tick by tick."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ConfigError, FlowError, StorageError, TickPending
from weirflow.failpoints import failpoint
from weirflow.ivm.compiler.program import Engine, Mode, View
from weirflow.ivm.durability.checkpoints import Checkpoints
from weirflow.ivm.durability.records import DropRelation
from weirflow.ivm.flow.describe import FlowInfo
from weirflow.ivm.flow.evolution import EvolutionPlan, plan_evolution, restore
from weirflow.ivm.flow.explain import explain_view
from weirflow.ivm.flow.graph import FlowGraph
from weirflow.ivm.flow.outputs import Outputs
from weirflow.ivm.flow.persist import manifest_of, source_entry, tick_entry, view_entry
from weirflow.ivm.flow.query import run_query
from weirflow.ivm.flow.schema import read_schema
from weirflow.ivm.flow.source import Change, Lateness, Source
from weirflow.ivm.flow.state import FlowState
from weirflow.ivm.flow.store import FlowStore
from weirflow.ivm.flow.summary import StepSummary
from weirflow.ivm.flow.watch import OverflowPolicy
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from weirflow.ivm.flow.watch import Watch
    from weirflow.ivm.zset.delta import DeltaBatch

_log = logging.getLogger(__name__)

_HISTORY_BYTES = 64 << 20
_LATE = ".late"


@dataclass(frozen=True)
class _Pending:
    """A tick on its way: what it was given is kept until it succeeds or is discarded."""

    changes: Mapping[str, Change]
    token: str | None


class IncrementalFlow:
    """Sources, SQL views over them, and ticks that bring deltas.

    Needs no Spark and no Session for views that are maintained by deltas; ``session.flow(name)`` makes one that also
    runs others on Spark. Methods may be called from several threads; ticks run one after the other.

    >>> flow = IncrementalFlow()
    >>> flow.register_source("orders", "customer STRING, amount BIGINT")
    >>> flow.register_view("totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    >>> flow.tick("orders", [{"customer": "ann", "amount": 5}]).rows_out
    1
    >>> flow.snapshot("totals").to_pylist()
    [{'customer': 'ann', 'total': 5}]

    Args:
        name: what errors, metrics and stores call the flow.
        path: a folder to keep the flow in: a tick that returned survives the process, and the next flow with this path
            goes on where it was. None keeps it in memory.
        fsync: with a path, once in how many ticks the log is synced to the disk: a killed process loses nothing, a
            power failure at most this many ticks. 0 leaves it to the system.
        checkpoint_every: with a path, after how many ticks a checkpoint replaces the log; 0 for never by itself.
        history: of how many epochs deltas are kept for ``watch_output(from_epoch=...)`` and ``snapshot(epoch=...)``.
        engine: what runs views that are not incremental.
    """

    def __init__(
        self,
        name: str = "flow",
        *,
        path: Path | str | None = None,
        fsync: int = 1,
        checkpoint_every: int = 10_000,
        history: int = 1000,
        engine: Engine | None = None,
    ) -> None:
        self.name = name
        self._lock = threading.RLock()
        self._engine = engine
        self._outputs = Outputs(history=history, nbytes=_HISTORY_BYTES, delta=self._delta)
        self._pending: _Pending | None = None
        self._saved_to: dict[str, Checkpoints] = {}
        self._checkpoint_every = checkpoint_every
        self._closed = False
        self._store = None if path is None else FlowStore(Path(path), name, fsync=fsync)
        self._state = FlowState(engine)
        if self._store is not None:
            try:
                self._state = self._store.open(engine, self._outputs.history.append)
            except BaseException:
                self._store.close()
                raise

    # What the flow is made of

    def register_source(
        self,
        name: str,
        schema: Any,
        *,
        key: str | Sequence[str] | None = None,
        dedup: bool | int = False,
        lateness: Lateness | None = None,
    ) -> None:
        """Declare an input. Registering the same source again does nothing.

        Args:
            name: what views and ticks call it.
            schema: an Arrow schema, a DDL string such as ``"id BIGINT, name STRING"``, or data of that schema.
            key: columns that identify a row; rows given to ``tick`` are upserts then, and retractions delete by key.
            dedup: drop a delta that equals the source's last one, or one of this many before it.
            lateness: send rows that come too late to the side output ``"<name>.late"``.
        """
        columns = () if key is None else (key,) if isinstance(key, str) else tuple(key)
        source = Source(name, read_schema(schema), columns, int(dedup), lateness)
        with self._lock:
            self._require_open()
            if self._state.has_source(source):
                return
            self._state.add_source(source)
            self._log_definition(source_entry(source), name)

    def register_view(self, name: str, sql: str, *, mode: Mode | str = Mode.AUTO, materialized: bool = True) -> None:
        """Declare a query over sources and other views, in any order; it is filled at once if there are rows.

        Registering the same view again does nothing.

        Args:
            name: what ``snapshot``, ``watch_output`` and other views call it.
            sql: one query, in Spark's SQL.
            mode: ``incremental`` refuses what has no delta rule, ``diff`` recomputes on Spark and compares, ``auto``
                chooses.
            materialized: keep its rows, so that it can be read at any time; deltas are emitted either way.
        """
        view = View(sql, Mode(mode), stored=materialized)
        with self._lock:
            self._require_open()
            if self._state.has_view(name, view):
                return
            self._state.add_view(name, view)
            self._log_definition(view_entry(name, view), name)

    def view(self, function: Callable[[], str]) -> Callable[[], str]:
        """Register the SQL that a function returns as a view of the function's name; use it as a decorator."""
        self.register_view(function.__name__, function())
        return function

    def drop(self, name: str) -> None:
        """Remove a source or view that no view reads, with its state; its watches end."""
        with self._lock:
            self._require_open()
            if self._pending is not None and name in self._pending.changes:
                raise TickPending(f"A tick that failed waits to change {name!r}.", hint="discard() it first")
            self._state.check_drop(name)
            if self._store is not None:
                self._store.append(DropRelation(name))
            self._state.drop(name)
            self._outputs.close(lambda view: view.removesuffix(_LATE) == name)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources."""
        return tuple(self._state.inputs)

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the views, also of those that wait for something they read."""
        return (*self._state.views, *self._state.waiting)

    # Ticks

    @property
    def epoch(self) -> int:
        """The number of the last tick."""
        return self._state.epoch

    def tick(self, source: str | Mapping[str, Any], delta: Any = None, *, token: str | None = None) -> StepSummary:
        """Apply a delta to a source, or to several at once, and bring every view that reads it to the new epoch.

        A delta is a ``DeltaBatch``, or rows (Arrow, pandas, Polars, dicts) that are inserted, or upserted where the
        source has a key. Either everything happens or nothing: when a view fails (an overflow, say) the delta is kept,
        and ``retry()`` or ``discard()`` decides about it.

        Args:
            source: the source's name, or a mapping of names to deltas.
            delta: the delta, unless ``source`` is a mapping.
            token: names the tick; a tick whose token was seen before does nothing.

        Raises:
            DataError: a row breaks a rule of a view, or a retracted row is not there.
            ConfigError: the delta does not fit the source's schema.
            TickPending: an earlier tick failed and waits.
        """
        deltas = dict(source) if isinstance(source, Mapping) else {source: delta}
        with self._lock:
            self._require_open()
            if self._pending is not None:
                raise TickPending(
                    "The last tick failed and its delta is kept.", hint="call retry() or discard() before the next tick"
                )
            if token is not None and token in self._state.tokens:
                return StepSummary(self._state.tokens[token], 0, 0, 0.0, replayed=True)
            self._state.ready()
            changes = {name: self._state.input(name).read(data) for name, data in deltas.items()}
            return self._run(_Pending(changes, token))

    def load(self, source: str, data: Any, *, token: str | None = None) -> StepSummary:
        """Insert (or upsert) a table of rows as one tick; made for millions of them."""
        return self.tick(source, data, token=token)

    def retry(self) -> StepSummary:
        """Run the tick that failed again."""
        with self._lock:
            self._require_open()
            if self._pending is None:
                raise FlowError("No tick is pending.", hint="retry() is for a tick that failed")
            return self._run(self._pending)

    def discard(self) -> None:
        """Give up the tick that failed: its delta never happened. Does nothing without one."""
        with self._lock:
            self._pending = None

    @property
    def pending(self) -> bool:
        """Whether a tick failed and waits for ``retry`` or ``discard``."""
        return self._pending is not None

    # What the views hold

    def snapshot(self, view: str, *, epoch: int | None = None) -> pa.Table:
        """All rows of a view or source, now or after an earlier epoch whose deltas are still kept."""
        with self._lock:
            self._state.ready()
            rows = self._state.rows(view)
            if epoch is not None and epoch != self.epoch:
                if epoch > self.epoch:
                    raise ConfigError(f"The flow is at epoch {self.epoch}; {epoch} is yet to come.")
                undone = [delta.negate() for _, delta in self._outputs.history.since(epoch, view)]
                rows = consolidate(Batch.concat([rows, *undone]))
            return self._state.delta(view, rows).inserts()

    def snapshots(self, names: Sequence[str]) -> tuple[int, dict[str, pa.Table]]:
        """All rows of several views or sources, at the same epoch."""
        with self._lock:
            return self.epoch, {name: self.snapshot(name) for name in names}

    @property
    def readable(self) -> tuple[str, ...]:
        """The sources and views whose rows are kept."""
        with self._lock:
            relations = self._state.program.relations
            return tuple(name for name, relation in relations.items() if relation.store is not None)

    def sql(self, query: str) -> pa.Table:
        """The rows that a query returns for the sources and views as they are now, computed in this process."""
        with self._lock:
            self._state.ready()
            return run_query(self._state, query)

    def watch_output(
        self,
        view: str,
        *,
        snapshot: bool = False,
        from_epoch: int | None = None,
        capacity: int = 1024,
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
        if snapshot and from_epoch is not None:
            raise ConfigError("A watch begins with a snapshot or after an epoch, not both.")
        if capacity < 1:
            raise ConfigError("The capacity of a watch is at least 1.")
        with self._lock:
            self._require_open()
            self._state.ready()
            name = self._output(view)
            first: Iterable[tuple[int, Batch]] = ()
            if snapshot:
                first = [(self.epoch, self._state.rows(name))]
            elif from_epoch is not None:
                first = self._outputs.history.since(from_epoch, name)
            return self._outputs.watch(name, self.epoch, first, capacity=capacity, policy=OverflowPolicy(policy))

    def on_delta(self, view: str, callback: Callable[[int, DeltaBatch], None]) -> None:
        """Call a function with ``(epoch, delta)`` after each tick that changes the view, in the tick's thread.

        What it raises is logged; it cannot undo the tick.
        """
        with self._lock:
            self._outputs.call(self._output(view), callback)

    def describe(self) -> FlowInfo:
        """Where the flow runs and is kept, and what it is made of."""
        with self._lock:
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

    def explain(self, view: str) -> str:
        """How a view is maintained: its mode and why, and the operators with the rows and bytes they keep."""
        with self._lock:
            self._state.ready()
            return explain_view(self._state.program, self._state.relation(view))

    # Checkpoints

    def checkpoint(self, uri: str | Path | None = None) -> str:
        """Save the flow, writing only what the last checkpoint there lacks; returns the checkpoint's name.

        Args:
            uri: where: a folder or a URI such as ``s3://bucket/flows/shop``; None for the flow's own path.
        """
        return self._checkpoint(uri, full=False)

    def checkpoint_full(self, uri: str | Path) -> str:
        """Save the flow whole, so that the checkpoint needs no file of earlier ones."""
        return self._checkpoint(uri, full=True)

    def restore(self, uri: str | Path, *, epoch: int | None = None) -> EvolutionPlan:
        """Go on from a checkpoint: the newest, or that of an epoch.

        A flow without sources takes those of the checkpoint. One that has its own keeps the state of views that are
        unchanged, builds changed and new ones from the sources' rows, and gives their watches the difference. On an
        error nothing has changed.

        Raises:
            ObjectNotFound: there is no such checkpoint.
            StorageError: a file of it is damaged or missing.
            ConfigError: a source has other columns than its rows in the checkpoint.
        """
        with self._lock:
            self._require_open()
            if self._store is not None:
                raise FlowError(
                    f"The flow {self.name!r} lives in its own path.",
                    hint="restore into a flow without a path, or open another path",
                )
            checkpoints = self._checkpoints(uri)
            manifest = checkpoints.find(epoch)
            wanted = (self._state.sources, {**self._state.views, **self._state.waiting})
            restored = restore(manifest, checkpoints.load(manifest), wanted if any(wanted) else None, self._engine)
            self._state = restored.state
            self._pending = None
            self._outputs.history.forget(self.epoch)
            known = self._state.program.relations.keys() - set(restored.reshaped)
            self._outputs.close(lambda view: view.removesuffix(_LATE) not in known)
            self._outputs.publish(self.epoch, restored.differences)
            return restored.plan

    def plan(self, other: IncrementalFlow) -> EvolutionPlan:
        """What restoring a checkpoint of this flow into ``other`` would keep, build anew and drop."""
        with self._lock:
            self._state.ready()
            old = (self._state.sources, {**self._state.views, **self._state.waiting})
            new = (other._state.sources, {**other._state.views, **other._state.waiting})
            return plan_evolution(old, new, set(self._state.program.states()), self._engine)

    @property
    def closed(self) -> bool:
        """Whether the flow was closed."""
        return self._closed

    def close(self) -> None:
        """End all watches and let go of the flow's path. What was ticked stays."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._outputs.close(lambda _: True)
            if self._store is not None:
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<IncrementalFlow {self.name} epoch {self.epoch}: {len(self.sources)} sources, {len(self.views)} views>"

    # Inner workings

    def _run(self, pending: _Pending) -> StepSummary:
        """Step, log, commit; whatever raises before the commit leaves everything as it was and the tick pending."""
        started = time.perf_counter()
        self._pending = pending
        changes = pending.changes
        failpoint("tick.before_step")
        outputs = self._state.step(changes)
        try:
            outputs |= {f"{name}{_LATE}": one.late for name, one in changes.items() if len(one.late)}
            self._outputs.await_room(outputs)
            failpoint("tick.before_log")
            if self._store is not None:
                self._store.append(tick_entry(self.epoch + 1, pending.token, changes))
        except BaseException:
            self._state.discard()
            raise
        failpoint("tick.before_commit")
        self._state.commit(changes, pending.token)
        self._pending = None
        self._outputs.history.append(self.epoch, outputs | {name: one.rows for name, one in changes.items()})
        failpoint("tick.before_publish")
        self._outputs.publish(self.epoch, outputs)
        failpoint("tick.after_publish")
        self._checkpoint_in_time()
        views = {name: len(delta) for name, delta in outputs.items() if not name.endswith(_LATE)}
        return StepSummary(
            epoch=self.epoch,
            rows_in=sum(one.rows_in for one in changes.values()),
            rows_out=sum(views.values()),
            duration_ms=(time.perf_counter() - started) * 1000,
            views=views,
            late=sum(len(one.late) for one in changes.values()),
            dropped=sum(one.rows_in for one in changes.values() if one.dropped),
        )

    def _checkpoint_in_time(self) -> None:
        """Replace a long log by a checkpoint. The tick has happened: that this fails must not look as if it had not."""
        if self._store is None or not 0 < self._checkpoint_every <= self._store.unsaved:
            return
        try:
            self._store.checkpoint(self._state)
        except StorageError as error:
            _log.warning("the flow %s goes on without a checkpoint: %s", self.name, error.message)

    def _checkpoint(self, uri: str | Path | None, *, full: bool) -> str:
        with self._lock:
            self._require_open()
            self._state.ready()
            if uri is None:
                if self._store is None:
                    raise ConfigError("Where shall the checkpoint go?", hint="pass a folder or URI")
                return self._store.checkpoint(self._state).name
            checkpoints = self._checkpoints(uri)
            number = checkpoints.next_number(self.epoch)
            manifest = manifest_of(self._state, flow=self.name, identity="", record=number, fence=0)
            return checkpoints.save(self._state.program.states(), manifest, full=full).name

    def _checkpoints(self, uri: str | Path) -> Checkpoints:
        where = str(uri)
        if where not in self._saved_to:
            self._saved_to[where] = Checkpoints(open_checkpoint_storage(where))
        return self._saved_to[where]

    def _log_definition(self, entry: Any, name: str) -> None:
        """Write a definition to the log; what cannot be written is taken back."""
        if self._store is None:
            return
        failpoint("define.before_log")
        try:
            self._store.append(entry)
        except BaseException:
            self._state.drop(name)
            raise
        failpoint("define.after_log")

    def _delta(self, name: str, rows: Batch) -> DeltaBatch:
        return self._state.delta(name.removesuffix(_LATE), rows)

    def _output(self, name: str) -> str:
        """A view, or the late rows of a source."""
        if name.endswith(_LATE) and name.removesuffix(_LATE) in self._state.inputs:
            return name
        if name in self._state.inputs:
            raise ConfigError(f"{name!r} is a source; its deltas are those you give it.", hint="watch a view")
        return name if name in self._state.waiting else self._state.relation(name)

    def _require_open(self) -> None:
        if self._closed:
            raise FlowError(f"The flow {self.name!r} is closed.", hint="make another one with the same path to go on")
