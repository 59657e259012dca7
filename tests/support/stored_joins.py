"""Writes what ``recovery/test_stored_joins.py`` opens: a flow with joins as a version stores it.

To store what another version writes, check it out elsewhere and run, with its own code and this file::

    PYTHONPATH=<checkout>/src python tests/support/stored_joins.py tests/recovery/stored/joins.zip
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.zset import DeltaBatch

NAME = "shop"
SOURCES = {
    "sales": pa.schema([("id", pa.int64()), ("shop", pa.int64()), ("note", pa.string()), ("price", pa.float64())]),
    "shops": pa.schema([("shop", pa.int64()), ("town", pa.string())]),
}
VIEWS = {
    "towns": "SELECT town, SUM(price) AS total FROM sales JOIN shops ON sales.shop = shops.shop GROUP BY town",
    "named": "SELECT id, note, town FROM sales LEFT JOIN shops ON sales.shop = shops.shop",
}
ULM, BONN = (1, "Ulm"), (2, "Bonn")
SALES = [(1, 1, "a", 1.5), (2, 2, "b", 2.5), (3, None, None, None), (3, None, None, None), (4, 3, "c", 4.5)]
MISTAKE = (9, 1, "a", 1.5)


def delta(source: str, inserted: list[Any], retracted: list[Any]) -> DeltaBatch:
    """Rows that come and go."""
    rows = [*inserted, *retracted]
    columns = {field.name: pa.array([row[at] for row in rows], field.type) for at, field in enumerate(SOURCES[source])}
    weights = pa.array([1] * len(inserted) + [-1] * len(retracted), pa.int64())
    return DeltaBatch.from_weighted(pa.table({**columns, "_weight": weights}))


def write(folder: Path) -> None:
    """A flow with a checkpoint, and ticks behind it in the log."""
    with IncrementalFlow(NAME, path=folder) as flow:
        for name, schema in SOURCES.items():
            flow.register_source(name, schema)
        for name, sql in VIEWS.items():
            flow.register_view(name, sql)
        flow.tick({"sales": delta("sales", [*SALES[:3], MISTAKE], []), "shops": delta("shops", [ULM], [])})
        flow.checkpoint()
        flow.tick({"sales": delta("sales", SALES[3:], [MISTAKE]), "shops": delta("shops", [BONN], [])})


def main() -> None:
    """Write the archive that is named."""
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as stored:
        write(Path(name) / "flow")
        for path in sorted(Path(name).rglob("*")):
            if path.is_file():
                stored.write(path, path.relative_to(name))


if __name__ == "__main__":
    main()
