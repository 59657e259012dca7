"""``FlightDoor``: the server as Arrow Flight has it, for drivers of Flight SQL and for Weirflow's own client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as fl
from typing_extensions import override

from weirflow.errors import ConfigError, MessageTooLarge, UnsupportedError
from weirflow.server.flight.batches import Sent
from weirflow.server.flight.calls import Calls
from weirflow.server.flight.cancelling import Cancelling
from weirflow.server.flight.credentials import MIDDLEWARE, CredentialsFactory, NoHandshake
from weirflow.server.flight.endpoints import flight_info
from weirflow.server.flight.failures import answered
from weirflow.server.flight.sql.messages import unwrapped
from weirflow.server.flight.sql.service import ACTIONS, FlightSql
from weirflow.server.flight.statements import Statements
from weirflow.server.flight.streams import Streams
from weirflow.server.flight.ticks import put, tick
from weirflow.server.results.tickets import RESULT, read_ticket
from weirflow.wire.arrow import unpack_params
from weirflow.wire.messages import (
    CALL,
    TICK,
    AnyCommand,
    Call,
    Put,
    Result,
    Statement,
    Tick,
    pack,
    unpack,
    unpack_command,
    unpack_ticket,
)

if TYPE_CHECKING:
    from weirflow.server.access.caller import Caller
    from weirflow.server.coordinator import Coordinator
    from weirflow.server.nodes import ServerNodes
    from weirflow.server.results.manifest import Manifest
    from weirflow.server.results.spool import Spool

MOST_WATCHES = 256
"""How many watches may be open over Flight at a time, if nothing else is said: each has a thread of the server's."""


@dataclass(frozen=True)
class Tls:
    """A certificate and its key, as the texts of PEM files."""

    certificate: bytes
    key: bytes


