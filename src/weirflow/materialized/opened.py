"""``OpenedView``: a materialized view as its table says it, found by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, UnsupportedError
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
        listed = main.sql("SHOW TABLES" if schema is None else f"SHOW TABLES IN {schema}").where("NOT isTemporary")
        names = [str(row["tableName"]) for row in listed.collect()]
        here = "" if schema is None else f"{schema}."
        looked_up = (main.catalog.getTable(f"{here}{quoted(name)}") for name in names)
        first = next((one for one in looked_up if not one.isTemporary), None)  # of all it is where they are
        if first is None:
            return []
        found = [_view_at(main, (first.catalog, *first.namespace, name)) for name in names]
        return [one for one in found if one is not None]

    return session.operations.run("look for materialized views", look)


def find_view(native: Any, name: str) -> OpenedView | None:
    """The view of this name, as a native session finds it; None if the table is something else."""
    found = native.catalog.getTable(name)
    if found.isTemporary:
        return None
    return _view_at(native, (found.catalog, *found.namespace, found.name))


def _view_at(native: Any, parts: Sequence[str]) -> OpenedView | None:
    from weirflow.spark.catalog.loaded import loaded_properties  # noqa: PLC0415 - imports pyspark

    table = ".".join(map(quoted, parts))
    text, place, location, kind = loaded_properties(native, table, [PROPERTY, PLACE, "location", "provider"], anew=True)
    if text is None or kind is None or kind.casefold() not in COMMITS:
        return None
    kind = kind.casefold()
    if location is None:
        location = table_properties(native, table, kind).location
    where = Place(place or f"{location.rstrip('/')}/{FOLDER}")
    return OpenedView(".".join(parts), table, kind, decode_definition(text, table), where)
