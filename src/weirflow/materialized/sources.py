"""``SourceTables``: the tables that the query of a materialized view reads, and what changed in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.errors import QueryError, UnsupportedError
from weirflow.flows.feeds.remembered_changes import remembered_changes
from weirflow.flows.feeds.table_changes import ChangeSize, TableChanges
from weirflow.flows.feeds.table_difference import table_difference
from weirflow.flows.feeds.table_kinds import CHANGES
from weirflow.flows.own_session import own_session, provider, with_settings
from weirflow.flows.view_schema import view_schema
from weirflow.materialized.note import Marks, SourceMark
from weirflow.materialized.reasons import FullReason, Obstacle
from weirflow.sql.quoting import quoted
from weirflow.sql.snapshots import shown_name

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.materialized.definition import Definition
    from weirflow.sql.statements.table_references import TableReference

_TOO_MANY_BYTES = "spark.driver.maxResultSize"
"""What Spark names if this process would get more than it may."""
_UNKNOWN_SIZE = 1_000_000
"""How many rows of a change are reckoned with where a table does not say it."""


@dataclass(frozen=True)
class SourceTable:
    """A table, or whatever else the query reads under a name.

    Attributes:
        parts: its whole name.
        changes: its versions; None if it has none.
        schema: its columns now.
    """

    parts: tuple[str, ...]
    changes: TableChanges | None
    schema: pa.Schema

    @property
    def quoted(self) -> str:
        """The same with all parts in quotes."""
        return ".".join(map(quoted, self.parts))

    @property
    def name(self) -> str:
        """The same as SQL writes it, for notes and people."""
        return shown_name(self.parts)


@dataclass(frozen=True)
class _Change:
    """What is to be read of a table: some columns of what changed between two versions."""

    name: str
    changes: TableChanges
    origin: str | None
    after: str | None
    upto: str
    columns: pa.Schema

    @property
    def key(self) -> tuple[str | None, ...]:
        """Tells it from all other changes."""
        return self.name, self.origin, self.after, self.upto

    def frame(self) -> Any:
        return table_difference(self.changes, self.columns.names, self.after, self.upto)


class SourceTables:
    """What a query reads, in a native session of its own in which SQL means what it meant when the view was created.

    All calls run in an operation of the Session.
    """

    def __init__(self, main: Any, definition: Definition) -> None:
        self.native = native_for(main, definition)
        self._sql = definition.sql
        self._references = _references(self.native, definition.sql)
        self._parts = {one.parts: _whole_name(self.native, one.parts) for one in self._references}
        self.tables = {shown_name(parts): _table(self.native, parts) for parts in self._parts.values()}
        self._found: Marks | None = {name: _mark(table) for name, table in self.tables.items()}

    def pin(self) -> Marks:
        """The versions that the tables have now; of the first call, those that they had when this was made."""
        found, self._found = self._found, None
        return found or {name: _looked_up(table) for name, table in self.tables.items()}

    def query(self, marks: Mapping[str, SourceMark] | None = None) -> Any:
        """A native frame of the query, over these versions of the tables or over those there are now."""
        text = self._sql
        for one in sorted(self._references, key=lambda one: -one.start):
            version = None if marks is None else marks[shown_name(self._parts[one.parts])].version
            if version is not None:
                text = f"{text[: one.end]} VERSION AS OF {int(version)}{text[one.end :]}"
        return self.native.sql(text)

    def schemas(self) -> dict[tuple[str, ...], pa.Schema]:
        """The columns of the tables."""
        return {table.parts: table.schema for table in self.tables.values()}

    def obstacle(self, before: Mapping[str, SourceMark], now: Mapping[str, SourceMark]) -> Obstacle | None:
        """What keeps one from knowing what changed since versions that were read before; None if nothing does."""
        for name, table in self.tables.items():
            if table.changes is None:
                return without_changes(table)
            mark = before.get(name)
            if mark is None or mark.origin != now[name].origin:
                return Obstacle(FullReason.SOURCE_REPLACED, f"{table.name} is not the table that was read before.")
            if mark.version is not None and not table.changes.is_kept(mark.version):
                why = f"{table.name} no longer has version {mark.version}, which was read last."
                return Obstacle(FullReason.SOURCE_HISTORY_GONE, why)
        return None

    def lasting_obstacle(self) -> Obstacle | None:
        """A table that will never tell what changed; None if there is none."""
        return next((without_changes(one) for one in self.tables.values() if one.changes is None), None)

    def columns_obstacle(self, known: Mapping[str, pa.Schema]) -> Obstacle | None:
        """What is another column now than the state knows; columns that it does not know do not matter to the query."""
        for name, table in self.tables.items():
            for column in known[name]:
                at = table.schema.get_field_index(column.name)
                if at < 0 or table.schema.field(at).type != column.type:
                    why = f"The column {column.name} of {table.name} is gone, or of another type than before."
                    return Obstacle(FullReason.SOURCE_COLUMNS_CHANGED, why)
        return None

    def size(self, before: Mapping[str, SourceMark], now: Mapping[str, SourceMark]) -> ChangeSize:
        """How much has changed, as the tables themselves say."""
        found = [_size(table, before[name].version, now[name].version) for name, table in self.tables.items()]
        return sum(found, ChangeSize())

    def rows(self, now: Mapping[str, SourceMark]) -> int:
        """How many rows there are, as far as the tables say it."""
        found = [
            table.changes.rows(version)
            for name, table in self.tables.items()
            if table.changes is not None and (version := now[name].version) is not None
        ]
        return sum(one or 0 for one in found)

    def deltas(
        self,
        known: Mapping[str, pa.Schema],
        before: Mapping[str, SourceMark] | None,
        now: Mapping[str, SourceMark],
        here: Callable[[Any], pa.Table] | None = None,
    ) -> dict[tuple[str, ...], Any]:
        """What changed in each table that has changed: the columns that are ``known``, with weights.

        Frames, or what ``here`` makes of them; this is remembered for other views that read the same.
        """
        found = {}
        for name, table in self.tables.items():
            after, upto = None if before is None else before[name].version, now[name].version
            if after != upto and upto is not None and table.changes is not None:
                one = _Change(table.name, table.changes, now[name].origin, after, upto, known[name])
                found[table.parts] = one.frame() if here is None else self._remembered(one, here)
        return found

    def _remembered(self, one: _Change, here: Callable[[Any], pa.Table]) -> Any:
        memory = remembered_changes(self.native.sparkContext)
        try:
            return memory.get(one.key, one.columns, lambda: here(one.frame()))
        except QueryError as error:
            if _TOO_MANY_BYTES not in error.message:
                raise
            return one.frame()  # few rows, but long ones

    def release(self) -> None:
        """Let go of what frames of ``deltas`` read."""
        for table in self.tables.values():
            if table.changes is not None:
                table.changes.release()


def tables_read(main: Any, definition: Definition) -> list[str]:
    """The quoted whole names of the tables that a query reads."""
    native = native_for(main, definition)
    names = dict.fromkeys(_whole_name(native, one.parts) for one in _references(native, definition.sql))
    return [".".join(map(quoted, parts)) for parts in names]


def native_for(main: Any, definition: Definition) -> Any:
    """A native session in which SQL means what it meant when a view was created."""
    native = with_settings(own_session(main), definition.settings)
    native.conf.set("spark.sql.sources.partitionOverwriteMode", "static")  # all rows are replaced, of all partitions
    native.catalog.setCurrentCatalog(definition.catalog)
    native.catalog.setCurrentDatabase(definition.namespace)
    return native


def without_changes(table: SourceTable) -> Obstacle:
    """What is wrong with a table that has no versions."""
    why = f"{table.name} has no versions, so nobody knows what has changed in it."
    return Obstacle(FullReason.SOURCE_WITHOUT_CHANGES, why, is_lasting=True)


def _references(native: Any, sql: str) -> list[TableReference]:
    from weirflow.spark.analyzed.references import spark_references  # noqa: PLC0415 - imports pyspark

    return spark_references(native, sql)


def _whole_name(native: Any, parts: tuple[str, ...]) -> tuple[str, ...]:
    found = native.catalog.getTable(".".join(map(quoted, parts)))
    if found.isTemporary:
        raise UnsupportedError(
            f"A materialized view cannot read {found.name}, which ends with this Session.",
            hint="read tables of a catalog, or write it to one first",
        )
    return (found.catalog, *found.namespace, found.name)


def _table(native: Any, parts: tuple[str, ...]) -> SourceTable:
    from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark

    name = ".".join(map(quoted, parts))
    kind = provider(native, name)
    changes = CHANGES[kind](native, name) if kind in CHANGES else None
    if changes is None:
        native.catalog.refreshTable(name)  # Spark's catalog remembers tables for a while
    else:
        changes.origin()  # looks anew, too
    return SourceTable(parts, changes, view_schema(frame_schema(native.table(name))))


def _looked_up(table: SourceTable) -> SourceMark:
    """How a table is now."""
    return (
        SourceMark(None, None) if table.changes is None else SourceMark(table.changes.origin(), table.changes.latest())
    )


def _mark(table: SourceTable) -> SourceMark:
    """How a table was when it was looked at last."""
    return SourceMark(None, None) if table.changes is None else SourceMark(table.changes.seen, table.changes.latest())


def _size(table: SourceTable, after: str | None, upto: str | None) -> ChangeSize:
    if table.changes is None or upto is None or after == upto:
        return ChangeSize()
    if after is None:
        return ChangeSize(table.changes.rows(upto) or _UNKNOWN_SIZE)
    return table.changes.size(after, upto) or ChangeSize(_UNKNOWN_SIZE)
