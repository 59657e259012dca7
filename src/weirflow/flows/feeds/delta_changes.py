"""``DeltaChanges``: what changed in a Delta table: its change data feed, or the files that came and went."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from weirflow.errors import ConfigError
from weirflow.flows.delta_log import DeltaCommit, DeltaLog
from weirflow.flows.feeds.table_changes import OP, TOGETHER, ChangeSize, TableChanges, gone_back
from weirflow.flows.feeds.weighted_rows import netted, together, weighted, weighted_by

_FEED = "delta.enableChangeDataFeed"
_MERGED = ("numTargetRowsInserted", "numTargetRowsDeleted", "numTargetRowsUpdated", "numTargetRowsUpdated")
_UPDATED = ("numUpdatedRows", "numUpdatedRows")
_DELETED = ("numDeletedRows",)
_TOUCHED = {"MERGE": _MERGED, "UPDATE": _UPDATED, "DELETE": _DELETED}
"""What operations say of the rows that they change; a row that is updated goes and comes."""
_KINDS = ("add", "remove")
_SAME_ROWS = frozenset({"OPTIMIZE", "REORG"})

_File = tuple[str, str]


class DeltaChanges(TableChanges):
    """The versions of a Delta table."""

    version = "_commit_version"

    def __init__(self, native: Any, table: str) -> None:
        self._native = native
        self._table = table
        self._looked_at: DeltaLog | None = None

    @override
    def origin(self) -> str:
        self._looked_at = DeltaLog(self._native, self._table)
        return self._looked_at.origin

    @property
    @override
    def seen(self) -> str:
        return self._log.origin

    @property
    def _log(self) -> DeltaLog:
        if self._looked_at is None:
            self._looked_at = DeltaLog(self._native, self._table)
        return self._looked_at

    @override
    def latest(self) -> str | None:
        return str(self._log.latest)

    @override
    def snapshot(self, version: str, selected: str = "*") -> Any:
        return self._native.sql(f"SELECT {selected} FROM {self._table} VERSION AS OF {int(version)}")  # noqa: S608

    @override
    def versions(self, after: str, upto: str) -> list[str]:
        if int(after) > int(upto):
            raise gone_back(self._table, after)
        return [str(version) for version in range(int(after) + 1, int(upto) + 1)[:TOGETHER]]

    @override
    def read(self, after: str, upto: str) -> Any:
        reader = self._native.read.option("readChangeFeed", "true")
        reader = reader.option("startingVersion", int(after) + 1).option("endingVersion", int(upto))
        return reader.table(self._table).drop("_commit_timestamp")

    @override
    def require_recorded(self) -> None:
        if not self._has_feed():
            raise ConfigError(
                f"The Delta table {self._table} has no change data feed.",
                hint=f"ALTER TABLE {self._table} SET TBLPROPERTIES ({_FEED} = true)",
            )

    @override
    def difference(self, names: Sequence[str], after: str, upto: str) -> Any:
        if self._is_fed(int(after), int(upto)):
            return weighted_by(self.read(after, upto), names, OP)
        between = list(self._log.between(int(after), int(upto)))
        if int(after) > int(upto) or None in between:
            return netted(
                together([weighted(self.snapshot(upto), names, 1), weighted(self.snapshot(after), names, -1)]), names
            )
        gone, come = _files(one for one in between if one is not None)
        sides = [weighted(self._rows(int(upto), come), names, 1), weighted(self._rows(int(after), gone), names, -1)]
        return netted(together(sides), names) if gone and come else sides[0] if come else sides[1]

    @override
    def release(self) -> None:
        """Nothing is held."""

    @override
    def is_kept(self, version: str) -> bool:
        return self._log.commit(int(version)) is not None

    @override
    def rows(self, version: str) -> int | None:
        return None

    @override
    def size(self, after: str, upto: str) -> ChangeSize | None:
        between = list(self._log.between(*sorted((int(after), int(upto)))))
        is_fed = self._is_fed(int(after), int(upto))
        found = [None if one is None else _size(one, is_fed=is_fed) for one in between]
        return None if None in found else sum((one for one in found if one is not None), ChangeSize())

    def _rows(self, version: int, files: dict[_File, dict[str, Any]]) -> Any:
        """A frame of the rows of some files, as a version has them."""
        from weirflow.spark.frames.frame import frame_of_java  # noqa: PLC0415 - imports pyspark

        jvm, log = self._native._jvm, self._log  # noqa: SLF001 - Delta reads chosen files in this way only
        actions = [jvm.org.apache.spark.sql.delta.actions.Action.fromJson(_as_added(one)) for one in files.values()]
        chosen = jvm.org.apache.spark.api.python.PythonUtils.toSeq(actions)
        plain = getattr(log.log, "createDataFrame$default$4")()  # of no kind in particular
        made = log.log.createDataFrame(log.at(version), chosen, False, plain)  # noqa: FBT003 - Scala has no names here
        return frame_of_java(self._native, made)

    def _is_fed(self, after: int, upto: int) -> bool:
        """Whether the change data feed tells all that happened in between."""
        if after > upto or not self._has_feed():
            return False
        between = self._log.between(after, upto)
        return not any(one is None or one.sets_table for one in between)

    def _has_feed(self) -> bool:
        return self._log.properties.get(_FEED) == "true"


def _files(commits: Any) -> tuple[dict[_File, dict[str, Any]], dict[_File, dict[str, Any]]]:
    """The files that only the version before some commits has, and those that only the one behind them has."""
    gone: dict[_File, dict[str, Any]] = {}
    come: dict[_File, dict[str, Any]] = {}
    for commit in commits:
        for wanted in reversed(_KINDS):  # a file may come back in the same commit with other rows deleted
            for kind, one in commit.files:
                if kind == wanted:
                    here, there = (come, gone) if kind == "add" else (gone, come)
                    key = one["path"], json.dumps(one.get("deletionVector"), sort_keys=True)
                    if there.pop(key, None) is None:
                        here[key] = one
    return gone, come


def _as_added(file: dict[str, Any]) -> str:
    """A file that was added, or removed, as one that is added."""
    kept = {name: file[name] for name in ("path", "size", "deletionVector") if file.get(name) is not None}
    values = file.get("partitionValues") or {}
    return json.dumps(
        {"add": {"size": 0, **kept, "partitionValues": values, "modificationTime": 0, "dataChange": True}}
    )


def _size(commit: DeltaCommit, *, is_fed: bool) -> ChangeSize | None:
    counts = [_records(one) for _, one in commit.files]
    in_files = None if None in counts else sum(one for one in counts if one is not None)
    compared = 0 if is_fed or len({kind for kind, _ in commit.files}) < len(_KINDS) else in_files or 0
    if commit.operation in _SAME_ROWS:
        return ChangeSize(0, compared)
    touched = _TOUCHED.get(commit.operation)
    if touched is not None and commit.metrics:
        return ChangeSize(commit.count(*touched), compared)
    return None if in_files is None else ChangeSize(in_files, compared)


def _records(file: dict[str, Any]) -> int | None:
    found = json.loads(file.get("stats") or "{}").get("numRecords")
    return None if found is None else int(found)
