"""``ShardedBackend``: a flow whose circuit runs in shards, one job of all of them for each tick."""

from __future__ import annotations

import itertools
import logging
import os
import time
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from typing_extensions import override

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ConfigError, DataError, FlowError
from weirflow.ivm.compiler.missing_engine import no_engine
from weirflow.ivm.compiler.reads import in_order, readers_of, with_read, with_readers
from weirflow.ivm.compiler.reads import tables as read_tables
from weirflow.ivm.durability.checkpoints import Checkpoints
from weirflow.ivm.flow.backend import Capability
from weirflow.ivm.flow.describe import FlowInfo, relation_infos
from weirflow.ivm.flow.evolution.plan import EvolutionPlan, plan_from_rows
from weirflow.ivm.flow.explain import clock_lines, mode_of, settings_lines, waiting_lines
from weirflow.ivm.flow.folder.entries import view_entry, with_plans
from weirflow.ivm.flow.host import FlowHost
from weirflow.ivm.flow.position import Position
from weirflow.ivm.flow.query import explain_query
from weirflow.ivm.flow.refusals import no_source, not_kept, require_unread, require_unsunk
from weirflow.ivm.flow.source import LATE, Source
from weirflow.ivm.flow.summary import StepSummary
from weirflow.ivm.kernel.deadline import Deadline
from weirflow.ivm.operators.clocked.operator import Clocked
from weirflow.ivm.sharded.commits import GivenTick, commit_name
from weirflow.ivm.sharded.coordinator import Coordinator
from weirflow.ivm.sharded.declarations import Declarations
from weirflow.ivm.sharded.explain import explain_stages
from weirflow.ivm.sharded.published import PublishedChanges
from weirflow.ivm.sharded.queued_ticks import QueuedTick, TickQueue
from weirflow.ivm.sharded.saved import absolute, save
from weirflow.ivm.sharded.sharing import JobSharing
from weirflow.ivm.sharded.worker.distribution import (
    ChangedRows,
    CountLate,
    CountRows,
    ReadRows,
    TickInput,
    is_frame,
)
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.ingest import read_table
from weirflow.observability.metrics import FlowGauges
from weirflow.sql.clock.relation import CLOCK
from weirflow.types import ClockKind, SourceSpread

if TYPE_CHECKING:
    import pyarrow as pa
    from prometheus_client import CollectorRegistry

    from weirflow.ivm.compiler.view import Mode, RecomputeEngine, View
    from weirflow.ivm.sharded.commits import PendingTick
    from weirflow.ivm.sharded.executor import StageExecutor
    from weirflow.ivm.sharded.ledger import ChangeNotice
    from weirflow.ivm.sharded.saved import RestoredShards
    from weirflow.ivm.zset.batch import Batch
    from weirflow.metadata import Lease

_log = logging.getLogger(__name__)

_PAUSE = 0.001


