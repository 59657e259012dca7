"""``Outputs``: who is told what a tick changed, and what is remembered of it."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from weirflow.ivm.flow.history import History
from weirflow.ivm.flow.watch import OverflowPolicy, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from weirflow.ivm.zset.batch import Batch
    from weirflow.ivm.zset.delta import DeltaBatch

    Callback = Callable[[int, DeltaBatch], None]

_log = logging.getLogger(__name__)

_ROOM_SECONDS = 30.0


class Outputs:
    """The watches and callbacks of a flow, and its recent history.

    Args:
        history: how many epochs are remembered.
        nbytes: how many bytes of them at most.
        delta: the rows of a view, by its name, as users see them.
    """

    def __init__(self, *, history: int, nbytes: int, delta: Callable[[str, Batch], DeltaBatch]) -> None:
        self.history = History(epochs=history, nbytes=nbytes)
        self._delta = delta
        self._lock = threading.Lock()
        self._watches: list[Watch] = []
        self._callbacks: dict[str, list[Callback]] = {}

    def watch(
        self, view: str, epoch: int, first: Iterable[tuple[int, Batch]], *, capacity: int, policy: OverflowPolicy
    ) -> Watch:
        """A watch of a view's deltas after ``epoch``, which begins with ``first``."""
        watch = Watch(view, capacity=capacity, policy=policy, detach=self._detach)
        watch.begin(epoch, [(number, self._delta(view, rows)) for number, rows in first])
        with self._lock:
            self._watches.append(watch)
        return watch

    def call(self, view: str, callback: Callback) -> None:
        """Call a function with the deltas of a view from now on."""
        with self._lock:
            self._callbacks.setdefault(view, []).append(callback)

    @property
    def watched(self) -> set[str]:
        """The views that somebody watches or is called with."""
        with self._lock:
            return {watch.view for watch in self._watches} | set(self._callbacks)

    def await_room(self, changed: Mapping[str, Batch | None]) -> None:
        """Wait until every watch of these views that holds ticks back has room; ``FlowError`` if that takes long."""
        deadline = time.monotonic() + _ROOM_SECONDS
        for watch in self._watching(changed):
            watch.await_room(deadline)

    def publish(self, epoch: int, changed: Mapping[str, Batch]) -> None:
        """Tell everyone what an epoch changed. Does not fail."""
        deltas: dict[str, DeltaBatch] = {}

        def delta(view: str) -> DeltaBatch:
            if view not in deltas:
                deltas[view] = self._delta(view, changed[view])
            return deltas[view]

        for watch in self._watching(changed):
            watch.put(epoch, delta(watch.view))
        for view, callbacks in list(self._callbacks.items()):
            if view in changed:
                for callback in callbacks:
                    _call(callback, view, epoch, delta(view))

    def waiting(self) -> dict[str, int]:
        """For each watched view, the deltas that its readers have not taken yet."""
        with self._lock:
            watches = list(self._watches)
        found: dict[str, int] = {}
        for watch in watches:
            found[watch.view] = found.get(watch.view, 0) + len(watch)
        return found

    def close(self, is_gone: Callable[[str], bool]) -> None:
        """End the watches of all views that are gone."""
        for watch in [watch for watch in self._watches if is_gone(watch.view)]:
            watch.close()

    def _watching(self, changed: Mapping[str, Batch | None]) -> list[Watch]:
        with self._lock:
            return [watch for watch in self._watches if watch.view in changed]

    def _detach(self, watch: Watch) -> None:
        with self._lock:
            if watch in self._watches:
                self._watches.remove(watch)


def _call(callback: Callback, view: str, epoch: int, delta: DeltaBatch) -> None:
    try:
        callback(epoch, delta)
    except Exception:  # noqa: BLE001 - whatever a callback raises, the tick has happened
        _log.exception("a callback for deltas of %s failed at epoch %d", view, epoch)
