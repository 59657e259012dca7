"""``Snapshots``: what the views of a flow read of a Session's tables, kept and stored like sources.

A snapshot is taken when the first view that reads the table is registered, shared by all views that read it, and gone
with the last of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from weirflow.errors import ConfigError, EngineMissing, TableNotFound, WeirflowError
from weirflow.ivm.compiler.reads import reads
from weirflow.ivm.compiler.session_tables import SessionTable, can_read_tables
from weirflow.ivm.flow.source import Source, declared
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.rows import consolidate
from weirflow.sql.snapshots import free_name, is_snapshot, table_of
from weirflow.sql.types import type_name

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.compiler.view import RecomputeEngine, View
    from weirflow.sql.settings import SqlSettings


class SnapshotHost(Protocol):
    """A flow, as far as its snapshots know it."""

    @property
    def engine(self) -> RecomputeEngine | None:
        """What reads tables."""

    @property
    def sources(self) -> Mapping[str, Source]:
        """Its sources, and its snapshots."""

    @property
    def views(self) -> Mapping[str, View]:
        """Its views."""

    @property
    def settings(self) -> SqlSettings:
        """What SQL means in it now."""

    def take_snapshot(self, source: Source, rows: pa.Table) -> None:
        """Take on a snapshot, with its rows."""

    def drop_snapshot(self, name: str) -> None:
        """Remove a snapshot that nothing reads."""

    def rows_of(self, name: str) -> Batch:
        """All rows of a source or snapshot."""


class Snapshots:
    """The snapshots of one flow. Whoever calls keeps others from changing the flow."""

    def __init__(self, host: SnapshotHost) -> None:
        self._host = host

    def take(self, views: Iterable[View]) -> None:
        """Have snapshots of all tables that views read which are to be registered; of those that there are, as is."""
        engine = self._host.engine
        if not can_read_tables(engine):
            return
        for view in views:
            if not view.is_frame:
                known = [name for name in (*self._host.sources, *self._host.views) if not is_snapshot(name)]
                for table in engine.tables(view.sql, known):
                    self.of(table)

    def take_where_possible(self, views: Iterable[View]) -> None:
        """As ``take``, for views that can go on waiting."""
        for view in views:
            try:
                self.take([view])
            except WeirflowError:
                continue  # it says so itself when it is declared again

    def of(self, table: SessionTable) -> str:
        """The name of a table's snapshot, which is taken if there is none."""
        sources = {name: one.schema for name, one in self._host.sources.items()}
        found = table.snapshot_in(sources)
        if found is not None:
            return found
        engine = self._host.engine
        assert can_read_tables(engine)
        name = free_name(table.name, (*sources, *self._host.views))
        source = declared(
            name,
            table.schema,
            key=None,
            dedup=False,
            dimensions=None,
            lateness=None,
            is_case_sensitive=lambda: self._host.settings.case_sensitive,
        )
        self._host.take_snapshot(source, engine.rows(table))
        return name

    def sweep(self) -> None:
        """Remove snapshots that no view reads."""
        kept = {one for view in self._host.views.values() for one in reads(view)}
        for name in [one for one in self._host.sources if is_snapshot(one)]:
            if name.casefold() not in kept:
                self._host.drop_snapshot(name)

    def differences(self, views: Iterable[View]) -> dict[str, Any]:
        """How tables that views read differ from their snapshots now: deltas for those that do.

        Raises:
            EngineMissing: there is no Session whose tables they are.
            TableNotFound: a table is gone.
            ConfigError: it lacks a column that it had, or has it with another type.
        """
        read = {one for view in views for one in reads(view)}
        wanted = {
            name: one for name, one in self._host.sources.items() if is_snapshot(name) and name.casefold() in read
        }
        engine = self._host.engine
        if wanted and not can_read_tables(engine):
            raise EngineMissing(
                f"The table {_table(min(wanted))!r} is read again by a Session, and this flow has none.",
                hint="open the flow with session.flow(name)",
            )
        assert not wanted or can_read_tables(engine)
        found: dict[str, Any] = {}
        for name, source in wanted.items():
            assert can_read_tables(engine)
            _require_columns(source, _now(engine, name))
            rows = Batch.of_arrow(engine.rows(SessionTable(_table(name), source.schema)))
            change = consolidate(Batch.concat([rows, self._host.rows_of(name).negate()]))
            if len(change):
                found[name] = DeltaBatch.of_batch(source.schema, change)
        return found


def _table(name: str) -> str:
    found = table_of(name)
    assert found is not None
    return found


def _now(engine: Any, name: str) -> SessionTable:
    try:
        table: SessionTable = engine.table(_table(name))
    except TableNotFound as error:
        raise TableNotFound(
            f"The Session has no table {_table(name)!r} any more; views keep the rows they read of it.",
            hint="make the table again, or replace the views that read it",
        ) from error
    return table


def _require_columns(source: Source, table: SessionTable) -> None:
    """``ConfigError`` unless a table still has the columns of its snapshot; it may have more."""
    now = {field.name: field.type for field in table.schema}
    changed = [
        f"{field.name} was {type_name(field.type)}, is {type_name(now[field.name]) if field.name in now else 'gone'}"
        for field in source.schema
        if now.get(field.name) != field.type
    ]
    if changed:
        raise ConfigError(
            f"The table {table.name!r} has other columns than views read of it: {'; '.join(changed)}.",
            hint="replace the views that read it: replace_view, or CREATE OR REPLACE INCREMENTAL VIEW",
        )
