"""What clients fetch beside results: rows of views, queries over a flow, watches and subscriptions, which go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as fl

from weirflow.errors import HistoryGone, ServerBusy, ServerDraining, TableNotFound
from weirflow.ivm.flow.outputs.subscription import Subscription
from weirflow.ivm.flow.source import LATE
from weirflow.server.access.caller import Caller, Right
from weirflow.server.flight.batches import sliced
from weirflow.server.flight.failures import answered
from weirflow.server.results.parts import fitted
from weirflow.sql.statements.parameters import with_literals
from weirflow.sql.statements.subscribe import read_subscribe
from weirflow.wire.arrow import WEIGHT, unpack_rows
from weirflow.wire.messages import EPOCH, AnyTicket, FlowQuery, Mark, Rows, Watch, pack

if TYPE_CHECKING:
    from weirflow.flows.host import Params
    from weirflow.ivm.flow.flow import Flow
    from weirflow.ivm.flow.outputs.watch import Item
    from weirflow.ivm.flow.outputs.watch import Watch as FlowWatch
    from weirflow.server.coordinator import Coordinator

_LOOK_SECONDS = 0.5
"""How often what is idle looks whether its reader is still there."""
_RETRY_SECONDS = 1.0

IsLeft = Callable[[], bool]
"""Whether the client that reads has gone."""


class Streams:
    """Streams of rows for callers.

    Args:
        coordinator: whose flows.
        most_watches: how many watches and subscriptions may be open at a time; each has a thread of the server's.
    """

    def __init__(self, coordinator: Coordinator, most_watches: int) -> None:
        self._coordinator = coordinator
        self._most_watches = most_watches
        self._places = threading.BoundedSemaphore(most_watches)

    def open(self, caller: Caller, ticket: AnyTicket, is_left: IsLeft) -> fl.FlightDataStream:
        """What a ticket is for. It is computed, or begun, before this returns."""
        match ticket:
            case Rows():
                return self._rows(caller, ticket)
            case FlowQuery():
                return self._query(caller, ticket)
            case Watch():
                return self._watch(caller, ticket, is_left)

    def _rows(self, caller: Caller, ticket: Rows) -> fl.FlightDataStream:
        with self._coordinator.work(caller, Right.READ, "read rows", flow=ticket.flow, detail=ticket.name):
            flow = self._coordinator.flow(ticket.flow)
            if ticket.epoch is None:
                epoch, reader = flow._backend.stream(ticket.name)  # noqa: SLF001 - which knows the epoch of the rows
                return _stream(_of_epoch(reader.schema, epoch), reader)
            rows = flow.snapshot(ticket.name, epoch=ticket.epoch)
            return _stream(_of_epoch(rows.schema, ticket.epoch), rows.to_batches())

    def _query(self, caller: Caller, ticket: FlowQuery) -> fl.FlightDataStream:
        with self._coordinator.work(caller, Right.READ, "query a flow", flow=ticket.flow):
            self._coordinator.check_query(caller, ticket.sql, ticket.flow, ticket.tables)
            flow = self._coordinator.flow(ticket.flow)
            rows = flow.sql(ticket.sql, tables={name: unpack_rows(one) for name, one in ticket.tables.items()})
            return _stream(rows.schema, rows.to_batches())

    def _watch(self, caller: Caller, ticket: Watch, is_left: IsLeft) -> fl.FlightDataStream:
        with self._begun(caller, "watch", ticket.flow, ticket.view) as opened:
            flow = self._coordinator.flow(ticket.flow)
            if ticket.identity not in (None, flow.identity):
                raise HistoryGone(
                    f"The flow {ticket.flow!r} is another one than before, and has none of its deltas.",
                    oldest=flow.epoch,
                    hint="begin with a snapshot",
                )
            columns, watch = _opened_watch(flow, ticket)
            opened.enter_context(watch)
            epoch = watch.began if ticket.from_epoch is None else ticket.from_epoch
            schema = columns.append(pa.field(WEIGHT, pa.int64(), nullable=False))
            # Of a snapshot there are further rows of the epoch, if only none.
            first = _mark(schema, Mark(epoch, last=not ticket.snapshot, identity=flow.identity))
            later = self._until_left(watch.get, lambda: watch.closed, is_left)
            items = _watched(schema, first, later)
            return fl.GeneratorStream(schema, Lasting(opened.pop_all(), items))

    def subscription(self, caller: Caller, sql: str, params: Params | None) -> tuple[pa.Schema, int]:
        """The columns of a subscription, which is not begun yet, and the epoch that the flow is at now."""
        with ExitStack() as opened:
            flow, followed = self._subscribed(caller, sql, params, None, opened)
            return followed.schema, flow.epoch

    def changes(
        self, caller: Caller, sql: str, params: Params | None, is_left: IsLeft, *, begin: int
    ) -> fl.FlightDataStream:
        """The changes that ``SUBSCRIBE TO`` asks for, from an epoch on unless it says another or wants all rows."""
        with ExitStack() as opened:
            _, followed = self._subscribed(caller, sql, params, begin, opened)
            batches = self._until_left(followed.get, lambda: followed.closed, is_left)
            return fl.GeneratorStream(followed.schema, Lasting(opened.pop_all(), sliced(batches)))

    def _subscribed(
        self, caller: Caller, sql: str, params: Params | None, begin: int | None, opened: ExitStack
    ) -> tuple[Flow, Subscription]:
        wanted = read_subscribe(sql if params is None else with_literals(sql, params).text)
        if wanted.name.flow is not None:
            caller.require(Right.READ, "subscribe", flow=wanted.name.flow)
        found = self._coordinator.relation(caller, wanted.name)
        if found is None:
            raise TableNotFound(f"No flow has a view {str(wanted.name)!r}.")
        flow, name = found
        opened.enter_context(self._begun(caller, "subscribe", flow.name, name))
        as_of = begin if wanted.as_of is None and not wanted.snapshot else wanted.as_of
        followed = Subscription.of(
            flow, name, as_of=as_of, snapshot=wanted.snapshot, progress=wanted.progress, upsert=wanted.upsert
        )
        return flow, opened.enter_context(followed)

    def _begun(self, caller: Caller, what: str, flow: str, name: str) -> ExitStack:
        """A place among those that are open, and the request; both go when what is returned is closed."""
        with ExitStack() as opened:
            if not self._places.acquire(blocking=False):
                raise ServerBusy(
                    f"{self._most_watches} watches are open over Flight, which is the most that this server allows.",
                    retry_after=_RETRY_SECONDS,
                    hint="watch over HTTP (server-sent events), or have the server allow more",
                )
            opened.callback(self._places.release)
            opened.enter_context(self._coordinator.work(caller, Right.READ, what, flow=flow, detail=name, lasting=True))
            return opened.pop_all()

    def _until_left(self, get: Callable[[float], Any], closed: Callable[[], bool], is_left: IsLeft) -> Iterator[Any]:
        """What there is to get, until it or the reader ends; ``ServerDraining`` if the server does."""
        while not is_left():
            item = get(_LOOK_SECONDS)
            if item is not None:
                yield item
            elif self._coordinator.draining.is_set():
                raise ServerDraining("The server is about to end.", retry_after=_RETRY_SECONDS, hint="watch again then")
            elif closed():
                return


class Lasting:
    """Batches for as long as somebody reads them; when it is dropped, what it was made of is closed."""

    def __init__(self, opened: ExitStack, items: Iterator[Any]) -> None:
        self._opened = opened
        self._items = items
        self._lock = threading.Lock()

    def __iter__(self) -> Lasting:
        return self

    def __next__(self) -> Any:
        with answered():
            try:
                return next(self._items)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """End it. May be repeated."""
        with self._lock:
            opened, self._opened = self._opened, ExitStack()
        opened.close()

    def __del__(self) -> None:
        self.close()


def _opened_watch(flow: Flow, ticket: Watch) -> tuple[pa.Schema, FlowWatch]:
    """A watch, and the columns of what it has: a view may be replaced while it is opened."""
    while True:
        columns = flow.schema(ticket.view.removesuffix(LATE))
        watch = flow.watch_output(
            ticket.view,
            snapshot=ticket.snapshot,
            from_epoch=ticket.from_epoch,
            capacity=max(ticket.capacity, 1),
            progress=ticket.progress,
        )
        try:
            if flow.schema(ticket.view.removesuffix(LATE)).equals(columns):
                return columns, watch
        except BaseException:
            watch.close()
            raise
        watch.close()


def _watched(schema: pa.Schema, first: Any, items: Iterable[Item]) -> Iterator[tuple[pa.RecordBatch, pa.Buffer]]:
    """The batches of a watch, each with its mark."""
    yield first
    for epoch, delta in items:
        if not len(delta):
            yield _mark(schema, Mark(epoch))
            continue
        pieces = list(sliced([delta.to_arrow()]))
        for number, piece in enumerate(pieces, 1):
            yield fitted(piece, schema), pa.py_buffer(pack(Mark(epoch, last=number == len(pieces))))


def _mark(schema: pa.Schema, mark: Mark) -> tuple[pa.RecordBatch, pa.Buffer]:
    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    return empty, pa.py_buffer(pack(mark))


def _stream(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> fl.FlightDataStream:
    return fl.GeneratorStream(schema, _answering(fitted(batch, schema) for batch in sliced(batches)))


def _answering(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with answered():
        yield from batches


def _of_epoch(schema: pa.Schema, epoch: int) -> pa.Schema:
    return schema.with_metadata({**(schema.metadata or {}), EPOCH: str(epoch).encode()})
