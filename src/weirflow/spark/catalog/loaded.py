"""What a catalog says of a table, asked without a query; classic sessions only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JJavaError


def loaded_provider(native: Any, table: str) -> str | None:
    """What keeps a table, by its whole name in SQL; None for what is no table of a catalog, or if that is not said."""
    return loaded_properties(native, table, ["provider"])[0]


def loaded_properties(native: Any, table: str, names: Sequence[str], *, anew: bool = False) -> list[str | None]:
    """Properties of a table, by its whole name in SQL; None for what it has not, and for what is no table of a catalog.

    Args:
        native: the session that asks.
        table: which one.
        names: of the properties.
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
        properties = tables.loadTable(called).properties()
        found = [properties.get(name) for name in names]
    except (Py4JJavaError, ValueError):  # it is a view, say, or its name not a whole one
        return [None for _ in names]
    return [None if one is None else str(one) for one in found]
