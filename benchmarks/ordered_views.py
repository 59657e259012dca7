"""Views that keep rows in an order, or meet a hot key, and the table they are over.

Every row is a function of its number. Groups keep their sizes whatever the size of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from ticking.data import GRAIN, RowChanges, mixed

SCHEMA = pa.schema(
    [
        ("uid", pa.int64()),
        ("small", pa.int64()),
        ("middle", pa.int64()),
        ("large", pa.int64()),
        ("k", pa.int64()),
        ("v", pa.float64()),
        ("placed", pa.int64()),
        ("q", pa.int64()),
    ]
)
SMALL, MIDDLE, LARGE = 1_000, 10_000, 100_000
PER_KEY = 10  # rows of a key that is not hot
HOT_SHARE = 0.01
HOT_ROWS = 1_000  # of the hot key, where tables of several sizes are compared


@dataclass(frozen=True)
class OrderedView:
    """A view by name: its SQL, DuckDB's if that differs, and how many rows of the base are loaded at once."""

    name: str
    sql: str
    duckdb: str | None = None
    slice: int | None = None  # a join of all rows at once would have all of its pairs in memory


def over(what: str, partition: str, order: str) -> str:
    """A query with one window, whose rows have the numbers of the table's."""
    return f"SELECT uid, {what} OVER (PARTITION BY {partition} ORDER BY {order}) AS found FROM facts"


_SELF_JOIN = "SELECT a.k, count(*) AS pairs, {} AS found FROM facts a JOIN facts b ON a.k = b.k GROUP BY a.k"
_PERCENTILE = "SELECT middle, {} AS found FROM facts GROUP BY middle"
VIEWS = {
    view.name: view
    for view in (
        OrderedView("rank in 1,000", over("rank()", "small", "v")),
        OrderedView("rank in 100,000", over("rank()", "large", "v")),
        OrderedView(
            "row_number <= 3 in 10,000",
            "SELECT uid, middle, v, place FROM ("
            "SELECT *, row_number() OVER (PARTITION BY middle ORDER BY v DESC, uid) AS place FROM facts) ranked "
            "WHERE place <= 3",
        ),
        OrderedView(
            "percentile in 10,000",
            _PERCENTILE.format("percentile(v, 0.5)"),
            _PERCENTILE.format("quantile_cont(v, 0.5)"),
        ),
        OrderedView("lag in 1,000", over("lag(v)", "small", "placed, uid")),
        OrderedView("running sum in 1,000", over("sum(v)", "small", "placed, uid ROWS UNBOUNDED PRECEDING")),
        OrderedView(
            "self join, a hot key",
            _SELF_JOIN.format("sum(a.q * b.q)"),
            _SELF_JOIN.format("sum(a.q * b.q)::BIGINT"),
            slice=10_000,
        ),
    )
}


def facts(uids: Any, rows: int, hot_share: float = HOT_SHARE) -> pa.RecordBatch:
    """The rows with these numbers, of a base of ``rows``."""
    keys = mixed(uids, 4)
    hot = keys % np.uint64(1_000_000) < np.uint64(round(hot_share * 1_000_000))
    columns = [
        uids,
        *(mixed(uids, salt) % np.uint64(max(1, rows // size)) for salt, size in ((1, SMALL), (2, MIDDLE), (3, LARGE))),
        np.where(hot, np.uint64(0), np.uint64(1) + (keys >> np.uint64(20)) % np.uint64(max(1, rows // PER_KEY))),
        (mixed(uids, 5) >> np.uint64(44)) / GRAIN,
        mixed(uids, 6) % np.uint64(rows),
        mixed(uids, 7) % np.uint64(1000),
    ]
    arrays = [
        pa.array(column.astype(kind.to_pandas_dtype())) for column, kind in zip(columns, SCHEMA.types, strict=True)
    ]
    return pa.record_batch(arrays, schema=SCHEMA)


def changes(rows: int, size: int, *, same_hot_key: bool) -> RowChanges:
    """The table and its deltas; ``same_hot_key`` gives the hot key as many rows in a table of any size."""
    share = HOT_ROWS / rows if same_hot_key else HOT_SHARE
    return RowChanges(rows, size, partial(facts, hot_share=share))
