"""Rows that go and come in a table without a key: those that go are found by all of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weirflow.flows.view_schema import view_schema
from weirflow.ivm.zset.delta import WEIGHT, DeltaBatch
from weirflow.sql.quoting import quoted

_CHANGES = "weirflow_changes"
_ROWS = "weirflow_rows"
_GONE = "_gone"
_FEW = 20_000
"""Up to so many rows a table is written anew rather than merged into: it has one file, which a merge rewrites, too."""


class RowsMissing(Exception):
    """A row is to be taken out of a table that does not have it."""


def merge_few_rows(
    native: Any, table: str, changed: DeltaBatch, before: DeltaBatch | None = None, most: int | None = None
) -> DeltaBatch | None:
    """Bring a change of few rows, consolidated, into a table, in one commit.

    Rows that only come are appended. A small table is written anew; others are merged into.

    Args:
        native: the session that commits; it may get temporary views.
        table: its name in SQL.
        changed: the columns of the table, with weights.
        before: all rows of the table, consolidated; None if they have to be read.
        most: the table is known to have no more rows than this; None if nobody knows.

    Returns:
        All rows that the table has then, consolidated; None if nobody knows them, or they are many.

    Raises:
        RowsMissing: a row is to go that the table, a small one, does not have. Nothing was written.
    """
    before = None if before is None else _if_few(before)
    if not changed.num_rows or int(changed.weights.min()) > 0:
        _rows(native, changed).write.insertInto(table, overwrite=False)
        return None if before is None else _if_few((before + changed).consolidate())
    if before is None:
        rows = native.table(table)
        held = (rows if most is not None and most <= _FEW else rows.limit(_FEW + 1)).toArrow()
        if held.num_rows > _FEW:
            merge_whole_rows(native, table, changed.schema.names, _frame(native, changed.to_arrow()))
            return None
        before = DeltaBatch.from_inserts(held.cast(view_schema(held.schema)).rename_columns(changed.schema.names))
    now = (before + changed).consolidate()
    if now.num_rows and int(now.weights.min()) < 0:
        raise RowsMissing
    _rows(native, now).write.insertInto(table, overwrite=True)
    return _if_few(now)


def _if_few(rows: DeltaBatch) -> DeltaBatch | None:
    """These, if they are so few that the table is written anew next time."""
    return rows if not rows.num_rows or int(rows.weights.sum()) <= _FEW else None


def _rows(native: Any, rows: DeltaBatch) -> Any:
    return _frame(native, rows.inserts())


def _frame(native: Any, rows: Any) -> Any:
    from weirflow.spark.frames.arrow import relation_frame, spark_table  # noqa: PLC0415 - imports pyspark

    return relation_frame(native, spark_table(rows)).coalesce(1)


def merge_whole_rows(native: Any, table: str, columns: Sequence[str], changed: Any) -> None:
    """Bring rows with weights into a table, in one commit.

    Of a row that goes all copies are deleted, and those that stay are inserted again. One that should go and is not
    there changes nothing: whoever calls knows that the table has the rows that the weights are about.

    Args:
        native: the session that commits; it gets temporary views.
        table: its name in SQL.
        columns: of the table.
        changed: a frame of that session, of these columns and the weights.
    """
    names = [quoted(name) for name in columns]
    listed = ", ".join(names)
    net = changed.groupBy(*names).agg({WEIGHT: "sum"}).selectExpr(*names, f"`sum({WEIGHT})` AS {WEIGHT}")
    net = net.where(f"{WEIGHT} <> 0").persist()
    net.createOrReplaceTempView(_CHANGES)
    same = " AND ".join(f"t.{name} <=> s.{name}" for name in names)
    # Copies of a row that goes are counted in the table, for some of them may stay.
    rows = native.sql(
        f"SELECT {listed}, true AS {_GONE}, 1 AS {WEIGHT} FROM {_CHANGES} WHERE {WEIGHT} < 0 "  # noqa: S608 - names, quoted
        f"UNION ALL SELECT {listed}, false, {WEIGHT} FROM {_CHANGES} WHERE {WEIGHT} > 0 "
        f"UNION ALL SELECT {', '.join(f's.{name}' for name in names)}, false, count(*) + first(s.{WEIGHT}) "
        f"FROM {table} t JOIN {_CHANGES} s ON {same} AND s.{WEIGHT} < 0 "
        f"GROUP BY {', '.join(f's.{name}' for name in names)} HAVING count(*) + first(s.{WEIGHT}) > 0"
    )
    copies = rows.selectExpr(*names, _GONE, f"explode(sequence(1, CAST({WEIGHT} AS INT))) AS _copy").drop("_copy")
    copies.createOrReplaceTempView(_ROWS)
    try:
        _merge(native, table, names, same)
    finally:
        net.unpersist()


def _merge(native: Any, table: str, names: Sequence[str], same: str) -> None:
    native.sql(
        f"MERGE INTO {table} t USING {_ROWS} s ON {same} AND s.{_GONE} "  # noqa: S608 - names, quoted
        f"WHEN MATCHED THEN DELETE "
        f"WHEN NOT MATCHED AND NOT s.{_GONE} THEN "
        f"INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
    ).collect()
