"""``IcebergFiles``: which files two snapshots of an Iceberg table do not share, and frames of the rows of some."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

_DELETED = "_deleted"
_CACHE = "org.apache.iceberg.spark.SparkTableCache"
_KEPT_FILES = 20_000
"""Of snapshots with so many files in all it is remembered which these are: the next refresh starts from them, and views
that read the same tables share them."""

_Planned = Mapping[str, tuple[Any, frozenset[tuple[str, int | None]]]]
"""The files of a snapshot by their locations, each with its task and what deletes rows of it."""


@dataclass(frozen=True)
class FilesApart:
    """How two snapshots differ; all are tasks of Iceberg's scans.

    Attributes:
        gone: files that only the first has, with the deletions that apply to them there.
        come: files that only the second has.
        thinner: files that both have, as the second one has them: other rows of them are deleted.
        thinned: of these, as the first one has them, those of which rows were deleted there already.
    """

    gone: Sequence[Any]
    come: Sequence[Any]
    thinner: Sequence[Any]
    thinned: Sequence[Any]


class IcebergFiles:
    """Reads chosen files of tables in a native session, as Iceberg's own compaction does."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._staged: list[tuple[Any, str]] = []

    def apart(self, table: Any, one: str, other: str) -> FilesApart:
        """How two snapshots of a table differ; ``table`` is Iceberg's own object."""
        known = _snapshots.setdefault(self._native.sparkContext, _PlannedSnapshots())
        before, now = known.get(table, one), known.get(table, other)
        both = [key for key in now if key in before and before[key][1] != now[key][1]]
        return FilesApart(
            gone=[task for key, (task, _) in before.items() if key not in now],
            come=[task for key, (task, _) in now.items() if key not in before],
            thinner=[now[key][0] for key in both if now[key][1]],
            thinned=[before[key][0] for key in both if before[key][1]],
        )

    def rows(self, table: Any, tasks: Sequence[Any]) -> Any:
        """The rows of some files, without those that are deleted; until ``release``."""
        name = uuid.uuid4().hex
        self._cache.add(name, table)
        self._sets().stageTasks(table, name, list(tasks))
        self._staged.append((table, name))
        return self._native.read.format("iceberg").option("scan-task-set-id", name).load(name)

    def deleted(self, table: Any, tasks: Sequence[Any]) -> Any:
        """The rows of some files that are deleted elsewhere; until ``release``."""
        return self.rows(table, tasks).where(_DELETED)

    def release(self) -> None:
        """Forget the files of all frames."""
        while self._staged:
            table, name = self._staged.pop()
            self._sets().removeTasks(table, name)
            self._cache.remove(name)

    def _sets(self) -> Any:
        return self._native._jvm.org.apache.iceberg.spark.ScanTaskSetManager.get()  # noqa: SLF001 - SQL reads whole tables

    @cached_property
    def _cache(self) -> Any:
        """What finds a table by the name that its files are read under; its class has two methods of one name."""
        gateway, jvm = self._native.sparkContext._gateway, self._native._jvm  # noqa: SLF001 - as above
        loaded = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader().loadClass(_CACHE)
        none = gateway.new_array(jvm.java.lang.Class, 0), gateway.new_array(jvm.java.lang.Object, 0)
        return loaded.getMethod("get", none[0]).invoke(None, none[1])


class _PlannedSnapshots:
    """The files of snapshots that were looked at last, of all tables that one Spark reads. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], _Planned] = OrderedDict()

    def get(self, table: Any, snapshot: str) -> _Planned:
        """Those of one, which never change."""
        key = str(table.uuid()), snapshot
        with self._lock:
            found = self._kept.pop(key, None)
        found = found or _planned(table, snapshot)
        with self._lock:
            self._kept[key] = found
            while sum(map(len, self._kept.values())) > _KEPT_FILES:
                self._kept.popitem(last=False)
        return found


_snapshots: WeakKeyDictionary[Any, _PlannedSnapshots] = WeakKeyDictionary()
"""By the contexts of Spark, with which the tasks go."""


def _planned(table: Any, snapshot: str) -> _Planned:
    planned = table.newScan().useSnapshot(int(snapshot)).planFiles()
    found = {}
    try:
        tasks = planned.iterator()
        while tasks.hasNext():
            task = tasks.next()
            deletes = frozenset((one.location(), one.contentOffset()) for one in task.deletes())
            found[task.file().location()] = (task, deletes)
    finally:
        planned.close()
    return found
