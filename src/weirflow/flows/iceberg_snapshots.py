"""``IcebergSnapshots``: the snapshots of an Iceberg table as its metadata have them at one moment."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_KEPT_CHARACTERS = 16 << 20


@dataclass(frozen=True)
class IcebergSnapshot:
    """One of them: its id, that of the one it stands on, what it did, and the table's own summary of that."""

    id: str
    parent: str | None
    operation: str
    summary: dict[str, str]

    def count(self, name: str) -> int:
        """A number of the summary; 0 if it is not there."""
        return int(self.summary.get(name, 0))


class IcebergSnapshots:
    """Read once from the table's metadata, without a job of Spark.

    Args:
        native: the session that reads.
        table: its name in SQL.

    Attributes:
        table: Iceberg's own object.
        origin: tells the table from others that had its name before.
        current: the id of the current snapshot; None if there is none.
        location: the folder of the table.
        properties: those of the table.
    """

    def __init__(self, native: Any, table: str) -> None:
        native.catalog.refreshTable(table)  # Spark's catalog remembers tables for a while
        loader = native._jvm.org.apache.iceberg.spark.Spark3Util  # noqa: SLF001 - SQL does not show a table's id
        self.table = loader.loadIcebergTable(native._jsparkSession, table)  # noqa: SLF001 - as above
        self._metadata = _read(native, self.table.operations().current())
        current = self._metadata.get("current-snapshot-id", -1)
        self.origin = str(self._metadata["table-uuid"])
        self.location = str(self._metadata["location"])
        self.properties: dict[str, str] = dict(self._metadata.get("properties") or {})
        self.current = None if current in (None, -1) else str(current)

    @cached_property
    def kept(self) -> dict[str, IcebergSnapshot]:
        """All that are not expired, by their ids."""
        return {str(one["snapshot-id"]): _snapshot(one) for one in self._metadata.get("snapshots", ())}

    @cached_property
    def line(self) -> list[str]:
        """The ids of those that the current one stands on, oldest first, itself the last."""
        return self._line(self.current)

    def between(self, after: str, upto: str) -> list[IcebergSnapshot] | None:
        """Those after one up to another, in order; None if one does not lead to the other."""
        line = self.line if upto in self.line else self._line(upto)
        if after not in line or upto not in line:
            return None
        return [self.kept[one] for one in line[line.index(after) + 1 : line.index(upto) + 1]]

    def apart(self, one: str, other: str) -> list[IcebergSnapshot] | None:
        """Those that only one of two stands on, in no order; None if nothing is known that both stand on."""
        lines = [self._line(one), self._line(other)]
        shared = set(lines[0]) & set(lines[1])
        if not shared:
            return None
        return [self.kept[each] for line in lines for each in line if each not in shared]

    def _line(self, upto: str | None) -> list[str]:
        found: list[str] = []
        at = upto
        while at is not None and at in self.kept:
            found.append(at)
            at = self.kept[at].parent
        return found[::-1]


class _ReadMetadata:
    """What was read of metadata, which never change; as much as is worth to keep. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[int, dict[str, Any]]] = OrderedDict()

    def get(self, key: Hashable, read: Callable[[], str]) -> dict[str, Any]:
        with self._lock:
            found = self._kept.pop(key, None)
        if found is None:
            text = read()
            found = len(text), json.loads(text)
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > 1 and sum(size for size, _ in self._kept.values()) > _KEPT_CHARACTERS:
                self._kept.popitem(last=False)
        return found[1]


_read_metadata = _ReadMetadata()


def _read(native: Any, metadata: Any) -> dict[str, Any]:
    """Iceberg's own metadata of a table as plain values; not to be changed."""
    parser = native._jvm.org.apache.iceberg.TableMetadataParser  # noqa: SLF001 - one call instead of many
    # A table that is made anew in the folder of another may have files of the same names.
    key = metadata.metadataFileLocation(), metadata.uuid(), metadata.lastUpdatedMillis()
    return _read_metadata.get(key, lambda: str(parser.toJson(metadata)))


def _snapshot(fields: dict[str, Any]) -> IcebergSnapshot:
    summary = {name: str(value) for name, value in fields.get("summary", {}).items()}
    parent = fields.get("parent-snapshot-id")
    operation = summary.pop("operation", "")
    return IcebergSnapshot(str(fields["snapshot-id"]), None if parent is None else str(parent), operation, summary)