class DeltaTooLarge(Exception):
    """The frames of a tick have more rows than ``ShardedBackend.most_rows``; nothing has happened."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows


class ShardedBackend(FlowHost):
    """Runs a flow in shards; see ``PartitionedFlow`` for the arguments.

    Attributes:
        most_rows: ticks whose frames have more rows are not begun; None for any number.
    """

    capabilities = frozenset({Capability.CHECKPOINTS, Capability.FRAMES, Capability.SHARDS})
    _clock_spread = SourceSpread.EVERYWHERE
    _changes: PublishedChanges

    def __init__(
        self,
        uri: str,
        partitions: int,
        executor: StageExecutor,
        name: str,
        lease: Lease | None,
        *,
        history: int,
        temporary: bool,
        registry: CollectorRegistry | None,
        clock: ClockKind,
        at: int | None,
        policy: str | None,
    ) -> None:
        super().__init__(name, history=history, registry=registry, clock=clock)
        self._owner = os.getpid()
        self._executor = executor
        self._coordinator = Coordinator(uri, partitions, executor, lease, at=at, policy=policy)
        self.path = None if "://" in uri else Path(uri)
        self.identity = self._coordinator.commit.identity
        self.storage = None if temporary else self._coordinator.files.storage
        self._declared = Declarations(self._coordinator, executor)
        self._queue = TickQueue()
        self._sharing = JobSharing(self, self._coordinator, self._lock)
        self._changes = PublishedChanges(
            name, self._coordinator, self._declared, self._outputs, self._sinks, done=self._sharing.settle
        )
        self.most_rows: int | None = None
        self._dropped = 0
        self._remember_recent()
        self._metrics.show_gauges(self)
        begun = self._coordinator.pending
        if begun is not None:
            self._go_on(begun)

    @property
    @override
    def partitions(self) -> int:
        return self._coordinator.commit.shards

    @override
    def gauges(self) -> FlowGauges | None:
        if self.closed:
            return None
        return FlowGauges(
            epoch=self._epoch,
            state_bytes=self._nbytes,
            waiting=self._outputs.waiting(),
            shards={
                (report.stage, report.shard): (report.rows, (report.load_ms + report.step_ms + report.save_ms) / 1000)
                for report in self._coordinator.reports
            },
        )

    @property
    def commit_number(self) -> int:
        """The number of the last commit: ``at`` opens the flow as it is now, later."""
        self._settle_if_needed()
        return self._coordinator.commit.number

    # What the flow is made of

    @property
    @override
    def sources(self) -> Mapping[str, Source]:
        self._settle_if_needed()
        return self._declared.sources

    @property
    @override
    def views(self) -> Mapping[str, View]:
        self._settle_if_needed()
        return self._declared.views

    @property
    @override
    def waiting(self) -> dict[str, str]:
        with self._lock:
            self._ready()
            return {name: error.message for name, error in self._declared.waiting.items()}

    def _add_source(self, source: Source, spread: SourceSpread | None) -> None:
        self._declared.add_source(source, spread)

    def _require_spread(self, name: str, spread: SourceSpread) -> None:
        now = self._declared.spread_of(name)
        if spread is not now:
            raise ConfigError(
                f"The rows of {name!r} are spread {str(now)!r}, not {str(spread)!r}.",
                hint=f'use flow.rescale({self.partitions}, spread={{"{name}": "{spread}"}})',
            )

    def _add_view(self, name: str, view: View) -> None:
        self._declared.add_view(name, view)

    @override
    def force_diff(self, view: str | None) -> None:
        with self._ticks, self._lock:
            self._require_idle()
            if self._executor.engine is None:
                raise no_engine()
            if view is not None:
                self._view(view)
            self._ready()
            definition = self._coordinator.definition
            wanted = definition.views if view is None else (view,)
            new = [name for name in wanted if name not in definition.recomputed]
            if new or (view is None and not definition.forced):
                self._declared.require_all_rows()
                self._changes.make(lambda: self._coordinator.force(new, later=view is None))

    @override
    def _drop(self, name: str) -> None:
        with self._ticks, self._lock:
            self._require_idle()
            require_unread(name, readers_of(name, self.views))
            if not self._declared.forget(name):
                self._relation(name)
                self._sinks.close(lambda view: view == name)
                self._changes.make(lambda: self._coordinator.drop(name))

    @override
    def rescale(self, partitions: int, spread: Mapping[str, SourceSpread]) -> None:
        with self._ticks, self._lock:
            self._require_idle()
            self._ready()
            wanted = {self.source(name).name: how for name, how in spread.items()}
            moved = {name: how for name, how in wanted.items() if how is not self._declared.spread_of(name)}
            if moved or partitions != self.partitions:
                self._coordinator.rescale(partitions, moved)

    def _rebuild(self, name: str, views: Mapping[str, View]) -> EvolutionPlan:
        with self._lock:
            self._require_idle()
            known = self.views
            rebuilt = with_readers(name, known)
            if known[name] == views[name]:
                rebuilt |= with_read(name, known)
            else:
                require_unsunk(self._sinks.views & rebuilt)
            self._sinks.before_tick()
        self._outputs.await_room(dict.fromkeys(self._outputs.watched & rebuilt))
        with self._lock:
            self._require_open()
            wanted = {**known, **views}
            order = [one for one in in_order(wanted) if one in rebuilt]
            defined = [view_entry(one, wanted[one]) for one in order]
            self._changes.make(lambda: self._coordinator.replace(name, defined))
            return EvolutionPlan(kept=tuple(one for one in known if one not in rebuilt), rebuilt=tuple(order))

    def _ready(self) -> None:
        self._require_open()
        self._declared.define()

    # Ticks

    @property
    def _epoch(self) -> int:
        return self._coordinator.commit.epoch

    @property
    def _has_pending(self) -> bool:
        return self._coordinator.pending is not None

    @property
    def _tokens(self) -> Mapping[str, int]:
        return self._coordinator.commit.tokens

    def _reached(self, stream: str) -> tuple[Position, int] | None:
        found = self._coordinator.commit.positions.get(stream)
        return None if found is None else (Position(stream, found[0], found[1]), found[2])

    @property
    @override
    def follows_clock(self) -> bool:
        nodes = self._coordinator.blueprint.program.circuit.nodes
        return CLOCK in self._declared.sources and any(isinstance(node.operator, Clocked) for node in nodes)

    @override
    def is_due(self, moment: int) -> bool:
        """See ``FlowBackend``: what is due when is known where the rows are."""
        with self._lock:
            self._ready()
            reading = self._clock.reading
            return self.follows_clock and (reading is None or reading < moment)

    def too_late(self, source: str, rows: Any) -> int:
        """See ``FlowBackend``: rows of a frame are counted where they are."""
        with self._lock:
            work = CountLate(self.source(source), self._coordinator.commit.watermarks.get(source))
            return sum(map(int, self._executor.over(rows, work) if is_frame(rows) else work([rows])))

    @override
    def tick(
        self,
        deltas: Mapping[str, Any],
        deadline: Deadline,
        *,
        token: str | None = None,
        position: Position | None = None,
    ) -> StepSummary:
        """See ``FlowBackend``. Those who wait for a tick that runs are run by the first of them, as one job."""
        is_held = self._ticks._is_owned()  # type: ignore[attr-defined]  # noqa: SLF001 - as conditions ask a lock
        if is_held or position is not None or any(is_frame(data) for data in deltas.values()):
            return super().tick(deltas, deadline, token=token, position=position)
        one = QueuedTick(deltas, deadline, token)
        try:
            self._queue.add(one)
            while not one.is_done:
                if not self._queue.is_next(one):
                    one.sleep()
                    continue
                with self._ticks:
                    with self._lock:
                        self._require_open()  # who was told of a commit is done then
                    if self._queue.is_time_for(one):
                        return self._run_in_turn(one)
                time.sleep(_PAUSE)
            return one.outcome()
        finally:
            one.waits = False

    def _run_in_turn(self, one: QueuedTick) -> StepSummary:
        """Run a tick, and with it what others wait for."""
        begun = time.perf_counter()
        self._queue.running = members = [one]
        try:
            if self._sharing.owns_begun(one):
                return self.run_begun(one.started, one.deadline)
            waiting = self._queue.waiting()
            if len(waiting) > 1 and not self._has_pending:
                with self._lock:
                    self._ready()
                    self._queue.running = members = self._sharing.members(one, waiting, self._outputs.room)
            if len(members) > 1:
                try:
                    self._sharing.run(members)
                except Exception:
                    if not one.is_done:
                        raise
                return one.outcome()
            return super().tick(one.deltas, one.deadline, token=one.token)
        finally:
            self._queue.running = ()
            self._queue.ran(members, time.perf_counter() - begun)

    @override
    def retry(self, deadline: Deadline) -> StepSummary:
        with self._ticks:
            with self._lock:
                self._require_open()
                self._coordinator.part()
            return super().retry(deadline)

    @override
    def _require_idle(self) -> None:
        self._require_open()
        self._coordinator.part()  # the others of a job that was interrupted are told now that they have to come again
        super()._require_idle()

    def _begin(self, deltas: Mapping[str, Any], token: str | None, position: Position | None) -> None:
        self._ready()
        incoming = self.read_deltas(deltas)
        if self.most_rows is not None and incoming.count > self.most_rows:
            raise DeltaTooLarge(incoming.count)
        place = None if position is None else (position.stream, position.origin, position.at)
        self._dropped = incoming.dropped
        self._coordinator.begin(GivenTick(token, incoming.rows, incoming.digests), position=place)

    def before_tick(self) -> None:
        """See ``SharingHost``."""
        self._sinks.before_tick()

    def read_deltas(self, deltas: Mapping[str, Any]) -> TickInput:
        """See ``SharingHost``."""
        incoming = TickInput()
        for name, data in deltas.items():
            if name not in self._coordinator.definition.sources:
                raise no_source(name, self.views, self.sources)
            if not is_frame(data):
                incoming.add(name, data, self._coordinator)
        frames = {name: data for name, data in deltas.items() if is_frame(data)}
        incoming.add_frames(frames, self._coordinator, self._executor)
        return incoming

    def _forget_pending(self) -> None:
        self._coordinator.discard()

    def _run(self, started: float, deadline: Deadline) -> StepSummary:
        return self.summary(self.commit_begun(deadline), 0, started, self._dropped)

    def run_begun(self, started: float, deadline: Deadline) -> StepSummary:
        """See ``SharingHost``."""
        return self._measured(lambda: None, started, deadline)

    def commit_begun(self, deadline: Deadline) -> ChangeNotice:
        """See ``SharingHost``."""
        done: list[ChangeNotice] = []
        # What changes is known when the job is done; then it is too late to wait for readers.
        with deadline:
            self._outputs.await_room(dict.fromkeys(self._outputs.watched))
        with self._lock:
            self._require_open()
            self._changes.make(lambda: done.append(self._coordinator.tick(deadline)))
        (ticked,) = done
        self._metrics.dedup_evicted(ticked.evicted)
        return ticked

    def summary(self, ticked: ChangeNotice, number: int, started: float, dropped: int) -> StepSummary:
        """See ``SharingHost``."""
        tick = ticked.ticks[number]
        counts = {name: sum(ref.count for ref in refs) for name, refs in tick.outputs.items()}
        views = {name: count for name, count in counts.items() if not name.endswith(LATE)}
        return StepSummary(
            tick.epoch,
            dropped + sum(report.ticks[number].rows_in for report in ticked.reports),
            sum(views.values()),
            (time.perf_counter() - started) * 1000,
            views,
            sum(counts.values()) - sum(views.values()),
            dropped,
        )

    def count(self, summary: StepSummary) -> None:
        """See ``SharingHost``."""
        self._measure(summary)

    def _go_on(self, begun: PendingTick) -> None:
        """Run what a coordinator before this one began; what the data is to blame for stays pending."""
        try:
            if begun.more:
                for one in self._sharing.go_on(begun):
                    one.outcome()
            else:
                self.retry(Deadline(None))
        except DataError as error:
            _log.warning("the flow %s was opened with a tick that fails: %s", self.name, error.message)

    def _remember_recent(self) -> None:
        """Have what the last ticks changed at hand for watches, but for what is so large that it is in files."""
        recent, history = self._coordinator.recent, self._outputs.history
        history.forget(recent.after)
        for epoch, outputs in recent.outputs:
            small = {name for name, refs in outputs.items() if all(ref.data is not None for ref in refs)}
            rows = {name: self._coordinator.changed(refs) if name in small else None for name, refs in outputs.items()}
            history.append(epoch, rows)

    # What comes out

    @property
    @override
    def readable(self) -> tuple[str, ...]:
        with self._lock:
            spread = self._coordinator.blueprint.spread
            filled = [name for name in (*self.sources, *self.views) if name in spread.relations]
            return tuple(name for name in filled if spread.store(name) is not None)

    @override
    def _opened(self, name: str, epoch: int | None) -> pa.RecordBatchReader:
        if epoch not in (None, self._epoch):
            self._require_output(name)  # what sources were given is not kept
        return super()._opened(name, epoch)

    def query(self, sql: str, tables: Mapping[str, Any]) -> pa.Table:
        """See ``FlowBackend``: computed by Spark."""
        given = {name: read_table(data) for name, data in tables.items()}
        with self._lock:
            self._ready()
            known = {name.casefold(): name for name in (*self.sources, *self.views)}
            own = read_tables(sql) - {name.casefold() for name in given}
            works = {known[one]: self._read_task(known[one]) for one in sorted(own) if one in known}
            frame = self._executor.query(sql, works, self.partitions, given)
            number = self._coordinator.commit.number
            self._coordinator.pin(number)  # later ticks do not take its files away
        try:
            return self._executor.table(frame)
        finally:
            with self._lock:
                self._coordinator.unpin(number)

    def frames(self, names: Sequence[str]) -> tuple[int, dict[str, Any]]:
        """See ``FlowBackend``: their rows stay on the executors."""
        with self._lock:
            self._ready()
            found = {name: self._executor.rows(self._read_task(name), self.partitions) for name in names}
            for native in found.values():
                # Its files stay as long as it is in use.
                self._coordinator.pin(self._coordinator.commit.number)
                weakref.finalize(native, self._coordinator.unpin, self._coordinator.commit.number)
            return self._epoch, found

    def changed_rows(self, view: str) -> ChangedRows:
        """What reads the rows that the last tick changed in a view, with their weights, in any process."""
        with self._lock:
            self._ready()
            coordinator = self._coordinator
            refs = coordinator.commit.outputs.get(view, [])
            return ChangedRows(coordinator.uri, msgspec.msgpack.encode(refs), self._schema(view), self.partitions)

    def changed_here(self, view: str) -> DeltaBatch:
        """The rows that the last tick changed in a view, read by this process."""
        with self._lock:
            self._ready()
            refs = self._coordinator.commit.outputs.get(view, [])
            schema = self._schema(view)
            if not refs:
                return DeltaBatch.from_inserts(schema.empty_table())
            return DeltaBatch.of_batch(schema, self._coordinator.changed(refs))

    @override
    def describe(self) -> FlowInfo:
        with self._lock:
            self._ready()
            return FlowInfo(
                name=self.name,
                runs=f"{self._executor.runs}, on {self.partitions} shards",
                kept=f"in {self._coordinator.uri}",
                epoch=self._epoch,
                nbytes=self._nbytes,
                relations=relation_infos(self.sources, self.views, self._kind, self._counts().get),
                clock=self._clock.shown,
            )

    @override
    def explain(self, view: str | None) -> str:
        with self._lock:
            self._ready()
            name = None if view is None else self._relation(view)
            lines = [] if name is None else [f"{name}: {mode_of(self._kind(name))}"]
            lines += clock_lines(None if name is None else self._coordinator.blueprint.program.relations[name].plan)
            lines += [f"  {line}" for line in settings_lines(None if name is None else self.views.get(name))]
            recomputed, reports = self._coordinator.definition.recomputed, self._coordinator.reports
            lines.append(explain_stages(self._coordinator.blueprint.spread, reports, recomputed, name))
            return "\n".join([*lines, *waiting_lines(self.waiting if view is None else {})])

    @override
    def explain_query(self, sql: str, mode: Mode) -> str:
        with self._lock:
            self._ready()
            schemas = {name: self._schema(name) for name in self.readable}
            return explain_query(schemas, sql, mode, self._engine, self.settings)

    def _relation(self, name: str) -> str:
        return self._declared.relation(name)

    def _schema(self, name: str) -> pa.Schema:
        return self._coordinator.blueprint.schema(self._relation(name))

    @property
    def _engine(self) -> RecomputeEngine | None:
        return self._executor.engine

    def _schemas(self) -> dict[str, pa.Schema]:
        return self._declared.schemas()

    def _kept(self, name: str) -> Iterable[Batch]:
        self._require_stored(name)
        shards = [self._coordinator.rows(name, shard) for shard in range(self.partitions)]
        return itertools.chain.from_iterable(shards)

    def _read_task(self, name: str) -> ReadRows:
        """What reads a source or view, shard by shard, in any process, as it is now."""
        self._require_stored(name)
        coordinator = self._coordinator
        commit = coordinator.part_of_commit(name)
        return ReadRows(coordinator.uri, coordinator.definition.encoded, msgspec.json.encode(commit), name)

    def _require_stored(self, name: str) -> None:
        if self._coordinator.blueprint.spread.store(self._relation(name)) is None:
            raise not_kept(name)

    def _counts(self) -> dict[str, int]:
        """How many rows those sources and views have whose rows are kept; counted where they are."""
        work = CountRows(tuple(self._read_task(name) for name in self.readable))
        counts: Counter[str] = Counter()
        for data in self._executor.each(self.partitions, work):
            counts.update(msgspec.msgpack.decode(data, type=dict[str, int]))
        return {one.name: counts[one.name] for one in work.relations}

    def _kind(self, name: str) -> str:
        """See ``RelationInfo``."""
        if name in self.sources:
            return "source"
        definition = self._coordinator.definition
        return "waiting" if name not in definition.views else "diff" if name in definition.recomputed else "incremental"

    @property
    def _nbytes(self) -> int:
        return sum(pack.size for pack in self._coordinator.commit.packs.values())

    # Checkpoints

    @override
    def save(self, uri: str | Path | None, *, full: bool) -> str:
        with self._lock:
            self._ready()
            coordinator = self._coordinator
            number = coordinator.commit.number
            if uri is None:
                return commit_name(number)
            declared = (self.sources, self.views)
            where = (coordinator.uri, coordinator.blueprint, coordinator.commit)
            coordinator.pin(number)  # ticks go on while it is copied
        started = time.perf_counter()
        try:
            target = absolute(uri)
            storage = open_checkpoint_storage(target)
            places = (Checkpoints(storage, self._metrics), storage, target)
            manifest, copied = save(self.name, declared, where, places, self._executor, full=full)
        except BaseException:
            self._metrics.checkpoint_failed()
            raise
        finally:
            with self._lock:
                coordinator.unpin(number)
        self._metrics.checkpoint(time.perf_counter() - started, copied)
        return manifest.name

    @override
    def restore(self, uri: str | Path, epoch: int | None) -> EvolutionPlan:
        with self._ticks, self._lock:
            self._require_idle()
            self.require_outside("restore the flow")
            self._require_untouched()
            if len(self._sinks):
                raise FlowError("A flow with sinks cannot be restored.", hint="close its sinks first")
            place = absolute(uri)
            checkpoints = Checkpoints(open_checkpoint_storage(place), self._metrics)
            manifest = checkpoints.find(epoch)
            wanted, spread = (self.sources, self.views), self._declared.spread
            self._outputs.expect(manifest.epoch)
            done: list[RestoredShards] = []

            def change() -> None:
                new = wanted if any(wanted) else None
                done.append(self._coordinator.restore(manifest, (checkpoints, place), new, spread))
                self._declared.replaced(done[0].waiting)

            try:
                self._changes.make(change)
            finally:
                self._declared.forget_defined()
                self._outputs.history.forget(self._epoch)
            plan = done[0].plan
            self._outputs.close(lambda view: view.removesuffix(LATE) not in (*plan.kept, *self.sources))
            return plan

    @override
    def plan(self, sources: Mapping[str, Source], views: Mapping[str, View]) -> EvolutionPlan:
        with self._lock:
            self._ready()
            old, new = (self.sources, self.views), (sources, with_plans(views, self.views))
            return EvolutionPlan(kept=tuple(views)) if old == new else plan_from_rows(old, new)

    def _require_untouched(self) -> None:
        """``FlowError`` if the flow has rows, which a restored one would take the place of."""
        if not self._epoch and not self._has_pending:
            return
        if self._has_pending or any(count for name, count in self._counts().items() if name != CLOCK):
            raise FlowError(
                f"The flow {self.name!r} already has ticks; a checkpoint cannot be restored into it.",
                hint="restore into a new flow: under another name or path",
            )

    # How it ends

    @property
    def _is_own(self) -> bool:
        """All of it belongs to the process that this one was forked from, if it was."""
        return os.getpid() == self._owner

    def _require_own(self) -> None:
        if not self._is_own:
            raise FlowError(
                f"The flow {self.name!r} belongs to the process {self._owner}, which this one was forked from.",
                hint="tick it there, or open the flow again when it is closed there",
            )

    def _release(self) -> None:
        self._coordinator.close()
