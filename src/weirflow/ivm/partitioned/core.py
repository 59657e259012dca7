"""``PartitionedCore``: what all parts of a partitioned flow share: its coordinator, its lock and its outputs."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from weirflow.errors import ConfigError, FlowError, HistoryGone
from weirflow.ivm.compiler.reads import in_order, tables
from weirflow.ivm.flow.outputs import Outputs
from weirflow.ivm.flow.persist import entry_view, source_entry, view_entry
from weirflow.ivm.flow.refusals import no_relation, tick_pending
from weirflow.ivm.flow.sinks import Sinks
from weirflow.ivm.flow.source import LATE
from weirflow.ivm.partitioned.coordinator import Coordinator, Ticked
from weirflow.ivm.partitioned.definition import Group
from weirflow.ivm.partitioned.recomputing import chosen
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.observability.metrics import FlowGauges, FlowMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from prometheus_client import CollectorRegistry

    from weirflow.ivm.compiler.program import View
    from weirflow.ivm.flow.source import Source
    from weirflow.ivm.partitioned.executor import StageExecutor
    from weirflow.ivm.partitioned.recent import RecentTicks
    from weirflow.ivm.zset.batch import Batch
    from weirflow.metadata import Lease
    from weirflow.types import SourceSpread

_HISTORY_BYTES = 64 << 20


class PartitionedCore:
    """What all parts of a partitioned flow share: its coordinator, its lock and its outputs.

    Attributes:
        takes_frames: whether deltas may be Spark frames whose rows are elsewhere.
    """

    takes_frames = True

    def __init__(
        self,
        uri: str,
        partitions: int,
        executor: StageExecutor,
        *,
        name: str = "flow",
        lease: Lease | None = None,
        history: int = 1000,
        registry: CollectorRegistry | None = None,
    ) -> None:
        require_shards(partitions)
        self.name = name
        self._lock = threading.RLock()
        self._executor = executor
        self._outputs = Outputs(history=history, nbytes=_HISTORY_BYTES, delta=self._delta)
        self._coordinator = Coordinator(uri, partitions, executor, lease)
        self._remember(self._coordinator.recent)
        self._sinks = Sinks(
            self._coordinator.commit.identity,
            self._outputs,
            lock=self._lock,
            epoch=lambda: self.epoch,
            delta=self._delta,
            sync=lambda: None,  # a commit that is published is on the disk
            replayed=self._replayed,
        )
        self._sources: dict[str, Source] = {}
        self._spread: dict[str, SourceSpread] = {}
        self._views: dict[str, View] = {}
        self._closed = False
        self._metrics = FlowMetrics(name, registry)
        self._metrics.show_gauges(self)

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

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads from ticking and changing the flow in the block, so that what it reads stays true."""
        with self._lock:
            self._require_open()
            yield

    @property
    def closed(self) -> bool:
        """Whether the flow was closed."""
        return self._closed

    def close(self) -> None:
        """End all watches and sinks. What was ticked stays.

        Raises:
            SinkFailed: a sink could not write what it still had; the flow is closed all the same.
        """
        with self._lock:
            if self._closed:
                return
            self._outputs.telling.require_over("close the flow")
            self._closed = True
            self._outputs.close(lambda _: True)
            try:
                self._sinks.close(lambda _: True)
            finally:
                self._metrics.close()
                self._coordinator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def gauges(self) -> FlowGauges | None:
        """What the flow holds; None when closed."""
        if self._closed:
            return None
        return FlowGauges(
            epoch=self.epoch,
            state_bytes=sum(pack.size for pack in self._coordinator.commit.packs.values()),
            waiting=self._outputs.waiting(),
            shards={
                (report.stage, report.shard): (report.rows, (report.load_ms + report.step_ms + report.save_ms) / 1000)
                for report in self._coordinator.reports
            },
        )

    # Inner workings

    def _remember(self, recent: RecentTicks) -> None:
        """Have what the last ticks changed at hand for watches, but for what is so large that it is in files."""
        self._outputs.history.forget(recent.after)
        for epoch, outputs in recent.outputs:
            small = {name: all(ref.data is not None for ref in refs) for name, refs in outputs.items()}
            rows = {name: self._coordinator.changed(refs) if small[name] else None for name, refs in outputs.items()}
            self._outputs.history.append(epoch, rows)

    def _define(self, *, partly: bool = False) -> None:
        """Compile and fill what was registered.

        A view that reads what is not there is an error; if ``partly``, it waits.
        """
        group = self._ready(partly=partly)
        if not group.sources and not group.views:
            return
        self._coordinator.define(group)
        self._sources.clear()
        self._spread.clear()
        for view in group.views:
            del self._views[view.name]

    def _ready(self, *, partly: bool) -> Group:
        """What was registered and is not compiled yet; if ``partly``, without views that read what is not there."""
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
            spread=dict(self._spread),
        )
        return chosen(self._coordinator.definition, group, self._executor)

    def _publish(self, ticked: Ticked) -> None:
        """Tell those who watch. Rows of large outputs are read only if somebody does."""
        watched = self._outputs.watched | self._sinks.views
        changed = {
            name: self._coordinator.changed(refs)
            for name, refs in ticked.outputs.items()
            if name in watched or all(ref.data is not None for ref in refs)
        }
        told = {name: changed.get(name) for name in ticked.outputs}
        self._outputs.history.append(ticked.epoch, {**told, **dict.fromkeys(ticked.ended)})
        self._outputs.close(lambda view: view in ticked.ended)
        self._sinks.put(ticked.epoch, changed)
        publication = self._outputs.publication(ticked.epoch, changed)
        publication.run()
        self._sinks.after_tick()
        publication.raise_interrupt()

    def _replayed(self, after: int) -> Iterator[tuple[int, Mapping[str, Batch]]]:
        oldest = self._outputs.history.oldest
        raise HistoryGone(f"The deltas after epoch {after} are not kept any more.", oldest=oldest)

    def _known_sources(self) -> dict[str, Source]:
        return {**self._coordinator.definition.sources, **self._sources}

    def _known_views(self) -> dict[str, View]:
        return {**{name: entry_view(one) for name, one in self._coordinator.definition.views.items()}, **self._views}

    def _relation(self, name: str) -> str:
        if name in self._known_sources() or name in self._known_views():
            return name
        raise no_relation(name, (*self.sources, *self.views))

    def _schema(self, name: str) -> pa.Schema:
        return self._coordinator.blueprint.schema(self._relation(name))

    def _delta(self, name: str, rows: Batch) -> DeltaBatch:
        return DeltaBatch.of_batch(self._schema(name.removesuffix(LATE)), rows)

    def _require_open(self) -> None:
        if self._closed:
            raise FlowError(f"The flow {self.name!r} is closed.", hint="open it again to go on")

    def _require_settled(self) -> None:
        self._require_open()
        if self._coordinator.pending is not None:
            raise tick_pending()


def require_shards(count: int) -> None:
    """``ConfigError`` unless a flow can have so many shards."""
    if count < 1:
        raise ConfigError(f"A flow cannot have {count} partitions.", hint="give it one or more")
