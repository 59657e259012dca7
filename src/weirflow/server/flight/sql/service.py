"""``FlightSql``: what clients of Arrow Flight SQL can ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as fl

from weirflow.errors import ConfigError, UnsupportedError
from weirflow.server.access.caller import Caller, Right
from weirflow.server.coordinator import Prepared
from weirflow.server.flight.endpoints import flight_info
from weirflow.server.flight.sql.catalogs import Listing
from weirflow.server.flight.sql.ingest import Ingests, read_ingest
from weirflow.server.flight.sql.messages import flight, parsed, sql, unwrapped, wrapped
from weirflow.server.flight.sql.metadata import answer, answer_schema
from weirflow.server.flight.sql.parameter_types import parameter_schema, without_counts
from weirflow.server.flight.sql.prepared import Parameters, PreparedStatements, parameters_of
from weirflow.server.results.tickets import ResultTicket, read_ticket
from weirflow.sql.statements.kinds import About, kind_of
from weirflow.sql.statements.parameters import markers_of
from weirflow.wire.arrow import pack_params, unpack_params
from weirflow.wire.messages import Message, pack, unpack

if TYPE_CHECKING:
    from weirflow.server.coordinator import Coordinator
    from weirflow.server.flight.batches import Sent
    from weirflow.server.flight.cancelling import Cancelling
    from weirflow.server.flight.statements import Statements
    from weirflow.server.flight.streams import Streams
    from weirflow.server.results.spool import Spool

_CHANGES = b"changes/"
"""How the tickets of subscriptions begin."""
_UNKNOWN_COUNT = -1
_CANCELLED, _NOT_CANCELLABLE = 1, 3
_CLOSED = 1
_MOST_PARAMETERS = 64 << 20
# The columns of an answer that says how many rows a statement has changed, the first that there is.
_COUNTS = ("num_affected_rows", "rows_in", "num_inserted_rows")

IsLeft = Callable[[], bool]
"""Whether the client that waits has gone."""

ACTIONS: Mapping[str, str] = {
    "CreatePreparedStatement": "Prepare a statement.",
    "ClosePreparedStatement": "Forget a prepared statement.",
    "CancelFlightInfo": "Drop the result of a statement.",
    "CancelQuery": "Drop the result of a statement; older clients use this name.",
    "RenewFlightEndpoint": "Keep a result for longer.",
    "CloseSession": "Close the session; the server keeps nothing for it.",
    "BeginTransaction": "Refused: there are no transactions.",
    "EndTransaction": "Refused: there are no transactions.",
    "BeginSavepoint": "Refused: there are no transactions.",
    "EndSavepoint": "Refused: there are no transactions.",
}
"""The actions of Flight SQL, with what they do."""


class FlightSql:
    """Answers commands, tickets and actions of Flight SQL."""

    def __init__(
        self,
        coordinator: Coordinator,
        spool: Spool,
        statements: Statements,
        streams: Streams,
        cancelling: Cancelling,
    ) -> None:
        self._coordinator = coordinator
        self._spool = spool
        self._statements = statements
        self._streams = streams
        self._cancelling = cancelling
        self._ingests = Ingests(coordinator, spool)
        self.prepared = PreparedStatements()

    # GetFlightInfo, GetSchema

    def info(self, caller: Caller, descriptor: fl.FlightDescriptor, command: Any, is_left: IsLeft) -> fl.FlightInfo:
        """Run a statement, or say where to fetch the answer to a command."""
        match _name(command):
            case "CommandStatementQuery":
                _refuse_transaction(command)
                sql_text, params = command.query, None
            case "CommandPreparedStatementQuery":
                sql_text, params = self._bound(caller, command.prepared_statement_handle)
            case "CommandStatementSubstraitPlan":
                raise UnsupportedError("Substrait plans are not read here.", hint="send SQL")
            case _:
                endpoint = fl.FlightEndpoint(wrapped(command), [])
                return fl.FlightInfo(answer_schema(command), descriptor, [endpoint], -1, -1)
        if is_subscription(sql_text):
            schema, begin = self._streams.subscription(caller, sql_text, params)
            return fl.FlightInfo(
                schema, descriptor, [fl.FlightEndpoint(_changes_ticket(sql_text, params, begin), [])], -1, -1
            )
        manifest = self._statements.run(caller, sql_text, params, is_left)
        return flight_info(manifest, self._spool.tickets(manifest), descriptor, _ticket)

    def schema(self, caller: Caller, command: Any) -> pa.Schema:
        """The columns of the answer to a command; nothing is run."""
        match _name(command):
            case "CommandStatementQuery":
                _refuse_transaction(command)
                return self._prepared(caller, command.query).schema or pa.schema([])
            case "CommandPreparedStatementQuery":
                known = self.prepared.get(caller, command.prepared_statement_handle)
                return known.statement.schema or pa.schema([])
            case _:
                return answer_schema(command)

    def _prepared(self, caller: Caller, text: str) -> Prepared:
        markers = markers_of(text)
        if not is_subscription(text):
            known = self._coordinator.prepare(caller, without_counts(text))
            return Prepared(text, known.schema, markers, known.is_query)
        schema = None if markers else self._streams.subscription(caller, text, None)[0]
        return Prepared(text, schema, markers, is_query=True)

    def _bound(self, caller: Caller, handle: bytes) -> tuple[str, Parameters | None]:
        """A prepared statement and the parameters that it is to be run with."""
        prepared = self.prepared.get(caller, handle)
        rows = prepared.bound
        if rows is not None and len(rows) != 1:
            raise UnsupportedError(
                f"{len(rows)} rows of parameters are bound to a query, which runs with one.",
                hint="run it once for each row",
            )
        return prepared.statement.sql, rows[0] if rows and prepared.statement.parameters else None

    # DoGet

    def get(self, caller: Caller, content: Any, is_left: IsLeft) -> fl.FlightDataStream:
        """What a ticket is for: rows of a result, changes of a view, or the answer to a command."""
        if _name(content) == "TicketStatementQuery":
            handle = content.statement_handle
            if not handle.startswith(_CHANGES):
                return self.fetch(caller, read_ticket(handle))
            asked = unpack(handle[len(_CHANGES) :], _Changes)
            return self._streams.changes(caller, asked.sql, unpack_params(asked.params), is_left, begin=asked.begin)
        with self._coordinator.work(caller, Right.READ, "list", detail=_name(content)):
            return fl.RecordBatchStream(answer(content, Listing(self._coordinator, caller)))

    def fetch(self, caller: Caller, ticket: ResultTicket) -> fl.FlightDataStream:
        """Rows of a result. They pass without Python's being asked for each batch, unless parts are to be joined."""
        with self._coordinator.work(caller, Right.READ, "fetch", detail=ticket.result):
            return fl.RecordBatchStream(self._spool.fetch(caller.key, ticket))

    # DoPut

    def put(self, caller: Caller, command: Any, sent: Sent, is_left: IsLeft) -> bytes | None:
        """Take rows or parameters in, or run a statement for its effect; returns what the client is told."""
        match _name(command):
            case "CommandStatementUpdate":
                _refuse_transaction(command)
                return _updated(self._update(caller, command.query, None, is_left))
            case "CommandPreparedStatementUpdate":
                handle = command.prepared_statement_handle
                return _updated(self._update_prepared(caller, handle, sent, is_left))
            case "CommandPreparedStatementQuery":
                handle = command.prepared_statement_handle
                prepared = self.prepared.get(caller, handle)
                self.prepared.bind(caller, handle, parameters_of(prepared.statement, sent.table(_MOST_PARAMETERS)))
                bound: bytes = sql.DoPutPreparedStatementResult(prepared_statement_handle=handle).SerializeToString()
                return bound
            case "CommandStatementIngest":
                _refuse_transaction(command)
                with self._cancelling.watching(is_left) as started:
                    return _updated(self._ingests.run(caller, read_ingest(command), sent, started))
            case name:
                raise UnsupportedError(f"{name} does not take rows.")

    def _update(self, caller: Caller, statement: str, params: Any, is_left: IsLeft) -> int:
        """Run a statement for its effect; returns how many rows it has changed, where that is known."""
        manifest = self._statements.run(caller, statement, params, is_left)
        try:
            rows = self._spool.fetch(caller.key, ResultTicket(manifest.id)).read_next_batch() if manifest.rows else None
        finally:
            self._spool.drop(caller.key, manifest.id)
        for name in _COUNTS:
            if rows is not None and name in rows.schema.names:
                return int(rows.column(name)[0].as_py())
        return _UNKNOWN_COUNT

    def _update_prepared(self, caller: Caller, handle: bytes, sent: Sent, is_left: IsLeft) -> int:
        prepared = self.prepared.get(caller, handle)
        if not prepared.statement.parameters:
            return self._update(caller, prepared.statement.sql, None, is_left)
        rows = parameters_of(prepared.statement, sent.table(_MOST_PARAMETERS))
        counts = [self._update(caller, prepared.statement.sql, row, is_left) for row in rows]
        return _UNKNOWN_COUNT if _UNKNOWN_COUNT in counts else sum(counts)

    # DoAction

    def action(self, caller: Caller, kind: str, body: bytes) -> list[bytes]:
        """Do what an action of Flight SQL says; returns the answers."""
        match kind:
            case "CreatePreparedStatement":
                return [self._prepare(caller, _unpacked(body, "ActionCreatePreparedStatementRequest"))]
            case "ClosePreparedStatement":
                asked = _unpacked(body, "ActionClosePreparedStatementRequest")
                self.prepared.close(caller, asked.prepared_statement_handle)
                return []
            case "CancelFlightInfo":
                asked = parsed(flight.CancelFlightInfoRequest, body)
                status = flight.CancelFlightInfoResult(status=self._cancel(caller, asked.info))
                return [status.SerializeToString()]
            case "CancelQuery":
                asked = parsed(flight.FlightInfo, _unpacked(body, "ActionCancelQueryRequest").info)
                return [wrapped(sql.ActionCancelQueryResult(result=self._cancel(caller, asked)))]
            case "RenewFlightEndpoint":
                return [self._renew(caller, parsed(flight.RenewFlightEndpointRequest, body).endpoint)]
            case "CloseSession":
                return [flight.CloseSessionResult(status=_CLOSED).SerializeToString()]
            case "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint":
                raise _no_transactions()
            case _:
                raise UnsupportedError(f"There is no action {kind!r}.")

    def _prepare(self, caller: Caller, asked: Any) -> bytes:
        _refuse_transaction(asked)
        statement = self._prepared(caller, asked.query)
        handle = self.prepared.add(caller, statement)
        result = sql.ActionCreatePreparedStatementResult(prepared_statement_handle=handle)
        if statement.schema is not None:
            result.dataset_schema = statement.schema.serialize().to_pybytes()
        if statement.parameters:
            types = parameter_schema(self._coordinator, caller, statement)
            result.parameter_schema = types.serialize().to_pybytes()
        return wrapped(result)

    def _cancel(self, caller: Caller, asked: Any) -> int:
        """Drop the result whose endpoints these are; what is still being written is cancelled by who waits for it."""
        with self._coordinator.work(caller, Right.READ, "cancel a result"):
            dropped = [
                self._spool.drop(caller.key, result)
                for result in {_result_of(endpoint.ticket.ticket) for endpoint in asked.endpoint}
                if result is not None
            ]
            return _CANCELLED if any(dropped) else _NOT_CANCELLABLE

    def _renew(self, caller: Caller, endpoint: Any) -> bytes:
        with self._coordinator.work(caller, Right.READ, "renew a result"):
            result = _result_of(endpoint.ticket.ticket)
            if result is None:
                raise ConfigError("Only endpoints of results can be renewed.")
            manifest = self._spool.renew(caller.key, result)
        renewed = flight.FlightEndpoint()
        renewed.CopyFrom(endpoint)
        renewed.expiration_time.seconds = int(manifest.expires)
        renewed.expiration_time.nanos = int(manifest.expires % 1 * 1e9)
        content: bytes = renewed.SerializeToString()
        return content


