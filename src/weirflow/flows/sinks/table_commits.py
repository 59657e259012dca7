"""The commits that a table is made of, newest first, with the notes that they carry; one function for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from weirflow.flows.delta_log import DeltaLog
from weirflow.flows.iceberg_snapshots import IcebergSnapshots
from weirflow.flows.sinks.table_positions import NOTE

_NO_ROWS_CHANGED = frozenset(
    {
        "ADD COLUMNS",
        "CLUSTER BY",
        "COMPUTE STATS",
        "CREATE TABLE",
        "DROP COLUMNS",
        "OPTIMIZE",
        "REORG",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "UPGRADE PROTOCOL",
        "VACUUM END",
        "VACUUM START",
    }
)
"""What Delta calls commits that leave all rows as they are."""
_COMPACTION = "replace"
"""What Iceberg calls them."""


@dataclass(frozen=True)
class TableCommit:
    """A commit that the current rows of a table stand on.

    Attributes:
        version: its version; the id of a snapshot for Iceberg.
        parent: the version that it stands on; None for the first.
        operation: what it did, as the table calls it.
        changes_rows: whether it may have changed rows.
        note: what it carries.
        is_kept: False for one of which only the version is known: it was expired.
        rows: no more than so many are in the table behind it; None if it does not say.
    """

    version: str
    parent: str | None
    operation: str
    changes_rows: bool
    note: str | None
    is_kept: bool = True
    rows: int | None = None


def iceberg_commits(snapshots: IcebergSnapshots) -> Iterator[TableCommit]:
    """The snapshots of an Iceberg table from the current one back, and the first one that was expired."""
    at = snapshots.current
    while at is not None:
        one = snapshots.kept.get(at)
        if one is None:
            yield TableCommit(at, None, "", changes_rows=True, note=None, is_kept=False)
            return
        rows = one.summary.get("total-records")
        yield TableCommit(
            at,
            one.parent,
            one.operation,
            one.operation != _COMPACTION,
            one.summary.get(NOTE),
            rows=None if rows is None else int(rows),
        )
        at = one.parent


def delta_commits(log: DeltaLog) -> Iterator[TableCommit]:
    """The versions of a Delta table from the last one back; behind one that restored another, that one."""
    at: int | None = log.latest
    while at is not None and (found := log.commit(at)) is not None:
        restored = found.parameters.get("version") if found.operation == "RESTORE" else None
        parent = int(restored) if restored is not None else at - 1 if at else None
        changes = found.operation not in _NO_ROWS_CHANGED and restored is None
        yield TableCommit(str(at), None if parent is None else str(parent), found.operation, changes, found.note)
        at = parent


LOGS: dict[str, Callable[[Any, str], Any]] = {"delta": DeltaLog, "iceberg": IcebergSnapshots}
"""What a table's commits are read from, as it is at one moment, by the provider that Spark names."""
COMMITS: dict[str, Callable[[Any], Iterator[TableCommit]]] = {"delta": delta_commits, "iceberg": iceberg_commits}
"""The commits in such a log, by the same."""
