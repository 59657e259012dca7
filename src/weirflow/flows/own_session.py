"""A Spark session beside the Session's: the same tables, but settings and temporary views of its own."""

from __future__ import annotations

from typing import Any

from weirflow.sql.settings import SqlSettings
from weirflow.sql.zoned import zone_name

_WITHOUT_ZONE = "TIMESTAMP_NTZ"


def own_session(main: Any) -> Any:
    """A new native session at the catalog and schema where ``main`` is now, with its catalogs."""
    own = main.newSession()
    for name in _catalog_settings(main):
        own.conf.set(name, main.conf.get(name))
    own.catalog.setCurrentCatalog(main.catalog.currentCatalog())
    own.catalog.setCurrentDatabase(main.catalog.currentDatabase())
    return own


def _catalog_settings(native: Any) -> list[str]:
    """The names of the settings of catalogs, those that were added since Spark was started included."""
    if not hasattr(native, "_jsparkSession"):
        return []
    settings = native._jsparkSession.sessionState().conf().settings()  # noqa: SLF001 - one call instead of hundreds
    names = str(settings.keySet().toString())[1:-1].split(", ")
    return [name for name in names if name.startswith("spark.sql.catalog.")]


def be_active(native: Any) -> None:
    """Have Spark read the settings of a classic session in this thread: of a new one, it knows none of the catalogs."""
    sessions = native._jvm.org.apache.spark.sql.classic.SparkSession  # noqa: SLF001 - no public way
    sessions.setActiveSession(native._jsparkSession)  # noqa: SLF001 - as above


def settings_of(native: Any) -> SqlSettings:
    """What SQL means in a native session now."""
    get = native.conf.get
    return SqlSettings(
        time_zone=zone_name(get("spark.sql.session.timeZone")),
        ansi=get("spark.sql.ansi.enabled") == "true",
        case_sensitive=get("spark.sql.caseSensitive") == "true",
        timestamp_ntz=get("spark.sql.timestampType") == _WITHOUT_ZONE,
    )


def conf_of(settings: SqlSettings) -> dict[str, str]:
    """The configuration of a session in which SQL means what these settings say."""
    return {
        "spark.sql.session.timeZone": settings.time_zone,
        "spark.sql.ansi.enabled": str(settings.ansi).lower(),
        "spark.sql.caseSensitive": str(settings.case_sensitive).lower(),
        "spark.sql.timestampType": _WITHOUT_ZONE if settings.timestamp_ntz else "TIMESTAMP_LTZ",
    }


def with_settings(native: Any, settings: SqlSettings) -> Any:
    """A native session in which SQL means what these settings say."""
    for name, value in conf_of(settings).items():
        native.conf.set(name, value)
    return native


def provider(native: Any, table: str) -> str:
    """What keeps a table: ``delta``, ``iceberg``, ``parquet``, ...; ``other`` for what Spark does not say."""
    found = None
    if hasattr(native, "_jsparkSession"):
        from weirflow.spark.catalog.loaded import loaded_provider  # noqa: PLC0415 - imports pyspark

        found = loaded_provider(native, table)
    if found is None:
        described = native.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
        found = next((str(row[1]) for row in described if row[0] == "Provider"), "other")
    return found.casefold()
