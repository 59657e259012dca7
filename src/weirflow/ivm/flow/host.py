"""``FlowHost``: a backend whose flow runs in this process, wherever its rows are."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from typing_extensions import override

from weirflow.errors import ConfigError, FlowError, HistoryGone, WeirflowError
from weirflow.failpoints import failpoint
from weirflow.ivm.compiler.reads import in_order, with_read, with_readers
from weirflow.ivm.compiler.resolve import can_resolve, columns_of, resolved
from weirflow.ivm.compiler.settled import settings_now
from weirflow.ivm.compiler.view import Mode
from weirflow.ivm.flow.backend import FlowBackend
from weirflow.ivm.flow.clock import FlowClock, moment_of
from weirflow.ivm.flow.evolution.plan import EvolutionPlan
from weirflow.ivm.flow.outputs.publisher import Publisher
from weirflow.ivm.flow.outputs.watch import no_rows
from weirflow.ivm.flow.refusals import (
    no_source,
    not_refreshed,
    require_free_name,
    require_past,
    tick_pending,
)
from weirflow.ivm.flow.sinks.sink_set import SinkSet
from weirflow.ivm.flow.snapshots import Snapshots
from weirflow.ivm.flow.source import LATE, Source
from weirflow.ivm.flow.summary import StepSummary
from weirflow.ivm.flow.unfinished import afterwards
from weirflow.ivm.kernel.deadline import Deadline
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.rows import consolidate
from weirflow.observability.metrics import FlowMetrics
from weirflow.sql.settings import USUAL
from weirflow.stack import require_room
from weirflow.types import ClockKind

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from weirflow.checkpoint.storage.contract import CheckpointStorage
    from weirflow.ivm.compiler.session_tables import SessionTable
    from weirflow.ivm.compiler.view import RecomputeEngine, View
    from weirflow.ivm.flow.outputs.watch import Watch, WatchTerms
    from weirflow.ivm.flow.position import Position
    from weirflow.ivm.flow.sinks.sink import Sink, SinkTarget, SinkTerms
    from weirflow.sql.settings import SqlSettings
    from weirflow.types import SourceSpread

_log = logging.getLogger(__name__)

_HISTORY_BYTES = 64 << 20


class Settling(Protocol):
    """Knows what an exception has left to be done."""

    @property
    def is_settled(self) -> bool:
        """Whether that is nothing."""

    def settle(self) -> None:
        """Do it. May be repeated."""


class FlowHost(FlowBackend, ABC):
    """What does not depend on where the rows of a flow are: who may change it when, and who is told.

    Args:
        name: the flow's.
        history: for how many epochs deltas are kept for those who come back.
        registry: where metrics are; None for Weirflow's own.
        settings: with which SQL is read, unless an engine has its own.
        clock: what moves the clock.

    Attributes:
        storage: where sinks can remember how far they are; None for a flow that nobody goes on with.
    """

    storage: CheckpointStorage | None = None
    _changes: Settling

    def __init__(
        self,
        name: str,
        *,
        history: int,
        registry: CollectorRegistry | None,
        settings: SqlSettings = USUAL,
        clock: ClockKind = ClockKind.SYSTEM,
    ) -> None:
        require_room()
        self.name = name
        self._own_settings = settings
        # Who changes the flow holds the first, then the second; who reads it, the second alone, so that nobody who
        # only reads waits while a tick waits for others.
        self._ticks = threading.RLock()
        self._lock = threading.RLock()
        self._released = False
        self._outputs = Publisher(history=history, nbytes=_HISTORY_BYTES, delta=self.delta)
        self._sinks = SinkSet(self, self._outputs, self._lock)
        self._metrics = FlowMetrics(name, registry)
        self._snapshots = Snapshots(self)
        self._clock = FlowClock(self, clock)

    @property
    @override
    def epoch(self) -> int:
        self._settle_if_needed()
        return self._epoch

    @contextmanager
    @override
    def exclusive(self) -> Iterator[None]:
        with self._ticks, self._lock:
            self._require_open()
            yield

    @override
    def require_outside(self, what: str) -> None:
        with self._lock:
            self._outputs.reentry.require_over(what)

    @override
    def close(self) -> None:
        with self._lock:
            if self._released:
                return
            self.require_outside("close the flow")
            self.closed = True
            if self._is_own:
                try:
                    self._settle_at_last()
                    self._outputs.close(lambda _: True)
                    self._sinks.close(lambda _: True)
                finally:
                    self._metrics.close()
                    self._release()
            self._released = True

    @override
    def metrics(self) -> str:
        return self._metrics.text()

    # What the flow is made of

    @override
    def source(self, name: str) -> Source:
        with self._lock:
            self._require_open()
            if name not in self.sources:
                raise no_source(name, self.views, self.sources)
            return self.sources[name]

    @override
    def define_source(self, source: Source, spread: SourceSpread | None) -> None:
        with self._ticks, self._lock:
            self._require_open()
            known = self.sources
            if known.get(source.name) != source:
                require_free_name(source.name, (*known, *self.views))
                self._snapshots.take_where_possible(self._waiting_views())
                self._resolve_waiting({source.name: source.schema})
                self._add_source(source, spread)
            elif spread is not None:
                self._require_spread(source.name, spread)

    @override
    def define_view(self, name: str, view: View) -> None:
        with self._ticks:
            with self._lock:
                self._require_open()
                known = self.views
                if name in known and known[name].is_declared_as(view):
                    return
                require_free_name(name, (*self.sources, *known))
            view = self._settled(view)
            with self._swept():
                self._snapshots.take([view])
                self._snapshots.take_where_possible(self._waiting_views())
                with self._lock:
                    self._require_open()
                    view = self._resolved(name, view)
                self._clock.take([view])
                with self._lock:
                    self._require_open()
                    self._add_view(name, view)

    @override
    def replace_view(self, name: str, view: View) -> EvolutionPlan:
        with self._ticks:
            known = self._view(name)
            view = self._settled(view)
            if not can_resolve(self._engine) and known.is_declared_as(view) and known.read_with == view.read_with:
                view = known
            with self._swept():
                readers = with_readers(name, self.views) - {name}
                self._snapshots.take([view, *(self.views[one] for one in readers)])
                views = self._resolved_anew(name, view)
                if known == views[name]:
                    return EvolutionPlan(kept=tuple(self.views))
                self._clock.take(views.values())
                return self._rebuild(name, views)

    @override
    def refresh_view(self, name: str) -> EvolutionPlan:
        with self._ticks:
            view = self._view(name)
            if not view.stored:
                raise not_refreshed(name)
            views = self.views
            read = {one: views[one] for one in with_read(name, views)}
            changes = self._snapshots.differences(read.values())
            if not changes:
                return self._rebuild(name, {name: view})
            self._tick_or_forget(changes)
            moved = {other for one in changes for other in with_readers(one, views)} - changes.keys()
            recomputed = {one.name for one in self.describe().relations if one.kind == Mode.DIFF}
            if recomputed & (read.keys() | with_readers(name, views)) - moved:
                return self._rebuild(name, {name: view})
            kept = tuple(one for one in views if one not in moved)
            return EvolutionPlan(kept=kept, rebuilt=tuple(one for one in views if one in moved))

    @override
    def drop(self, name: str) -> None:
        with self._ticks, self._swept():
            self._drop(name)

    # The clock

    @property
    @override
    def clock(self) -> datetime | None:
        with self._lock:
            if self.closed:
                return None
            reading = self._clock.reading
            return None if reading is None else moment_of(reading)

    @property
    @override
    def clock_kind(self) -> ClockKind:
        return self._clock.kind

    @override
    def advance(self, to: datetime | None, deadline: Deadline, *, keep: bool) -> StepSummary:
        with self._ticks:
            with self._lock:
                self._require_idle()
            try:
                return self.tick(self._clock.moved_to(to), deadline)
            except BaseException:
                if not keep:
                    self.discard()
                raise

    def schemas(self) -> dict[str, pa.Schema]:
        """See ``ClockHost``."""
        with self._lock:
            self._require_open()
            return self._schemas()

    def take_clock(self, source: Source) -> None:
        """See ``ClockHost``."""
        with self._lock:
            self._require_idle()
            self._add_source(source, self._clock_spread)

    def move_clock(self, delta: Mapping[str, Any]) -> None:
        """See ``ClockHost``."""
        if delta:
            self._tick_or_forget(delta)

    # Snapshots of a Session's tables

    @property
    def engine(self) -> RecomputeEngine | None:
        """See ``SnapshotHost``."""
        return self._engine

    @override
    def snapshot_of(self, table: SessionTable) -> str:
        with self._ticks:
            return self._snapshots.of(table)

    @override
    def sweep(self) -> None:
        with self._ticks, self._lock:
            if not self.closed and not self._has_pending:
                self._snapshots.sweep()

    def take_snapshot(self, source: Source, rows: pa.Table) -> None:
        """See ``SnapshotHost``."""
        with self._lock:
            self._require_idle()
            self._add_source(source, None)
        if len(rows):
            self._tick_or_forget({source.name: rows})

    def drop_snapshot(self, name: str) -> None:
        """See ``SnapshotHost``."""
        self._drop(name)

    def rows_of(self, name: str) -> Batch:
        """See ``SnapshotHost``."""
        with self._lock:
            self._ready()
            return self._all_rows(name)

    @contextmanager
    def _swept(self) -> Iterator[None]:
        """Have no snapshots that nothing reads, behind what is done in the block; unless a tick waits to be retried."""
        try:
            yield
        finally:
            self.sweep()

    def _tick_or_forget(self, changes: Mapping[str, Any]) -> None:
        """Tick snapshots; a tick that fails is not kept."""
        with self._lock:
            self._require_idle()
        try:
            self.tick(changes, Deadline(None))
        except BaseException:
            self.discard()
            raise

    def _waiting_views(self) -> list[View]:
        with self._lock:
            schemas = self._schemas()
            return [view for name, view in self.views.items() if name not in schemas]

    # Ticks

    @property
    @override
    def pending(self) -> bool:
        self._settle_if_needed()
        return self._has_pending

    @override
    def tick(
        self,
        deltas: Mapping[str, Any],
        deadline: Deadline,
        *,
        token: str | None = None,
        position: Position | None = None,
    ) -> StepSummary:
        started = time.perf_counter()
        with self._ticks:
            with self._lock:
                self._require_idle()
                done = None if token is None else self.epoch_of(token)
                if done is not None:
                    return self._replayed(done)
            return self._measured(
                lambda: self._begin(self._clock.with_reading(deltas), token, position), started, deadline
            )

    @override
    def feed(self, deltas: Mapping[str, Any], deadline: Deadline, position: Position) -> StepSummary:
        with self._ticks:
            with self._lock:
                self._require_open()
                last = self._reached(position.stream)
                if last is not None and position.repeats(last[0]):
                    return self._replayed(last[1])
                others = self._has_pending
            failpoint("feed.before_tick")
            try:
                summary = self.tick(deltas, deadline, position=position)
            except BaseException:
                if not others:
                    self.discard()
                raise
            failpoint("feed.after_tick")
            return summary

    @override
    def position(self, stream: str) -> Position | None:
        with self._lock:
            self._require_open()
            found = self._reached(stream)
            return found and found[0]

    @override
    def epoch_of(self, token: str) -> int | None:
        with self._lock:
            self._require_open()
            return self._tokens.get(token)

    @override
    def retry(self, deadline: Deadline) -> StepSummary:
        with self._ticks:
            with self._lock:
                self._require_open()
                if not self._has_pending:
                    raise FlowError("No tick is pending.", hint="retry() is for a tick that failed")
            return self._measured(lambda: None, time.perf_counter(), deadline)

    @override
    def discard(self) -> None:
        with self._ticks, self._lock:
            self._require_own()
            self._changes.settle()
            self._forget_pending()

    def _measured(self, begin: Callable[[], None], started: float, deadline: Deadline) -> StepSummary:
        """Begin a tick and run it. Whatever raises leaves all as it was, and what was begun pending."""
        try:
            with self._lock:
                self._sinks.before_tick()
                begin()
            done = self._run(started, deadline)
        except BaseException:
            self._metrics.tick_failed()
            raise
        self._measure(done)
        return done

    def _measure(self, done: StepSummary) -> None:
        self._metrics.tick(
            done.duration_ms / 1000, rows_in=done.rows_in, rows_out=done.rows_out, late=done.late, dropped=done.dropped
        )

    def _replayed(self, epoch: int) -> StepSummary:
        self._metrics.tick_replayed()
        return StepSummary(epoch, 0, 0, 0.0, replayed=True)

    # What comes out

    @override
    def rows(self, names: Sequence[str], epoch: int | None) -> tuple[int, dict[str, pa.Table]]:
        with self._lock:
            self._ready()
            reached, readers = self._epoch, {name: self._opened(name, epoch) for name in names}
        return reached, {name: reader.read_all() for name, reader in readers.items()}  # ticks do not wait for this

    @override
    def stream(self, name: str) -> tuple[int, pa.RecordBatchReader]:
        with self._lock:
            self._ready()
            return self._epoch, self._opened(name, None)

    def _opened(self, name: str, epoch: int | None) -> pa.RecordBatchReader:
        """What reads rows once the lock is let go; later ticks cannot change them, or take their files away."""
        if epoch is None or epoch == self._epoch:
            kept: Iterable[Batch] = self._kept(name)
        else:
            require_past(epoch, self._epoch)
            undone = [delta.negate() for _, delta in self._outputs.history.since(epoch, name)]
            rows = self._all_rows(name)
            kept = (consolidate(Batch.concat(parts)) for parts in [[rows, *undone]])
        schema = self._schema(name)
        tables = (DeltaBatch.of_batch(schema, rows).inserts() for rows in kept)
        return pa.RecordBatchReader.from_batches(schema, (batch for table in tables for batch in table.to_batches()))

    @override
    def schema(self, name: str) -> pa.Schema:
        with self._lock:
            self._ready()
            return self._schema(self._relation(name))

    @override
    def watch(self, view: str, terms: WatchTerms) -> Watch:
        with self._lock:
            self._ready()
            self._require_output(view)
            first: Iterable[tuple[int, Batch]] = ()
            if terms.snapshot:
                first = [(self._epoch, self._all_rows(view))]
            elif terms.from_epoch is not None:
                require_past(terms.from_epoch, self._epoch)
                first = self._since(terms.from_epoch, view)
            # A view that waits has no columns.
            columns = self._schemas().get(view.removesuffix(LATE), pa.schema([]))
            return self._outputs.watch(view, self._epoch, first, terms, no_rows(columns) if terms.progress else None)

    def _since(self, epoch: int, view: str) -> list[tuple[int, Batch]]:
        """The deltas of a view after an epoch; those of before a restart are worked out again if need be."""
        history = self._outputs.history
        if history.lacks(epoch, self._epoch):
            try:
                history.extend(epoch, self.recalled(epoch))
            except HistoryGone as error:
                _log.debug("the deltas after epoch %d of %s are gone: %s", epoch, self.name, error.message)
        return history.since(epoch, view)

    @override
    def on_delta(self, view: str, callback: Callable[[int, DeltaBatch], None]) -> None:
        with self._lock:
            self._ready()
            self._require_output(view)
            self._outputs.call(view, callback)

    @override
    def sink(self, view: str, to: str | Path | Callable[..., object] | SinkTarget, terms: SinkTerms) -> Sink:
        with self._lock:
            self._ready()
            self._require_output(view)
            return self._sinks.open(view, to, terms)

    # For sinks, which hold the lock

    def delta(self, name: str, rows: Batch) -> DeltaBatch:
        """Weighted rows of a source or view, or late ones, as users see them."""
        return DeltaBatch.of_batch(self._schema(name.removesuffix(LATE)), rows)

    def all_rows(self, view: str) -> DeltaBatch | None:
        """The rows of a view; None if they are not kept."""
        return self.delta(view, self._all_rows(view)) if view in self.readable else None

    def sync(self) -> None:
        """Make all ticks survive a power failure, so that no target of a sink is ever ahead of the flow."""

    def replayed(self, after: int) -> Iterator[tuple[int, Mapping[str, Batch]]]:
        """What the ticks after an epoch did, from the log; ``HistoryGone`` if that does not reach back so far."""
        oldest = self._outputs.history.oldest
        raise HistoryGone(f"The deltas after epoch {after} are not kept.", oldest=oldest, hint="keep more history")

    def recalled(self, after: int) -> Iterable[tuple[int, Mapping[str, Batch | None]]]:
        """As ``replayed``, with None for views that began anew."""
        return self.replayed(after)

    # What depends on where the rows are; whoever calls holds the lock

    @property
    @abstractmethod
    def _epoch(self) -> int:
        """The epoch of what is settled."""

    @property
    @abstractmethod
    def _has_pending(self) -> bool:
        """Whether a tick was begun that is not committed."""

    @property
    @abstractmethod
    def _tokens(self) -> Mapping[str, int]:
        """The tokens of the last ticks, and their epochs."""

    @abstractmethod
    def _reached(self, stream: str) -> tuple[Position, int] | None:
        """Where a stream is, and since which epoch."""

    @abstractmethod
    def _begin(self, deltas: Mapping[str, Any], token: str | None, position: Position | None) -> None:
        """Read deltas, and remember the tick until it is committed or discarded."""

    @abstractmethod
    def _run(self, started: float, deadline: Deadline) -> StepSummary:
        """Commit the tick that was begun, and say what it did since it was ``started``. Takes the lock itself."""

    @abstractmethod
    def _forget_pending(self) -> None:
        """Give up the tick that was begun, if there is one."""

    @abstractmethod
    def _ready(self) -> None:
        """Require that the flow is open, and bring views that were declared to the rows that are there."""

    _clock_spread: SourceSpread | None = None
    """How the clock is spread over shards."""

    @abstractmethod
    def _add_source(self, source: Source, spread: SourceSpread | None) -> None:
        """Take on a source whose name is free."""

    def _require_spread(self, name: str, spread: SourceSpread) -> None:
        """``ConfigError`` if a source's rows are spread in another way."""

    @abstractmethod
    def _drop(self, name: str) -> None:
        """Remove a source or view that nothing reads. Takes the lock itself."""

    @abstractmethod
    def _add_view(self, name: str, view: View) -> None:
        """Take on a view whose name is free."""

    @abstractmethod
    def _rebuild(self, name: str, views: Mapping[str, View]) -> EvolutionPlan:
        """Have a view be another one; if it is the same, compute it afresh. Takes the lock itself.

        Others of ``views`` have another plan than before.
        """

    @property
    @abstractmethod
    def _engine(self) -> RecomputeEngine | None:
        """What recomputes views, and may read their SQL."""

    @abstractmethod
    def _schemas(self) -> dict[str, pa.Schema]:
        """The columns of all sources, and of all views that do not wait."""

    @abstractmethod
    def _relation(self, name: str) -> str:
        """The name, if a source or view has it that does not wait; ``TableNotFound`` or ``FlowError`` otherwise."""

    @abstractmethod
    def _schema(self, name: str) -> pa.Schema:
        """The columns of a source or view that there is."""

    @abstractmethod
    def _kept(self, name: str) -> Iterable[Batch]:
        """The rows of a source or view, all of them together; ``ConfigError`` if they are not kept."""

    @abstractmethod
    def _release(self) -> None:
        """Let go of files and threads, at the end."""

    @property
    def _is_own(self) -> bool:
        """Whether closing is for this process to do."""
        return True

    @abstractmethod
    def _require_own(self) -> None:
        """``FlowError`` in a process that was forked from the one that owns the flow."""

    # Inner workings

    @property
    def settings(self) -> SqlSettings:
        """Those with which SQL is read now: the Session's, or the flow's own."""
        return settings_now(self._engine) or self._own_settings

    def _settled(self, view: View) -> View:
        """A view that is registered now, with the settings that it keeps; a frame has its own."""
        return view if view.settings is not None else replace(view, settings=self.settings)

    def _resolved(self, name: str, view: View) -> View:
        """A new view with the plan that the engine reads in its SQL; views that wait for it are declared anew first."""
        if not can_resolve(self._engine):
            return view
        schemas = self._schemas()
        view = resolved(self._engine, schemas, {name: view}, {name})[name]
        if self.views.keys() - schemas.keys():
            self._resolve_waiting(columns_of({name: view}, schemas, self._engine))
        return view

    def _resolve_waiting(self, new: Mapping[str, pa.Schema]) -> None:
        """Read the SQL of views that wait over what there is and what will be: they are declared with their plans."""
        if not can_resolve(self._engine):
            return
        schemas = self._schemas()
        waiting = {name: view for name, view in self.views.items() if name not in schemas}
        for name, view in resolved(self._engine, {**schemas, **new}, waiting, ()).items():
            if view.plan not in (None, waiting[name].plan):
                self._add_view(name, view)

    def _resolved_anew(self, name: str, view: View) -> dict[str, View]:
        """A view that takes the place of another one, and those that read it and have another plan then."""
        with self._lock:
            self._require_open()
            schemas, known = self._schemas(), self.views
            rebuilt = with_readers(name, known) & schemas.keys()
            over = {one: schema for one, schema in schemas.items() if one not in rebuilt}
            read_anew = {one: known[one] for one in in_order(known) if one in rebuilt} | {name: view}
            found = resolved(self._engine, over, read_anew, rebuilt)
            return {one: new for one, new in found.items() if one == name or new != known[one]}

    def _settle_at_last(self) -> None:
        try:
            self._changes.settle()
        except WeirflowError as error:
            _log.warning("the flow %s was closed before all readers were told: %s", self.name, error.message)

    def _settle_if_needed(self) -> None:
        if not self._changes.is_settled:
            with self._lock:
                self._require_own()
                self._changes.settle()

    def _require_open(self) -> None:
        """Called first by whoever holds the lock: refuse what is closed or another process's, finish what was begun."""
        require_room()
        self._require_not_closed()
        self._require_own()
        self._changes.settle()

    def _require_not_closed(self) -> None:
        if self.closed:
            raise FlowError(
                f"The flow {self.name!r} is closed.", hint="make another one with the same path to continue"
            )

    def _require_idle(self) -> None:
        """As ``_require_open``, and refuse what cannot be done while a tick waits."""
        self._require_open()
        if self._has_pending:
            raise tick_pending()

    def _require_output(self, name: str) -> None:
        """Refuse what is neither a view, maybe one that waits, nor the late rows of a source."""
        if name in self.sources:
            raise ConfigError(f"{name!r} is a source; its deltas are those you give it.", hint="watch a view")
        if name not in self.views and not (name.endswith(LATE) and name.removesuffix(LATE) in self.sources):
            self._relation(name)

    def _view(self, name: str) -> View:
        with self._lock:
            self._ready()
            if self._relation(name) in self.sources:
                raise ConfigError(f"{name!r} is a source, not a view.")
            return self.views[name]

    def _all_rows(self, name: str) -> Batch:
        rows = [*self._kept(name)]
        return rows[0] if len(rows) == 1 else Batch.concat([Batch.empty(self._schema(name).types), *rows])

    def _afterwards(self, steps: Iterable[Callable[[], None]]) -> None:
        """Do what follows a change that has happened; see ``afterwards``."""
        afterwards(steps, self.name, self._epoch)
