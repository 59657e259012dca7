"""``OpenedView``: a materialized view as its table says it, found by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, UnsupportedError
from weirflow.flows.own_session import provider
from weirflow.flows.sinks.table_commits import COMMITS
from weirflow.flows.sinks.table_properties import table_properties
from weirflow.materialized.definition import PLACE, PROPERTY, Definition, decode_definition
from weirflow.materialized.place import FOLDER, Place
from weirflow.sql.quoting import quoted

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession


@dataclass(frozen=True)
class OpenedView:
    """A view that there is.

    Attributes:
        name: its whole name, for people.
        table: the same, quoted.
        kind: ``delta`` or ``iceberg``.
        definition: what it computes.
        place: where its state and history are.
    """

    name: str
    table: str
    kind: str
    definition: Definition
    place: Place


def classic_spark(session: FlowSession) -> Any:
    """The native session; ``UnsupportedError`` over Spark Connect, which shows neither tables' ids nor plans."""
    native = session.spark
    if not hasattr(native, "_jsparkSession"):
        raise UnsupportedError(
            "Materialized views do not work over Spark Connect.", hint="use an embedded or standalone Spark"
        )
    return native


def open_view(session: FlowSession, name: str) -> OpenedView:
    """The view of this name, as the Session's SQL finds it.

    Raises:
        TableNotFound: there is no such table.
        ConfigError: the table is not a materialized view.
    """
    main = classic_spark(session)
    found = session.operations.run(f"look up {name}", lambda: find_view(main, name))
    if found is None:
        raise ConfigError(
            f"The table {name} is not a materialized view.", hint="CREATE MATERIALIZED VIEW makes one; SHOW lists them"
        )
    return found


def views_in(session: FlowSession, schema: str | None) -> list[OpenedView]:
    """All views of a schema, as SQL names it; None for the current one."""
    main = classic_spark(session)

    def look() -> list[OpenedView]:
        tables = main.sql("SHOW TABLES" if schema is None else f"SHOW TABLES IN {schema}").where("NOT isTemporary")
        here = "" if schema is None else f"{schema}."
        found = [find_view(main, f"{here}{quoted(row['tableName'])}") for row in tables.collect()]
        return [one for one in found if one is not None]

    return session.operations.run("look for materialized views", look)


def find_view(native: Any, name: str) -> OpenedView | None:
    """The view of this name, as a native session finds it; None if the table is something else."""
    found = native.catalog.getTable(name)
    if found.isTemporary:
        return None
    parts = (found.catalog, *found.namespace, found.name)
    table = ".".join(map(quoted, parts))
    kind = provider(native, table)
    if kind not in COMMITS:
        return None
    about = table_properties(native, table, kind)
    text = about.properties.get(PROPERTY)
    if text is None:
        return None
    place = Place(about.properties.get(PLACE) or f"{about.location.rstrip('/')}/{FOLDER}")
    return OpenedView(".".join(parts), table, kind, decode_definition(text, table), place)
