"""The current key's timers, kept by another engine; changed in one go when a call is over."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from typing_extensions import override

from weirflow.errors import UnsupportedError
from weirflow.process.context import Timers
from weirflow.process.timers import as_time

if TYPE_CHECKING:
    from weirflow.process.hosted.function import Host
    from weirflow.state.descriptors import TimeKind


class HostedTimers(Timers):
    """Timers of the one kind that the engine's query has; see ``Timers``.

    Attributes:
        added: those that were registered since it was last emptied.
    """

    def __init__(self, host: Host, time: TimeKind | None, function: str) -> None:
        self._host = host
        self._time = time
        self._function = function
        self._stored: set[int] | None = None
        self._changes: dict[int, bool] = {}
        self.added: list[int] = []

    @override
    def register(self, at: int, kind: TimeKind = "event") -> None:
        if kind != self._time:
            raise self._other(kind)
        at = as_time(at)
        self._changes[at] = True
        self.added.append(at)

    @override
    def delete(self, at: int, kind: TimeKind = "event") -> None:
        if kind != self._time:
            raise self._other(kind)
        self._changes[as_time(at)] = False

    def has(self, at: int) -> bool:
        """Whether it is there."""
        return self._changes.get(at, at in self._known())

    def take_back(self, at: int) -> None:
        """Remove one that was registered."""
        self._changes[at] = False

    def put_off(self, at: int, until: int) -> None:
        """Make one that was registered for a time one of a later time."""
        self._changes[at] = False
        self._changes[until] = True

    def due(self, until: int) -> list[int]:
        """Those that are not after a time."""
        return [at for at in self._known() | self._changes.keys() if at <= until and self.has(at)]

    def engine_removes(self, until: int) -> None:
        """What is stored up to a time the engine removes by itself."""
        known = self._known()
        for at in [at for at, there in self._changes.items() if not there and at <= until and at in known]:
            del self._changes[at]

    def flush(self) -> None:
        """Hand all changes to the engine; then no key is current."""
        for at, there in self._changes.items():
            if self._stored is not None and there == (at in self._stored):
                continue
            if there:
                self._host.register(at)
            else:
                self._host.delete(at)
        self._changes.clear()
        self.added.clear()
        self._stored = None

    def _known(self) -> set[int]:
        if self._stored is None:
            self._stored = set(self._host.timers())
        return self._stored

    def _other(self, kind: str) -> UnsupportedError:
        if self._time is None:
            return UnsupportedError(
                f"{self._function} uses timers but has no on_timer for them to call.",
                hint="write on_timer, or leave the timers out",
            )
        return UnsupportedError(
            f"{self._function} uses a timer by {kind} time, but all timers of its Spark query go by {self._time} time.",
            hint=f'pass time="{kind}" to process(...), and use timers of that kind alone',
        )


def fire(timers: HostedTimers, until: int, call: Callable[[int], None]) -> None:
    """Call for each of the current key's timers that is not after a time, in their order.

    One that is registered meanwhile for a later time, and is due, is among them. One for the same time or an earlier
    one waits: it becomes one of the first millisecond that is not due.
    """
    waiting = timers.due(until)
    heapify(waiting)
    timers.added.clear()
    last = None
    while waiting:
        at = heappop(waiting)
        if at == last or not timers.has(at):
            continue
        last = at
        timers.take_back(at)
        call(at)
        for new in [new for new in timers.added if new <= until and timers.has(new)]:
            if new > at:
                heappush(waiting, new)
            else:
                timers.put_off(new, until + 1)
        timers.added.clear()
