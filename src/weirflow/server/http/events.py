"""Server-sent events: the deltas of views, one watch for all who read the same view, and the progress of queries.

A reader resumes by the epoch of the last event it has got whole. One that reads too slowly is let go, and told from
where to go on; no other reader, and no tick, waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread

from weirflow.errors import WatchOverflow, WeirflowError
from weirflow.rows.json_values import to_json
from weirflow.server.http.calls import json_rows
from weirflow.server.http.failures import body_of

if TYPE_CHECKING:
    from weirflow.flows.registry import Flow
    from weirflow.ivm.flow.outputs.watch import Watch
    from weirflow.ivm.zset.delta import DeltaBatch

T = TypeVar("T")

_log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 15.0
_ROWS_OF_EVENT = 5_000
_MOST_EVENTS = 1_024
_MOST_BYTES = 16 << 20
_CAPACITY = 4_096
_RETRY = b"retry: 1000\n\n"
_STILL_HERE = b": still here\n\n"


@dataclass(frozen=True)
class Event:
    """The delta of one epoch as it is sent: one event, or several, of which the last has the epoch as its id."""

    epoch: int
    content: bytes
    is_progress: bool = False


def delta_event(epoch: int, delta: DeltaBatch, *, kind: str = "delta") -> Event:
    """A delta as events; one without rows is progress."""
    rows = json_rows(delta.to_arrow())
    if not rows and kind == "delta":
        return Event(epoch, event("progress", {"epoch": epoch}, epoch), is_progress=True)
    pieces = []
    for start in range(0, max(len(rows), 1), _ROWS_OF_EVENT):
        is_last = start + _ROWS_OF_EVENT >= len(rows)
        data = {"epoch": epoch, "last": is_last, "rows": rows[start : start + _ROWS_OF_EVENT]}
        pieces.append(event(kind, data, epoch if is_last else None))
    return Event(epoch, b"".join(pieces))


def event(kind: str, data: Any, number: int | None = None) -> bytes:
    """One event."""
    lines = [f"event: {kind}", *([] if number is None else [f"id: {number}"]), f"data: {to_json(data)}"]
    return ("\n".join(lines) + "\n\n").encode()


@dataclass(eq=False)
class Reader:
    """One who reads the events of a view; all of it happens in the event loop.

    Attributes:
        wants_progress: whether epochs that change nothing are of interest.
        after: the epoch up to which everything was sent.
    """

    wants_progress: bool
    after: int = 0
    _events: deque[Event] = field(default_factory=deque)
    _bytes: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _end: bytes | None = None
    _is_lost: bool = False

    def put(self, one: Event) -> None:
        """Have an event sent, unless the reader is too far behind; then it gets what it has, and no more."""
        if self._is_lost or self._end is not None or (one.is_progress and not self.wants_progress):
            return
        if len(self._events) >= _MOST_EVENTS or (self._events and self._bytes + len(one.content) > _MOST_BYTES):
            self._is_lost = True
        else:
            self._events.append(one)
            self._bytes += len(one.content)
        self._changed.set()

    def end(self, last: bytes) -> None:
        """Send what is there, then this, and nothing more."""
        self._end = self._end or last
        self._changed.set()

    async def contents(self) -> AsyncIterator[bytes]:
        """What is to be sent, until there is no more to come."""
        while True:
            while self._events:
                one = self._events.popleft()
                self._bytes -= len(one.content)
                if one.epoch > self.after:
                    self.after = one.epoch
                    yield one.content
            if self._is_lost:
                yield event("overflow", {"from_epoch": self.after, "hint": "connect again to continue from there"})
                return
            if self._end is not None:
                yield self._end
                return
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), KEEP_ALIVE_SECONDS)
            except TimeoutError:
                yield _STILL_HERE


class Hub:
    """Reads one view of a flow and gives its deltas to all readers, each made into text once."""

    def __init__(self, flow: Flow, view: str) -> None:
        self._flow = flow
        self._view = view
        self._last = 0
        self._readers: set[Reader] = set()
        self._watch: Watch | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nobody reads."""
        return not self._readers

    @property
    def is_over(self) -> bool:
        """Whether there will be no more deltas."""
        return self._task is not None and self._task.done()

    async def start(self) -> None:
        """Begin to watch the view; raises what the flow raises."""
        flow = self._flow

        def begin() -> tuple[int, Watch]:
            watch = flow.watch_output(self._view, capacity=_CAPACITY, progress=True)
            return watch.began, watch

        self._last, self._watch = await in_thread(begin)
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Hand out deltas until the view, or the flow, is gone; if this falls behind, go on from where it was."""
        final = event("end", {"reason": "the view or its flow is gone"})
        try:
            while self._watch is not None:
                try:
                    await self._hand_out(self._watch)
                    break
                except WatchOverflow as lost:
                    self._watch.close()
                    self._watch = await in_thread(partial(self._watch_after, lost.epoch))
        except WeirflowError as error:
            final = event("error", body_of(error))
        finally:
            for reader in self._readers:
                reader.end(final)
            if self._watch is not None:
                self._watch.close()

    def _watch_after(self, epoch: int) -> Watch:
        return self._flow.watch_output(self._view, from_epoch=epoch, capacity=_CAPACITY, progress=True)

    async def _hand_out(self, watch: Watch) -> None:
        async for epoch, delta in watch:
            is_small = delta.num_rows < _ROWS_OF_EVENT
            made = delta_event(epoch, delta) if is_small else await in_thread(partial(delta_event, epoch, delta))
            self._last = epoch
            for reader in self._readers:
                reader.put(made)

    async def reader(self, *, from_epoch: int | None, snapshot: bool, progress: bool) -> tuple[Reader, list[bytes]]:
        """One more reader, and what it gets first: the rows as they are, or the deltas since an epoch.

        Raises:
            HistoryGone: those deltas are not kept any more.
        """
        reader = Reader(progress)
        self._readers.add(reader)  # from here on it misses nothing
        joined = self._last
        try:
            first = await in_thread(lambda: list(self._first(from_epoch, snapshot=snapshot)))
        except BaseException:
            self.leave(reader)
            raise
        contents = []
        reader.after = joined if from_epoch is None else max(from_epoch, joined)
        for one in first:
            if snapshot:
                reader.after = one.epoch
                contents.append(one.content)
            elif one.epoch <= joined and not one.is_progress:
                contents.append(one.content)
        return reader, contents

    def _first(self, from_epoch: int | None, *, snapshot: bool) -> Iterator[Event]:
        if not snapshot and from_epoch is None:
            return
        with self._flow.watch_output(self._view, snapshot=snapshot, from_epoch=from_epoch, capacity=1) as watch:
            kind = "snapshot" if snapshot else "delta"
            try:
                while (item := watch.get(0)) is not None:
                    yield delta_event(*item, kind=kind)
                    if snapshot:
                        return
            except WatchOverflow:  # what is newer comes from the hub
                return

    def leave(self, reader: Reader) -> None:
        """Send a reader nothing more."""
        self._readers.discard(reader)

    async def close(self, final: bytes) -> None:
        """End all readers."""
        for reader in self._readers:
            reader.end(final)
        if self._watch is not None:
            self._watch.close()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)


class Hubs:
    """The hubs of a server, one for each view that somebody reads. Lives in the event loop."""

    def __init__(self) -> None:
        self._hubs: dict[tuple[int, str], Hub] = {}
        self._locks: dict[tuple[int, str], asyncio.Lock] = {}  # of a view, so that no view waits for another's flow

    async def read(
        self, flow: Flow, view: str, *, from_epoch: int | None, snapshot: bool, progress: bool
    ) -> tuple[Callable[[], AsyncIterator[bytes]], Callable[[], Any]]:
        """What is to be sent to one more reader of a view, and what is to be called when that is over.

        Raises:
            ConfigError: the flow has no such view.
            HistoryGone: the deltas since that epoch are not kept any more.
        """
        key = (id(flow), view)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            hub = self._hubs.get(key)
            if hub is None or hub.is_over:
                hub = Hub(flow, view)
                await hub.start()
                self._hubs[key] = hub
            reader, first = await hub.reader(from_epoch=from_epoch, snapshot=snapshot, progress=progress)

        async def contents() -> AsyncIterator[bytes]:
            yield _RETRY
            for one in first:
                yield one
            first.clear()
            async for one in reader.contents():
                yield one

        async def left() -> None:
            hub.leave(reader)
            async with lock:
                if hub.is_idle and self._hubs.get(key) is hub:
                    del self._hubs[key]
                    self._locks.pop(key, None)
                    await hub.close(b"")

        return contents, left

    async def close(self) -> None:
        """End all readers, because the server ends; they may go on with its successor."""
        final = event("end", {"code": "SERVER_DRAINING", "reason": "the server is about to end; connect again"})
        for hub in list(self._hubs.values()):
            await hub.close(final)


async def in_thread(call: Callable[[], T]) -> T:
    """Run what may block beside the event loop."""
    return await anyio.to_thread.run_sync(call)
