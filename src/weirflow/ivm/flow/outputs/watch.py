"""``Watch``: the deltas of a view, in order and without gaps, for one reader."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from weirflow.arguments import Seconds, checked
from weirflow.errors import FlowError, WatchOverflow, WeirflowError
from weirflow.ivm.kernel.deadline import check

if TYPE_CHECKING:
    import asyncio

    import pyarrow as pa

    from weirflow.ivm.zset.delta import DeltaBatch

_log = logging.getLogger(__name__)


class OverflowPolicy(StrEnum):
    """What happens when a reader falls behind by more than its buffer can hold."""

    FAIL = "fail"
    """The reader gets ``WatchOverflow`` after what was buffered; ticks go on."""
    BLOCK = "block"
    """Ticks wait until the reader has made room."""


Item = tuple[int, "DeltaBatch"]


@dataclass(frozen=True)
class WatchTerms:
    """How somebody watches a view; see ``Flow.watch_output``.

    Attributes:
        snapshot: whether it begins with all current rows.
        from_epoch: the epoch whose later deltas it begins with; None for what comes from now on.
        capacity: how many deltas may wait for the reader.
        policy: what happens beyond that.
        progress: whether epochs that leave the view as it was are told of, too.
    """

    snapshot: bool = False
    from_epoch: int | None = None
    capacity: int = 1024
    policy: OverflowPolicy = OverflowPolicy.FAIL
    progress: bool = False


def no_rows(schema: pa.Schema) -> DeltaBatch:
    """What a watch has for an epoch without changes."""
    from weirflow.ivm.zset.batch import Batch  # noqa: PLC0415 - only who wants progress needs it
    from weirflow.ivm.zset.delta import DeltaBatch  # noqa: PLC0415 - as above

    return DeltaBatch.of_batch(schema, Batch.empty(schema.types))


class Watch(AbstractContextManager["Watch"]):
    """An iterator over ``(epoch, delta)`` of a view, which blocks until the next one comes; also for ``async for``.

    Close it when you are done, best with ``with``: from then on it costs nothing, and iteration ends. You may read it
    in another thread than the one that ticks; with the policy BLOCK, you must.
    """

    def __init__(
        self,
        view: str,
        *,
        capacity: int,
        policy: OverflowPolicy,
        detach: Callable[[Watch], None],
        progress: DeltaBatch | None = None,
    ) -> None:
        self.view = view
        self.policy = policy
        self._progress = progress
        self._capacity = capacity
        self._detach = detach
        self._items: deque[Item] = deque()
        # Held by itself: a condition takes it in several steps, and an interrupt between them would leave it taken.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._closed = False
        self._failure: WeirflowError | None = None
        self._last = 0
        self._began = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def __len__(self) -> int:
        return len(self._items)

    @property
    def closed(self) -> bool:
        """Whether it was closed, by its reader or together with its view or flow."""
        return self._closed

    @property
    def began(self) -> int:
        """The flow's epoch when the watch was made, even if the watch begins with earlier deltas."""
        return self._began

    @checked
    def get(self, timeout: Seconds | None = None) -> Item | None:
        """The next delta; None if the watch is closed, or if nothing came within ``timeout`` seconds.

        Raises:
            WatchOverflow: the reader fell behind; raised after all that was buffered is read.
        """
        with self._lock:
            self._changed.wait_for(lambda: self._items or self._closed or self._failure, timeout)
            return self._take()

    def close(self) -> None:
        """End the iteration, also for a reader that waits; what is buffered is dropped."""
        self._detach(self)
        with self._lock:
            self._closed = True
            self._items.clear()
            self._notify()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        item = self.get()
        if item is None:
            raise StopIteration
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        import asyncio  # noqa: PLC0415 - is slow to import, and there already for who has a loop

        while True:
            with self._lock:
                item = self._take()
                if item is not None:
                    return item
                if self._closed:
                    raise StopAsyncIteration
                event = asyncio.Event()
                waiting = (asyncio.get_running_loop(), event)
                self._waiting.append(waiting)
            try:
                await event.wait()
            finally:
                with self._lock:
                    if waiting in self._waiting:
                        self._waiting.remove(waiting)

    def __exit__(self, *_: object) -> None:
        self.close()

    # For the flow

    def begin(self, epoch: int, items: Iterable[Item]) -> None:
        """Set what the reader gets first, however much it is; later deltas follow after ``epoch``."""
        self._items.extend(items)
        self._last = self._began = epoch

    def expect(self, epoch: int) -> None:
        """Expect the delta of this epoch next; it may be earlier than the last one."""
        self._last = min(self._last, epoch - 1)

    @property
    def room(self) -> int:
        """How many more deltas fit before it is full."""
        return max(self._capacity - self._held, 0)

    def await_room(self, deadline: float) -> None:
        """Wait for room if the policy says so; raises ``FlowError`` if there is none by ``deadline`` (monotonic)."""
        if self.policy is not OverflowPolicy.BLOCK:
            return
        with self._lock:
            room = self._changed.wait_for(
                lambda: self._held < self._capacity or self._closed, deadline - time.monotonic()
            )
        if not room:
            check()
            raise FlowError(
                f"A reader of {self.view!r} has not made room for the next delta in time.",
                hint="read the watch in another thread, give it more capacity, or use the policy 'fail'",
            )

    def put(self, epoch: int, delta: DeltaBatch) -> None:
        """Deliver a delta, or note that the reader fell behind. May be repeated."""
        with self._lock:
            if self._closed or self._failure is not None or epoch <= self._newest:
                self._notify()  # an interrupt may have come before that
                return
            if self._held >= self._capacity and self.policy is OverflowPolicy.FAIL:
                self._failure = WatchOverflow(
                    f"The watch of {self.view!r} fell behind by more than {self._capacity} deltas at epoch {epoch}.",
                    epoch=self._last,
                    hint=f"watch again with from_epoch={self._last} while that is kept, or with snapshot=True",
                )
            else:
                self._add(epoch, delta)
            self._notify()

    def passed(self, epoch: int) -> None:
        """Tell readers who want to know that an epoch did not change the view. May be repeated."""
        if self._progress is None:
            return
        with self._lock:
            if not self._closed and self._failure is None and epoch > self._newest:
                self._add(epoch, self._progress)
            self._notify()

    def _add(self, epoch: int, delta: DeltaBatch) -> None:
        """Behind what waits; it takes the place of an epoch without changes, of which it tells all there is to know."""
        if self._ends_in_progress:
            self._items[-1] = (epoch, delta)
        else:
            self._items.append((epoch, delta))
        self._last = epoch

    @property
    def _ends_in_progress(self) -> bool:
        return self._progress is not None and bool(self._items) and self._items[-1][1] is self._progress

    @property
    def _held(self) -> int:
        """How many deltas wait, without the mark of an epoch that changed nothing."""
        return len(self._items) - self._ends_in_progress

    @property
    def _newest(self) -> int:
        """The epoch of the last delta that was delivered, even if that was interrupted."""
        return max(self._last, self._items[-1][0]) if self._items else self._last

    def _take(self) -> Item | None:
        """Called with the lock held."""
        if self._items:
            self._last = self._newest
            item = self._items.popleft()
            self._changed.notify_all()
            return item
        if self._failure is not None and not self._closed:
            raise self._failure
        return None

    def _notify(self) -> None:
        self._changed.notify_all()
        while self._waiting:
            loop, event = self._waiting[-1]
            try:
                loop.call_soon_threadsafe(event.set)
            except RecursionError:  # it still waits, and is woken when this is repeated
                raise
            except RuntimeError:
                _log.warning("a reader of %s waits in an event loop that is closed", self.view)
            self._waiting.pop()
