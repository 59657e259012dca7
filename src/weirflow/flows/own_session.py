"""A Spark session beside the Session's: the same tables, but settings and temporary views of its own."""

from __future__ import annotations

from typing import Any


def own_session(main: Any) -> Any:
    """A new native session at the catalog and schema where ``main`` is now."""
    own = main.newSession()
    own.catalog.setCurrentCatalog(main.catalog.currentCatalog())
    own.catalog.setCurrentDatabase(main.catalog.currentDatabase())
    return own


_MEANING = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.timestampType",
)


def with_settings_of(main: Any, own: Any) -> Any:
    """A session in which SQL means what it means in ``main`` now."""
    for name in _MEANING:
        value = main.conf.get(name)
        if own.conf.get(name) != value:
            own.conf.set(name, value)
    return own


def meaning(native: Any) -> dict[str, str]:
    """The settings of a session by which SQL has its meaning."""
    return {name: native.conf.get(name) for name in _MEANING}


def provider(native: Any, table: str) -> str:
    """What keeps a table: ``delta``, ``iceberg``, ``parquet``, ...; ``other`` for what Spark does not say."""
    described = native.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    found: str = next((row[1] for row in described if row[0] == "Provider"), "other")
    return found.casefold()
