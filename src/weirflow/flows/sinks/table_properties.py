"""Where a Delta or Iceberg table is, and its properties as they were written: Spark's own list of them hides some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weirflow.flows.delta_log import DeltaLog
from weirflow.flows.iceberg_snapshots import IcebergSnapshots


@dataclass(frozen=True)
class TableProperties:
    """What a table says about itself.

    Attributes:
        location: the folder or URI of its files.
        properties: all of them.
    """

    location: str
    properties: dict[str, str]


def table_properties(native: Any, table: str, kind: str) -> TableProperties:
    """Those of a table, which ``kind`` of Spark's providers keeps: ``delta`` or ``iceberg``."""
    log = DeltaLog(native, table) if kind == "delta" else IcebergSnapshots(native, table)
    return TableProperties(log.location, log.properties)
