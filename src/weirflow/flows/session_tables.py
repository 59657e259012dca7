"""``SessionTables``: the tables of a Session that SQL of views reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.errors import PathNotFound, QueryError, ResultTooLarge, StreamRefused, TableNotFound
from weirflow.flows.view_schema import view_schema
from weirflow.ivm.compiler.session_tables import SessionTable
from weirflow.sql.quoting import quoted
from weirflow.sql.snapshots import is_same_table, shown_name
from weirflow.sql.statements.composed import ComposedSql, Fragment
from weirflow.sql.statements.lexer import Lexer
from weirflow.sql.statements.table_references import TableReference, table_references
from weirflow.sql.stored import not_there

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession

MOST_BYTES = 1 << 30
"""How large a snapshot may be, as Arrow: the process that ticks the flow holds it, and the log of the flow, too."""

_PATH_PARTS = 2


class SessionTables:
    """Finds tables, temporary views and files as the Session's own SQL would, and reads them.

    Args:
        session: whose tables they are.
    """

    def __init__(self, session: FlowSession) -> None:
        self._session = session

    def read_in(self, sql: str, known: Collection[str]) -> list[tuple[TableReference, SessionTable]]:
        """Where a query names tables that are not ``known`` to the flow, and which these are.

        Raises:
            UnsupportedError: one is a stream, or is read as it was before.
        """
        own = {name.casefold() for name in known}
        found = table_references(sql)
        if found and all(_is_one_of(one, own) for one in found):
            return []
        native = self._session.spark
        if hasattr(native, "_jsparkSession"):
            from weirflow.spark.analyzed.references import spark_references  # noqa: PLC0415 - beside pyspark

            found = self._session.operations.run("read a view", lambda: spark_references(native, sql))
        tables = [(one, self._lookup(one.parts)) for one in found if not _is_one_of(one, own)]
        return [(reference, table) for reference, table in tables if table is not None]

    def with_snapshots(self, sql: str, relations: Mapping[str, pa.Schema]) -> ComposedSql | None:
        """The query with snapshots, which are among the flow's relations, in place of tables; None if it reads none.

        Raises:
            TableNotFound: there is no snapshot of a table.
        """
        own = [name for name in relations if name.isidentifier()]
        found = self.read_in(sql, own)
        if not found:
            return None
        edits = []
        for reference, table in found:
            snapshot = table.snapshot_in(relations)
            if snapshot is None:
                raise not_there(table.name, relations)
            named = (
                "" if reference.aliased or _cannot_be_named(sql, reference) else f" AS {quoted(reference.parts[-1])}"
            )
            edits.append((reference.start, reference.end, quoted(snapshot) + named))
        edits += _qualifiers(sql, found)
        return ComposedSql([Fragment(sql, 0)]).replaced(edits)

    def table(self, name: str) -> SessionTable:
        """See ``TableEngine``."""
        native = self._session.spark
        parts = Lexer(name).names()
        table = self._lookup(parts)
        if table is None or not is_same_table(table.name, name):
            raise not_there(name, ())
        if not _is_path(name):
            self._session.operations.run("read a table again", lambda: native.catalog.refreshTable(name))
        return self._lookup(parts) or table

    def called(self, parts: tuple[str, ...]) -> SessionTable:
        """The table of a name; ``TableNotFound`` if the Session has none."""
        found = self._lookup(parts)
        if found is None:
            raise TableNotFound(
                f"A frame reads {shown_name(parts)!r}, which is not a table of this Session.",
                hint="make it from tables of the Session that the flow belongs to",
            )
        return found

    def rows(self, table: SessionTable) -> pa.Table:
        """See ``TableEngine``."""
        native = self._session.spark

        def read() -> pa.Table:
            from weirflow.spark.frames.arrow import stream_batches  # noqa: PLC0415 - imports pyspark

            frame = native.table(table.name).select(*[quoted(name) for name in table.schema.names])
            return pa.Table.from_batches([*_bounded(stream_batches(frame), table)], _streamed(frame))

        found: pa.Table = self._session.operations.run(f"read {table.name}", read)
        return found.cast(table.schema)

    def _lookup(self, parts: tuple[str, ...]) -> SessionTable | None:
        """A table, view or file, as the Session's SQL finds it; None if it finds nothing."""
        native, run = self._session.spark, self._session.operations.run
        text = ".".join(quoted(part) for part in parts)
        try:
            found = run("look up a table", lambda: native.catalog.getTable(text))
        except TableNotFound:
            return self._file(parts) if len(parts) == _PATH_PARTS else None
        except QueryError:  # such as a name of too many parts
            return None
        if found.isTemporary and self._session._shows(parts[-1]):  # noqa: SLF001 - a query's sight of another flow
            return None
        name = shown_name([*([found.catalog] if found.catalog else []), *(found.namespace or []), found.name])
        return self._read(name)

    def _file(self, parts: tuple[str, ...]) -> SessionTable | None:
        try:
            return self._read(shown_name(parts))
        except (TableNotFound, PathNotFound):
            return None

    def _read(self, name: str) -> SessionTable:
        native = self._session.spark

        def read() -> tuple[pa.Schema, bool]:
            frame = native.table(name)
            return _streamed(frame), frame.isStreaming

        schema, is_stream = self._session.operations.run("look up a table", read)
        if is_stream:
            raise StreamRefused(
                f"A view cannot read {name!r}, which is a stream.",
                hint="flow.attach(stream, source) ticks a source with its rows",
            )
        return SessionTable(name, view_schema(schema))


