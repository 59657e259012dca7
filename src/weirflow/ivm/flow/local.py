"""``LocalBackend``: a flow whose circuit is in this process, kept in memory or by a log and checkpoints in a folder."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from typing_extensions import override

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ConfigError, FlowError, SinkFailed, StorageError, TickPending
from weirflow.failpoints import failpoint
from weirflow.ivm.durability.checkpoints import Checkpoints
from weirflow.ivm.durability.records import DropRelation, Entry, ForceDiff
from weirflow.ivm.flow.backend import Capability
from weirflow.ivm.flow.describe import FlowInfo
from weirflow.ivm.flow.evolution.force import force_diff, is_forced
from weirflow.ivm.flow.evolution.from_shards import restore_from_shards
from weirflow.ivm.flow.evolution.plan import EvolutionPlan, plan_evolution, restore
from weirflow.ivm.flow.evolution.rebuild import Rebuilt, rebuild
from weirflow.ivm.flow.explain import explain_view, waiting_lines
from weirflow.ivm.flow.folder.entries import (
    declared_views,
    manifest_of,
    replace_entry,
    source_entry,
    tick_entry,
    view_entry,
    with_plans,
)
from weirflow.ivm.flow.folder.store import FlowStore
from weirflow.ivm.flow.gauges import measure
from weirflow.ivm.flow.host import FlowHost
from weirflow.ivm.flow.query import contents_of, explain_query, given_tables, kept_relations, plan_query
from weirflow.ivm.flow.refusals import require_unsunk
from weirflow.ivm.flow.source import LATE, Source, SourceDelta
from weirflow.ivm.flow.state import FlowState
from weirflow.ivm.flow.summary import StepSummary
from weirflow.ivm.flow.unfinished import AtomicChanges, Completion
from weirflow.ivm.operators.clocked.operator import Clocked
from weirflow.observability.metrics import FlowGauges
from weirflow.sql.clock.relation import CLOCK

if TYPE_CHECKING:
    import pyarrow as pa
    from prometheus_client import CollectorRegistry

    from weirflow.arguments import Folder
    from weirflow.ivm.circuit.circuit import Marks
    from weirflow.ivm.compiler.view import Mode, RecomputeEngine, View
    from weirflow.ivm.flow.position import Position
    from weirflow.ivm.kernel.deadline import Deadline
    from weirflow.ivm.zset.batch import Batch
    from weirflow.sql.settings import SqlSettings
    from weirflow.types import ClockKind, SourceSpread

_log = logging.getLogger(__name__)

_SCRAPE_SECONDS = 1.0


@dataclass(frozen=True)
class Pending:
    """A tick on its way: what it was given is kept until it succeeds or is discarded."""

    changes: Mapping[str, SourceDelta]
    token: str | None
    position: Position | None


class LocalBackend(FlowHost):
    """Runs a flow in this process; see ``IncrementalFlow`` for the arguments."""

    capabilities = frozenset({Capability.CHECKPOINTS})
    _changes: AtomicChanges

    def __init__(
        self,
        name: str,
        path: Folder | None,
        fsync: int,
        checkpoint_every: int,
        *,
        history: int,
        engine: RecomputeEngine | None,
        registry: CollectorRegistry | None,
        settings: SqlSettings,
        clock: ClockKind,
    ) -> None:
        super().__init__(name, history=history, registry=registry, settings=settings, clock=clock)
        self._recompute = engine
        self._pending: Pending | None = None
        self._saved_to: dict[str, Checkpoints] = {}
        self._checkpoint_every = checkpoint_every
        self._gauges = FlowGauges()
        self.identity = uuid.uuid4().hex
        self._store: FlowStore | None = None
        self._state = FlowState(engine)
        try:
            if path is not None:
                self._store = FlowStore(Path(path), name, fsync=fsync, metrics=self._metrics)
                self._state = self._store.open(engine, self._outputs.history)
                self.path, self.identity, self.storage = self._store.folder, self._store.identity, self._store.storage
            self._changes = AtomicChanges(self._store)
            self._metrics.show_gauges(self)
        except BaseException:
            if self._store is not None:
                self._store.close()
            raise

    def gauges(self) -> FlowGauges | None:
        """See ``FlowBackend``: what it held when last asked if a long tick is running."""
        if not self.closed and self._lock.acquire(timeout=_SCRAPE_SECONDS):
            try:
                self._gauges = measure(self._state, self._outputs, self._store)
            finally:
                self._lock.release()
        return None if self.closed else self._gauges

    # What the flow is made of

    @property
    @override
    def sources(self) -> Mapping[str, Source]:
        self._settle_if_needed()
        return self._state.sources

    @property
    @override
    def views(self) -> Mapping[str, View]:
        self._settle_if_needed()
        return self._state.declared

    @property
    @override
    def waiting(self) -> dict[str, str]:
        with self._lock:
            self._changes.settle()
            return {name: self._state.reasons[name].message for name in self._state.waiting}

    def _add_source(self, source: Source, spread: SourceSpread | None) -> None:  # noqa: ARG002 - there are no shards
        self._define(lambda: self._state.add_source(source), source_entry(source))

    def _add_view(self, name: str, view: View) -> None:
        self._define(lambda: self._state.add_view(name, view), view_entry(name, view))

    @override
    def force_diff(self, view: str | None) -> None:
        with self._ticks:
            with self._lock:
                self._require_open()
                done = is_forced(self._state, view)
            if not done:
                self._take_over(lambda: force_diff(self._state, view), lambda epoch: ForceDiff(epoch, view))

    @override
    def _drop(self, name: str) -> None:
        with self._ticks, self._lock:
            self._require_open()
            if self._pending is not None and name in self._pending.changes:
                raise TickPending(f"A failed tick is waiting to change {name!r}.", hint="discard() it first")
            self._state.check_drop(name)
            self._sinks.close(lambda view: view == name)
            self._define(lambda: self._state.drop(name), DropRelation(name))
            self._outputs.close(lambda view: view.removesuffix(LATE) == name)

    def _rebuild(self, name: str, views: Mapping[str, View]) -> EvolutionPlan:
        view, others = views[name], {one: other for one, other in views.items() if one != name}

        def build() -> Rebuilt:
            rebuilt = rebuild(self._state, name, view, others)
            if view != self._state.views[name]:
                require_unsunk(self._sinks.views & set(rebuilt.plan.rebuilt))
            return rebuilt

        return self._take_over(build, lambda epoch: replace_entry(epoch, name, view, others))

    def _define(self, define: Callable[[], None], entry: Entry) -> None:
        """Change what the flow is made of, and log it."""

        def apply() -> Completion:
            define()
            failpoint("define.before_log")
            return Completion([lambda: failpoint("define.after_log")])

        self._changes.make(apply, lambda: entry, self._state.keep())

    def _take_over(self, build: Callable[[], Rebuilt], entry: Callable[[int], Entry]) -> EvolutionPlan:
        """Build, log, take over; whatever raises before that leaves everything as it was."""
        with self._lock:
            self._require_idle()
            self._sinks.before_tick()
            rebuilt = build()
        self._outputs.await_room(rebuilt.differences)
        with self._lock:
            self._require_open()
            before, epoch = self._state.epoch, rebuilt.state.epoch
            publication = self._outputs.publication(epoch, rebuilt.differences)

            def apply() -> Completion:
                self._state.become(rebuilt.state)
                failpoint("define.before_log")
                return Completion([remember, publication.run])

            def remember() -> None:
                failpoint("define.after_log")
                if epoch > before:
                    self._outputs.history.append(epoch, rebuilt.changed)
                self._outputs.close(lambda one: rebuilt.changed.get(one, ...) is None)
                self._sinks.put(epoch, rebuilt.differences)

            self._changes.make(apply, lambda: entry(epoch), self._state.keep())
            self._afterwards([publication.raise_interrupt, self._sinks.after_tick, self._checkpoint_in_time])
        return rebuilt.plan

    def _ready(self) -> None:
        self._require_open()
        self._fill()

    def _fill(self) -> None:
        if not self._state.is_filled:
            self._changes.make(self._filled, None, self._state.keep_unfilled())

    def _filled(self) -> Completion:
        self._state.fill()
        return Completion([])

    # Ticks

    @property
    def _epoch(self) -> int:
        return self._state.epoch

    @property
    def _has_pending(self) -> bool:
        return self._pending is not None

    @property
    def _tokens(self) -> Mapping[str, int]:
        return self._state.tokens

    def _reached(self, stream: str) -> tuple[Position, int] | None:
        return self._state.positions.get(stream)

    @property
    @override
    def follows_clock(self) -> bool:
        return CLOCK in self._state.inputs and bool(self._clocked)

    @override
    def is_due(self, moment: int) -> bool:
        with self._lock:
            self._ready()
            found = [operator.next_due() for operator in self._clocked]
            return any(one is not None and one <= moment for one in found)

    @property
    def _clocked(self) -> list[Clocked]:
        return [node.operator for node in self._state.program.circuit.nodes if isinstance(node.operator, Clocked)]

    @override
    def too_late(self, source: str, rows: pa.Table) -> int:
        with self._lock:
            self._require_open()
            reader = self._state.input(source)
            return int(reader.too_late(reader.weighted(rows)).sum())

    def _begin(self, deltas: Mapping[str, Any], token: str | None, position: Position | None) -> None:
        self._fill()
        changes = {name: self._state.input(name).read(data) for name, data in deltas.items()}
        self._pending = Pending(changes, token, position)

    def _forget_pending(self) -> None:
        self._pending = None

    def _run(self, started: float, deadline: Deadline) -> StepSummary:
        """Step, wait for readers, commit; whatever raises before that leaves all as it was, and the tick pending."""
        pending = self._pending
        assert pending is not None
        changes = pending.changes
        with self._lock:
            failpoint("tick.before_step")
            with deadline:
                outputs = self._state.step(changes)
            outputs |= {f"{name}{LATE}": one.late for name, one in changes.items() if len(one.late)}
        with deadline:
            self._outputs.await_room(outputs)
        with self._lock:
            self._require_not_closed()  # it may have been while the tick waited
            evicted = sum(
                one.digest is not None and self._state.input(name).digests.is_full for name, one in changes.items()
            )
            self._commit(pending, outputs)
            self._metrics.dedup_evicted(evicted)
        views = {name: len(delta) for name, delta in outputs.items() if not name.endswith(LATE)}
        return StepSummary(
            self.epoch,
            sum(one.rows_in for name, one in changes.items() if name != CLOCK),
            sum(views.values()),
            (time.perf_counter() - started) * 1000,
            views,
            sum(len(one.late) for one in changes.values()),
            sum(one.rows_in for one in changes.values() if one.dropped),
        )

    def _commit(self, pending: Pending, outputs: Mapping[str, Batch]) -> None:
        """Let a tick happen that was stepped, and all that follows from it."""
        state, changes = self._state, pending.changes
        epoch = state.epoch + 1
        marks: Marks = []
        publication = self._outputs.publication(epoch, outputs)

        def apply() -> Completion:
            failpoint("tick.before_commit")
            state.commit(marks)
            failpoint("tick.before_log")
            return Completion([remember, publication.run])

        def remember() -> None:
            state.accept(epoch, changes, pending.token, pending.position)
            self._pending = None
            self._outputs.history.append(epoch, {**outputs, **{name: one.rows for name, one in changes.items()}})
            self._sinks.put(epoch, outputs)
            failpoint("tick.before_publish")

        self._changes.make(
            apply,
            lambda: tick_entry(epoch, pending.token, pending.position, changes),
            lambda: state.rewind(marks),
            sync=pending.position is not None,  # the stream will not bring it again
        )
        failpoint("tick.after_publish")
        rows = sum(len(one.rows) for one in changes.values())
        self._afterwards(
            [
                publication.raise_interrupt,
                lambda: state.maintain(rows),
                self._sinks.after_tick,
                self._checkpoint_in_time,
            ]
        )

    # What comes out

    @property
    @override
    def readable(self) -> tuple[str, ...]:
        with self._lock:
            relations = self._state.program.relations
            return tuple(name for name, relation in relations.items() if relation.store is not None)

    def query(self, sql: str, tables: Mapping[str, Any]) -> pa.Table:
        """See ``FlowBackend``: computed in this process. Ticks wait neither for its plan nor for its rows."""
        given = given_tables(tables)
        while True:
            with self._lock:
                self._ready()
                known = kept_relations(self._state)
            planned = plan_query(known, sql, given, self.settings)
            with self._lock:
                self._ready()
                if kept_relations(self._state) != known:  # it was changed meanwhile
                    continue
                contents = contents_of(self._state, planned.reads)
            return planned.rows(contents)

    @override
    def describe(self) -> FlowInfo:
        with self._lock:
            self._require_open()
            return FlowInfo(
                name=self.name,
                runs="in this process",
                kept="in memory" if self._store is None else f"in {self._store.folder}",
                epoch=self._epoch,
                nbytes=self._state.nbytes,
                relations=self._state.relations(),
                clock=self._clock.shown,
            )

    @override
    def explain(self, view: str | None) -> str:
        with self._lock:
            self._ready()
            wanted = self._state.program.relations if view is None else [self._relation(view)]
            views = self.views
            lines = [explain_view(self._state.program, name, views.get(name)) for name in wanted]
            return "\n".join([*lines, *waiting_lines(self.waiting if view is None else {})])

    @override
    def explain_query(self, sql: str, mode: Mode) -> str:
        with self._lock:
            self._ready()
            schemas = {name: self._schema(name) for name in self.readable}
            return explain_query(schemas, sql, mode, self._engine, self.settings)

    def _relation(self, name: str) -> str:
        return self._state.relation(name)

    def _schema(self, name: str) -> pa.Schema:
        return self._state.schema(name)

    @property
    def _engine(self) -> RecomputeEngine | None:
        return self._recompute

    def _schemas(self) -> dict[str, pa.Schema]:
        return {name: self._schema(name) for name in self._state.program.relations}

    def _kept(self, name: str) -> Iterable[Batch]:
        return [self._state.rows(name)]

    # Checkpoints

    @override
    def save(self, uri: str | Path | None, *, full: bool) -> str:
        with self._lock:
            self._ready()
            if uri is None:
                if self._store is None:
                    raise ConfigError("No place is given for the checkpoint.", hint="pass a folder or URI")
                self._sinks.record()
                return self._store.checkpoint(self._state).name
            checkpoints = self._checkpoints(uri)
            number = checkpoints.next_number(self._epoch)
            manifest = manifest_of(self._state, flow=self.name, identity="", record=number, fence=0)
            return checkpoints.save(self._state.program.states(), manifest, full=full).name

    @override
    def restore(self, uri: str | Path, epoch: int | None) -> EvolutionPlan:
        with self._ticks, self._lock:
            self._require_open()
            self.require_outside("restore the flow")
            if self._store is not None:
                raise FlowError(
                    f"The flow {self.name!r} is kept in its own path; a checkpoint cannot be restored into it.",
                    hint="restore into a flow without a path, or open another path",
                )
            if len(self._sinks):
                raise FlowError("A flow with sinks cannot be restored.", hint="close its sinks first")
            checkpoints = self._checkpoints(uri)
            manifest = checkpoints.find(epoch)
            wanted = (self.sources, with_plans(self.views, declared_views(manifest)))
            new = wanted if any(wanted) else None
            if manifest.shards is UNSET:
                restored = restore(manifest, checkpoints.load(manifest), new, self._engine)
            else:
                restored = restore_from_shards(manifest, checkpoints, new, self._engine)
            if any(wanted):
                restored.state.forced = self._state.forced
            reached = restored.state.epoch
            known = restored.state.program.relations.keys() - set(restored.reshaped)
            publication = self._outputs.publication(reached, restored.differences)
            self._outputs.expect(reached)

            def take_over() -> None:
                self._state = restored.state
                self._pending = None
                self._outputs.history.forget(reached)
                self._outputs.close(lambda view: view.removesuffix(LATE) not in known)

            self._changes.make(lambda: Completion([take_over, publication.run]), None, lambda: None)
            self._afterwards([publication.raise_interrupt])
            return restored.plan

    @override
    def plan(self, sources: Mapping[str, Source], views: Mapping[str, View]) -> EvolutionPlan:
        with self._lock:
            self._ready()
            held = set(self._state.program.states())
            wanted = (sources, with_plans(views, self.views))
            return plan_evolution((self.sources, self.views), wanted, held, self._engine, orders=self._state.orders)

    @override
    def sync(self) -> None:
        if self._store is not None:
            self._store.sync()

    @override
    def replayed(self, after: int) -> Iterator[tuple[int, Mapping[str, Batch]]]:
        return super().replayed(after) if self._store is None else self._store.replayed(self._engine, after)

    @override
    def recalled(self, after: int) -> Iterable[tuple[int, Mapping[str, Batch | None]]]:
        return super().recalled(after) if self._store is None else self._store.recalled(self._engine, after)

    def _checkpoints(self, uri: str | Path) -> Checkpoints:
        where = str(uri)
        if where not in self._saved_to:
            self._saved_to[where] = Checkpoints(open_checkpoint_storage(where), self._metrics)
        return self._saved_to[where]

    def _checkpoint_in_time(self) -> None:
        """Replace a long log by a checkpoint. The tick has happened: that this fails must not look as if it had not."""
        if self._store is None or not 0 < self._checkpoint_every <= self._store.unsaved:
            return
        try:
            self._sinks.record(patient=True)
            self._store.checkpoint(self._state)
        except (StorageError, SinkFailed) as error:
            _log.warning("the flow %s continues without a checkpoint: %s", self.name, error.message)

    def _require_own(self) -> None:
        if self._store is not None:
            self._store.require_owner()

    def _release(self) -> None:
        if self._store is not None:
            self._store.close()
