"""``FlowCore``: what all parts of a flow share: its state, its lock and its outputs."""

from __future__ import annotations

import logging
import threading
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from weirflow.arguments import Count, Folder, Name, checked
from weirflow.errors import ConfigError, FlowError, HistoryGone, SinkFailed, StorageError
from weirflow.failpoints import failpoint
from weirflow.ivm.flow.gauges import measure
from weirflow.ivm.flow.outputs import Outputs
from weirflow.ivm.flow.refusals import tick_pending
from weirflow.ivm.flow.sinks import Sinks
from weirflow.ivm.flow.source import LATE
from weirflow.ivm.flow.state import FlowState
from weirflow.ivm.flow.store import FlowStore
from weirflow.ivm.flow.unfinished import Committed, Undo, afterwards
from weirflow.observability.metrics import FlowGauges, FlowMetrics
from weirflow.stack import require_room

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client import CollectorRegistry

    from weirflow.ivm.compiler.program import Engine
    from weirflow.ivm.durability.checkpoints import Checkpoints
    from weirflow.ivm.durability.records import Entry
    from weirflow.ivm.flow.evolution import EvolutionPlan
    from weirflow.ivm.flow.position import Position
    from weirflow.ivm.flow.rebuild import Rebuilt
    from weirflow.ivm.flow.source import Change
    from weirflow.ivm.zset.batch import Batch
    from weirflow.ivm.zset.delta import DeltaBatch

_log = logging.getLogger(__name__)

_HISTORY_BYTES = 64 << 20
_SCRAPE_SECONDS = 1.0


@dataclass(frozen=True)
class Pending:
    """A tick on its way: what it was given is kept until it succeeds or is discarded."""

    changes: Mapping[str, Change]
    token: str | None
    position: Position | None


