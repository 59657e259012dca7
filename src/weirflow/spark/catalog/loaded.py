"""What a catalog says of a table, asked without a query; classic sessions only."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError


def loaded_provider(native: Any, table: str) -> str | None:
    """What keeps a table, by its whole name in SQL; None for what is no table of a catalog, or if that is not said."""
    return loaded_property(native, table, "provider")


def loaded_property(native: Any, table: str, name: str, *, anew: bool = False) -> str | None:
    """A property of a table, by its whole name in SQL; None if it has none, or is no table of a catalog.

    Args:
        native: the session that asks.
        table: which one.
        name: of the property.
        anew: whether what the catalog remembers of the table is not to be trusted.
    """
    state, jvm = native._jsparkSession.sessionState(), native._jvm  # noqa: SLF001 - no public way
    try:
        parts = state.sqlParser().parseMultipartIdentifier(table)
        catalog, *spaces, last = [parts.apply(number) for number in range(parts.size())]
        within = native.sparkContext._gateway.new_array(jvm.java.lang.String, len(spaces))  # noqa: SLF001 - as above
        for number, space in enumerate(spaces):
            within[number] = space
        called = jvm.org.apache.spark.sql.connector.catalog.Identifier.of(within, last)
        tables = state.catalogManager().catalog(catalog)
        if anew:
            tables.invalidateTable(called)
        found = tables.loadTable(called).properties().get(name)
    except (Py4JJavaError, ValueError):  # it is a view, say, or its name not a whole one
        return None
    return None if found is None else str(found)
