"""``DeltaLog``: the commits of a Delta table, read from its log one by one, without a job of Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_FILES = ("add", "remove")


@dataclass(frozen=True)
class DeltaCommit:
    """One commit.

    Attributes:
        version: its number.
        operation: what it did, as Delta calls it.
        parameters: of the operation.
        metrics: what the operation counted.
        note: the user metadata.
        files: what was added and removed, in order: ``add`` or ``remove``, and its fields.
        sets_table: whether it says anew what the table's columns or properties are.
    """

    version: int
    operation: str
    parameters: dict[str, Any]
    metrics: dict[str, Any]
    note: str | None
    files: list[tuple[str, dict[str, Any]]] = field(repr=False)
    sets_table: bool

    def count(self, *names: str) -> int:
        """The sum of some metrics; 0 for those that are not there."""
        return sum(int(self.metrics.get(name) or 0) for name in names)


class DeltaLog:
    """The log as it is when this is made; commits are read when they are asked for.

    Args:
        native: the session that reads.
        table: its name in SQL.

    Attributes:
        log: Delta's own object.
        latest: the current version.
        origin: tells the table from others that had its name before.
        properties: those of the table.
    """

    def __init__(self, native: Any, table: str) -> None:
        native.table(table)  # brings Delta's view of the table up to date
        self.native = native
        tables = native._jvm.io.delta.tables.DeltaTable  # noqa: SLF001 - Delta has no Python or SQL way to it
        self.log = tables.forName(native._jsparkSession, table).deltaLog()  # noqa: SLF001 - as above
        self.snapshot = self.log.unsafeVolatileSnapshot()
        self.latest = int(self.snapshot.version())
        about = json.loads(self.snapshot.metadata().json())["metaData"]
        self.origin = str(about["id"])
        self.properties: dict[str, str] = dict(about.get("configuration") or {})
        self._folder = str(self.log.logPath().toString())
        self._conf = self.log.newDeltaHadoopConf()
        self._known: dict[int, DeltaCommit | None] = {}

    @property
    def location(self) -> str:
        """The folder of the table."""
        return str(self.log.dataPath().toString())

    def epoch_of(self, application: str) -> int | None:
        """The version of the last transaction of an application; None if there was none."""
        found = self.snapshot.transactions().get(application)
        return int(found.get()) if found.isDefined() else None

    def commit(self, version: int) -> DeltaCommit | None:
        """A commit; None if there is none of this number, or its file is gone."""
        if version not in self._known:
            self._known[version] = self._read(version) if 0 <= version <= self.latest else None
        return self._known[version]

    def between(self, after: int, upto: int) -> Iterator[DeltaCommit | None]:
        """Those after one up to another, in order; None for those that are gone."""
        return (self.commit(version) for version in range(after + 1, upto + 1))

    def at(self, version: int) -> Any:
        """Delta's own object of a version."""
        if version == self.latest:
            return self.snapshot
        log, defaults = self.log, [getattr(self.log, f"getSnapshotAt$default${number}")() for number in (2, 3, 4)]
        return log.getSnapshotAt(version, *defaults)

    def _read(self, version: int) -> DeltaCommit | None:
        jvm = self.native._jvm  # noqa: SLF001 - the log's own way to its files
        path = jvm.org.apache.hadoop.fs.Path(f"{self._folder}/{version:020d}.json")
        if not path.getFileSystem(self._conf).exists(path):
            return None
        lines = self.log.store().read(path, self._conf).mkString("\n").splitlines()
        return _commit(version, [json.loads(line) for line in lines if line])


def _commit(version: int, actions: list[dict[str, Any]]) -> DeltaCommit:
    about: dict[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
    files = [(kind, one[kind]) for one in actions for kind in _FILES if kind in one]
    return DeltaCommit(
        version,
        str(about.get("operation", "")),
        about.get("operationParameters") or {},
        about.get("operationMetrics") or {},
        about.get("userMetadata"),
        files,
        any("metaData" in one for one in actions),
    )
