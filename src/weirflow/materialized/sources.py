"""``SourceTables``: the tables that the query of a materialized view reads, and what changed in them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.errors import QueryError, UnsupportedError
from weirflow.flows.feeds.remembered_changes import RememberedChanges, remembered_changes
from weirflow.flows.feeds.table_changes import ChangeSize, TableChanges
from weirflow.flows.feeds.table_difference import table_difference
from weirflow.flows.feeds.table_kinds import CHANGES
from weirflow.flows.own_session import provider
from weirflow.flows.view_schema import view_schema
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.materialized.lent_sessions import LentSession, lent_sessions
from weirflow.materialized.note import Marks, SourceMark
from weirflow.materialized.reasons import FullReason, Obstacle
from weirflow.sql.quoting import quoted
from weirflow.sql.snapshots import shown_name

if TYPE_CHECKING:
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
    """What changed in a table between two versions."""

    table: SourceTable
    origin: str | None
    after: str | None
    upto: str

    @property
    def key(self) -> Hashable:
        return change_key(self.table.quoted, self.origin, self.after, self.upto)

    def frame(self, columns: pa.Schema) -> Any:
        """These columns of it, with weights."""
        assert self.table.changes is not None
        return table_difference(self.table.changes, columns.names, self.after, self.upto)

    def size(self) -> ChangeSize:
        """How large it is, as the table itself says."""
        changes = self.table.changes
        assert changes is not None
        if self.after is None:
            return ChangeSize(changes.rows(self.upto) or _UNKNOWN_SIZE)
        return changes.size(self.after, self.upto) or ChangeSize(_UNKNOWN_SIZE)


def change_key(table: str, origin: str | None, after: str | None, upto: str) -> Hashable:
    """Tells what changed in a table, by its quoted whole name, between two of its versions from all other changes."""
    return table, origin, after, upto


class SourceTables:
    """What a query reads, in a native session of its own in which SQL means what it meant when the view was created.

    All calls run in an operation of the Session.
    """

    def __init__(self, main: Any, definition: Definition) -> None:
        self._sessions = lent_sessions(main)
        self._sql = definition.sql
        self._look(self._sessions.lend(definition))
        if self.lasting_obstacle() is not None:  # a plain view: the session may know its tables as they were
            self._look(self._sessions.lend(definition, is_new=True))

    def _look(self, lent: LentSession) -> None:
        self._lent, self.native = lent, lent.native
        self._references = _references(self.native, self._sql)
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
        """How much has changed, as the tables themselves say, or those who have read it already."""
        memory = self._memory
        known = [(one, memory.count(one.key)) for one in self._changed(before, now).values()]
        return sum((one.size() if count is None else ChangeSize(count) for one, count in known), ChangeSize())

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
        changed = self._changed(before, now)
        return {
            one.table.parts: one.frame(known[name]) if here is None else self._remembered(one, known[name], here)
            for name, one in changed.items()
        }

    def _changed(self, before: Mapping[str, SourceMark] | None, now: Mapping[str, SourceMark]) -> dict[str, _Change]:
        """The tables that have changed, by their names."""
        found = {}
        for name, table in self.tables.items():
            after, upto = None if before is None else before[name].version, now[name].version
            if after != upto and upto is not None and table.changes is not None:
                found[name] = _Change(table, now[name].origin, after, upto)
        return found

    def _remembered(self, one: _Change, columns: pa.Schema, here: Callable[[Any], pa.Table]) -> Any:
        try:
            return self._memory.get(one.key, columns, lambda: here(one.frame(columns)))
        except QueryError as error:
            if _TOO_MANY_BYTES not in error.message:
                raise
            return one.frame(columns)  # few rows, but long ones

    @property
    def _memory(self) -> RememberedChanges:
        return remembered_changes(self.native.sparkContext)

    def remember(self, table: str, origin: str, after: str | None, upto: str, change: DeltaBatch) -> None:
        """What changed in a table is known, or all its rows: those who read it need not look at its files."""
        self._memory.put(change_key(table, origin, after, upto), pa.Table.from_batches([change.to_arrow()]))

    def known_rows(self, table: str, origin: str, version: str, columns: pa.Schema) -> DeltaBatch | None:
        """All rows of a version of a table that has these columns, if they are known."""
        found = self._memory.known(change_key(table, origin, None, version), columns)
        return None if found is None else DeltaBatch.from_weighted(found)

    def release(self) -> None:
        """Let go of what frames of ``deltas`` read."""
        for table in self.tables.values():
            if table.changes is not None:
                table.changes.release()

    def give_back(self) -> None:
        """Leave the native session to others; called last, and if all went well."""
        self._sessions.take_back(self._lent)


def tables_read(main: Any, definition: Definition) -> list[str]:
    """The quoted whole names of the tables that a query reads."""
    sessions = lent_sessions(main)
    lent = sessions.lend(definition)
    names = dict.fromkeys(_whole_name(lent.native, one.parts) for one in _references(lent.native, definition.sql))
    sessions.take_back(lent)
    return [".".join(map(quoted, parts)) for parts in names]


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
