"""``Sink``: writes the deltas of one view to one target, each once and in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from weirflow.errors import FlowError, SinkFailed, WeirflowError
from weirflow.failpoints import failpoint
from weirflow.ivm.flow.outputs.reentry import reentered
from weirflow.sql.typing.durations import duration_micros
from weirflow.types import one_of

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.flow.sinks.sink_set import SinkSet
    from weirflow.ivm.zset.batch import Batch
    from weirflow.ivm.zset.delta import DeltaBatch

    Deltas = Sequence[tuple[int, DeltaBatch]]

_log = logging.getLogger(__name__)

_MOST_EPOCHS = 1000
_MOST_BYTES = 64 << 20
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 30.0


class Guarantee(StrEnum):
    """What a target holds after a crash."""

    EXACTLY_ONCE = "exactly-once"
    """Every delta once: the position is written in one step with the rows."""
    AT_LEAST_ONCE = "at-least-once"
    """Every delta, the last ones perhaps again: the position is written after them."""


class FailurePolicy(StrEnum):
    """What ticks do while a sink cannot write."""

    RAISE = "raise"
    """The next tick tries again, and raises ``SinkFailed`` instead of ticking if that fails too."""
    KEEP = "keep"
    """Ticks go on, and the sink tries again now and then, until it holds too many deltas; then as RAISE."""


class SinkTarget(Protocol):
    """The target of a sink. Calls come one at a time; a call that raises has written nothing, or can be repeated."""

    @property
    def guarantee(self) -> Guarantee:
        """What it holds after a crash."""

    def describe(self) -> str:
        """What is written and where, for people."""

    def open(self, owner: str, schema: pa.Schema) -> None:
        """Called first, with what identifies this view of this flow, and the view's columns."""

    def position(self) -> int | None:
        """The epoch up to which the owner has written, as the target itself says; None if nothing is there yet.

        Raises:
            SinkConflict: something else has written there.
        """

    def write(self, after: int, upto: int, deltas: Deltas) -> None:
        """Write the deltas after one epoch, up to another, together with the new position; there may be no deltas."""

    def replace(self, epoch: int, rows: DeltaBatch) -> None:
        """Remove what is there, and store these rows as those of an epoch."""

    def close(self) -> None:
        """Close connections and the like; called when the sink ends, or could not be made. Does not fail."""
        return


@dataclass(frozen=True)
class Rhythm:
    """When a sink writes: after so many epochs, or so many seconds after the first delta that waits."""

    epochs: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class SinkTerms:
    """How a sink writes.

    Attributes:
        name: what errors call it.
        rhythm: when it writes.
        policy: what ticks do while it cannot.
        resync: whether what is there is replaced with the view's current rows.
    """

    name: str
    rhythm: Rhythm
    policy: FailurePolicy
    resync: bool


def sink_terms(name: str, every: int | str, on_failure: str, *, resync: bool) -> SinkTerms:
    """How a sink writes, as users say it; see ``Flow.sink``."""
    rhythm = Rhythm(seconds=duration_micros(every) / 1e6) if isinstance(every, str) else Rhythm(epochs=every)
    return SinkTerms(name, rhythm, one_of(FailurePolicy, on_failure, "No policy for failures is called"), resync)


