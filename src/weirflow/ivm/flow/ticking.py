"""``Ticking``: how deltas come in."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Lifetime, Name, Token, checked
from weirflow.errors import FlowError
from weirflow.failpoints import failpoint
from weirflow.ivm.flow.core import FlowCore, Pending
from weirflow.ivm.flow.persist import tick_entry
from weirflow.ivm.flow.refusals import tick_pending
from weirflow.ivm.flow.source import LATE, NamedDeltas, deltas_of
from weirflow.ivm.flow.summary import StepSummary
from weirflow.ivm.flow.unfinished import Committed
from weirflow.ivm.kernel.deadline import Deadline
from weirflow.ivm.zset.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from weirflow.ivm.circuit.circuit import Marks
    from weirflow.ivm.flow.position import Position
    from weirflow.ivm.zset.batch import Batch


@checked
class Ticking(FlowCore):
    """How deltas come in."""

    def tick(
        self,
        source: Name | NamedDeltas,
        delta: Any = None,
        *,
        token: Token | None = None,
        timeout: Lifetime | None = None,
    ) -> StepSummary:
        """Apply a delta to a source, or to several at once, and bring every view that reads it to the new epoch.

        A delta is a ``DeltaBatch``, or rows (Arrow, pandas, Polars, dicts) that are inserted, or upserted where the
        source has a key. Either everything happens or nothing: when a view fails (an overflow, say) the delta is kept,
        and ``retry()`` or ``discard()`` decides about it.

        Args:
            source: the source's name, or a mapping of names to deltas; an empty one makes an epoch without changes.
            delta: the delta, unless ``source`` is a mapping.
            token: names the tick, in 256 characters at most; does nothing if one of the last 100,000 ticks had it.
            timeout: the seconds it may take until its changes are known; None for any time.

        Raises:
            DataError: a row breaks a rule of a view, or a retracted row is not there.
            TickTimeout: the time is over.
            ConfigError: the delta does not fit the source's schema.
            TickPending: an earlier tick failed and waits.
        """
        return self._tick(source, delta, token=token, deadline=Deadline(timeout))

    def feed(
        self,
        source: Name | NamedDeltas,
        delta: Any = None,
        *,
        position: Position,
        timeout: Lifetime | None = None,
    ) -> StepSummary:
        """A tick from a stream that can bring its deltas again; the flow remembers where the stream is.

        A delta from the position where the stream already is does nothing. One that fails is not kept.

        Raises:
            StreamConflict: another stream was attached under this name before.
        """
        deadline = Deadline(timeout)
        with self._ticks:
            with self._lock:
                self._require_open()
                found = self._state.position(position)
                if found is not None:
                    self._metrics.tick_replayed()
                    return StepSummary(found, 0, 0, 0.0, replayed=True)
            others = self.pending
            failpoint("feed.before_tick")
            try:
                summary = self._tick(source, delta, position=position, deadline=deadline)
            except BaseException:
                if not others:
                    self.discard()
                raise
            failpoint("feed.after_tick")
            return summary

    def position(self, stream: Name) -> Position | None:
        """How far the flow has taken in what is attached under a name; None if nothing ever was."""
        with self._lock:
            self._require_open()
            found = self._state.positions.get(stream)
            return found and found[0]

    def epoch_of(self, token: Token) -> int | None:
        """The epoch of the tick that had this token, if it was one of the last; None if none had."""
        with self._lock:
            self._require_open()
            return self._state.epoch_of(token)

    def load(
        self, source: Name, data: Any, *, token: Token | None = None, timeout: Lifetime | None = None
    ) -> StepSummary:
        """Insert (or upsert) a table of rows as one tick; made for millions of them."""
        return self.tick(source, data, token=token, timeout=timeout)

    def retry(self, *, timeout: Lifetime | None = None) -> StepSummary:
        """Run the tick that failed again, in so many seconds if a timeout is given."""
        deadline = Deadline(timeout)
        with self._ticks:
            with self._lock:
                self._require_open()
                pending = self._pending
                if pending is None:
                    raise FlowError("No tick is pending.", hint="retry() is for a tick that failed")
            return self._measured(lambda: pending, time.perf_counter(), deadline)

    def discard(self) -> None:
        """Give up the tick that failed: its delta never happened. Does nothing without one."""
        with self._ticks, self._lock:
            self._settle()
            self._pending = None

    @property
    def pending(self) -> bool:
        """Whether a tick failed and waits for ``retry`` or ``discard``."""
        return self._pending is not None

    def too_late(self, source: Name, rows: pa.Table) -> int:
        """How many of these rows of a source, of its schema, would go to the late side output."""
        with self._lock:
            self._require_open()
            reader = self._state.input(source)
            return int(reader.too_late(reader.weighted(rows)).sum())

    def _tick(
        self,
        source: str | Mapping[str, Any],
        delta: Any,
        *,
        token: str | None = None,
        position: Position | None = None,
        deadline: Deadline,
    ) -> StepSummary:
        started = time.perf_counter()
        deltas = deltas_of(source, delta)
        with self._ticks:
            with self._lock:
                self._require_open()
                if self._pending is not None:
                    raise tick_pending()
                done = None if token is None else self._state.epoch_of(token)
                if done is not None:
                    self._metrics.tick_replayed()
                    return StepSummary(done, 0, 0, 0.0, replayed=True)

            def read() -> Pending:
                self._fill()
                changes = {name: self._state.input(name).read(data) for name, data in deltas.items()}
                return Pending(changes, token, position)

            return self._measured(read, started, deadline)

    def _measured(self, pending: Callable[[], Pending], started: float, deadline: Deadline) -> StepSummary:
        try:
            return self._run(pending, started, deadline)
        except BaseException:
            self._metrics.tick_failed()
            raise

    def _run(self, read: Callable[[], Pending], started: float, deadline: Deadline) -> StepSummary:
        """Step, wait for readers, commit; whatever raises before that leaves all as it was, and the tick pending."""
        with self._lock:
            self._sinks.before_tick()
            pending = read()
            self._pending = pending
            changes = pending.changes
            failpoint("tick.before_step")
            with deadline:
                outputs = self._state.step(changes)
            outputs |= {f"{name}{LATE}": one.late for name, one in changes.items() if len(one.late)}
        with deadline:
            self._outputs.await_room(outputs)
        with self._lock:
            self._require_not_closed()  # it may have been while the tick waited
            self._commit(pending, outputs)
        views = {name: len(delta) for name, delta in outputs.items() if not name.endswith(LATE)}
        rows_in = sum(one.rows_in for one in changes.values())
        rows_out = sum(views.values())
        late = sum(len(one.late) for one in changes.values())
        dropped = sum(one.rows_in for one in changes.values() if one.dropped)
        seconds = time.perf_counter() - started
        self._metrics.tick(seconds, rows_in=rows_in, rows_out=rows_out, late=late, dropped=dropped)
        return StepSummary(self.epoch, rows_in, rows_out, seconds * 1000, views, late, dropped)

    def _commit(self, pending: Pending, outputs: Mapping[str, Batch]) -> None:
        """Let a tick happen that was stepped, and all that follows from it."""
        state, changes = self._state, pending.changes
        epoch = state.epoch + 1
        marks: Marks = []
        publication = self._outputs.publication(epoch, outputs)

        def apply() -> Committed:
            failpoint("tick.before_commit")
            state.commit(marks)
            failpoint("tick.before_log")
            return Committed([remember, publication.run])

        def remember() -> None:
            state.accept(epoch, changes, pending.token, pending.position)
            self._pending = None
            self._outputs.history.append(epoch, {**outputs, **{name: one.rows for name, one in changes.items()}})
            self._sinks.put(epoch, outputs)
            failpoint("tick.before_publish")

        self._change(
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
