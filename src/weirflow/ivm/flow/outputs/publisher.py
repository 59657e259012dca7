"""``Publisher``: who is told what a tick changed, and what is remembered of it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from weirflow.ivm.flow.outputs.history import History
from weirflow.ivm.flow.outputs.reentry import ReentryGuard
from weirflow.ivm.flow.outputs.watch import Watch, WatchTerms
from weirflow.ivm.kernel.deadline import soonest

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Batch
    from weirflow.ivm.zset.delta import DeltaBatch

    Callback = Callable[[int, DeltaBatch], None]

_log = logging.getLogger(__name__)

_ROOM_SECONDS = 30.0


class Publication:
    """Tells watches and callbacks what an epoch changed: watches once, however often it is run, callbacks at most once.

    Args:
        epoch: which one.
        changed: the rows of each view that has changed.
        watches: who watches them.
        callbacks: who is called, with the names of the views.
        others: who watches views that have not changed.
        delta: the rows of a view as users see them.
        reentry: knows whom the flow is telling.
    """

    def __init__(
        self,
        epoch: int,
        changed: Mapping[str, Batch],
        watches: Sequence[Watch],
        callbacks: Sequence[tuple[str, Callback]],
        *,
        others: Sequence[Watch],
        delta: Callable[[str, Batch], DeltaBatch],
        reentry: ReentryGuard,
    ) -> None:
        self._epoch = epoch
        self._changed = changed
        self._watches = watches
        self._others = others
        self._callbacks = list(callbacks)
        self._delta = delta
        self._reentry = reentry
        self._deltas: dict[str, DeltaBatch] = {}
        self._interrupt: BaseException | None = None

    def run(self) -> None:
        """Tell everyone who was not told yet. What callbacks raise is logged."""
        for watch in self._watches:
            watch.put(self._epoch, self._seen(watch.view))
        for watch in self._others:
            watch.passed(self._epoch)
        while self._callbacks:
            view, callback = self._callbacks.pop(0)
            before = self._reentry.listener
            try:
                self._reentry.listener = f"A callback for deltas of {view!r}"
                callback(self._epoch, self._seen(view))
            except Exception:  # noqa: BLE001 - whatever a callback raises, the tick has happened
                _log.exception("a callback for deltas of %s failed at epoch %d", view, self._epoch)
            except BaseException as error:  # noqa: BLE001 - raised when everyone is told
                self._interrupt = self._interrupt or error
            finally:
                self._reentry.listener = before

    def raise_interrupt(self) -> None:
        """Raise what stopped a callback and is more than an error, such as Control-C."""
        if self._interrupt is not None:
            raise self._interrupt

    def _seen(self, view: str) -> DeltaBatch:
        if view not in self._deltas:
            self._deltas[view] = self._delta(view, self._changed[view])
        return self._deltas[view]


class Publisher:
    """The watches and callbacks of a flow, and its recent history.

    Args:
        history: how many epochs are remembered.
        nbytes: how many bytes of them at most.
        delta: the rows of a view, by its name, as users see them.
    """

    def __init__(self, *, history: int, nbytes: int, delta: Callable[[str, Batch], DeltaBatch]) -> None:
        self.history = History(epochs=history, nbytes=nbytes)
        self.reentry = ReentryGuard()
        self._delta = delta
        self._lock = threading.Lock()
        self._watches: list[Watch] = []
        self._callbacks: dict[str, list[Callback]] = {}

    def watch(
        self,
        view: str,
        epoch: int,
        first: Iterable[tuple[int, Batch]],
        terms: WatchTerms,
        progress: DeltaBatch | None,
    ) -> Watch:
        """A watch of a view's deltas after ``epoch``, which begins with ``first``.

        ``progress``, a delta of no rows, is what it has for epochs that do not change the view; None if nothing.
        """
        watch = Watch(view, capacity=terms.capacity, policy=terms.policy, detach=self._detach, progress=progress)
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
        """Wait until every watch of these views that holds ticks back has room; ``FlowError`` if that takes long.

        ``TickTimeout`` if the tick has less time than that.
        """
        deadline = soonest(time.monotonic() + _ROOM_SECONDS)
        for watch in self._watching(changed):
            watch.await_room(deadline)

    @property
    def room(self) -> int | None:
        """How many deltas the fullest watch still takes; None if nobody watches."""
        with self._lock:
            return min((watch.room for watch in self._watches), default=None)

    def publication(self, epoch: int, changed: Mapping[str, Batch]) -> Publication:
        """What an epoch changed, to be told to everyone who watches or is called now."""
        callbacks = [(view, one) for view, own in list(self._callbacks.items()) if view in changed for one in own]
        with self._lock:
            watches = [watch for watch in self._watches if watch.view in changed]
            others = [watch for watch in self._watches if watch.view not in changed]
        return Publication(epoch, changed, watches, callbacks, others=others, delta=self._delta, reentry=self.reentry)

    def expect(self, epoch: int) -> None:
        """The next epoch is this one, though it may have been told before: the flow has gone back."""
        with self._lock:
            for watch in self._watches:
                watch.expect(epoch)

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
