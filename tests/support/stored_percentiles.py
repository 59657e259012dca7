"""Writes what ``recovery/test_stored_percentiles.py`` opens: flows with percentiles as a version stores them.

To store what another version writes, check it out elsewhere and run, with its own code and this file::

    PYTHONPATH=<checkout>/src python tests/support/stored_percentiles.py tests/recovery/stored/percentiles.zip
"""

from __future__ import annotations

import math
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.zset import DeltaBatch

NAME, SHARDS = "shops", 2
SOURCE = pa.schema([("id", pa.int64()), ("shop", pa.string()), ("price", pa.float64()), ("n", pa.int32())])
VIEWS = {
    "shops": """
        SELECT shop, percentile(price, 0.5) AS half, percentile(price, array(0.0, 1.0)) AS ends,
               percentile(price, 0.5, n) AS counted, percentile_disc(0.5) WITHIN GROUP (ORDER BY price DESC) AS one
        FROM sales GROUP BY shop
    """,
    "everywhere": "SELECT median(price) AS half, percentile(DISTINCT price, 0.5) AS different FROM sales",
}
Row = tuple[int, str, float | None, int | None]
TWO, NOT_A_NUMBER = (3, "a", 2.0, 1), (4, "a", math.nan, 1)
SALES: list[Row] = [
    *((1, "a", 1.0, 1), (2, "a", 2.0, 3), TWO, NOT_A_NUMBER, (5, "a", None, 2), (6, "a", 10.0, None)),
    *((7, "b", -0.0, 1), (8, "b", 0.0, 0), (9, "c", None, 1)),
]
MISTAKE = (10, "a", -5.0, 4)


def delta(inserted: list[Row], retracted: list[Row]) -> DeltaBatch:
    """Rows that come and go."""
    rows = [*inserted, *retracted]
    columns = {field.name: pa.array([row[at] for row in rows], field.type) for at, field in enumerate(SOURCE)}
    weights = pa.array([1] * len(inserted) + [-1] * len(retracted), pa.int64())
    return DeltaBatch.from_weighted(pa.table({**columns, "_weight": weights}))


def begin(flow: Any) -> None:
    """Sources, views and ticks, the last of which takes a row back."""
    flow.register_source("sales", SOURCE)
    for name, sql in VIEWS.items():
        flow.register_view(name, sql)
    flow.tick("sales", delta([*SALES[:5], MISTAKE], []))
    flow.tick("sales", delta(SALES[5:], []))
    flow.tick("sales", delta([], [MISTAKE]))


def main(target: Path) -> None:
    """Write the flows into an archive."""
    with tempfile.TemporaryDirectory() as made:
        with IncrementalFlow(NAME, path=Path(made) / "flow") as flow:
            begin(flow)
            flow.checkpoint()
        with PartitionedFlow(str(Path(made) / "shards"), SHARDS, InThisProcess(), name=NAME) as flow:
            begin(flow)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as stored:
            for path in sorted(Path(made).rglob("*")):
                if path.is_file():
                    stored.write(path, path.relative_to(made))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
