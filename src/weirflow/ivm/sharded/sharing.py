"""``JobSharing``: the ticks of several callers as one job, each with its own epoch; one at a time if that fails."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from weirflow.errors import DataError, QueryError, TickTimeout, WeirflowError
from weirflow.ivm.kernel.deadline import Deadline
from weirflow.ivm.sharded.commits import GivenTick
from weirflow.ivm.sharded.queued_ticks import QueuedTick, SharedTicks

if TYPE_CHECKING:
    from weirflow.ivm.flow.summary import StepSummary
    from weirflow.ivm.sharded.commits import PendingTick
    from weirflow.ivm.sharded.coordinator import Coordinator
    from weirflow.ivm.sharded.ledger import ChangeNotice
    from weirflow.ivm.sharded.worker.distribution import TickInput

_MOST_TICKS = 64
_MOST_BYTES = 4 << 20


class SharingHost(Protocol):
    """The flow whose ticks share jobs. Whoever calls has its ticks to itself."""

    def before_tick(self) -> None:
        """Raise what a tick has to wait for."""

    def read_deltas(self, deltas: Mapping[str, Any]) -> TickInput:
        """Put the rows of deltas where their shards find them; raises what is wrong with them."""

    def commit_begun(self, deadline: Deadline) -> ChangeNotice:
        """Run what was begun, and tell everyone; the deadline holds until it is committed."""

    def run_begun(self, started: float, deadline: Deadline) -> StepSummary:
        """The same for a single tick that ``started`` so long ago, which is counted in metrics."""

    def count(self, summary: StepSummary) -> None:
        """Count a tick that has happened."""

    def summary(self, ticked: ChangeNotice, number: int, started: float, dropped: int) -> StepSummary:
        """What one of the ticks of a change did."""


class JobSharing:
    """Runs ticks that wait together. Whoever calls has the flow's ticks to itself, but for ``settle``.

    Whatever is raised, a tick of another caller than the one that runs them has happened, with ``is_done``, or has not
    and is for its own caller to run.

    Args:
        host: the flow.
        coordinator: its coordinator.
        lock: the flow's, for what others may read.
    """

    def __init__(self, host: SharingHost, coordinator: Coordinator, lock: AbstractContextManager[Any]) -> None:
        self._host = host
        self._coordinator = coordinator
        self._lock = lock
        self._shared: SharedTicks | None = None

    def settle(self, ticked: ChangeNotice) -> None:
        """Everyone is told of a change: so are those whose ticks it was. May be repeated."""
        shared = self._shared
        if shared is not None and ticked.begun is shared.begun:
            for number, tick in enumerate(shared.members):
                if tick.summary is None:
                    tick.summary = self._host.summary(ticked, number, tick.started, tick.dropped)

    def owns_begun(self, tick: QueuedTick) -> bool:
        """Whether what was begun is this tick alone, by another caller who could not finish it."""
        shared, pending = self._shared, self._coordinator.pending
        return shared is not None and pending is shared.begun and [*shared.members] == [tick]

    def members(self, first: QueuedTick, waiting: Sequence[QueuedTick], room: int | None) -> list[QueuedTick]:
        """The ticks that can share a job, in the order of their epochs: ``first``, and of those that wait what fits.

        Their deltas are read. One that cannot share, or that repeats another's token or content, is left to its caller.

        Args:
            first: whose caller runs them.
            waiting: all that wait.
            room: for how many epochs readers have room; None for any number.
        """
        most = _MOST_TICKS if room is None else min(_MOST_TICKS, room)
        if most < 2 or len(waiting) < 2 or not self._coordinator.shares_jobs:  # noqa: PLR2004 - two share
            return [first]
        found: list[QueuedTick] = []
        known = {*self._coordinator.commit.tokens}
        digests: set[tuple[str, bytes]] = set()
        size = 0
        for tick in [first, *(one for one in waiting if one is not first)]:
            if tick.alone or tick.token in known or not self._is_read(tick):
                if tick is first:
                    return [first]
                continue
            assert tick.given is not None
            size += _nbytes(tick.given)
            if digests.isdisjoint(tick.given.digests.items()):
                found.append(tick)
                digests.update(tick.given.digests.items())
                known |= set() if tick.token is None else {tick.token}
            if len(found) == most or size > _MOST_BYTES:
                break
        return found

    def run(self, members: Sequence[QueuedTick]) -> None:
        """Run several ticks as one job, and if that fails, one at a time; the first member's caller runs them.

        Those that fail because of their rows come last, so that the others have happened; one of them stays begun.
        """
        first, *others = [tick.given for tick in members if tick.given is not None]
        with self._lock:
            self._host.before_tick()
            begun = self._coordinator.begin(first, more=others)
        self._run(begun, members)

    def go_on(self, begun: PendingTick) -> list[QueuedTick]:
        """Run ticks that a coordinator before this one began together; returns them."""
        members = [QueuedTick({}, Deadline(None), one.token, given=one) for one in begun.given]
        self._run(begun, members)
        return members

    # Inner workings

    def _is_read(self, tick: QueuedTick) -> bool:
        """Read a tick's deltas; whether they are there, and small. What is wrong with them its own caller is told."""
        try:
            if any(getattr(data, "nbytes", 0) > _MOST_BYTES for data in tick.deltas.values()):
                tick.alone = True
                return False
            incoming = self._host.read_deltas(tick.deltas)
        except Exception:  # noqa: BLE001 - read again, and raised, where its caller hears it
            tick.alone = True
            return False
        tick.given = GivenTick(tick.token, incoming.rows, incoming.digests)
        tick.dropped = incoming.dropped
        tick.alone = any(ref.data is None for own in _refs(tick.given) for ref in own)
        return not tick.alone

    def _run(self, begun: PendingTick, members: Sequence[QueuedTick]) -> None:
        self._shared = SharedTicks(begun, members)
        try:
            self._host.commit_begun(_earliest(members))
        except Exception as error:
            if not self._is_left(begun, error):
                raise
            self._run_one_by_one(members)
        else:
            for tick in members:
                if tick.summary is not None:
                    self._host.count(tick.summary)

    def _run_one_by_one(self, members: Sequence[QueuedTick]) -> None:
        with self._lock:
            self._coordinator.part()
        failed = []
        for tick in members:
            begun = self._coordinator.pending if tick is members[0] else self._begin(tick)
            assert begun is not None
            self._shared = SharedTicks(begun, [tick])
            try:
                self._host.run_begun(tick.started, tick.deadline)
            except Exception as error:
                if self._is_given_up(error):
                    tick.error = error
                    continue
                if not self._is_left(begun, error):
                    raise
                self._discard()
                tick.error = error
                failed.append(tick)
            except BaseException:
                if tick is not members[0]:
                    with contextlib.suppress(WeirflowError):
                        self._discard()
                raise
        if failed:
            self._begin(failed[0])

    def _begin(self, tick: QueuedTick) -> PendingTick:
        assert tick.given is not None
        with self._lock:
            return self._coordinator.begin(tick.given)

    def _discard(self) -> None:
        with self._lock:
            self._coordinator.discard()

    def _is_given_up(self, error: Exception) -> bool:
        """Whether a tick that was run alone is not kept, because its delta is no change of its source."""
        return self._coordinator.is_settled and self._coordinator.pending is None and isinstance(error, DataError)

    def _is_left(self, begun: PendingTick, error: Exception) -> bool:
        """Whether nothing has happened but that the job failed, or took too long: it may be one tick's fault alone."""
        left = self._coordinator.is_settled and self._coordinator.pending is begun
        return left and isinstance(error, QueryError | TickTimeout)


def _earliest(members: Sequence[QueuedTick]) -> Deadline:
    limited = [tick.deadline for tick in members if tick.deadline.at is not None]
    return min(limited, key=lambda one: one.at or time.monotonic(), default=members[0].deadline)


def _refs(given: GivenTick) -> list[Any]:
    return [refs for shards in given.deltas.values() for refs in shards.values()]


def _nbytes(given: GivenTick) -> int:
    return sum(len(ref.data) for refs in _refs(given) for ref in refs if ref.data is not None)