class Sink(AbstractContextManager["Sink"]):
    """Writes a view's deltas as ticks happen; ``flow.sink`` makes it.

    Attributes:
        name: what errors call it.
        view: whose deltas it writes.
        error: why it cannot write at the moment, or None.
    """

    def __init__(
        self,
        view: str,
        target: SinkTarget,
        terms: SinkTerms,
        *,
        position: int,
        sinks: SinkSet,
    ) -> None:
        self.name = terms.name
        self.view = view
        self.error: SinkFailed | None = None
        self._target = target
        self._rhythm = terms.rhythm
        self._policy = terms.policy
        self._sinks = sinks
        self._flow = sinks.flow
        self._recorded = position
        self._waiting: list[tuple[int, Batch]] = []
        self._bytes = 0
        self._since: float | None = None
        self._in_doubt = False
        self._writing = False
        self._pause = _FIRST_PAUSE
        self._again_at = 0.0
        self._closed = False

    @property
    def position(self) -> int:
        """The epoch up to which everything is written."""
        with self._sinks.lock:
            return self._recorded if self._waiting or self._closed else max(self._recorded, self._flow.epoch)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def flush(self) -> int:
        """Write everything that waits, now; returns the position.

        Raises:
            SinkFailed: the deltas cannot be written; they are kept.
        """
        with self._sinks.lock:
            if self._closed:
                raise FlowError(f"The sink {self.name!r} is closed.", hint="make it again to continue where it was")
            if self._waiting:
                self._write()
            return self.position

    def describe(self) -> str:
        """What it writes, where, how often, up to which epoch, and what a crash can do to it."""
        with self._sinks.lock:
            often = f"{self._rhythm.seconds:g} seconds" if self._rhythm.seconds else f"{self._rhythm.epochs} epochs"
            state = f"failing: {self.error.message}" if self.error else f"{len(self._waiting)} deltas wait"
            return (
                f"{self.view} to {self._target.describe()}, every {often}, {self._target.guarantee}; "
                f"at epoch {self.position}, {state}"
            )

    def close(self) -> None:
        """Write what waits, and end; the target stays. Closing twice does nothing.

        Raises:
            SinkFailed: what waits cannot be written. The sink is closed nevertheless; if you make it again on a durable
                flow, it continues where it was.
        """
        with self._sinks.lock:
            if self._closed:
                return
            self.require_idle("close its sink")
            try:
                if self._waiting:
                    self._write()
            finally:
                self._closed = True
                self._sinks.detach(self)
                self._target.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Sink {self.name}: {self.describe()}>"

    # For the flow, which holds the lock

    def require_idle(self, what: str) -> None:
        """Raise ``FlowReentered`` if it is writing, because then its own function is the caller."""
        if self._writing:
            raise reentered(listener(self.name), what)

    def put(self, epoch: int, rows: Batch) -> None:
        """Keep a delta until it is written. May be repeated."""
        if epoch <= max(self._recorded, self._waiting[-1][0] if self._waiting else 0):
            return
        self._waiting.append((epoch, rows))
        self._bytes += rows.nbytes
        if self._since is None:
            self._since = time.monotonic()

    def before_tick(self) -> None:
        """Try again what failed; raises ``SinkFailed`` if the tick must not happen before this is written."""
        if self.error is None or (not self._is_full and self._policy is FailurePolicy.KEEP):
            return
        self._write()

    def write_if_due(self) -> None:
        """Write if it is due. A failure undoes no tick: the error is kept for the next one."""
        if not self._is_due:
            return
        try:
            self._write()
        except SinkFailed as error:
            _log.warning("%s", error.message)

    def record(self, *, patient: bool) -> None:
        """Write what waits, and the position even if nothing waits: a checkpoint is about to drop older deltas.

        A patient caller, who will call again, does not try again what failed a moment ago.
        """
        if patient and self.error is not None and time.monotonic() < self._again_at:
            raise self.error
        if self._waiting or self._recorded < self._flow.epoch:
            self._write()

    @property
    def timed(self) -> bool:
        """Whether it writes by the clock."""
        return bool(self._rhythm.seconds)

    @property
    def seconds_left(self) -> float | None:
        """The seconds until it is due by the clock; None if it never is."""
        if self._since is None or not self._rhythm.seconds:
            return None
        return max(self._since + self._rhythm.seconds, self._again_at) - time.monotonic()

    # Inner workings

    @property
    def _is_full(self) -> bool:
        return self._bytes > _MOST_BYTES or len(self._waiting) > max(_MOST_EPOCHS, self._rhythm.epochs)

    @property
    def _is_due(self) -> bool:
        if not self._waiting or (self.error is not None and time.monotonic() < self._again_at):
            return False
        if self._is_full:
            return True
        if self._rhythm.seconds:
            return (self.seconds_left or 0.0) <= 0
        return self._flow.epoch - self._recorded >= self._rhythm.epochs

    def _write(self) -> None:
        self.require_idle("have its sink written")
        epoch, reentry = self._flow.epoch, self._sinks.reentry
        before = reentry.listener
        try:
            self._writing = True
            self._flow.sync()
            if self._in_doubt:
                self._settle()
            failpoint("sink.before_write")
            self._in_doubt = True
            if self._recorded < epoch:
                deltas = [(number, self._flow.delta(self.view, rows)) for number, rows in self._waiting]
                reentry.listener = listener(self.name)
                self._target.write(self._recorded, epoch, deltas)
            failpoint("sink.after_write")
        except BaseException as error:
            self._again_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            self.error = sink_failure(self.name, self._target, error)
            if isinstance(error, Exception):
                raise self.error from error
            raise
        finally:
            reentry.listener = before
            self._writing = False
        self._recorded = epoch
        self._waiting, self._bytes, self._since = [], 0, None
        self.error, self._pause = None, _FIRST_PAUSE
        # The last: until here whatever interrupts leaves it to the target to say how far it is.
        self._in_doubt = False

    def _settle(self) -> None:
        """Ask the target how far it is: a write that failed may have been done all the same."""
        self._recorded = max(self._recorded, self._target.position() or 0)
        self._waiting = [(epoch, rows) for epoch, rows in self._waiting if epoch > self._recorded]


def listener(name: str) -> str:
    """What a sink's function is called where it is refused something."""
    return f"The function of the sink {name!r}"


def sink_failure(name: str, target: SinkTarget, error: BaseException) -> SinkFailed:
    """The error for a target that could not be written."""
    why = error.message if isinstance(error, WeirflowError) else f"{type(error).__name__}: {error}"
    kept = "its deltas are kept: repair the target, then flush() the sink or tick again; or close() the sink"
    advice = error.hint if isinstance(error, WeirflowError) else None
    return SinkFailed(
        f"The sink {name!r} cannot write to {target.describe()}: {why}", hint=f"{advice}; {kept}" if advice else kept
    )
