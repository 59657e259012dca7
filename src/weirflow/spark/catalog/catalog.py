"""``SparkCatalog``: what Spark's own catalog in the JVM holds, made again and watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started

from weirflow.spark.catalog.definitions import CatalogCodec, Definition

_WAREHOUSE = "{warehouse}"
_UNLESS_THERE = True


class ChangeKind(StrEnum):
    """What happens in a catalog, by the names of Spark's events; those of what is about to happen come before."""

    SCHEMA_CREATED = "CreateDatabaseEvent"
    SCHEMA_ALTERED = "AlterDatabaseEvent"
    SCHEMA_DROPPED = "DropDatabaseEvent"
    TABLE_CREATED = "CreateTableEvent"
    TABLE_ALTERED = "AlterTableEvent"
    TABLE_RENAMING = "RenameTablePreEvent"
    TABLE_RENAMED = "RenameTableEvent"
    TABLE_DROPPED = "DropTableEvent"


@dataclass(frozen=True)
class CatalogChange:
    """A change of a schema, or of a table or view in it.

    Attributes:
        table: empty where the schema itself changes.
        new_name: of a table that is renamed; empty for others.
    """

    kind: ChangeKind
    schema: str
    table: str = ""
    new_name: str = ""


class SparkCatalog:
    """The catalog ``spark_catalog`` of a classic session, shared by all sessions of its driver.

    Places inside of the warehouse are told, and taken, relative to it.
    """

    def __init__(self, native: Any) -> None:
        self._native = native
        self._external = native._jsparkSession.sharedState().externalCatalog()  # noqa: SLF001 - no public way
        self._codec = CatalogCodec(native._jvm)  # noqa: SLF001 - as above

    @cached_property
    def _warehouse(self) -> str:
        place: str = self._external.getDatabase("default").locationUri().toString()
        return place.rstrip("/")

    def table(self, schema: str, name: str) -> Definition:
        """A table or view."""
        data = self._codec.table(self._external.getTable(schema, name))
        data["storage"]["locationUri"] = self._shortened(data["storage"]["locationUri"])
        return data

    def schema(self, name: str) -> Definition:
        """A schema."""
        data = self._codec.schema(self._external.getDatabase(name))
        return {**data, "locationUri": self._shortened(data["locationUri"])}

    def place(self, data: Definition) -> str | None:
        """Where a table's files are; None if it has none."""
        return self._whole(data["storage"]["locationUri"])

    def add_table(self, data: Definition) -> None:
        """Take on a table or view, whose files are where they are, unless there is one of its name.

        Spark finds the partitions in its folder: the catalog does not list them.
        """
        storage = {**data["storage"], "locationUri": self._whole(data["storage"]["locationUri"])}
        made = self._codec.new_table({**data, "storage": storage, "tracksPartitionsInCatalog": False})
        self._external.createTable(made, _UNLESS_THERE)

    def add_schema(self, data: Definition) -> None:
        """Take on a schema, unless there is one of its name."""
        whole = self._whole(data["locationUri"])
        self._external.createDatabase(self._codec.new_schema({**data, "locationUri": whole}), _UNLESS_THERE)

    def listen(self, on_change: Callable[[CatalogChange], None]) -> Callable[[], None]:
        """Have a function called with each change before whoever made it goes on; returns what ends that.

        Spark logs what the function raises, and goes on.
        """
        listener = _Listener(on_change)
        gateway = self._native.sparkContext._gateway  # noqa: SLF001 - as PySpark's own listeners
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # PySpark has no types for it
        self._external.addListener(listener)

        def stop() -> None:
            try:
                self._external.removeListener(listener)
            except (Py4JError, OSError):  # the JVM has gone, and all listeners with it
                return

        return stop

    def _shortened(self, place: str | None) -> str | None:
        inside = place is not None and (place == self._warehouse or place.startswith(f"{self._warehouse}/"))
        return f"{_WAREHOUSE}{place[len(self._warehouse) :]}" if place is not None and inside else place

    def _whole(self, place: str | None) -> str | None:
        return None if place is None else place.replace(_WAREHOUSE, self._warehouse, 1)


class _Listener:
    """Called by the JVM, in the thread that changes the catalog."""

    def __init__(self, on_change: Callable[[CatalogChange], None]) -> None:
        self._on_change = on_change

    def onEvent(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """See Spark's ``ExternalCatalogEventListener``."""
        try:
            kind = ChangeKind(event.getClass().getSimpleName())
        except ValueError:  # of a change that is none of tables
            return
        table = "" if "Database" in kind else event.name()
        new_name = event.newName() if "Rename" in kind else ""
        self._on_change(CatalogChange(kind, event.database(), table, new_name))

    class Java:
        """What Py4J makes of it."""

        implements: ClassVar = ["org.apache.spark.sql.catalyst.catalog.ExternalCatalogEventListener"]
