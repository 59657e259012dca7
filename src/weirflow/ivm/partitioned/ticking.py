"""``PartitionedTicking``: how deltas come in."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Lifetime, Name, Token, checked
from weirflow.errors import ConfigError, DataError, FlowError
from weirflow.ivm.flow.position import Position
from weirflow.ivm.flow.refusals import no_source, require_token
from weirflow.ivm.flow.source import LATE, NamedDeltas, deltas_of, digest_of
from weirflow.ivm.flow.summary import StepSummary
from weirflow.ivm.kernel.deadline import Deadline
from weirflow.ivm.partitioned.core import PartitionedCore
from weirflow.ivm.partitioned.moving import SplitRows, decode_moved, reader, split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weirflow.ivm.partitioned.jobs import Deltas
    from weirflow.ivm.partitioned.ledger import Ticked

_log = logging.getLogger(__name__)

_INLINE = 1 << 20


@checked
class PartitionedTicking(PartitionedCore):
    """How deltas come in."""

    def tick(
        self,
        source: Name | NamedDeltas,
        delta: Any = None,
        *,
        token: Token | None = None,
        timeout: Lifetime | None = None,
    ) -> StepSummary:
        """Apply a delta to a source, or to several at once, and bring every view to the new epoch.

        A delta is what ``IncrementalFlow.tick`` takes, or a Spark frame of any size: its rows go from executor to
        executor. Of a frame, rows have no order, so for a source with a key it may hold each key once.

        When ``timeout`` seconds are over, its job is cancelled. What a frame takes to be read counts too, but is not
        cut short.

        Raises:
            DataError: a row breaks a rule of a view, or a retracted row is not there; ``retry`` or ``discard``.
            TickTimeout: the time is over; ``retry`` or ``discard``.
            ConfigError: the delta does not fit the source's schema.
            TickPending: an earlier tick failed and waits.
            LeaseLost: another process coordinates the flow now.
        """
        return self._tick(source, delta, token=token, deadline=Deadline(timeout))

    def load(
        self, source: Name, data: Any, *, token: Token | None = None, timeout: Lifetime | None = None
    ) -> StepSummary:
        """Insert (or upsert) a table of rows as one tick; made for millions of them."""
        return self.tick(source, data, token=token, timeout=timeout)

    def feed(
        self,
        source: Name | NamedDeltas,
        delta: Any = None,
        *,
        position: Position,
        timeout: Lifetime | None = None,
    ) -> StepSummary:
        """A tick from a stream that can bring its deltas again; see ``IncrementalFlow.feed``."""
        deadline = Deadline(timeout)
        with self._ticks:
            self._require_open()
            last = self._coordinator.commit.positions.get(position.stream)
            if last is not None and position.repeats(Position(position.stream, last[0], last[1])):
                self._metrics.tick_replayed()
                return StepSummary(last[2], 0, 0, 0.0, replayed=True)
            others = self.pending
            try:
                return self._tick(source, delta, position=position, deadline=deadline)
            except BaseException:
                if not others:
                    self.discard()
                raise

    def position(self, stream: Name) -> Position | None:
        """How far the flow has taken in what is attached under a name; None if nothing ever was."""
        self._settle_if_needed()
        found = self._coordinator.commit.positions.get(stream)
        return None if found is None else Position(stream, found[0], found[1])

    def epoch_of(self, token: Token) -> int | None:
        """The epoch of the tick that had this token, if it was one of the last; None if none had."""
        require_token(token)
        self._settle_if_needed()
        return self._coordinator.commit.tokens.get(token)

    def retry(self, *, timeout: Lifetime | None = None) -> StepSummary:
        """Run the tick that failed again, in so many seconds if a timeout is given."""
        deadline = Deadline(timeout)
        with self._ticks:
            with self._lock:
                self._require_open()
                if self._coordinator.pending is None:
                    raise FlowError("No tick is pending.", hint="retry() is for a tick that failed")
                self._sinks.before_tick()
            return self._run(time.perf_counter(), deadline)

    def discard(self) -> None:
        """Give up the tick that failed: its delta never happened. Does nothing without one."""
        with self._ticks, self._lock:
            self._settle()
            self._coordinator.discard()

    @property
    def pending(self) -> bool:
        """Whether a tick failed and waits for ``retry`` or ``discard``."""
        self._settle_if_needed()
        return self._coordinator.pending is not None

    # Inner workings

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
                self._require_settled()
                if token is not None:
                    require_token(token)
                    done = self._coordinator.commit.tokens.get(token)
                    if done is not None:
                        self._metrics.tick_replayed()
                        return StepSummary(done, 0, 0, 0.0, replayed=True)
                self._sinks.before_tick()
                self._define()
                rows: Deltas = {}
                digests: dict[str, bytes] = {}
                dropped = sum(self._split(name, data, rows, digests) for name, data in deltas.items())
                place = None if position is None else (position.stream, position.origin, position.at)
                self._coordinator.begin(rows, token=token, position=place, digests=digests)
            return self._run(started, deadline, dropped)

    def _split(self, name: str, data: Any, rows: Deltas, digests: dict[str, bytes]) -> int:
        """Put a delta's rows where their shards find them, and its digest where repetitions are to be noticed.

        Returns how many rows are dropped because the delta repeats an earlier one.
        """
        coordinator = self._coordinator
        definition = coordinator.definition
        if name not in definition.sources:
            raise no_source(name, self.views, self.sources)
        source, epoch = definition.sources[name], coordinator.commit.epoch + 1
        if hasattr(data, "mapInArrow"):  # a Spark frame, of whichever kind
            if source.dedup:
                raise ConfigError(
                    f"The source {name!r} notices repeated deltas, which cannot be done for frames.",
                    hint="give the tick a token=, or register the source without dedup=",
                )
            work = SplitRows(coordinator.uri, definition.encoded, name, self.partitions, epoch)
            for part in self._executor.split(data, work):
                for _, shard, ref in decode_moved(part):
                    rows.setdefault(name, {}).setdefault(shard, []).append(ref)
            return 0
        given = reader(source).weighted(data)
        if source.dedup:
            digest = digest_of(given)
            if digest in coordinator.commit.digests.get(name, []):
                return len(given)
            digests[name] = digest
        parts = 1 if definition.is_everywhere(name) else self.partitions
        for shard, own in split(given, definition.columns[name], parts).items():
            ref = coordinator.files.write_rows(own, epoch, _INLINE)
            for target in range(self.partitions) if definition.is_everywhere(name) else [shard]:
                rows.setdefault(name, {}).setdefault(target, []).append(ref)
        return 0

    def _run(self, started: float, deadline: Deadline, dropped: int = 0) -> StepSummary:
        done: list[Ticked] = []
        try:
            # What changes is known when the job is done; then it is too late to wait for readers.
            with deadline:
                self._outputs.await_room(dict.fromkeys(self._outputs.watched))
            with self._lock:
                self._require_open()
                self._change(lambda: done.append(self._coordinator.tick(deadline)))
        except BaseException:
            self._metrics.tick_failed()
            raise
        (ticked,) = done
        views = {
            name: sum(ref.count for ref in refs) for name, refs in ticked.outputs.items() if not name.endswith(LATE)
        }
        late = sum(ref.count for name, refs in ticked.outputs.items() if name.endswith(LATE) for ref in refs)
        rows_in = dropped + sum(report.rows_in for report in ticked.reports)
        seconds = time.perf_counter() - started
        self._metrics.tick(seconds, rows_in=rows_in, rows_out=sum(views.values()), late=late, dropped=dropped)
        return StepSummary(ticked.epoch, rows_in, sum(views.values()), seconds * 1000, views, late, dropped)

    def _refeed(self) -> None:
        """Run the tick that a coordinator before this one began; what the data is to blame for stays pending."""
        try:
            self._run(time.perf_counter(), Deadline(None))
        except DataError as error:
            _log.warning("the flow %s was opened with a tick that fails: %s", self.name, error.message)
