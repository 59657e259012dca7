"""``SinkSet``: all sinks of a flow, opened where their targets left off and told what each tick changed."""

from __future__ import annotations

import hashlib
import logging
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError, FlowError, HistoryGone, SinkConflict, WeirflowError, did_you_mean
from weirflow.extensions import CHECKPOINT_STORES, SINKS
from weirflow.ivm.compiler.reads import with_read
from weirflow.ivm.flow.sinks.foreach import ForeachTarget
from weirflow.ivm.flow.sinks.parquet import ParquetTarget
from weirflow.ivm.flow.sinks.sink import Sink, SinkTarget, SinkTerms, listener, sink_failure
from weirflow.ivm.flow.source import LATE
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch

if TYPE_CHECKING:
    from weirflow.ivm.compiler.view import View
    from weirflow.ivm.flow.host import FlowHost
    from weirflow.ivm.flow.outputs.publisher import Publisher

_log = logging.getLogger(__name__)

_CAUGHT_UP_BYTES = 64 << 20
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class SinkSet:
    """The sinks of a flow. Whoever calls holds the flow's lock.

    Args:
        flow: whose.
        outputs: the flow's recent history.
        lock: the flow's, held by whoever ticks or writes.

    Attributes:
        reentry: whom the flow is telling what a tick did.
    """

    def __init__(self, flow: FlowHost, outputs: Publisher, lock: threading.RLock) -> None:
        self.flow = flow
        self.lock = lock
        self.reentry = outputs.reentry
        self._history = outputs.history
        self._sinks: list[Sink] = []
        self._changed = threading.Event()
        self._clock: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._sinks)

    def open(self, view: str, to: str | Path | Callable[..., object] | SinkTarget, terms: SinkTerms) -> Sink:
        """A sink that goes on where its target is; a new target, or one to be replaced, first gets the view's rows.

        Args:
            view: whose deltas.
            to: a place for files, a function, or what writes elsewhere.
            terms: how it writes.
        """
        if view.endswith(LATE):
            raise ConfigError(f"{view!r} cannot have a sink: late rows are not kept.", hint="use watch_output")
        name = terms.name
        if any(name == sink.name for sink in self._sinks):
            raise FlowError(f"The flow has a sink {name!r} already.", hint="close() it first, or pass another name=")
        target: SinkTarget
        if isinstance(to, str | Path):
            target = _target_at(to)
        else:
            target = ForeachTarget(to, name, self.flow.storage) if callable(to) else to
        try:
            sink = self._made(view, target, terms)
        except BaseException:
            target.close()
            raise
        self._sinks.append(sink)
        if sink.timed:
            self._start_clock()
        return sink

    @property
    def views(self) -> set[str]:
        """The views that have a sink."""
        return {sink.view for sink in self._sinks}

    def before_tick(self) -> None:
        """``SinkFailed`` if a sink has to write first and cannot, ``FlowReentered`` for who is told of a tick."""
        self.reentry.require_over("tick or change the flow")
        for sink in list(self._sinks):
            sink.before_tick()

    def put(self, epoch: int, changed: Mapping[str, Batch]) -> None:
        """Hand each sink what an epoch changed, before anyone else is told and might ask it to write."""
        for sink in self._sinks:
            if sink.view in changed:
                sink.put(epoch, changed[sink.view])

    def after_tick(self) -> None:
        """Let those write whose time has come. Does not fail."""
        for sink in list(self._sinks):
            sink.write_if_due()
        self._changed.set()

    def record(self, *, patient: bool = False) -> None:
        """Write all that waits, before older deltas are dropped; ``SinkFailed`` if a sink cannot."""
        for sink in list(self._sinks):
            sink.record(patient=patient)

    def close(self, is_gone: Callable[[str], bool]) -> None:
        """Close the sinks of all views that are gone, also those that fail; ``SinkFailed`` if one does."""
        gone = [sink for sink in self._sinks if is_gone(sink.view)]
        for sink in gone:
            sink.require_idle("close its sink")
        failed: BaseException | None = None
        for sink in gone:
            try:
                sink.close()
            except BaseException as error:  # noqa: BLE001 - also after Ctrl-C the others are closed; it is raised below
                failed = failed or error
        if failed is not None:
            raise failed

    # Inner workings

    def _made(self, view: str, target: SinkTarget, terms: SinkTerms) -> Sink:
        """A sink whose target has been opened, and that has what is in memory and not written yet."""
        name = terms.name
        target.open(f"{self.flow.identity}/{_definition(view, self.flow.views)}", self.flow.schema(view))
        before = self.reentry.listener
        try:
            self.reentry.listener = listener(name)
            position = self._brought_up(name, view, target, resync=terms.resync)
        finally:
            self.reentry.listener = before
        sink = Sink(view, target, terms, position=position, sinks=self)
        try:
            recent = self._history.since(position, view)
        except HistoryGone as error:
            raise _not_kept(name, position) from error
        for epoch, rows in recent:
            sink.put(epoch, rows)
        return sink

    def _brought_up(self, name: str, view: str, target: SinkTarget, *, resync: bool) -> int:
        """Give a target what is not in memory; returns the epoch that it has reached."""
        position = None if resync else target.position()
        if position is None:
            return self._begin(name, view, target)
        epoch = self.flow.epoch
        if position > epoch:
            raise SinkConflict(
                f"{target.describe()} holds deltas up to epoch {position}, but the flow is at epoch {epoch}.",
                hint="pass resync=True to replace what is there with the view's current rows, or write elsewhere",
            )
        if position < self._history.oldest:
            return self._catch_up(name, view, target, position)
        return position

    def _begin(self, name: str, view: str, target: SinkTarget) -> int:
        """Give a target all rows of the view."""
        rows, epoch = self.flow.all_rows(view), self.flow.epoch
        if rows is None and epoch:
            raise ConfigError(
                f"The sink {name!r} would have to begin with all rows of {view!r}, and they are not kept.",
                hint="make the sink before the first tick, or register the view with materialized=True",
            )
        if rows is None:
            schema = self.flow.schema(view)
            rows = DeltaBatch.of_batch(schema, Batch.empty(schema.types))
        self.flow.sync()
        try:
            target.replace(epoch, rows)
        except Exception as error:
            raise sink_failure(name, target, error) from error
        return epoch

    def _catch_up(self, name: str, view: str, target: SinkTarget, position: int) -> int:
        """Write what is not in memory any more from the log; returns the epoch that was reached."""
        waiting: list[tuple[int, Batch]] = []
        reached, nbytes = position, 0
        try:
            for epoch, changed in self.flow.replayed(position):
                if view in changed:
                    waiting.append((epoch, changed[view]))
                    nbytes += changed[view].nbytes
                reached = epoch
                if nbytes > _CAUGHT_UP_BYTES:
                    self._write_old(target, position, reached, view, waiting)
                    position, waiting, nbytes = reached, [], 0
            self._write_old(target, position, reached, view, waiting)
        except HistoryGone as error:
            raise _not_kept(name, position) from error
        except WeirflowError:
            raise
        except Exception as error:
            raise sink_failure(name, target, error) from error
        return reached

    def _write_old(
        self, target: SinkTarget, after: int, upto: int, view: str, waiting: list[tuple[int, Batch]]
    ) -> None:
        if upto > after:
            target.write(after, upto, [(epoch, self.flow.delta(view, rows)) for epoch, rows in waiting])

    def detach(self, sink: Sink) -> None:
        """Forget a sink that is closed."""
        if sink in self._sinks:
            self._sinks.remove(sink)
        self._changed.set()

    def _start_clock(self) -> None:
        self._changed.set()
        if self._clock is None or not self._clock.is_alive():
            self._clock = threading.Thread(target=self._watch_clock, name="weirflow-sinks", daemon=True)
            self._clock.start()

    def _watch_clock(self) -> None:
        """Write what is due by the clock, until no sink is left that asks for it."""
        while True:
            self._changed.clear()
            with self.lock:
                timed = [sink for sink in self._sinks if sink.timed]
                for sink in timed:
                    _write_if_due(sink)
                left = [seconds for sink in timed if (seconds := sink.seconds_left) is not None]
                if not timed:
                    self._clock = None
                    return
            self._changed.wait(max(min(left), 0.0) if left else None)


