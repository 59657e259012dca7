"""The five views, and what each of them has to hold: recomputed with NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOP = 10


@dataclass(frozen=True)
class View:
    """A view by name: its SQL, its columns, which table changes under it, and its reference."""

    name: str
    sql: str
    columns: Mapping[str, type[int | float | str]]
    changes: str
    recompute: Callable[[pa.RecordBatch, pa.RecordBatch], dict[str, Any]]

    def expected(self, facts: pa.RecordBatch, dims: pa.RecordBatch) -> pa.Table:
        """The rows over these tables, in canonical order."""
        return canonical(pa.table(self.recompute(facts, dims)))


def canonical(rows: pa.Table) -> pa.Table:
    """Rows ordered by the first column, which is unique in every view."""
    return rows.sort_by(rows.column_names[0])


def difference(actual: pa.Table, expected: pa.Table) -> str | None:
    """What differs, in one sentence; doubles have to be the same to the last bit."""
    actual = canonical(actual)
    if actual.column_names != expected.column_names:
        return f"columns {actual.column_names} instead of {expected.column_names}"
    if actual.num_rows != expected.num_rows:
        return f"{actual.num_rows} rows instead of {expected.num_rows}"
    for name in expected.column_names:
        mine, theirs = actual[name].to_numpy(), expected[name].to_numpy()
        equal = (mine == theirs) | (actual[name].is_null().to_numpy() & expected[name].is_null().to_numpy())
        if not equal.all():
            at = int(np.flatnonzero(~equal)[0])
            return f"{(~equal).sum()} values of {name} differ, the first is {mine[at]!r} instead of {theirs[at]!r}"
    return None


def groups(keys: Any) -> tuple[Any, Any, Any, Any]:
    """The order that sorts rows by key; each group's key, start and size in it."""
    order = np.argsort(keys, kind="stable")
    unique, starts, counts = np.unique(keys[order], return_index=True, return_counts=True)
    return order, unique, starts, counts


def group_by(facts: pa.RecordBatch, _: pa.RecordBatch) -> dict[str, Any]:
    """Count, sum and mean of each key."""
    order, keys, starts, counts = groups(facts["k"].to_numpy())
    sums = np.add.reduceat(facts["v"].to_numpy()[order], starts)
    return {"k": keys, "n": counts, "total": sums, "mean": sums / counts}


def join(facts: pa.RecordBatch, dims: pa.RecordBatch) -> dict[str, Any]:
    """Sum and count of each region."""
    regions = np.empty(len(dims), object)
    regions[dims["d"].to_numpy()] = dims["region"].to_pylist()
    names, codes = np.unique(regions, return_inverse=True)
    order, keys, starts, counts = groups(codes[facts["d"].to_numpy()])
    return {"region": names[keys], "total": np.add.reduceat(facts["v"].to_numpy()[order], starts), "n": counts}


def top(facts: pa.RecordBatch, _: pa.RecordBatch) -> dict[str, Any]:
    """The keys with the greatest sums of an integer; of equal ones the smaller key."""
    order, keys, starts, _counts = groups(facts["k"].to_numpy())
    sums = np.add.reduceat(facts["q"].to_numpy()[order], starts)
    best = np.lexsort((keys, -sums))[:TOP]
    return {"k": keys[best], "total": sums[best]}


def extremes(facts: pa.RecordBatch, _: pa.RecordBatch) -> dict[str, Any]:
    """Least and greatest value, and the number of distinct integers, of each key."""
    order, keys, starts, _counts = groups(facts["k"].to_numpy())
    values, integers = facts["v"].to_numpy()[order], facts["q"].to_numpy()[order]
    kinds = np.array([len(np.unique(group)) for group in np.split(integers, starts[1:])])
    lows, highs = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    return {"k": keys, "low": lows, "high": highs, "kinds": kinds}


_JOIN = "SELECT region, SUM(v) AS total, COUNT(*) AS n FROM facts JOIN dims ON facts.d = dims.d GROUP BY region"
_JOINED = {"region": str, "total": float, "n": int}
VIEWS = {
    view.name: view
    for view in (
        View(
            "group-by",
            "SELECT k, COUNT(*) AS n, SUM(v) AS total, AVG(v) AS mean FROM facts GROUP BY k",
            {"k": int, "n": int, "total": float, "mean": float},
            "facts",
            group_by,
        ),
        View("join", _JOIN, _JOINED, "facts", join),
        View(
            "top-10",
            f"SELECT k, SUM(q) AS total FROM facts GROUP BY k ORDER BY total DESC, k LIMIT {TOP}",
            {"k": int, "total": int},
            "facts",
            top,
        ),
        View(
            "extremes",
            "SELECT k, MIN(v) AS low, MAX(v) AS high, COUNT(DISTINCT q) AS kinds FROM facts GROUP BY k",
            {"k": int, "low": float, "high": float, "kinds": int},
            "facts",
            extremes,
        ),
        View("dimension", _JOIN, _JOINED, "dims", join),
    )
}
