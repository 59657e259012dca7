"""``PartitionedIncrementalFlow``: views over changing sources, kept up to date shard by shard."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from weirflow.errors import ConfigError, DataError, FlowError, StreamConflict, TableNotFound, TickPending
from weirflow.ivm.compiler.program import Mode, View, in_order, tables
from weirflow.ivm.flow.core import LATE
from weirflow.ivm.flow.describe import FlowInfo, RelationInfo
from weirflow.ivm.flow.outputs import Outputs
from weirflow.ivm.flow.persist import entry_view, source_entry, view_entry
from weirflow.ivm.flow.position import Position
from weirflow.ivm.flow.schema import read_schema
from weirflow.ivm.flow.source import Lateness, Source, digest_of
from weirflow.ivm.flow.summary import StepSummary
from weirflow.ivm.flow.watch import OverflowPolicy
from weirflow.ivm.partitioned.coordinator import Coordinator
from weirflow.ivm.partitioned.definition import Group
from weirflow.ivm.partitioned.explain import explain_stages
from weirflow.ivm.partitioned.moving import SplitRows, decode_moved, reader, split
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from weirflow.ivm.flow.watch import Watch
    from weirflow.ivm.partitioned.coordinator import Deltas, Ticked
    from weirflow.ivm.partitioned.executor import StageExecutor
    from weirflow.metadata import Lease

_log = logging.getLogger(__name__)

_INLINE = 1 << 20
_HISTORY_BYTES = 64 << 20


class PartitionedIncrementalFlow:
    """Sources, SQL views over them, and ticks that bring deltas, as ``IncrementalFlow`` has them, in shards.

    Each tick is one job over all shards. What it did is published in one commit; only then are watches told. A tick
    that was begun is remembered first: whoever opens the flow next runs it again. Methods may be called from several
    threads; ticks run one after the other.

    Args:
        uri: where the flow is kept, a storage that all executors reach.
        partitions: how many shards a new flow has; one that is there has its own, see ``rescale``.
        executor: what runs the stages.
        name: what errors and metrics call the flow.
        lease: that makes this process the flow's coordinator.
        history: of how many epochs deltas are kept here for ``watch_output(from_epoch=...)``.
    """

    def __init__(
        self,
        uri: str,
        partitions: int,
        executor: StageExecutor,
        *,
        name: str = "flow",
        lease: Lease | None = None,
        history: int = 1000,
    ) -> None:
        if partitions < 1:
            raise ConfigError(f"A flow cannot have {partitions} partitions.", hint="give it one or more")
        self.name = name
        self._lock = threading.RLock()
        self._executor = executor
        self._outputs = Outputs(history=history, nbytes=_HISTORY_BYTES, delta=self._delta)
        self._coordinator = Coordinator(uri, partitions, executor, lease)
        self._outputs.history.forget(self._coordinator.commit.epoch)
        self._sources: dict[str, Source] = {}
        self._views: dict[str, View] = {}
        self._closed = False
        if self._coordinator.pending is not None:
            self._refeed()

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
        """Declare an input; see ``IncrementalFlow.register_source``."""
        columns = () if key is None else (key,) if isinstance(key, str) else tuple(key)
        source = Source(name, read_schema(schema), columns, int(dedup), lateness)
        with self._lock:
            self._require_open()
            if self._known_sources().get(name) == source:
                return
            self._refuse_taken(name)
            self._sources[name] = source

    def register_view(self, name: str, sql: str, *, mode: Mode | str = Mode.AUTO, materialized: bool = True) -> None:
        """Declare a query over sources and other views; see ``IncrementalFlow.register_view``.

        A view that has no delta rule is refused: partitioned flows recompute none.
        """
        view = View(sql, Mode(mode), stored=materialized)
        with self._lock:
            self._require_open()
            if self._known_views().get(name) == view:
                return
            self._refuse_taken(name)
            in_order({one: other.sql for one, other in (*self._known_views().items(), (name, view))})
            self._views[name] = view
            try:
                if self.epoch:
                    self._define(partly=True)
            except BaseException:
                self._views.pop(name, None)
                raise

    def view(self, function: Callable[[], str]) -> Callable[[], str]:
        """Register the SQL that a function returns as a view of the function's name; use it as a decorator."""
        self.register_view(function.__name__, function())
        return function

    def drop(self, name: str) -> None:
        """Remove a source or view that no view reads, with its state; its watches end."""
        with self._lock:
            self._require_settled()
            readers = [one for one, view in self._known_views().items() if one != name and _reads(view, name)]
            if readers:
                raise ConfigError(
                    f"{name!r} cannot be dropped: {', '.join(sorted(readers))} reads it.",
                    hint="drop what reads it first",
                )
            self._sources.pop(name, None)
            if self._views.pop(name, None) is None:
                self._relation(name)
                self._coordinator.drop(name)
            self._outputs.close(lambda view: view.removesuffix(LATE) == name)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources."""
        return tuple(self._known_sources())

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the views."""
        return tuple(self._known_views())

    @property
    def partitions(self) -> int:
        """How many shards there are."""
        return self._coordinator.commit.shards

    @property
    def epoch(self) -> int:
        """The number of the last tick."""
        return self._coordinator.commit.epoch

    @property
    def closed(self) -> bool:
        """Whether the flow was closed."""
        return self._closed

    # Ticks

    def tick(self, source: str | Mapping[str, Any], delta: Any = None, *, token: str | None = None) -> StepSummary:
        """Apply a delta to a source, or to several at once, and bring every view to the new epoch.

        A delta is what ``IncrementalFlow.tick`` takes, or a Spark frame of any size: its rows go from executor to
        executor. Of a frame, rows have no order, so for a source with a key it may hold each key once.

        Raises:
            DataError: a row breaks a rule of a view, or a retracted row is not there; ``retry`` or ``discard``.
            ConfigError: the delta does not fit the source's schema.
            TickPending: an earlier tick failed and waits.
            LeaseLost: another process coordinates the flow now.
        """
        return self._tick(source, delta, token=token)

    def load(self, source: str, data: Any, *, token: str | None = None) -> StepSummary:
        """Insert (or upsert) a table of rows as one tick; made for millions of them."""
        return self.tick(source, data, token=token)

    def feed(self, source: str | Mapping[str, Any], delta: Any = None, *, position: Position) -> StepSummary:
        """A tick from a stream that can bring its deltas again; see ``IncrementalFlow.feed``."""
        with self._lock:
            self._require_open()
            last = self._coordinator.commit.positions.get(position.stream)
            if last is not None and last[0] != position.origin:
                raise StreamConflict(
                    f"Another stream was attached as {position.stream!r} before, with another checkpoint or table.",
                    hint="attach it under another name=, or give it back its checkpoint",
                )
            if last is not None and last[1] == position.at:
                return StepSummary(last[2], 0, 0, 0.0, replayed=True)
            others = self.pending
            try:
                return self._tick(source, delta, position=position)
            except BaseException:
                if not others:
                    self.discard()
                raise

    def position(self, stream: str) -> Position | None:
        """How far the flow has taken in what is attached under a name; None if nothing ever was."""
        found = self._coordinator.commit.positions.get(stream)
        return None if found is None else Position(stream, found[0], found[1])

    def retry(self) -> StepSummary:
        """Run the tick that failed again."""
        with self._lock:
            self._require_open()
            if self._coordinator.pending is None:
                raise FlowError("No tick is pending.", hint="retry() is for a tick that failed")
            return self._run(time.perf_counter())

    def discard(self) -> None:
        """Give up the tick that failed: its delta never happened. Does nothing without one."""
        with self._lock:
            self._coordinator.discard()

    @property
    def pending(self) -> bool:
        """Whether a tick failed and waits for ``retry`` or ``discard``."""
        return self._coordinator.pending is not None

    def rescale(self, partitions: int) -> None:
        """Spread the flow over another number of shards, at the epoch it is at; results stay the same."""
        if partitions < 1:
            raise ConfigError(f"A flow cannot have {partitions} partitions.", hint="give it one or more")
        with self._lock:
            self._require_settled()
            self._define()
            if partitions != self.partitions:
                self._coordinator.rescale(partitions)

    # Reading

    def snapshot(self, view: str) -> pa.Table:
        """All rows of a view or source, here; ``stream`` brings them shard by shard."""
        return self.stream(view).read_all()

    def stream(self, view: str) -> pa.RecordBatchReader:
        """All rows of a view or source as they are now, in batches, shard by shard."""
        with self._lock:
            self._define()
            schema = self.schema(view)
            coordinator, shards = self._coordinator, self.partitions
            if coordinator.blueprint.spread.store(view) is None:
                raise ConfigError(
                    f"The rows of {view!r} are not kept.", hint="register the view with materialized=True"
                )
            # All files are open before the lock is let go: later commits cannot take them away.
            batches = [batch for shard in range(shards) for batch in coordinator.rows(view, shard)]

        def inserts() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from DeltaBatch.of_batch(schema, batch).inserts().to_batches()

        return pa.RecordBatchReader.from_batches(schema, inserts())

    def schema(self, name: str) -> pa.Schema:
        """The columns of a source or view."""
        with self._lock:
            self._define()
            fields = self._coordinator.blueprint.program.relations[self._relation(name)].fields
            return pa.schema([(field.name, field.type) for field in fields])

    def watch_output(
        self,
        view: str,
        *,
        from_epoch: int | None = None,
        capacity: int = 1000,
        on_overflow: OverflowPolicy | str = OverflowPolicy.BLOCK,
    ) -> Watch:
        """The deltas of a view, or of a source's late rows, as ticks make them; see ``IncrementalFlow.watch_output``."""
        with self._lock:
            self._require_open()
            self._define()
            self._relation(view.removesuffix(LATE))
            since = self.epoch if from_epoch is None else from_epoch
            first: Iterable[tuple[int, Batch]] = () if since == self.epoch else self._outputs.history.since(since, view)
            return self._outputs.watch(
                view, self.epoch, first, capacity=capacity, policy=OverflowPolicy(on_overflow)
            )

    def on_delta(self, view: str, callback: Callable[[int, DeltaBatch], None]) -> None:
        """Call a function with the epoch and delta of every tick that changes a view, in the thread that ticks."""
        with self._lock:
            self._require_open()
            self._define()
            self._relation(view.removesuffix(LATE))
            self._outputs.call(view, callback)

    def describe(self) -> FlowInfo:
        """Where the flow runs and is kept, and what it is made of."""
        with self._lock:
            self._define()
            views = self._known_views()
            known = {one.casefold(): one for one in (*self.sources, *views)}
            relations = [RelationInfo(name, "source", self._count(name)) for name in self.sources]
            for name in in_order({one: view.sql for one, view in views.items()}):
                reads = sorted(known[one] for one in tables(views[name].sql) if one in known and known[one] != name)
                relations.append(RelationInfo(name, "incremental", self._count(name), tuple(reads)))
            return FlowInfo(
                name=self.name,
                runs=f"{self._executor.runs}, on {self.partitions} shards",
                kept=f"in {self._coordinator.uri}",
                epoch=self.epoch,
                nbytes=sum(pack.size for pack in self._coordinator.commit.packs.values()),
                relations=tuple(relations),
            )

    def explain(self) -> str:
        """The stages: their operators, how rows are partitioned, and what the last job did where."""
        with self._lock:
            self._define()
            return explain_stages(self._coordinator.blueprint.spread, self._coordinator.reports)

    def close(self) -> None:
        """End all watches. What was ticked stays."""
        with self._lock:
            self._closed = True
            self._outputs.close(lambda _: True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<PartitionedIncrementalFlow {self.name} epoch {self.epoch}: {self.partitions} shards, "
            f"{len(self.sources)} sources, {len(self.views)} views>"
        )

    # Inner workings

    def _tick(
        self,
        source: str | Mapping[str, Any],
        delta: Any,
        *,
        token: str | None = None,
        position: Position | None = None,
    ) -> StepSummary:
        started = time.perf_counter()
        deltas = dict(source) if isinstance(source, Mapping) else {source: delta}
        with self._lock:
            self._require_settled()
            done = None if token is None else self._coordinator.commit.tokens.get(token)
            if done is not None:
                return StepSummary(done, 0, 0, 0.0, replayed=True)
            self._define()
            rows: Deltas = {}
            digests: dict[str, bytes] = {}
            for name, data in deltas.items():
                digest = self._split(name, data, rows)
                if digest is not None:
                    digests[name] = digest
            place = None if position is None else (position.stream, position.origin, position.at)
            self._coordinator.begin(rows, token=token, position=place, digests=digests)
            return self._run(started)

    def _split(self, name: str, data: Any, rows: Deltas) -> bytes | None:
        """Put a delta's rows where their shards find them; returns its digest, where repetitions are to be noticed."""
        coordinator = self._coordinator
        definition = coordinator.definition
        if name not in definition.sources:
            found = "is a view" if name in self.views else "is not registered"
            raise ConfigError(f"{name!r} {found}; deltas go to sources.", hint=f"there is {', '.join(self.sources)}")
        source, epoch = definition.sources[name], coordinator.commit.epoch + 1
        if hasattr(data, "mapInArrow"):
            if source.dedup:
                raise ConfigError(
                    f"The source {name!r} notices repeated deltas, which cannot be done for frames.",
                    hint="give the tick a token=, or register the source without dedup=",
                )
            work = SplitRows(coordinator.uri, definition.encode(), name, self.partitions, epoch)
            for part in self._executor.split(data, work):
                for _, shard, ref in decode_moved(part):
                    rows.setdefault(name, {}).setdefault(shard, []).append(ref)
            return None
        given = reader(source).weighted(data)
        digest = digest_of(given) if source.dedup else None
        if digest is not None and digest in coordinator.commit.digests.get(name, [])[-source.dedup :]:
            return None
        for shard, part in split(given, definition.columns[name], self.partitions).items():
            ref = coordinator.files.write_rows(part, epoch, _INLINE)
            rows.setdefault(name, {}).setdefault(shard, []).append(ref)
        return digest

    def _run(self, started: float) -> StepSummary:
        ticked = self._coordinator.tick()
        self._publish(ticked)
        views = {
            name: sum(ref.count for ref in refs) for name, refs in ticked.outputs.items() if not name.endswith(LATE)
        }
        late = sum(ref.count for name, refs in ticked.outputs.items() if name.endswith(LATE) for ref in refs)
        rows_in = sum(report.rows_in for report in ticked.reports)
        seconds = time.perf_counter() - started
        return StepSummary(ticked.epoch, rows_in, sum(views.values()), seconds * 1000, views, late)

    def _publish(self, ticked: Ticked) -> None:
        """Tell those who watch. Rows of large outputs are read only if somebody does."""
        watched = self._outputs.watched
        changed = {
            name: self._coordinator.changed(refs)
            for name, refs in ticked.outputs.items()
            if name in watched or all(ref.data is not None for ref in refs)
        }
        self._outputs.history.append(ticked.epoch, {name: changed.get(name) for name in ticked.outputs})
        self._outputs.publish(ticked.epoch, changed)

    def _refeed(self) -> None:
        """Run the tick that a coordinator before this one began; what the data is to blame for stays pending."""
        try:
            self._run(time.perf_counter())
        except DataError as error:
            _log.warning("the flow %s was opened with a tick that fails: %s", self.name, error.message)

    def _define(self, *, partly: bool = False) -> None:
        """Compile and fill what was registered; a view that reads what is not there is an error, or waits if ``partly``."""
        if not self._sources and not self._views:
            return
        known = {one.casefold() for one in (*self._coordinator.definition.sources, *self._coordinator.definition.views)}
        known |= {name.casefold() for name in self._sources}
        ready: dict[str, View] = {}
        for name in in_order({one: view.sql for one, view in self._views.items()}):
            missing = sorted(tables(self._views[name].sql) - known)
            if not missing or not partly:
                ready[name] = self._views[name]
                known.add(name.casefold())
        group = Group(
            tuple(source_entry(one) for one in self._sources.values()),
            tuple(view_entry(name, view) for name, view in ready.items()),
        )
        if not group.sources and not group.views:
            return
        self._coordinator.define(group)
        self._sources.clear()
        for name in ready:
            del self._views[name]

    def _known_sources(self) -> dict[str, Source]:
        return {**self._coordinator.definition.sources, **self._sources}

    def _known_views(self) -> dict[str, View]:
        return {**{name: entry_view(one) for name, one in self._coordinator.definition.views.items()}, **self._views}

    def _relation(self, name: str) -> str:
        if name in self._known_sources() or name in self._known_views():
            return name
        raise TableNotFound(f"The flow has no source or view {name!r}.", name=name)

    def _count(self, name: str) -> int | None:
        spread, commit = self._coordinator.blueprint.spread, self._coordinator.commit
        if spread.store(name) is None:
            return None
        return sum(int(batch.weights.sum()) for shard in range(commit.shards) for batch in self._coordinator.rows(name, shard))

    def _delta(self, name: str, rows: Batch) -> DeltaBatch:
        return DeltaBatch.of_batch(self.schema(name.removesuffix(LATE)), rows)

    def _require_open(self) -> None:
        if self._closed:
            raise FlowError(f"The flow {self.name!r} is closed.", hint="open it again to go on")

    def _require_settled(self) -> None:
        self._require_open()
        if self._coordinator.pending is not None:
            raise TickPending("The last tick failed and its delta is kept.", hint="retry() or discard() it first")

    def _refuse_taken(self, name: str) -> None:
        if not name.isidentifier():
            raise ConfigError(f"{name!r} is no name for a source or view.", hint="use letters, digits and underscores")
        if name.casefold() in {one.casefold() for one in (*self.sources, *self.views)}:
            raise ConfigError(
                f"The flow already has a source or view {name!r}, and it is another one.",
                hint="choose another name, or drop the old one first",
            )


def _reads(view: View, name: str) -> bool:
    return name.casefold() in tables(view.sql)
