"""``IcebergChanges``: what changed in an Iceberg table: its changelog, or the files that came and went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from weirflow.flows.feeds.iceberg_files import IcebergFiles
from weirflow.flows.feeds.table_changes import TOGETHER, ChangeSize, TableChanges, gone_back
from weirflow.flows.feeds.weighted_rows import netted, together, weighted
from weirflow.flows.iceberg_snapshots import IcebergSnapshot, IcebergSnapshots
from weirflow.spark.catalogs.snapshots import require_snapshots

_CHANGELOG = "weirflow_changelog"
_SAME_ROWS = "replace"
_PLACE = ("_file", "_pos")
_FEW_DELETED = 200_000
"""The places of up to so many deleted rows are sent to all executors."""
_MERGED = "spark.merge-into.num-target-rows-"


class IcebergChanges(TableChanges):
    """The snapshots of an Iceberg table."""

    version = "_commit_snapshot_id"

    def __init__(self, native: Any, table: str) -> None:
        self._native = native
        self._table = table
        require_snapshots(native, self._catalog())
        self._looked_at: IcebergSnapshots | None = None
        self._files = IcebergFiles(native)

    @override
    def origin(self) -> str:
        self._looked_at = IcebergSnapshots(self._native, self._table)
        return self._looked_at.origin

    @property
    @override
    def seen(self) -> str:
        return self._snapshots.origin

    @property
    def _snapshots(self) -> IcebergSnapshots:
        if self._looked_at is None:
            self._looked_at = IcebergSnapshots(self._native, self._table)
        return self._looked_at

    @override
    def latest(self) -> str | None:
        return self._snapshots.current

    @override
    def snapshot(self, version: str, selected: str = "*") -> Any:
        return self._native.sql(f"SELECT {selected} FROM {self._table} VERSION AS OF {int(version)}")  # noqa: S608

    @override
    def versions(self, after: str, upto: str) -> list[str]:
        found = self._snapshots.between(after, upto)
        if found is None:
            raise gone_back(self._table, after)
        return [one.id for one in found[:TOGETHER]]

    @override
    def read(self, after: str, upto: str) -> Any:
        catalog = self._catalog()
        options = f"map('start-snapshot-id', '{int(after)}', 'end-snapshot-id', '{int(upto)}')"
        self._native.sql(
            f"CALL {catalog}.system.create_changelog_view("
            f"table => '{self._table}', changelog_view => '{_CHANGELOG}', options => {options})"
        )
        try:
            return self._native.table(_CHANGELOG).drop("_change_ordinal")
        finally:
            self._native.catalog.dropTempView(_CHANGELOG)

    @override
    def require_recorded(self) -> None:
        """Iceberg works changes out from its files."""

    @override
    def difference(self, names: Sequence[str], after: str, upto: str) -> Any:
        """See ``TableChanges``.

        Files that only one of the snapshots has are read whole, and rows that are in both of them cancel. Of files that
        both have, those rows are read that files of deletions name in one of them and not in the other. Where one leads
        to the other, rows only go from a file, so that it is read once; of the deletions before only where they are.
        """
        files, table = self._files, self._snapshots.table
        found = files.apart(table, after, upto)
        come = [weighted(files.rows(table, found.come), names, 1)] if found.come else []
        gone = [weighted(files.rows(table, found.gone), names, -1)] if found.gone else []
        thinner = [files.deleted(table, found.thinner)] if found.thinner else []
        thinned = [files.deleted(table, found.thinned)] if found.thinned else []
        if thinner and thinned and self._snapshots.between(after, upto) is not None:
            places = thinned.pop().select(*_PLACE)
            before = self._snapshots.kept[after]
            few = before.count("total-position-deletes") <= _FEW_DELETED and not before.count("total-equality-deletes")
            placed = thinner[0].selectExpr(*names, *_PLACE)
            thinner = [placed.join(places.hint("broadcast") if few else places, list(_PLACE), "left_anti")]
        went = [weighted(rows, names, -1) for rows in thinner]
        back = [weighted(rows, names, 1) for rows in thinned]
        sides = [
            netted(together(one + other), names) if one and other else together(one + other)
            for one, other in ((come, gone), (went, back))
            if one or other
        ]
        return together(sides) if sides else weighted(self.snapshot(upto).limit(0), names, 1)

    @override
    def release(self) -> None:
        self._files.release()

    @override
    def is_kept(self, version: str) -> bool:
        return version in self._snapshots.kept

    @override
    def rows(self, version: str) -> int | None:
        found = self._snapshots.kept.get(version)
        rows = None if found is None else found.summary.get("total-records")
        return None if rows is None else int(rows)

    @override
    def size(self, after: str, upto: str) -> ChangeSize | None:
        apart = self._snapshots.apart(after, upto)
        if apart is None:
            return None
        found = sum((_size(one) for one in apart), ChangeSize())
        most = (self.rows(after) or 0) + (self.rows(upto) or 0)  # what several snapshots rewrote is read once
        return ChangeSize(found.changed, min(found.compared, most), min(found.uncounted, most))

    def _catalog(self) -> str:
        current: str = self._native.catalog.currentCatalog()
        first = self._table.partition(".")[0]
        return first if self._table.count(".") > 1 else current


def _size(snapshot: IcebergSnapshot) -> ChangeSize:
    if snapshot.operation == _SAME_ROWS:
        return ChangeSize()
    added, removed = snapshot.count("added-records"), snapshot.count("deleted-records")
    rewritten = 2 * min(added, removed)
    if f"{_MERGED}updated" in snapshot.summary:  # Spark has counted what it did
        updated = snapshot.count(f"{_MERGED}updated")
        touched = snapshot.count(f"{_MERGED}inserted") + snapshot.count(f"{_MERGED}deleted") + 2 * updated
        return ChangeSize(touched, rewritten)
    deletes = sum(
        max(snapshot.count(f"added-{kind}-deletes") - snapshot.count(f"removed-{kind}-deletes"), 0)
        for kind in ("position", "equality")
    )
    return ChangeSize(abs(added - removed) + deletes, rewritten, rewritten)