class FlowCore:
    """What all parts of a flow share: its state, its lock and its outputs.

    Attributes:
        takes_frames: whether deltas may be Spark frames whose rows are elsewhere.
    """

    takes_frames = False

    @checked
    def __init__(
        self,
        name: Name = "flow",
        *,
        path: Folder | None = None,
        fsync: Count = 1,
        checkpoint_every: Count = 10_000,
        history: Count = 1000,
        engine: Engine | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        require_room()
        self.name = name
        # Who changes the flow holds the first, then the second; who reads it, the second alone, so that nobody who
        # only reads waits while a tick waits for others.
        self._ticks = threading.RLock()
        self._lock = threading.RLock()
        self._engine = engine
        self._outputs = Outputs(history=history, nbytes=_HISTORY_BYTES, delta=self._delta)
        self._pending: Pending | None = None
        self._saved_to: dict[str, Checkpoints] = {}
        self._checkpoint_every = checkpoint_every
        self._closed = False
        self._released = False
        self._unfinished: Undo | Committed | None = None
        self._metrics = FlowMetrics(name, registry)
        self._gauges = FlowGauges()
        self._store: FlowStore | None = None
        self._state = FlowState(engine)
        try:
            if path is not None:
                self._store = FlowStore(Path(path), name, fsync=fsync, metrics=self._metrics)
                self._state = self._store.open(engine, self._outputs.history)
            self._sinks = Sinks(
                uuid.uuid4().hex if self._store is None else self._store.identity,
                self._outputs,
                lock=self._lock,
                epoch=lambda: self.epoch,
                delta=self._delta,
                sync=lambda: None if self._store is None else self._store.sync(),
                replayed=self._replayed,
            )
            self._metrics.show_gauges(self)
        except BaseException:
            if self._store is not None:
                self._store.close()
            raise

    @property
    def path(self) -> Path | None:
        """The folder that keeps the flow; None if it is in memory."""
        return None if self._store is None else self._store.folder

    @property
    def epoch(self) -> int:
        """The number of the last tick."""
        if self._unfinished is not None:
            with self._lock:
                self._settle()
        return self._state.epoch

    @contextmanager
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
        """End all watches and sinks and let go of the flow's path. What was ticked stays; a tick that waits fails.

        Closing twice does nothing; a close that was interrupted goes on.

        Raises:
            SinkFailed: a sink could not write what it still had; the flow is closed all the same.
            StorageError: what was not synced yet could not be; the flow is closed all the same.
        """
        with self._lock:
            if self._released:
                return
            self._outputs.telling.require_over("close the flow")
            self._closed = True
            try:
                self._settle()
                self._outputs.close(lambda _: True)
                self._sinks.close(lambda _: True)
            finally:
                self._metrics.close()
                if self._store is not None:
                    self._store.close()
            self._released = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def gauges(self) -> FlowGauges | None:
        """What the flow holds now, or what it held when last asked if a long tick is running; None when closed."""
        if not self._closed and self._lock.acquire(timeout=_SCRAPE_SECONDS):
            try:
                self._gauges = measure(self._state, self._outputs, self._store)
            finally:
                self._lock.release()
        return None if self._closed else self._gauges

    # How it changes

    def _change(
        self,
        apply: Callable[[], Committed],
        entry: Callable[[], Entry] | None,
        undo: Callable[[], None],
        *,
        sync: bool = False,
    ) -> None:
        """Let a change happen wholly or not at all, whatever is raised on the way.

        Args:
            apply: makes the change in memory, and says what it entails.
            entry: what the log says of it, asked for when it is applied; None for what is not logged.
            undo: takes it back; may be repeated.
            sync: whether it has to survive a power failure, however seldom the log is synced.
        """
        self._unfinished = Undo(undo, self._store)
        try:
            committed = apply()
            if self._store is not None and entry is not None:
                self._store.append(entry(), sync=sync)
            self._unfinished = committed
        except BaseException:
            self._settle()
            raise
        try:
            self._settle()
        except BaseException:
            self._settle()
            raise

    def _settle(self) -> None:
        """Finish what an interrupt has left; every call on the flow does that first."""
        while self._unfinished is not None:
            self._unfinished.finish()
            self._unfinished = None

    def _ready(self) -> None:
        """Bring views that were declared to the rows that are there.

        Raises:
            DataError: one of them cannot be computed; nothing has changed.
        """
        self._require_open()
        self._fill()

    def _fill(self) -> None:
        if not self._state.is_filled:
            self._change(self._filled, None, self._state.keep_unfilled())

    def _filled(self) -> Committed:
        self._state.fill()
        return Committed([])

    def _take_over(self, build: Callable[[], Rebuilt], entry: Callable[[int], Entry]) -> EvolutionPlan:
        """Build, log, take over; whatever raises before that leaves everything as it was."""
        with self._lock:
            self._require_open()
            if self._pending is not None:
                raise tick_pending()
            self._sinks.before_tick()
            rebuilt = build()
        self._outputs.await_room(rebuilt.differences)
        with self._lock:
            self._require_open()
            before, epoch = self._state.epoch, rebuilt.state.epoch
            publication = self._outputs.publication(epoch, rebuilt.differences)

            def apply() -> Committed:
                self._state.become(rebuilt.state)
                failpoint("define.before_log")
                return Committed([remember, publication.run])

            def remember() -> None:
                failpoint("define.after_log")
                if epoch > before:
                    self._outputs.history.append(epoch, rebuilt.changed)
                self._outputs.close(lambda one: rebuilt.changed.get(one, ...) is None)
                self._sinks.put(epoch, rebuilt.differences)

            self._change(apply, lambda: entry(epoch), self._state.keep())
            self._afterwards([publication.raise_interrupt, self._sinks.after_tick, self._checkpoint_in_time])
        return rebuilt.plan

    def _afterwards(self, steps: Iterable[Callable[[], None]]) -> None:
        """Do what follows a change that has happened; see ``afterwards``."""
        afterwards(steps, self.name, self._state.epoch)

    def _checkpoint_in_time(self) -> None:
        """Replace a long log by a checkpoint. The tick has happened: that this fails must not look as if it had not."""
        if self._store is None or not 0 < self._checkpoint_every <= self._store.unsaved:
            return
        try:
            self._sinks.record(patient=True)
            self._store.checkpoint(self._state)
        except (StorageError, SinkFailed) as error:
            _log.warning("the flow %s goes on without a checkpoint: %s", self.name, error.message)

    def _replayed(self, after: int) -> Iterator[tuple[int, Mapping[str, Batch]]]:
        if self._store is None:
            raise HistoryGone(
                f"The deltas after epoch {after} are not kept.",
                oldest=self._outputs.history.oldest,
                hint="keep more history",
            )
        return self._store.replayed(self._engine, after)

    def _delta(self, name: str, rows: Batch) -> DeltaBatch:
        return self._state.delta(name.removesuffix(LATE), rows)

    def _output(self, name: str) -> str:
        """A view, or the late rows of a source."""
        if name.endswith(LATE) and name.removesuffix(LATE) in self._state.inputs:
            return name
        if name in self._state.inputs:
            raise ConfigError(f"{name!r} is a source; its deltas are those you give it.", hint="watch a view")
        return name if name in self._state.waiting else self._state.relation(name)

    def _require_open(self) -> None:
        """Called first by whoever holds the lock: refuse what is closed or another process's, finish what was begun."""
        require_room()
        if self._store is not None:
            self._store.require_owner()
        self._require_not_closed()
        self._settle()

    def _require_not_closed(self) -> None:
        if self._closed:
            raise FlowError(f"The flow {self.name!r} is closed.", hint="make another one with the same path to go on")
