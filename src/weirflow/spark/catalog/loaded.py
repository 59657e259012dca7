"""What a catalog says of a table, asked without a query; classic sessions only."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError


def loaded_provider(native: Any, table: str) -> str | None:
    """What keeps a table, by its whole name in SQL; None for what is no table of a catalog, or if that is not said."""
    state, jvm = native._jsparkSession.sessionState(), native._jvm  # noqa: SLF001 - no public way
    try:
        name = state.sqlParser().parseMultipartIdentifier(table)
        catalog, *spaces, last = [name.apply(number) for number in range(name.size())]
        within = native.sparkContext._gateway.new_array(jvm.java.lang.String, len(spaces))  # noqa: SLF001 - as above
        for number, space in enumerate(spaces):
            within[number] = space
        called = jvm.org.apache.spark.sql.connector.catalog.Identifier.of(within, last)
        found = state.catalogManager().catalog(catalog).loadTable(called).properties().get("provider")
    except (Py4JJavaError, ValueError):  # it is a view, say, or its name not a whole one
        return None
    return None if found is None else str(found)
