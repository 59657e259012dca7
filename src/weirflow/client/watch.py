"""``RemoteWatch``: a watch whose deltas come from a server; it reconnects and goes on where it was."""

from __future__ import annotations

import logging
import threading
import weakref
from typing import TYPE_CHECKING

import pyarrow as pa
from typing_extensions import override

from weirflow.client.connection import Connection, Pauses, may_pass, unreachable
from weirflow.errors import ConfigError, HistoryGone, WeirflowError
from weirflow.ivm.flow.outputs.watch import Item, OverflowPolicy, Watch
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.wire import messages
from weirflow.wire.messages import Mark, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow.flight as fl

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
"""How often is looked whether anyone still has a watch that is full."""
_AHEAD = 16
"""How many deltas are read before someone takes them; more wait in the server, which counts them."""


class RemoteWatch(Watch):
    """The deltas of a view on a server, in order and without gaps, also when the connection breaks.

    Args:
        connection: to the server.
        ticket: what to watch.
        detach: called when it is closed.
        progress: whether the reader is told of epochs without changes.

    Raises:
        WeirflowError: whatever the server has against it.
    """

    def __init__(
        self,
        connection: Connection,
        ticket: messages.Watch,
        *,
        detach: Callable[[Watch], None],
        progress: DeltaBatch | None,
    ) -> None:
        super().__init__(ticket.view, capacity=_AHEAD, policy=OverflowPolicy.BLOCK, detach=detach, progress=progress)
        stream = _Stream(connection, ticket)
        stream.open()
        self.begin(stream.epoch, [])
        self._stream = stream
        self._ended = False
        weakref.finalize(self, stream.close)
        reading = threading.Thread(
            target=_pump, args=(weakref.ref(self), stream), name=f"weirflow-watch-{ticket.view}", daemon=True
        )
        reading.start()

    def close(self) -> None:
        """End the iteration and the stream, also for a reader that waits."""
        super().close()
        self._stream.close()

    def fail(self, error: WeirflowError) -> None:
        """Have the reader get an error, after all that came before it."""
        with self._lock:
            self._failure = self._failure or error
            self._notify()

    def end(self) -> None:
        """There is nothing more to come: it is closed when all is read."""
        with self._lock:
            self._ended = True
            if not self._items:
                self._closed = True
            self._notify()

    def has_room(self, timeout: float) -> bool:
        """Wait until another delta may come, or it is closed; False if neither happened in time."""
        with self._lock:
            return bool(self._changed.wait_for(lambda: self._held < self._capacity or self._closed, timeout))

    def take_in(self, epoch: int, delta: DeltaBatch | None) -> None:
        """Hand a delta, or an epoch without changes, to the reader."""
        self.expect(epoch)
        if delta is None:
            self.passed(epoch)
        else:
            self.put(epoch, delta)

    @override
    def _take(self) -> Item | None:
        item = super()._take()
        if self._ended and not self._items:
            self._closed = True
            self._notify()
        return item


class _Stream:
    """The batches of a watch, put together to deltas, from one connection after the other.

    Attributes:
        epoch: the one up to which everything has been read.
    """

    def __init__(self, connection: Connection, ticket: messages.Watch) -> None:
        self._connection = connection
        self._ticket = ticket
        self._reader: fl.FlightStreamReader | None = None
        self._columns: pa.Schema | None = None
        self._identity: str | None = None
        self._begun = False
        self._closed = threading.Event()
        self.epoch = 0

    def open(self) -> None:
        """Begin, or go on after ``epoch``; raises what the server has against it."""
        pauses = Pauses(self._connection.retry_seconds, self._closed.wait)
        while True:
            try:
                return self._open()
            except WeirflowError as error:
                if not may_pass(error) or not pauses.after(error):
                    raise unreachable(error) from error

    def next(self) -> tuple[int, DeltaBatch | None] | None:
        """The next delta, or None for an epoch without one; None when the watch has ended on the server."""
        while not self._closed.is_set():
            try:
                found = self._next()
            except WeirflowError as error:
                if not may_pass(error):
                    raise
                _log.info("the watch of %s continues after epoch %d: %s", self._ticket.view, self.epoch, error.message)
                self.open()
            else:
                return found
        return None

    def close(self) -> None:
        """End it, also for a thread that reads."""
        self._closed.set()
        reader = self._reader
        if reader is not None:
            reader.cancel()

    def _open(self) -> None:
        ticket = self._ticket
        if self._begun:
            ticket = messages.Watch(
                ticket.flow,
                ticket.view,
                self.epoch,
                capacity=ticket.capacity,
                progress=ticket.progress,
                identity=self._identity,
            )
        self._reader = self._connection.fetch(ticket)
        batch, mark = self._read()
        if mark is None:
            raise ConfigError(f"The server at {self._connection.address} has sent a watch without marks.")
        self._columns = pa.schema(list(batch.schema)[:-1])
        if self._identity not in (None, mark.identity):
            raise HistoryGone(
                f"The flow {ticket.flow!r} is not the same one as before; deltas after epoch {self.epoch} are gone.",
                oldest=mark.epoch,
                hint="begin with a snapshot",
            )
        self._identity = mark.identity
        if mark.last:
            self.epoch, self._begun = mark.epoch, True

    def _next(self) -> tuple[int, DeltaBatch | None] | None:
        """The batches of an epoch as one delta."""
        pieces: list[pa.RecordBatch] = []
        while True:
            batch, mark = self._read()
            if mark is None:
                return None
            if batch.num_rows:
                pieces.append(batch)
            if mark.last:
                break
        is_snapshot = not self._begun
        self.epoch, self._begun = mark.epoch, True
        if not pieces and not is_snapshot:
            return self.epoch, None
        table = pa.Table.from_batches(pieces, batch.schema).combine_chunks()
        whole = table.to_batches()
        return self.epoch, DeltaBatch(whole[0] if whole else batch)

    def _read(self) -> tuple[pa.RecordBatch, Mark | None]:
        assert self._reader is not None
        try:
            chunk = self._reader.read_chunk()
        except StopIteration:
            return pa.RecordBatch.from_pydict({}), None
        except (pa.ArrowException, OSError) as error:
            raise self._connection.translated(error) from error
        return chunk.data, unpack(bytes(chunk.app_metadata or b""), Mark)


def _handed_over(watching: weakref.ref[RemoteWatch], item: tuple[int, DeltaBatch | None]) -> bool:
    """Give a watch what comes next, when there is room; False if it is closed, or nobody has it any more."""
    while (watch := watching()) is not None and not watch.closed:
        if watch.has_room(_LOOK_SECONDS):
            watch.take_in(*item)
            return not watch.closed
        del watch
    return False


def _pump(watching: weakref.ref[RemoteWatch], stream: _Stream) -> None:
    """Read until the watch is closed, has ended or failed, or nobody has it any more."""
    failure: WeirflowError | None = None
    try:
        while (item := stream.next()) is not None:
            if not _handed_over(watching, item):
                return
    except WeirflowError as error:
        failure = error
    finally:
        stream.close()
    watch = watching()
    if watch is None or watch.closed:
        return
    if failure is None:
        watch.end()
    else:
        watch.fail(failure)
