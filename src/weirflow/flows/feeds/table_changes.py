"""What changed in a table from version to version; one class for each kind of table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from typing_extensions import override

from weirflow.errors import ConfigError, StreamConflict

OP = "_change_type"
_TOGETHER = 100
_CHANGELOG = "weirflow_changelog"


class TableChanges(Protocol):
    """The versions of a table, as text."""

    def origin(self) -> str:
        """Tells the current table from others that had its name before; asked for before anything else."""

    def latest(self) -> str | None:
        """The current version; None if the table never had rows."""

    def snapshot(self, version: str) -> Any:
        """A native frame of all rows of a version."""

    def versions(self, after: str, upto: str) -> list[str]:
        """Those after one version up to another, in order, or the first of them if they are many.

        Raises:
            StreamConflict: ``after`` is not a version that leads to ``upto``.
        """

    def read(self, after: str, versions: Sequence[str]) -> Any:
        """A native frame of the changes of these versions, which follow ``after``.

        Each row has its kind in the column ``OP``, and its version in the column ``version``.
        """

    @property
    def version(self) -> str:
        """The column with the version of a change."""


class DeltaChanges(TableChanges):
    """The change data feed of a Delta table."""

    version = "_commit_version"

    def __init__(self, native: Any, table: str) -> None:
        self._native = native
        self._table = table

    @override
    def origin(self) -> str:
        detail = self._native.sql(f"DESCRIBE DETAIL {self._table}").first()
        if detail["properties"].get("delta.enableChangeDataFeed") != "true":
            raise ConfigError(
                f"The Delta table {self._table} has no change data feed.",
                hint=f"ALTER TABLE {self._table} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
            )
        return str(detail["id"])

    @override
    def latest(self) -> str | None:
        return str(self._native.sql(f"DESCRIBE HISTORY {self._table} LIMIT 1").first()["version"])

    @override
    def snapshot(self, version: str) -> Any:
        return self._native.sql(f"SELECT * FROM {self._table} VERSION AS OF {int(version)}")  # noqa: S608

    @override
    def versions(self, after: str, upto: str) -> list[str]:
        if int(after) > int(upto):
            raise _gone_back(self._table, after)
        return [str(version) for version in range(int(after) + 1, int(upto) + 1)[:_TOGETHER]]

    @override
    def read(self, after: str, versions: Sequence[str]) -> Any:
        reader = self._native.read.option("readChangeFeed", "true")
        reader = reader.option("startingVersion", versions[0]).option("endingVersion", versions[-1])
        return reader.table(self._table).drop("_commit_timestamp")


class IcebergChanges(TableChanges):
    """The changelog that Iceberg works out from the files of its snapshots."""

    version = "_commit_snapshot_id"

    def __init__(self, native: Any, table: str) -> None:
        self._native = native
        self._table = table

    @override
    def origin(self) -> str:
        self._native.catalog.refreshTable(self._table)  # Spark's catalog remembers tables for a while
        loader = self._native._jvm.org.apache.iceberg.spark.Spark3Util  # noqa: SLF001 - SQL does not show a table's id
        return str(loader.loadIcebergTable(self._native._jsparkSession, self._table).uuid().toString())  # noqa: SLF001

    @override
    def latest(self) -> str | None:
        found = self._ancestors()
        return found[-1] if found else None

    @override
    def snapshot(self, version: str) -> Any:
        return self._native.sql(f"SELECT * FROM {self._table} VERSION AS OF {int(version)}")  # noqa: S608

    @override
    def versions(self, after: str, upto: str) -> list[str]:
        line = self._ancestors()
        if after not in line or upto not in line:
            raise _gone_back(self._table, after)
        return line[line.index(after) + 1 : line.index(upto) + 1][:_TOGETHER]

    @override
    def read(self, after: str, versions: Sequence[str]) -> Any:
        catalog = self._catalog()
        options = f"map('start-snapshot-id', '{int(after)}', 'end-snapshot-id', '{int(versions[-1])}')"
        self._native.sql(
            f"CALL {catalog}.system.create_changelog_view("
            f"table => '{self._table}', changelog_view => '{_CHANGELOG}', options => {options})"
        )
        try:
            return self._native.table(_CHANGELOG).drop("_change_ordinal")
        finally:
            self._native.catalog.dropTempView(_CHANGELOG)

    def _ancestors(self) -> list[str]:
        query = f"SELECT snapshot_id FROM {self._table}.history WHERE is_current_ancestor ORDER BY made_current_at"  # noqa: S608
        return [str(row[0]) for row in self._native.sql(query).collect()]

    def _catalog(self) -> str:
        current: str = self._native.catalog.currentCatalog()
        first = self._table.partition(".")[0]
        return first if self._table.count(".") > 1 else current


CHANGES: dict[str, Callable[[Any, str], TableChanges]] = {"delta": DeltaChanges, "iceberg": IcebergChanges}
"""By the provider that Spark names."""


def _gone_back(table: str, version: str) -> StreamConflict:
    return StreamConflict(
        f"The table {table} no longer has version {version}, which is where the flow is.",
        hint="drop the source and attach the table under another name=, to begin with a snapshot",
    )