def _streamed(frame: Any) -> pa.Schema:
    from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark

    return frame_schema(frame)


def _bounded(batches: Iterator[pa.RecordBatch], table: SessionTable) -> Iterator[pa.RecordBatch]:
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > MOST_BYTES:
            raise ResultTooLarge(
                f"The table {table.name!r} is larger than the {MOST_BYTES >> 20:,} MiB that views may read of one.",
                hint="read a view with the rows and columns that are needed, or register a source and attach_table()",
            )
        yield batch


def _is_one_of(reference: TableReference, own: Collection[str]) -> bool:
    return len(reference.parts) == 1 and reference.parts[0].casefold() in own


def _is_path(name: str) -> bool:
    return "/" in name


def _cannot_be_named(sql: str, reference: TableReference) -> bool:
    """Whether no alias can stand behind a table: ``TABLE t``, or one of which a sample is taken."""
    before = sql[: reference.start].rstrip()
    return before[-5:].upper() == "TABLE" or Lexer(sql, reference.end).sees("TABLESAMPLE")


def _qualifiers(sql: str, found: list[tuple[TableReference, SessionTable]]) -> list[tuple[int, int, str]]:
    """What to write in place of tables' long names in front of columns: ``shop.orders.id``."""
    tables = {table.name.casefold(): reference.parts[-1] for reference, table in found if not reference.aliased}
    at_tables = {reference.start for reference, _ in found}
    edits = []
    lexemes = list(Lexer(sql))
    for index, first in enumerate(lexemes):
        if not first.name or first.start in at_tables or (index and lexemes[index - 1].plain == "."):
            continue
        parts, at = [first.name], index
        while (
            at + 2 < len(lexemes)
            and lexemes[at + 1].plain == "."
            and (lexemes[at + 2].name or lexemes[at + 2].plain == "*")
        ):
            end = lexemes[at].start + len(lexemes[at].text)
            short = _table_called(parts, tables)
            if len(parts) > 1 and short is not None:
                edits.append((first.start, end, quoted(short)))
                break
            at += 2
            parts.append(lexemes[at].name)
    return edits


def _table_called(parts: list[str], tables: Mapping[str, str]) -> str | None:
    name = shown_name(parts).casefold()
    return next((short for table, short in tables.items() if table == name or table.endswith(f".{name}")), None)
