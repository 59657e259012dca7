"""Bulk ingest: rows into a source of a flow, as a tick, or into a table of Spark's, from files that executors read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from weirflow.errors import AlreadyExists, ConfigError, TableNotFound, UnsupportedError
from weirflow.server.access.caller import Caller, Right
from weirflow.server.flight.ticks import delta_of
from weirflow.server.results.place import Place
from weirflow.sql.quoting import quoted
from weirflow.sql.statements.relation_name import RelationName
from weirflow.types import SaveMode

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.flow.flow import Flow
    from weirflow.server.coordinator import Coordinator
    from weirflow.server.flight.batches import Sent
    from weirflow.server.flight.cancelling import Started
    from weirflow.server.results.parts import Part
    from weirflow.server.results.spool import Spool
    from weirflow.spark.frames.frame import DataFrame

TOKEN = "weirflow.token"  # noqa: S105 - the name of an option
"""The option that names the tick that an ingest into a source is."""
_PIECE_BYTES = 64 << 20


class IfMissing(IntEnum):
    """What to do if there is no such table."""

    UNSPECIFIED = 0
    CREATE = 1
    FAIL = 2


class IfExists(IntEnum):
    """What to do if there is one."""

    UNSPECIFIED = 0
    FAIL = 1
    APPEND = 2
    REPLACE = 3


@dataclass(frozen=True)
class Ingest:
    """Where rows go.

    Attributes:
        table: its name.
        schema: its schema, or the flow of a source; None where nothing was said.
        catalog: None where nothing was said.
        if_missing: what to do if it is not there.
        if_exists: what to do if it is.
        token: names the tick, if it is one.
    """

    table: str
    schema: str | None
    catalog: str | None
    if_missing: IfMissing
    if_exists: IfExists
    token: str | None


def read_ingest(command: Any) -> Ingest:
    """What a command asks for.

    Raises:
        UnsupportedError: it asks for a temporary table, or an option that is not known.
    """
    if command.temporary:
        raise UnsupportedError("A server makes no temporary tables: the table would be gone after the call.")
    options = {option.key: option.value for option in command.options}
    unknown = sorted(options.keys() - {TOKEN})
    if unknown:
        raise UnsupportedError(f"An ingest has no option {unknown[0]!r}.", hint=f"there is {TOKEN}")
    if not command.table:
        raise ConfigError("An ingest needs the name of a table or source.")
    wanted = command.table_definition_options
    try:
        if_missing, if_exists = IfMissing(wanted.if_not_exist), IfExists(wanted.if_exists)
    except ValueError:
        raise ConfigError("The ingest's mode is not known.") from None
    return Ingest(
        command.table,
        command.schema if command.HasField("schema") and command.schema else None,
        command.catalog if command.HasField("catalog") and command.catalog else None,
        if_missing,
        if_exists,
        options.get(TOKEN),
    )


class Ingests:
    """Takes rows in."""

    def __init__(self, coordinator: Coordinator, spool: Spool) -> None:
        self._coordinator = coordinator
        self._spool = spool

    def run(self, caller: Caller, asked: Ingest, sent: Sent, started: Started) -> int:
        """Take in all rows; returns how many. Those of a table are there all or not at all, as its format has it."""
        with self._coordinator.work(caller, Right.WRITE, "ingest", detail=asked.table):
            flow = self._flow(caller, asked)
            if flow is not None:
                return self._tick(caller, flow, asked, sent)
            return self._write(caller, asked, sent, started)

    def _flow(self, caller: Caller, asked: Ingest) -> Flow | None:
        """The flow of the caller's whose source it is; None for a table of Spark's."""
        if asked.catalog is not None:
            return None
        found = self._coordinator.relation(caller, RelationName(asked.schema, asked.table))
        return None if found is None else found[0]

    def _tick(self, caller: Caller, flow: Flow, asked: Ingest, sent: Sent) -> int:
        if asked.if_exists is IfExists.REPLACE:
            raise UnsupportedError(f"{asked.table!r} is a source of the flow {flow.name!r}, and is not replaced.")
        if asked.if_exists is IfExists.FAIL:
            raise AlreadyExists(
                f"{asked.table!r} is a source of the flow {flow.name!r}.", hint="append to it: that is a tick"
            )
        with self._coordinator.work(caller, Right.WRITE, "tick", flow=flow.name, detail=asked.table):
            source = next((one for one in flow.sources if one.casefold() == asked.table.casefold()), None)
            if source is None:
                raise ConfigError(f"{asked.table!r} is a view of the flow {flow.name!r}; only sources take rows.")
            rows = sent.table(self._spool.limits.result_bytes)
            flow.tick(source, delta_of(rows), token=asked.token)
            return int(rows.num_rows)

    def _write(self, caller: Caller, asked: Ingest, sent: Sent, started: Started) -> int:
        if asked.token is not None:
            raise UnsupportedError(f"{asked.table!r} is no source of a flow; only ticks have tokens.")
        name = ".".join(quoted(part) for part in (asked.catalog, asked.schema, asked.table) if part is not None)
        self._require_table(caller, asked, name)
        session = self._coordinator.session
        exists = session.spark.catalog.tableExists(name)
        mode = _mode(asked, name, exists=exists)
        with self._spool.received(caller.key, sent.schema, pieces(iter(sent))) as received:

            def write() -> None:
                frame = self._frame(sent.schema, received.parts)
                if mode is SaveMode.APPEND:
                    self._append(name, frame)
                else:
                    frame.write_table(name, mode=mode)

            self._coordinator.run(caller, f"ingest into {asked.table}", write, started=started)
            return received.rows

    def _append(self, name: str, frame: DataFrame) -> None:
        """Add rows to a table of any format, by the names of its columns, which may be in another order there."""
        session = self._coordinator.session
        shown = f"_weirflow_ingest_{uuid.uuid4().hex}"
        frame.spark.createOrReplaceTempView(shown)
        try:
            session.spark.sql(f"INSERT INTO {name} BY NAME SELECT * FROM {shown}")  # noqa: S608 - names are quoted
        finally:
            session.spark.catalog.dropTempView(shown)

    def _frame(self, schema: pa.Schema, parts: Sequence[Part]) -> DataFrame:
        """The rows of files, which executors read."""
        from weirflow.spark.jobs.shards import rows_of_shards  # noqa: PLC0415 - imports pyspark

        session = self._coordinator.session
        if not parts:
            return session.from_arrow(schema.empty_table())
        read = PartReader(self._spool.uri, tuple(part.name for part in parts))
        return session._wrapped(rows_of_shards(session.spark, schema, len(parts), read))  # noqa: SLF001 - see Coordinator

    def _require_table(self, caller: Caller, asked: Ingest, name: str) -> None:
        """Whether the caller may write there: making and replacing tables takes more than adding rows."""
        makes = asked.if_missing is IfMissing.CREATE or asked.if_exists is IfExists.REPLACE
        right = Right.ADMIN if makes else Right.WRITE
        caller.require(right, "make tables" if makes else f"write to {name}")
        self._coordinator.require_table(caller, name)


@dataclass(frozen=True)
class PartReader:
    """What a task does to have the rows of a file; it is pickled."""

    place: str
    names: tuple[str, ...]

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of one of the files."""
        yield from Place(self.place).batches(self.names[number])


def pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[Iterator[pa.RecordBatch]]:
    """Batches in pieces of some megabytes, each to be read before the next."""
    for first in batches:

        def piece(first: pa.RecordBatch = first) -> Iterator[pa.RecordBatch]:
            yield first
            size = first.nbytes
            while size < _PIECE_BYTES and (batch := next(batches, None)) is not None:
                size += batch.nbytes
                yield batch

        yield piece()


def _mode(asked: Ingest, name: str, *, exists: bool) -> SaveMode:
    if not exists:
        if asked.if_missing is not IfMissing.CREATE:
            raise TableNotFound(f"There is no table {name}.", hint="create it first, or use a mode that creates it")
        return SaveMode.ERROR
    match asked.if_exists:
        case IfExists.APPEND:
            return SaveMode.APPEND
        case IfExists.REPLACE:
            return SaveMode.OVERWRITE
        case _:
            raise AlreadyExists(
                f"There is a table {name} already.", hint="append to it, or use the mode that replaces it"
            )
