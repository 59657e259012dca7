"""``PartitionedReading``: what comes out: rows, deltas, and how it is done."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from weirflow.arguments import Count, Name, Positive, Sql, checked
from weirflow.errors import ConfigError
from weirflow.ivm.compiler.reads import in_order
from weirflow.ivm.compiler.reads import tables as read_tables
from weirflow.ivm.flow.describe import FlowInfo, RelationInfo
from weirflow.ivm.flow.graph import FlowGraph
from weirflow.ivm.flow.refusals import not_kept, require_past
from weirflow.ivm.flow.sinking import Sinking
from weirflow.ivm.flow.sinks import SunkViews, require_no_late
from weirflow.ivm.flow.source import LATE
from weirflow.ivm.flow.watch import OverflowPolicy, require_watchable
from weirflow.ivm.partitioned.core import PartitionedCore
from weirflow.ivm.partitioned.explain import explain_stages
from weirflow.ivm.partitioned.moving import CountRows, ReadRows
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.ingest import read_table
from weirflow.ivm.zset.rows import consolidate
from weirflow.types import one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from weirflow.checkpoint.storage import CheckpointStorage
    from weirflow.ivm.flow.watch import Watch


@checked
class PartitionedReading(PartitionedCore, Sinking):
    """What comes out: rows, deltas, and how it is done."""

    def snapshot(self, view: Name, *, epoch: Count | None = None) -> pa.Table:
        """All rows of a view or source, here; ``stream`` brings them shard by shard.

        With ``epoch``, those a view had after an earlier tick whose deltas are still kept.
        """
        with self._lock:
            if epoch is None or epoch == self.epoch:
                return self.stream(view).read_all()
            self._define()
            require_past(epoch, self.epoch)
            rows = self._kept_rows(self._output(view))
            if rows is None:
                raise not_kept(view)
            undone = [delta.negate() for _, delta in self._outputs.history.since(epoch, view)]
            return self._delta(view, consolidate(Batch.concat([rows.batch, *undone]))).inserts()

    def snapshots(self, names: Sequence[Name]) -> tuple[int, dict[str, pa.Table]]:
        """All rows of several views or sources, here, at the same epoch."""
        with self._lock:
            return self.epoch, {name: self.snapshot(name) for name in names}

    def stream(self, view: Name) -> pa.RecordBatchReader:
        """All rows of a view or source as they are now, in batches, shard by shard."""
        with self._lock:
            self._define()
            schema = self.schema(view)
            # All files are open before the lock is let go: later commits cannot take them away.
            shards = [self._stored(view, shard) for shard in range(self.partitions)]

        def inserts() -> Iterator[pa.RecordBatch]:
            for shard in shards:
                for batch in shard:
                    yield from DeltaBatch.of_batch(schema, batch).inserts().to_batches()

        return pa.RecordBatchReader.from_batches(schema, inserts())

    @property
    def readable(self) -> tuple[str, ...]:
        """The sources and views whose rows are kept."""
        with self._lock:
            spread = self._coordinator.blueprint.spread
            filled = [name for name in (*self.sources, *self.views) if name in spread.relations]
            return tuple(name for name in filled if spread.store(name) is not None)

    def sql(self, query: Sql, *, tables: Mapping[Name, Any] | None = None) -> pa.Table:
        """The rows that a query returns for the sources and views as they are now, computed by Spark.

        It may also read ``tables``, by their names, which go before those of sources and views.
        """
        given = {name: read_table(data) for name, data in (tables or {}).items()}
        with self._lock:
            self._require_open()
            self._define()
            known = {name.casefold(): name for name in (*self.sources, *self.views)}
            own = read_tables(query) - {name.casefold() for name in given}
            works = {known[one]: self._read_task(known[one]) for one in sorted(own) if one in known}
            frame = self._executor.query(query, works, self.partitions, given)
            number = self._coordinator.commit.number
            self._coordinator.pin(number)  # later ticks do not take its files away
        try:
            return self._executor.table(frame)
        finally:
            with self._lock:
                self._coordinator.unpin(number)

    def schema(self, name: Name) -> pa.Schema:
        """The columns of a source or view."""
        with self._lock:
            self._define()
            return self._schema(name)

    def watch_output(
        self,
        view: Name,
        *,
        snapshot: bool = False,
        from_epoch: Count | None = None,
        capacity: Positive = 1024,
        policy: OverflowPolicy | str = OverflowPolicy.FAIL,
    ) -> Watch:
        """The deltas of a view from now on; see ``IncrementalFlow.watch_output``."""
        require_watchable(snapshot=snapshot, from_epoch=from_epoch)
        with self._lock:
            self._require_open()
            self._define()
            self._output(view)
            first: Iterable[tuple[int, Batch]] = ()
            if snapshot:
                rows = self._kept_rows(view)
                if rows is None:
                    raise not_kept(view)
                first = [(self.epoch, rows.batch)]
            elif from_epoch is not None:
                require_past(from_epoch, self.epoch)
                first = self._outputs.history.since(from_epoch, view)
            return self._outputs.watch(
                view,
                self.epoch,
                first,
                capacity=capacity,
                policy=one_of(OverflowPolicy, policy, "No policy for full watches is called"),
            )

    def on_delta(self, view: Name, callback: Callable[[int, DeltaBatch], None]) -> None:
        """Call a function with ``(epoch, delta)`` after each tick that changes a view, in the tick's thread.

        What it raises is logged; it cannot undo the tick.
        """
        with self._lock:
            self._require_open()
            self._define()
            self._outputs.call(self._output(view), callback)

    def describe(self) -> FlowInfo:
        """Where the flow runs and is kept, and what it is made of."""
        with self._lock:
            self._define()
            views = self._known_views()
            known = {one.casefold(): one for one in (*self.sources, *views)}
            counts = self._counts()
            relations = [RelationInfo(name, "source", counts.get(name)) for name in self.sources]
            for name in in_order({one: view.sql for one, view in views.items()}):
                read = read_tables(views[name].sql)
                reads = sorted(known[one] for one in read if one in known and known[one] != name)
                recomputed = name in self._coordinator.definition.recomputed
                kind = "waiting" if name in self._views else "diff" if recomputed else "incremental"
                relations.append(RelationInfo(name, kind, counts.get(name), tuple(reads)))
            return FlowInfo(
                name=self.name,
                runs=f"{self._executor.runs}, on {self.partitions} shards",
                kept=f"in {self._coordinator.uri}",
                epoch=self.epoch,
                nbytes=sum(pack.size for pack in self._coordinator.commit.packs.values()),
                relations=tuple(relations),
            )

    def graph(self) -> FlowGraph:
        """The flow as a graph, for a notebook or as Mermaid and SVG text."""
        return FlowGraph(self.describe().relations)

    def metrics(self) -> str:
        """What the flow has done and holds, shard by shard, in Prometheus' text format."""
        return self._metrics.text()

    def explain(self, view: Name | None = None) -> str:
        """The stages: their operators, how rows are partitioned, and what the last job did where.

        Of one view or source, just the operators that it rests on.
        """
        with self._lock:
            self._define()
            recomputed = self._coordinator.definition.recomputed
            name = None if view is None else self._relation(view)
            return explain_stages(self._coordinator.blueprint.spread, self._coordinator.reports, recomputed, name)

    # Inner workings

    def _kept_in(self) -> CheckpointStorage | None:
        return self._coordinator.files.storage

    def _sunk_views(self, view: str) -> SunkViews:
        self._require_settled()
        self._define()
        require_no_late(self._output(view))
        return SunkViews(self.epoch, self._known_views(), self._schema, self._kept_rows)

    def _kept_rows(self, name: str) -> DeltaBatch | None:
        """All rows of a source or view, here; None if they are not kept."""
        if self._coordinator.blueprint.spread.store(name) is None:
            return None
        rows = [batch for shard in range(self.partitions) for batch in self._stored(name, shard)]
        return self._delta(name, Batch.concat([Batch.empty(self._schema(name).types), *rows]))

    def _read_task(self, name: str) -> ReadRows:
        """What reads a source or view, shard by shard, in any process, as it is now."""
        self._require_stored(name)
        coordinator = self._coordinator
        commit = coordinator.part_of_commit(name)
        return ReadRows(coordinator.uri, coordinator.definition.encoded, msgspec.json.encode(commit), name)

    def _output(self, name: str) -> str:
        """A view, or the late rows of a source."""
        if self._relation(name.removesuffix(LATE)) == name and name in self.sources:
            raise ConfigError(f"{name!r} is a source; its deltas are those you give it.", hint="watch a view")
        return name

    def _stored(self, name: str, shard: int) -> Iterator[Batch]:
        """The rows of a source or view on a shard; its files are open when this returns."""
        self._require_stored(name)
        return self._coordinator.rows(name, shard)

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