def is_subscription(text: str) -> bool:
    """Whether a statement follows the changes of a view, so that its rows have no end."""
    return kind_of(text).about is About.SUBSCRIPTION


def _name(command: Any) -> str:
    name: str = command.DESCRIPTOR.name
    return name


def _unpacked(body: bytes, kind: str) -> Any:
    content = unwrapped(body)
    if content is None or _name(content) != kind:
        raise ConfigError(f"The action's body is not a {kind} of Flight SQL.")
    return content


class _Changes(Message, frozen=True):
    """What the ticket of a subscription says: the statement, and the epoch that the flow was at when it was run."""

    sql: str
    params: bytes | None
    begin: int


def _changes_ticket(text: str, params: Parameters | None, begin: int) -> bytes:
    asked = pack(_Changes(text, pack_params(params), begin))
    return wrapped(sql.TicketStatementQuery(statement_handle=_CHANGES + asked))


def _ticket(ticket: ResultTicket) -> bytes:
    return wrapped(sql.TicketStatementQuery(statement_handle=bytes(ticket)))


def _result_of(ticket: bytes) -> str | None:
    content = unwrapped(ticket)
    if content is None or _name(content) != "TicketStatementQuery" or content.statement_handle.startswith(_CHANGES):
        return None
    return read_ticket(content.statement_handle).result


def _updated(count: int) -> bytes:
    content: bytes = sql.DoPutUpdateResult(record_count=count).SerializeToString()
    return content


def _refuse_transaction(command: Any) -> None:
    if command.HasField("transaction_id") and command.transaction_id:
        raise _no_transactions()


def _no_transactions() -> UnsupportedError:
    return UnsupportedError(
        "There are no transactions: a statement, and a tick, happens whole or not at all.",
        hint="turn autocommit on; several sources change together in one tick",
    )
