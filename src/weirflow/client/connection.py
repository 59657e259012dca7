"""``Connection``: calls to a server, with deadlines, repeated where that does no harm."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.flight as fl

from weirflow.errors import EndpointUnreachable, RetryLater, SessionClosed, UnsupportedError, WeirflowError
from weirflow.wire.calls import METHODS, Nothing
from weirflow.wire.flight import CallTimedOut, ConnectionLost, of_flight
from weirflow.wire.messages import (
    AUTHORIZATION,
    CALL,
    PROTOCOL,
    TICK,
    AnyCommand,
    AnyTicket,
    Message,
    Put,
    Summary,
    Tick,
    pack,
    pack_command,
    pack_ticket,
    unpack,
)

if TYPE_CHECKING:
    from weirflow.client.address import Address
    from weirflow.wire.calls import HelloForm, Method

A = TypeVar("A", bound=Message)
T = TypeVar("T")

_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.use_local_subchannel_pool", 1),  # a channel that waits for its next attempt must not hold back a new one
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 310_000),  # servers take a ping in five minutes
    ("grpc.keepalive_timeout_ms", 20_000),
)
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_GRACE_SECONDS = 10.0
"""How much longer than the server a client waits: the server's own error says more."""


class Pauses:
    """Waits between attempts, longer and longer, for so many seconds from the first failure on.

    Args:
        seconds: how long to try.
        wait: waits; says whether to give up.
    """

    def __init__(self, seconds: float, wait: Callable[[float], object] = time.sleep) -> None:
        self._seconds = seconds
        self._wait = wait
        self._pause = _FIRST_PAUSE
        self._until: float | None = None

    def after(self, error: WeirflowError) -> bool:
        """Wait after a failure that may pass; False if the time is over."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._seconds
        wanted = error.retry_after if isinstance(error, RetryLater) else self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - so that not all come at once
        if now + wanted > self._until:
            return False
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return not self._wait(wanted)

    def reset(self) -> None:
        """It went well: the next failure is a first one."""
        self._pause, self._until = _FIRST_PAUSE, None


def may_pass(error: WeirflowError) -> bool:
    """Whether an error is one of the connection or of the moment, not of what was asked."""
    return isinstance(error, ConnectionLost | RetryLater)


class Connection:
    """A server, as a client calls it. May be used by several threads; nothing is opened before the first call.

    Args:
        address: where it is.
        token: the bearer token; None for a server that needs none.
        connect_seconds: how long the first answer may take.
        retry_seconds: how long calls that do no harm twice are repeated when the connection breaks.
        root_certificates: PEM, of whom TLS trusts; None for the system's.
    """

    def __init__(
        self,
        address: Address,
        token: str | None,
        *,
        connect_seconds: float = 10.0,
        retry_seconds: float = 30.0,
        root_certificates: bytes | None = None,
    ) -> None:
        self.address = address
        self.retry_seconds = retry_seconds
        self._headers = [] if token is None else [(AUTHORIZATION.encode(), f"Bearer {token}".encode())]
        self._connect_seconds = connect_seconds
        self._roots = root_certificates
        self._lock = threading.Lock()
        self._client: fl.FlightClient | None = None
        self._greeting = threading.Lock()
        self._server: HelloForm | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Connection {self.address}>"

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def call(
        self, method: str, arguments: Message | None = None, *, flow: str | None = None, seconds: float | None = None
    ) -> Any:
        """The answer of a method of ``METHODS``; raises the error that the server has raised.

        Args:
            method: its name.
            arguments: its struct; None if it has none.
            flow: whose method it is.
            seconds: how long the server may take; None for any time.
        """
        known: Method[Any, Any] = METHODS[method]
        body = known.ask(Nothing() if arguments is None else arguments, flow)
        answer = self._attempts(lambda client: _one(client, CALL, body, self._options(seconds)), repeats=known.repeats)
        return known.read_answer(answer)

    def tick(self, tick: Tick) -> Summary:
        """Run a tick. With a token or a position it may be repeated."""
        body = pack(tick)
        repeats = tick.token is not None or tick.position is not None
        return unpack(
            self._attempts(lambda client: _one(client, TICK, body, self._options(tick.timeout)), repeats=repeats),
            Summary,
        )

    def put(self, put: Put, rows: pa.Table) -> Summary:
        """Run a tick whose rows are sent as a stream. With a token or a position it may be repeated."""
        descriptor = fl.FlightDescriptor.for_command(pack_command(put))

        def send(client: fl.FlightClient) -> bytes:
            writer, answers = client.do_put(descriptor, rows.schema, self._options(put.timeout))
            with writer:
                for batch in rows.to_batches(max_chunksize=65_536):
                    writer.write_batch(batch)
                writer.done_writing()
                answer = answers.read()
            if answer is None:
                raise ConnectionLost(f"The server at {self.address} has not answered.")
            return bytes(answer)

        return unpack(self._attempts(send, repeats=put.token is not None or put.position is not None), Summary)

    def info(self, command: AnyCommand, seconds: float | None = None, *, repeats: bool) -> fl.FlightInfo:
        """Where the rows of a command are; blocks until the server knows."""
        descriptor = fl.FlightDescriptor.for_command(pack_command(command))
        return self._attempts(
            lambda client: client.get_flight_info(descriptor, self._options(seconds)), repeats=repeats
        )

    def fetch(self, ticket: AnyTicket | fl.Ticket, seconds: float | None = None) -> fl.FlightStreamReader:
        """A stream of rows. It is not known before the first read whether there is one."""
        wanted = ticket if isinstance(ticket, fl.Ticket) else fl.Ticket(pack_ticket(ticket))
        return self._attempts(lambda client: client.do_get(wanted, self._options(seconds)), repeats=True)

    def rows(self, ticket: AnyTicket | fl.Ticket) -> pa.Table:
        """All rows of a ticket, fetched again if the connection breaks."""

        def read(client: fl.FlightClient) -> pa.Table:
            wanted = ticket if isinstance(ticket, fl.Ticket) else fl.Ticket(pack_ticket(ticket))
            return client.do_get(wanted, self._options(None)).read_all()

        return self._attempts(read, repeats=True)

    def batches(self, ticket: AnyTicket | fl.Ticket) -> pa.RecordBatchReader:
        """The rows of a ticket, batch by batch; the first is there when this returns."""

        def begin(client: fl.FlightClient) -> tuple[fl.FlightStreamReader, pa.Schema]:
            wanted = ticket if isinstance(ticket, fl.Ticket) else fl.Ticket(pack_ticket(ticket))
            reader = client.do_get(wanted, self._options(None))
            return reader, reader.schema

        reader, schema = self._attempts(begin, repeats=True)
        return pa.RecordBatchReader.from_batches(schema, self._read(reader))

    def _read(self, reader: fl.FlightStreamReader) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                chunk = reader.read_chunk()
            except StopIteration:
                return
            except (pa.ArrowException, OSError) as error:
                raise self.translated(error) from error
            yield chunk.data

    def translated(self, error: Exception) -> WeirflowError:
        """The error that Flight has brought, as one of ours."""
        return of_flight(error, str(self.address))

    def connect(self) -> HelloForm:
        """Who answers; asks nobody if somebody has answered before.

        Raises:
            EndpointUnreachable: nobody answers in time.
            AuthenticationFailed: the server does not take the token.
            UnsupportedError: the server speaks another protocol.
        """
        with self._greeting:
            if self._server is None:
                self._server = self._greeted()
            return self._server

    def _greeted(self) -> HelloForm:
        hello, pauses = METHODS["hello"], Pauses(self._connect_seconds)
        until = time.monotonic() + self._connect_seconds
        while True:
            client = self._opened()
            try:
                limit = max(until - time.monotonic(), 0.01)
                options = fl.FlightCallOptions(timeout=limit, headers=self._headers)
                found: HelloForm = hello.read_answer(_one(client, CALL, hello.ask(Nothing()), options))
            except (pa.ArrowException, OSError) as raised:
                error = self.translated(raised)
                self._drop(client)
                if not may_pass(error) or not pauses.after(error):
                    raise unreachable(error) from raised
            else:
                break
        if found.protocol != PROTOCOL:
            raise UnsupportedError(
                f"The server at {self.address} is Weirflow {found.version} and speaks protocol {found.protocol}, "
                f"this client speaks {PROTOCOL}.",
                hint="use a client and a server of the same version",
            )
        return found

    def _drop(self, failed: fl.FlightClient) -> None:
        """Let the next call open a new channel. The one that failed goes when nobody uses it any more."""
        with self._lock:
            if self._client is failed:
                self._client = None

    def close(self) -> None:
        """Let go of the channel. Closing twice does nothing."""
        with self._lock:
            self._closed, self._client = True, None

    def _attempts(self, attempt: Callable[[fl.FlightClient], T], *, repeats: bool) -> T:
        """Make a call, and make it again when the connection breaks if it may be repeated; connects first."""
        self.connect()
        pauses = Pauses(self.retry_seconds)
        while True:
            client = self._opened()
            try:
                return attempt(client)
            except (pa.ArrowException, OSError) as raised:
                error = self.translated(raised)
                if isinstance(error, ConnectionLost):
                    self._drop(client)
                again = isinstance(error, RetryLater) or (repeats and isinstance(error, ConnectionLost))
                if not again or self._closed or not pauses.after(error):
                    raise unreachable(error, in_doubt=not repeats) from raised

    def _opened(self) -> fl.FlightClient:
        with self._lock:
            if self._closed:
                raise SessionClosed(f"The connection to {self.address} is closed.", hint="open another Session")
            if self._client is None:
                more = {} if self._roots is None else {"tls_root_certs": self._roots}
                self._client = fl.FlightClient(self.address.location, generic_options=list(_OPTIONS), **more)
            return self._client

    def _options(self, seconds: float | None) -> fl.FlightCallOptions:
        limit = None if seconds is None else seconds + _GRACE_SECONDS
        return fl.FlightCallOptions(timeout=limit, headers=self._headers)


def in_background(call: Callable[[], T], on_interrupt: Callable[[], None]) -> T:
    """Run a call that blocks so that Ctrl-C is noticed meanwhile, and told on."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
            future.set_exception(error)

    if threading.current_thread() is not threading.main_thread():
        return call()
    threading.Thread(target=work, name="weirflow-call", daemon=True).start()
    try:
        return future.result()
    except BaseException:
        if not future.done():
            on_interrupt()
        raise


def _one(client: fl.FlightClient, action: str, body: bytes, options: fl.FlightCallOptions) -> bytes:
    """The one answer of an action."""
    found: Sequence[Any] = list(client.do_action(fl.Action(action, body), options))
    return bytes(found[0].body.to_pybytes()) if found else b"\xc0"


def unreachable(error: WeirflowError, *, in_doubt: bool = False) -> WeirflowError:
    """The error for users when no further attempt is made."""
    if isinstance(error, ConnectionLost | CallTimedOut):
        doubt = " Whether the call was done is not known." if in_doubt else ""
        return EndpointUnreachable(error.message + doubt, hint=error.hint)
    return error
