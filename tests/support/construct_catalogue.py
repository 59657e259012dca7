"""Queries with constructs that become others: laterals, subqueries, pivots, pipes; one a line, in files by theme.

They are over the tables of ``binder_catalogue``. Each is maintained by deltas, read with Spark and without.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from support import binder_catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCES = binder_catalogue.SOURCES
THEMES = {
    path.stem: path.read_text("utf-8").splitlines()
    for path in sorted((Path(__file__).parent / "constructs").glob("*.sql"))
}
EDGES = THEMES.pop("edges")
"""Those that are most easily computed otherwise."""
QUERIES = [query for queries in THEMES.values() for query in queries]


def ticks() -> list[dict[str, list[tuple[tuple[Any, ...], int]]]]:
    """All rows come, every second goes, and some come back, one of them twice."""
    rows = {name: [tuple(map(_hashable, row)) for row in some] for name, some in binder_catalogue.ROWS.items()}
    return [
        {name: [(row, 1) for row in some] for name, some in rows.items()},
        {name: [(row, -1) for row in some[::2]] for name, some in rows.items()},
        {name: [(some[0], 2), (some[1], -1), (some[-1], 1)] for name, some in rows.items()},
    ]


def table(name: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows of a source."""
    schema = SOURCES[name]
    return pa.table([pa.array([row[at] for row in rows], kind) for at, kind in enumerate(schema.types)], schema=schema)


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(value.values())
    return tuple(value) if isinstance(value, list) else value
