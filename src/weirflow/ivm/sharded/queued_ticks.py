"""Ticks that wait for the one that runs: those that wait together are run as one job."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weirflow.ivm.flow.summary import StepSummary
    from weirflow.ivm.kernel.deadline import Deadline
    from weirflow.ivm.sharded.commits import GivenTick, PendingTick

_MOST_PAUSE = 0.02
_SHARE_OF_JOB = 0.1
"""How long the next job waits at most for the callers of the last one to come back: a small part of what it takes."""
_LOOK = 0.05


@dataclass(eq=False)
class QueuedTick:
    """A tick that waits for its turn.

    Attributes:
        deltas: as they were given; nobody needs them once they are read.
        deadline: when it is to give up.
        token: that names it.
        given: what was read of the deltas; None as long as nobody has.
        dropped: how many rows were not, because a delta repeats an earlier one.
        alone: whether it cannot share a job.
        waits: whether its caller does.
        summary: what it did, once it is committed.
        error: why it was not.
    """

    deltas: Mapping[str, Any]
    deadline: Deadline
    token: str | None
    started: float = field(default_factory=time.perf_counter)
    given: GivenTick | None = None
    dropped: int = 0
    alone: bool = False
    waits: bool = True
    summary: StepSummary | None = None
    error: Exception | None = None
    _asleep: threading.Lock = field(default_factory=threading.Lock)

    def sleep(self) -> None:
        """Until ``wake`` is called, or was since the last time; or for a moment, as who calls it may be interrupted."""
        self._asleep.acquire(timeout=_LOOK)

    def wake(self) -> None:
        """Have its caller look whether it is done, or next."""
        with contextlib.suppress(RuntimeError):  # nobody has slept since
            self._asleep.release()

    @property
    def is_done(self) -> bool:
        """Whether there is an outcome."""
        return self.summary is not None or self.error is not None

    def outcome(self) -> StepSummary:
        """What it did; raises why it did nothing."""
        if self.error is not None:
            raise self.error
        assert self.summary is not None
        return self.summary


@dataclass(frozen=True)
class SharedTicks:
    """Those whose ticks were begun together, and as what: the first one's, with the others' behind it."""

    begun: PendingTick
    members: Sequence[QueuedTick]


class TickQueue:
    """The ticks of several threads.

    Who leaves the queue says so by ``waits = False``, and who is done with those that ran by ``running = ()``, which
    nothing can interrupt.

    Attributes:
        running: those that are run now, by one of their callers.
    """

    def __init__(self) -> None:
        self.running: Sequence[QueuedTick] = ()
        self._ticks: deque[QueuedTick] = deque()
        self._callers = 1
        self._until = 0.0

    def add(self, tick: QueuedTick) -> None:
        """Have a tick wait."""
        self._ticks.append(tick)

    def waiting(self) -> list[QueuedTick]:
        """Those that wait and are not done, in the order in which they came."""
        for tick in [one for one in self._ticks.copy() if not one.waits]:
            with contextlib.suppress(ValueError):  # somebody else was faster
                self._ticks.remove(tick)
        return [tick for tick in self._ticks.copy() if not tick.is_done]

    def is_next(self, tick: QueuedTick) -> bool:
        """Whether no other one is before it that waits for its turn."""
        first = next(
            (one for one in self._ticks.copy() if one.waits and not (one.is_done or one in self.running)), None
        )
        return first is tick

    def is_time_for(self, tick: QueuedTick) -> bool:
        """Whether to run it: it is not done, and no callers of the last job may be about to come back any moment."""
        is_gathering = time.monotonic() < self._until and len(self.waiting()) < self._callers
        return not (tick.is_done or is_gathering)

    def ran(self, ticks: Sequence[QueuedTick], seconds: float) -> None:
        """These were run as one job, which took so long: their callers can go, and the next one can come."""
        waiting = [one for one in self.waiting() if one not in ticks]
        self._callers = len(ticks) + len(waiting)
        self._until = time.monotonic() + min(_MOST_PAUSE, _SHARE_OF_JOB * seconds)
        for tick in (*ticks, *waiting[:1]):
            tick.wake()
