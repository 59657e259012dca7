"""``PartitionedCore``: what all parts of a partitioned flow share: its coordinator, its lock and its outputs."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

import msgspec

from weirflow.arguments import AtLeast, AtMost, Count, Name, checked
from weirflow.errors import FlowError, HistoryGone, WeirflowError
from weirflow.ivm.compiler.reads import in_order, missing
from weirflow.ivm.flow.outputs import Outputs
from weirflow.ivm.flow.persist import entry_view, source_entry, view_entry
from weirflow.ivm.flow.refusals import no_relation, tick_pending, waits
from weirflow.ivm.flow.sinks import Sinks
from weirflow.ivm.flow.source import LATE
from weirflow.ivm.flow.unfinished import Committed, afterwards
from weirflow.ivm.partitioned.coordinator import Coordinator
from weirflow.ivm.partitioned.definition import Group
from weirflow.ivm.partitioned.recomputing import chosen
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.observability.metrics import FlowGauges, FlowMetrics
from weirflow.stack import require_room

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    import pyarrow as pa
    from prometheus_client import CollectorRegistry

    from weirflow.ivm.compiler.program import View
    from weirflow.ivm.durability.records import DefineView
    from weirflow.ivm.flow.outputs import Publication
    from weirflow.ivm.flow.source import Source
    from weirflow.ivm.partitioned.executor import StageExecutor
    from weirflow.ivm.partitioned.ledger import Ticked
    from weirflow.ivm.partitioned.recent import RecentTicks
    from weirflow.ivm.zset.batch import Batch
    from weirflow.metadata import Lease
    from weirflow.types import SourceSpread

_log = logging.getLogger(__name__)

_HISTORY_BYTES = 64 << 20


Shards = Annotated[int, AtLeast(1), AtMost(10_000)]
"""How many shards a flow may have: each is a task of every tick."""


class _Telling(NamedTuple):
    """What tells everyone of a change; it may be repeated."""

    ticked: Ticked
    committed: Committed
    publication: Publication


class PartitionedCore:
    """What all parts of a partitioned flow share: its coordinator, its lock and its outputs.

    Attributes:
        takes_frames: whether deltas may be Spark frames whose rows are elsewhere.
    """

    takes_frames = True

    @checked
    def __init__(
        self,
        uri: str,
        partitions: Shards,
        executor: StageExecutor,
        *,
        name: Name = "flow",
        lease: Lease | None = None,
        history: Count = 1000,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.name = name
        self._owner = os.getpid()
        # Who changes the flow holds the first, then the second; who reads it, the second alone, so that nobody who
        # only reads waits while a tick waits for readers.
        self._ticks = threading.RLock()
        self._lock = threading.RLock()
        self._executor = executor
        self._outputs = Outputs(history=history, nbytes=_HISTORY_BYTES, delta=self._delta)
        self._coordinator = Coordinator(uri, partitions, executor, lease)
        self._remember(self._coordinator.recent)
        self._sinks = Sinks(
            self._coordinator.commit.identity,
            self._outputs,
            lock=self._lock,
            epoch=lambda: self._coordinator.commit.epoch,
            delta=self._delta,
            sync=lambda: None,  # a commit that is published is on the disk
            replayed=self._replayed,
        )
        self._sources: dict[str, Source] = {}
        self._spread: dict[str, SourceSpread] = {}
        self._views: dict[str, View] = {}
        self._reasons: dict[str, WeirflowError] = {}
        self._closed = False
        self._released = False
        self._telling: _Telling | None = None
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
        self._settle_if_needed()
        return self._coordinator.commit.epoch

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads from ticking and changing the flow in the block, so that what it reads stays true."""
        with self._ticks, self._lock:
            self._require_open()
            yield

    @property
    def closed(self) -> bool:
        """Whether the flow was closed."""
        return self._closed

    def close(self) -> None:
        """End all watches and sinks. What was ticked stays. A close that was interrupted goes on.

        Raises:
            SinkFailed: a sink could not write what it still had; the flow is closed all the same.
        """
        with self._lock:
            if self._released:
                return
            self._outputs.telling.require_over("close the flow")
            self._closed = True
            if not self._is_own:  # all of it belongs to the process that this one was forked from
                self._released = True
                return
            try:
                self._settle_before_closing()
                self._outputs.close(lambda _: True)
                self._sinks.close(lambda _: True)
            finally:
                self._metrics.close()
                self._coordinator.close()
            self._released = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def gauges(self) -> FlowGauges | None:
        """What the flow holds; None when closed."""
        if self._closed:
            return None
        return FlowGauges(
            epoch=self._coordinator.commit.epoch,
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

    @property
    def waiting(self) -> dict[str, str]:
        """The views that cannot be computed yet, each with what it waits for; all others tick."""
        with self._lock:
            self._define()
            return {name: self._why(name).message for name in self._views}

    def _why(self, name: str) -> WeirflowError:
        """Why a view waits."""
        if name in self._reasons:
            return self._reasons[name]
        known = (*self.sources, *self._coordinator.definition.views)
        return no_relation(min(missing(self._views[name].sql, known)), known)

    def _define(self, *, also: Mapping[str, View] | None = None) -> None:
        """Compile and fill what was registered; views that read what is not there wait, or what is wrong for them.

        Args:
            also: views that are registered with it, if nothing raises.
        """
        self._require_open()
        views = {**self._views, **(also or {})}
        group = self._ready(views)
        if group.sources or group.views:
            try:
                self._coordinator.define(self._chosen(group))
            except WeirflowError:
                wrong = self._wrong(group, also or {})
                if not wrong:
                    raise
                self._reasons = wrong
                group = self._ready({name: view for name, view in views.items() if name not in wrong})
                self._coordinator.define(self._chosen(group))
        defined = {view.name for view in group.views}
        # In one statement: whatever comes between is known to be defined.
        self._views = {name: view for name, view in views.items() if name not in defined}
        self._forget_defined()

    def _forget_defined(self) -> None:
        """What the flow is made of is registered no more, though an exception may have come between."""
        definition = self._coordinator.definition
        if any(name in definition.sources for name in self._sources):
            self._spread = {name: how for name, how in self._spread.items() if name not in definition.sources}
            self._sources = {name: one for name, one in self._sources.items() if name not in definition.sources}
        if any(name in definition.views for name in self._views):
            self._views = {name: one for name, one in self._views.items() if name not in definition.views}

    def _wrong(self, group: Group, new: Container[str]) -> dict[str, WeirflowError]:
        """The views that cannot be compiled, and why; what is wrong with one that is ``new`` is raised."""
        fine: list[DefineView] = []
        wrong: dict[str, WeirflowError] = {}
        for view in group.views:
            try:
                alone = msgspec.structs.replace(group, views=(*fine, view))
                self._coordinator.definition.with_group(self._chosen(alone))
            except WeirflowError as error:
                if view.name in new:
                    raise
                wrong[view.name] = error
            else:
                fine.append(view)
        return wrong

    def _ready(self, views: Mapping[str, View]) -> Group:
        """What is registered and not compiled yet, without views that read what is not there."""
        definition = self._coordinator.definition
        known = [*definition.sources, *definition.views, *self._sources]
        ready: dict[str, View] = {}
        for name in in_order({one: view.sql for one, view in views.items()}):
            if not missing(views[name].sql, known):
                ready[name] = views[name]
                known.append(name)
        return Group(
            tuple(source_entry(one) for one in self._sources.values()),
            tuple(view_entry(name, view) for name, view in ready.items()),
            spread=dict(self._spread),
        )

    def _chosen(self, group: Group) -> Group:
        """The group with what is recomputed in it; raises what is wrong with a view."""
        return chosen(self._coordinator.definition, group, self._executor)

    # What follows a change

    def _settle(self) -> None:
        """Finish what an exception has left, and tell everyone who was not told; every call does that first.

        Raises:
            FlowError: this process was forked from the one that opened the flow.
            StorageError: the storage could not be asked what the flow is.
        """
        if not self._is_own:
            raise FlowError(
                f"The flow {self.name!r} belongs to the process {self._owner}, which this one was forked from.",
                hint="tick it there, or open the flow anew when it is closed there",
            )
        if self._coordinator.is_settled:
            return
        self._coordinator.settle()
        self._forget_defined()
        ticked = self._coordinator.untold
        if ticked is not None:
            if self._telling is None or self._telling.ticked is not ticked:
                self._telling = self._told(ticked)
            telling = self._telling
            telling.committed.finish()
            self._coordinator.told()
            telling.publication.raise_interrupt()

    def _settle_if_needed(self) -> None:
        if not self._coordinator.is_settled:
            with self._lock:
                self._settle()

    def _settle_before_closing(self) -> None:
        try:
            self._settle()
        except WeirflowError as error:
            _log.warning("the flow %s is closed before all is told: %s", self.name, error.message)

    def _change(self, change: Callable[[], None]) -> None:
        """Let a change happen, and all that follows from it.

        What the change raises is raised; if it is an interrupt, everyone is told first, should it have happened. What
        follows is reported if it fails.
        """
        pending = self._coordinator.pending
        try:
            change()
        except Exception:
            raise
        except BaseException:
            with contextlib.suppress(WeirflowError):  # the next call tries again
                self._settle()
            raise
        steps = [
            self._settle,
            self._settle,
            self._sinks.after_tick,
        ]  # the second time, if something came into the first
        if pending is not None:
            steps.append(lambda: self._coordinator.tidy(pending))
        afterwards(steps, self.name, self._coordinator.commit.epoch)

    def _told(self, ticked: Ticked) -> _Telling:
        """Rows of large outputs are read only if somebody watches them."""
        watched = self._outputs.watched | self._sinks.views
        changed = {
            name: self._coordinator.changed(refs)
            for name, refs in ticked.outputs.items()
            if name in watched or all(ref.data is not None for ref in refs)
        }
        told = {name: changed.get(name) for name in ticked.outputs}
        publication = self._outputs.publication(ticked.epoch, changed)

        def remember() -> None:
            self._outputs.history.append(ticked.epoch, {**told, **dict.fromkeys(ticked.ended)})
            self._outputs.close(lambda view: view in ticked.ended)
            self._sinks.put(ticked.epoch, changed)

        return _Telling(ticked, Committed([remember, publication.run]), publication)

    def _replayed(self, after: int) -> Iterator[tuple[int, Mapping[str, Batch]]]:
        oldest = self._outputs.history.oldest
        raise HistoryGone(f"The deltas after epoch {after} are not kept any more.", oldest=oldest)

    def _known_sources(self) -> dict[str, Source]:
        return {**self._coordinator.definition.sources, **self._sources}

    def _known_views(self) -> dict[str, View]:
        return {**{name: entry_view(one) for name, one in self._coordinator.definition.views.items()}, **self._views}

    def _relation(self, name: str) -> str:
        if name in self._views:
            raise waits(name, self._why(name))
        if name in self._known_sources() or name in self._known_views():
            return name
        raise no_relation(name, (*self.sources, *self.views))

    def _schema(self, name: str) -> pa.Schema:
        return self._coordinator.blueprint.schema(self._relation(name))

    def _delta(self, name: str, rows: Batch) -> DeltaBatch:
        return DeltaBatch.of_batch(self._schema(name.removesuffix(LATE)), rows)

    @property
    def _is_own(self) -> bool:
        return os.getpid() == self._owner

    def _require_open(self) -> None:
        require_room()
        if self._closed:
            raise FlowError(f"The flow {self.name!r} is closed.", hint="open it again to go on")
        self._settle()

    def _require_settled(self) -> None:
        self._require_open()
        if self._coordinator.pending is not None:
            raise tick_pending()