def _write_if_due(sink: Sink) -> None:
    """In a thread of our own, which must not end by what a function raises; the sink tries again."""
    try:
        sink.write_if_due()
    except BaseException:  # noqa: BLE001 - SystemExit of a function would end the clock for every sink
        _log.exception("the sink %s was interrupted", sink.name)


def _not_kept(name: str, position: int) -> SinkConflict:
    return SinkConflict(
        f"The sink {name!r} is at epoch {position}, and the deltas after that are not kept any more.",
        hint="pass resync=True to replace what is there with the view's current rows, or write elsewhere",
    )


def _definition(view: str, views: Mapping[str, View]) -> str:
    """The view's name, with a digest of its SQL and plan and those of the views it reads."""
    found = {name: views[name].sql + (views[name].plan or "") for name in with_read(view, views)}
    digest = hashlib.blake2b(repr(sorted(found.items())).encode(), digest_size=8)
    return f"{view}/{digest.hexdigest()}"


def _target_at(to: str | Path) -> SinkTarget:
    """What writes to a place: files of ours, or what another distribution adds under the scheme of its URI."""
    match = None if isinstance(to, Path) else _SCHEME.match(to)
    scheme = None if match is None else match[1].lower()
    if scheme is None or scheme in CHECKPOINT_STORES.own:
        return ParquetTarget(to)
    if SINKS.has(scheme):
        target: SinkTarget = SINKS.make(scheme, to)
        return target
    if CHECKPOINT_STORES.has(scheme):
        return ParquetTarget(to)
    known = sorted({*CHECKPOINT_STORES.names, *SINKS.names})
    near = did_you_mean(scheme, known)
    use = f"use a folder or one of {', '.join(f'{one}://' for one in known)}"
    raise ConfigError(
        f"No sink writes to a URI that begins with '{scheme}:'.", hint=f"{near} Otherwise {use}" if near else use
    )
