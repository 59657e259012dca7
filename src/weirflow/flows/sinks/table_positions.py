"""How far a sink is, as the table that it writes to says it; one class for each kind of table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from typing_extensions import override

from weirflow.flows.delta_log import DeltaLog
from weirflow.flows.iceberg_snapshots import IcebergSnapshots
from weirflow.ivm.flow.sinks.sink import Guarantee

_OWNER = "weirflow.owner"
_EPOCH = "weirflow.epoch"
NOTE = "weirflow.refresh"
"""The property of an Iceberg snapshot that has the note of its commit."""
_DELTA_NOTE = "spark.databricks.delta.commitInfo.userMetadata"
_DELTA_APP = "spark.databricks.delta.write.txnAppId"
_DELTA_VERSION = "spark.databricks.delta.write.txnVersion"
_ICEBERG = "spark.sql.iceberg.snapshot-property."


class TablePosition(Protocol):
    """Reads and records the epoch that ``owner`` has written to a table."""

    kind: str
    guarantee: Guarantee

    def read(self, log: Any = None) -> int | None:
        """The epoch; None if the owner has written nothing.

        Args:
            log: the table's log (``LOGS`` of ``table_commits``) at the moment that is asked about; None for now.
        """

    def recorded(self, epoch: int, note: str | None = None) -> AbstractContextManager[None]:
        """Commits inside the block bring the table to the epoch, and carry the note if there is one."""

    @property
    def record_alone(self) -> Callable[[int, str], None] | None:
        """Commits an epoch and a note without rows, without a job of Spark; None if only a job can do that."""
        return None


class _OwnedTable:
    """What all positions know, and how they set Spark's configuration for a while."""

    def __init__(self, native: Any, table: str, owner: str) -> None:
        self._native = native
        self._table = table
        self._owner = owner

    @contextmanager
    def _configured(self, settings: Mapping[str, str]) -> Iterator[None]:
        for name, value in settings.items():
            self._native.conf.set(name, value)
        try:
            yield
        finally:
            for name in settings:
                self._native.conf.unset(name)


class DeltaPosition(_OwnedTable, TablePosition):
    """A transaction of the Delta table: application and version are part of the commit."""

    kind = "Delta"
    guarantee = Guarantee.EXACTLY_ONCE

    @override
    def read(self, log: DeltaLog | None = None) -> int | None:
        return (log or DeltaLog(self._native, self._table)).epoch_of(self._owner)

    @override
    def recorded(self, epoch: int, note: str | None = None) -> AbstractContextManager[None]:
        noted = {} if note is None else {_DELTA_NOTE: note}
        return self._configured({_DELTA_APP: self._owner, _DELTA_VERSION: str(epoch), **noted})


class IcebergPosition(_OwnedTable, TablePosition):
    """Properties of the snapshots of an Iceberg table, which Spark's catalog remembers for a while: it is refreshed."""

    kind = "Iceberg"
    guarantee = Guarantee.EXACTLY_ONCE

    @override
    def read(self, log: IcebergSnapshots | None = None) -> int | None:
        snapshots = log or IcebergSnapshots(self._native, self._table)
        summaries = [snapshots.kept[one].summary for one in snapshots.line]
        return max((int(one[_EPOCH]) for one in summaries if one.get(_OWNER) == self._owner), default=None)

    @override
    def recorded(self, epoch: int, note: str | None = None) -> AbstractContextManager[None]:
        self._native.catalog.refreshTable(self._table)
        return self._configured({f"{_ICEBERG}{name}": text for name, text in self._summary(epoch, note).items()})

    @property
    @override
    def record_alone(self) -> Callable[[int, str], None]:
        return self._record_alone

    def _record_alone(self, epoch: int, note: str) -> None:
        commit = IcebergSnapshots(self._native, self._table).table.newFastAppend()
        for name, text in self._summary(epoch, note).items():
            commit.set(name, text)
        commit.commit()

    def _summary(self, epoch: int, note: str | None) -> dict[str, str]:
        return {_OWNER: self._owner, _EPOCH: str(epoch), **({} if note is None else {NOTE: note})}


class PropertyPosition(_OwnedTable, TablePosition):
    """Properties of any other table, set after the commit: what came in between is written again."""

    kind = "catalog"
    guarantee = Guarantee.AT_LEAST_ONCE

    @override
    def read(self, log: None = None) -> int | None:
        properties = dict(self._native.sql(f"SHOW TBLPROPERTIES {self._table}").collect())
        return int(properties[_EPOCH]) if properties.get(_OWNER) == self._owner else None

    @contextmanager
    @override
    def recorded(self, epoch: int, note: str | None = None) -> Iterator[None]:
        assert note is None, "commits of such a table carry none"
        yield
        self._native.sql(
            f"ALTER TABLE {self._table} SET TBLPROPERTIES ('{_OWNER}' = '{self._owner}', '{_EPOCH}' = '{epoch}')"
        )


POSITIONS: dict[str, Callable[[Any, str, str], TablePosition]] = {"delta": DeltaPosition, "iceberg": IcebergPosition}
"""By the provider that Spark names."""
