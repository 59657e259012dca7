"""``alter_view``: gives a materialized view another query, and keeps what can be kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from weirflow.errors import ConfigError, QueryError, SinkConflict
from weirflow.flows.own_session import settings_of
from weirflow.materialized.definition import PROPERTY, Definition, encode_definition
from weirflow.materialized.opened import OpenedView, classic_spark
from weirflow.materialized.sources import SourceTables
from weirflow.sql.quoting import quoted, text_literal

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession

_MAPPED = "delta.columnMapping.mode"


def alter_view(session: FlowSession, view: OpenedView, sql: str) -> Definition:
    """Let a view compute another query from its next refresh on, under the settings that the Session has now.

    Its table stays, with its snapshots, properties and history; the rows stay until the refresh, which is a full one
    and builds the state anew. A query that computes the same leaves state and rows as they are. Columns are added to
    the table and dropped from it as the query needs them. Called again, it goes on where it was interrupted.

    Raises:
        ConfigError: the query reads the view itself.
        SinkConflict: the table cannot have the columns of the query.
    """
    native = classic_spark(session)
    wanted = msgspec.structs.replace(
        view.definition,
        sql=sql,
        catalog=native.catalog.currentCatalog(),
        namespace=native.catalog.currentDatabase(),
        settings=settings_of(native),
    )

    def read() -> tuple[Any, SourceTables]:
        sources = SourceTables(native, wanted)
        return sources.query(), sources

    new, sources = session.operations.run(f"read the query of {view.name}", read)
    if any(table.quoted == view.table for table in sources.tables.values()):
        raise ConfigError(f"The query of {view.name} reads the view itself.", hint="read what it is made of")
    is_same = _is_read_alike(view.definition, wanted) and _computes_the_same(session, view, sources, new)

    def alter() -> Definition:
        revision = view.definition.revision + (0 if is_same else 1)
        altered = msgspec.structs.replace(wanted, revision=revision)
        for change in _column_changes(native, view, new):
            native.sql(f"ALTER TABLE {view.table} {change}")
        value = text_literal(encode_definition(altered))
        native.sql(f"ALTER TABLE {view.table} SET TBLPROPERTIES ({text_literal(PROPERTY)} = {value})")
        native.catalog.refreshTable(view.table)
        return altered

    return session.operations.run(f"alter {view.name}", alter)


def _is_read_alike(one: Definition, other: Definition) -> bool:
    """Whether the same SQL means the same in both."""
    return (one.settings, one.catalog, one.namespace) == (other.settings, other.catalog, other.namespace)


def _computes_the_same(session: FlowSession, view: OpenedView, sources: SourceTables, new: Any) -> bool:
    """Whether the query before has the same columns and rows as a frame of the new one, as far as their plans tell."""
    sql = view.definition.sql
    try:
        old = session.operations.run(f"read the query of {view.name}", lambda: sources.native.sql(sql))
    except QueryError:  # what it reads is gone, say
        return False
    return _columns(old) == _columns(new) and bool(new.sameSemantics(old))


def _columns(frame: Any) -> list[tuple[str, str]]:
    return [(one.name, one.dataType.simpleString()) for one in frame.schema]


def _column_changes(native: Any, view: OpenedView, query: Any) -> Sequence[str]:
    """What ALTER TABLE says so that the table has the columns of a query; nothing if it has them."""
    found, wanted = _columns(native.table(view.table)), _columns(query)
    if found == wanted:
        return []
    stays = [one for one in found if one in wanted]
    if stays != [one for one in wanted if one in found]:
        raise SinkConflict(
            f"The query has columns of {view.name} in another order.",
            hint="list them as the table has them, with new ones in between, or drop the view and create it again",
        )
    if not stays:
        raise SinkConflict(
            f"The query has no column of {view.name}.", hint="drop the materialized view and create it again"
        )
    gone = [name for name, _ in found if name not in {one for one, _ in stays}]
    if gone and view.kind == "delta" and not _drops_columns(native, view):
        raise SinkConflict(
            f"The query has no column {gone[0]}, which the Delta table {view.name} has and cannot drop.",
            hint=f"ALTER TABLE {view.table} SET TBLPROPERTIES ('{_MAPPED}' = 'name'), or create the view again",
        )
    dropped = [f"DROP COLUMNS ({', '.join(map(quoted, gone))})"] if gone else []
    added = []
    kinds = {one.name: one.dataType.simpleString() for one in query.schema}
    for place, (name, kind) in enumerate(wanted):
        if (name, kind) not in stays:
            where = f"AFTER {quoted(wanted[place - 1][0])}" if place else "FIRST"
            added.append(f"ADD COLUMNS ({quoted(name)} {kinds[name]} {where})")
    return [*dropped, *added]


def _drops_columns(native: Any, view: OpenedView) -> bool:
    properties = dict(native.sql(f"SHOW TBLPROPERTIES {view.table}").collect())
    return bool(properties.get(_MAPPED, "none") != "none")
