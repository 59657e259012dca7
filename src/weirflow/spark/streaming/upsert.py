"""Merges the batches of a streaming query into a Delta or Iceberg table by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weirflow.sql.quoting import quoted

_SOURCE = "_weirflow_updates"


def merging(table: str, keys: Sequence[str]) -> Callable[[Any, int], None]:
    """A function for ``foreachBatch`` that upserts a batch's rows; doing so again changes nothing.

    Args:
        table: the table's name as SQL has it.
        keys: the columns that identify a row.
    """
    same = " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in keys)

    def merge(batch: Any, _number: int) -> None:
        names = [quoted(name) for name in batch.columns]
        session = batch.sparkSession
        batch.createOrReplaceTempView(_SOURCE)
        try:
            session.sql(
                f"MERGE INTO {table} t USING {_SOURCE} s ON {same} "  # noqa: S608 - names, quoted
                f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in names)} "
                f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
            ).collect()
        finally:
            session.catalog.dropTempView(_SOURCE)

    return merge


def table_at(format_name: str, table: str | None, path: str | None) -> str:
    """What SQL calls a table that is given by name, or by path: for Iceberg a path is a name, too."""
    if table is not None:
        return table
    return str(path) if format_name == "iceberg" else f"{format_name}.{quoted(str(path))}"