class FlightDoor(fl.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """Listens from the moment it is made until ``close``.

    Args:
        coordinator: whose Session and flows.
        spool: where results are.
        host: the address to listen on.
        port: 0 for any that is free; ``port`` has it then.
        tls: the certificate; None for a connection that is not encrypted.
        most_watches: how many watches may be open at a time.
        nodes: the nodes around this server; None if it is not one of any.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        spool: Spool,
        host: str,
        port: int,
        *,
        tls: Tls | None = None,
        most_watches: int = MOST_WATCHES,
        nodes: ServerNodes | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._spool = spool
        self._cancelling = Cancelling()
        self._statements = Statements(coordinator, spool, self._cancelling)
        self._streams = Streams(coordinator, most_watches)
        self._sql = FlightSql(coordinator, spool, self._statements, self._streams, self._cancelling)
        self._calls = Calls(coordinator, self._statements, nodes)
        scheme = "grpc" if tls is None else "grpc+tls"
        shown = f"[{host}]" if ":" in host else host
        try:
            super().__init__(
                f"{scheme}://{shown}:{port}",
                auth_handler=NoHandshake(),
                tls_certificates=None if tls is None else [(tls.certificate, tls.key)],
                middleware={MIDDLEWARE: CredentialsFactory(lambda: coordinator.gate)},
            )
        except (OSError, pa.ArrowException) as error:
            self._cancelling.close()
            raise ConfigError(f"Flight cannot listen at {shown}:{port}: {error}.") from error

    def close(self) -> None:
        """Stop listening, and wait for calls that are under way; watches end when the coordinator drains."""
        self.shutdown()
        self.wait()
        self._cancelling.close()

    # What Flight calls

    @override
    def get_flight_info(self, context: fl.ServerCallContext, descriptor: fl.FlightDescriptor) -> fl.FlightInfo:
        """Run a statement; the answer says where its rows are."""
        content = _command(descriptor)
        with answered():
            caller = self._caller(context)
            own, command = _read(content)
            if own is None:
                return self._sql.info(caller, descriptor, command, context.is_cancelled)
            manifest = self._run_own(caller, own, context)
            return flight_info(manifest, self._spool.tickets(manifest), descriptor, bytes)

    @override
    def get_schema(self, context: fl.ServerCallContext, descriptor: fl.FlightDescriptor) -> fl.SchemaResult:
        """The columns that the rows of a command have."""
        content = _command(descriptor)
        with answered():
            caller = self._caller(context)
            own, command = _read(content)
            if own is None:
                return fl.SchemaResult(self._sql.schema(caller, command))
            if not isinstance(own, Statement):
                raise UnsupportedError("Only statements have columns.")
            return fl.SchemaResult(self._coordinator.prepare(caller, own.sql).schema or pa.schema([]))

    @override
    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.FlightDataStream:
        """Rows: of a result, of a view, or of a watch, which go on."""
        content = ticket.ticket
        with answered():
            caller = self._caller(context)
            if content.startswith(RESULT):
                return self._sql.fetch(caller, read_ticket(content))
            own = unpack_ticket(content)
            if own is not None:
                return self._streams.open(caller, own, context.is_cancelled)
            command = unwrapped(content)
            if command is None:
                raise ConfigError("The ticket is not from this server.")
            return self._sql.get(caller, command, context.is_cancelled)

    @override
    def do_put(
        self,
        context: fl.ServerCallContext,
        descriptor: fl.FlightDescriptor,
        reader: fl.MetadataRecordBatchReader,
        writer: fl.FlightMetadataWriter,
    ) -> None:
        """Rows that come: a tick, an ingest, or parameters; or a statement for its effect."""
        content = _command(descriptor)
        with answered():
            caller = self._caller(context)
            own, command = _read(content)
            if own is None:
                answer = self._sql.put(caller, command, Sent(reader), context.is_cancelled)
            elif isinstance(own, Put):
                rows = Sent(reader).table(self._spool.limits.result_bytes)
                answer = pack(put(self._coordinator, caller, own, rows))
            else:
                raise UnsupportedError(f"A {type(own).__name__} takes no rows.")
            if answer is not None:
                writer.write(pa.py_buffer(answer))

    @override
    def do_action(self, context: fl.ServerCallContext, action: fl.Action) -> Iterator[fl.Result]:
        """Ticks, calls of methods, and the actions of Flight SQL."""
        kind, body = action.type, action.body.to_pybytes()
        with answered():
            caller = self._caller(context)
            most = self._coordinator.limits.of(caller).message_bytes
            if len(body) > most:
                raise MessageTooLarge(
                    f"The message has more than {most:,} bytes.", hint="send it in several, or its rows as a stream"
                )
            if kind == TICK:
                answers = [pack(tick(self._coordinator, caller, unpack(body, Tick)))]
            elif kind == CALL:
                answers = [self._calls.answer(caller, unpack(body, Call))]
            else:
                answers = self._sql.action(caller, kind, body)
            return iter([fl.Result(pa.py_buffer(answer)) for answer in answers])

    @override
    def list_actions(self, context: fl.ServerCallContext) -> list[fl.ActionType]:
        """The actions that there are."""
        with answered():
            self._caller(context)
            own = {TICK: "A tick of a flow.", CALL: "A method of the Session or a flow."}
            return [fl.ActionType(kind, text) for kind, text in {**own, **ACTIONS}.items()]

    @override
    def list_flights(self, context: fl.ServerCallContext, criteria: bytes) -> Iterator[fl.FlightInfo]:
        """Refused: results are for those who asked for them."""
        with answered():
            self._caller(context)
            raise UnsupportedError("Flights are not listed.", hint="list tables, as Flight SQL does")

    @override
    def do_exchange(
        self,
        context: fl.ServerCallContext,
        descriptor: fl.FlightDescriptor,
        reader: fl.MetadataRecordBatchReader,
        writer: fl.MetadataRecordBatchWriter,
    ) -> None:
        """Refused: nothing is exchanged both ways in one call."""
        with answered():
            self._caller(context)
            raise UnsupportedError("DoExchange is not supported.", hint="use DoPut and DoGet")

    # Inner workings

    def _caller(self, context: fl.ServerCallContext) -> Caller:
        return self._coordinator.gate.caller(context.get_middleware(MIDDLEWARE).token, context.peer())

    def _run_own(self, caller: Caller, command: AnyCommand, context: fl.ServerCallContext) -> Manifest:
        match command:
            case Statement():
                return self._statements.run(
                    caller,
                    command.sql,
                    unpack_params(command.params),
                    context.is_cancelled,
                    timeout=command.timeout,
                    key=command.key,
                )
            case Result():
                return self._statements.result(caller, command.operation)
            case Put():
                raise UnsupportedError("Rows of a tick are put, not fetched.")


def _command(descriptor: fl.FlightDescriptor) -> bytes:
    if descriptor.descriptor_type != fl.DescriptorType.CMD:
        return b""
    content: bytes = descriptor.command
    return content


def _read(content: bytes) -> tuple[AnyCommand | None, Any]:
    """A command of Weirflow's protocol, or one of Flight SQL; ``ConfigError`` if it is neither."""
    own = unpack_command(content)
    if own is not None:
        return own, None
    command = unwrapped(content)
    if command is None:
        raise ConfigError(
            "The descriptor has no command that this server knows.", hint="use a driver of Arrow Flight SQL"
        )
    return None, command
