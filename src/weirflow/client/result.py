"""``RemoteResult``: what a statement on a server returns."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as fl

from weirflow.client.connection import Connection, in_background
from weirflow.errors import WeirflowError
from weirflow.wire.arrow import pack_params
from weirflow.wire.calls import OfOperation
from weirflow.wire.messages import AnyCommand, Statement

if TYPE_CHECKING:
    from collections.abc import Callable

    Params = Mapping[str, Any] | Sequence[Any]

_AT_ONCE = 4


class RemoteResult:
    """The rows of a statement. A query runs when they are asked for first, and once; anything else has run already.

    The server keeps the rows in parts, which are fetched batch by batch, or several at once, until they expire.

    Attributes:
        key: by which the server knows the statement while it runs.
    """

    def __init__(
        self, connection: Connection, command: AnyCommand, *, key: str, seconds: float | None, repeats: bool
    ) -> None:
        self.key = key
        self._connection = connection
        self._command = command
        self._seconds = seconds
        self._repeats = repeats
        self._lock = threading.Lock()
        self._found: fl.FlightInfo | None = None

    @classmethod
    def of_statement(
        cls, connection: Connection, sql: str, params: Params | None, seconds: float | None, *, repeats: bool
    ) -> RemoteResult:
        """That of a statement, which is stopped after so many seconds."""
        key = uuid.uuid4().hex
        command = Statement(sql, pack_params(params), seconds, key)
        return cls(connection, command, key=key, seconds=seconds, repeats=repeats)

    @property
    def schema(self) -> pa.Schema:
        """The columns; runs the query if it has not run."""
        return self._info.schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns; runs the query if it has not run."""
        names: list[str] = self.schema.names
        return names

    def run(self) -> RemoteResult:
        """Have it run, and return when it has."""
        assert self._info is not None
        return self

    def cancel(self) -> bool:
        """Stop the statement on the server, if it runs; says whether there was something to stop.

        Whoever waits for its rows gets ``OperationCancelled``.
        """
        return bool(self._connection.call("cancel", OfOperation(self.key)))

    def to_arrow(self) -> pa.Table:
        """All rows."""
        info = self._info
        tickets = [endpoint.ticket for endpoint in info.endpoints]
        if not tickets:
            return info.schema.empty_table()
        if len(tickets) == 1:
            return self._connection.rows(tickets[0])
        with ThreadPoolExecutor(min(_AT_ONCE, len(tickets)), "weirflow-fetch") as pool:
            return pa.concat_tables(pool.map(self._connection.rows, tickets))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows batch by batch, as they are read; never more than a part of them is here."""
        for endpoint in self._info.endpoints:
            yield from self._connection.batches(endpoint.ticket)

    def stream(self) -> pa.RecordBatchReader:
        """The rows batch by batch, as what Arrow and other libraries read."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def collect(self) -> list[dict[str, Any]]:
        """All rows as dicts."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def count(self) -> int:
        """How many rows there are."""
        known: int = self._info.total_records
        return known if known >= 0 else sum(batch.num_rows for batch in self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.stream().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<RemoteResult {'not run yet' if self._found is None else self._found.schema.names}>"

    @property
    def _info(self) -> fl.FlightInfo:
        with self._lock:
            if self._found is None:
                self._found = in_background(self._ask, self._abandon)
            return self._found

    def _ask(self) -> fl.FlightInfo:
        return self._connection.info(self._command, self._seconds, repeats=self._repeats)

    def _abandon(self) -> None:
        """Nobody waits for it any more: Ctrl-C."""
        _quietly(self.cancel)


def _quietly(call: Callable[[], object]) -> None:
    """Do what need not succeed."""
    try:
        call()
    except WeirflowError:
        return
