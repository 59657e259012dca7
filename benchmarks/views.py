"""Ticks of a hundred rows that touch many different views over one source.

    python benchmarks/views.py [--rows N] [--ticks N] [--extremes N]

Of 200 views each groups by other keys, filters other rows or adds up something else; ten are joins and top-10s, and as
many as asked for are of MIN and MAX. A tick inserts 70 rows and retracts 30. At the end every view is compared with
DuckDB's. Prints the milliseconds of the processor and of the clock, p10 and median, and writes
benchmarks/results/views.json.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from weirflow import DeltaBatch, IncrementalFlow
from weirflow.ivm import compiled

RESULTS = Path(__file__).parent / "results" / "views.json"
FACTS = pa.schema(
    [
        ("uid", pa.int64()),
        ("k", pa.int64()),
        ("d", pa.int32()),
        ("s", pa.string()),
        ("v", pa.float64()),
        ("q", pa.int64()),
    ]
)
DIMS = pa.schema([("d", pa.int32()), ("region", pa.string())])
VIEWS, INSERTED, RETRACTED, WARM = 200, 70, 30, 10
KEYS = ("k", "d", "s", "d, s", "k % 100", "k, d")
FILTERS = ("true", "q > 500", "v < 300", "s <> 's3'", "q % 7 = 1", "d < 50 AND q > 100", "q <> 5", "v > 20 AND q < 900")
SUMS = (
    "COUNT(*) AS n",
    "COUNT(*) AS n, SUM(q) AS t",
    "SUM(q) AS t, AVG(q) AS m",
    "AVG(v) AS m, SUM(v) AS t",
    "COUNT(q) AS c, SUM(q + d) AS t",
)
EXTREME = "MIN(q) AS low, MAX(v) AS high"
REGIONS = (
    "SELECT region, SUM(q) AS t, COUNT(*) AS n FROM facts JOIN dims ON facts.d = dims.d WHERE q > {} GROUP BY region"
)
FIRST = "SELECT {0} AS x, SUM(q) AS t FROM facts WHERE q <> {1} GROUP BY {0} ORDER BY t DESC, x LIMIT 10"


def texts(extremes: int) -> list[str]:
    """The SQL of all views, so many of which are of extremes."""
    others = [REGIONS.format(50 * number) for number in range(5)]
    others += [FIRST.format(key, number) for number, key in enumerate(("k", "d", "s", "q", "d"))]
    groups = list(product(KEYS, FILTERS))
    lows = [_group_by(keys, condition, EXTREME) for keys, condition in groups[:extremes]]
    sums = [_group_by(keys, condition, one) for one, (keys, condition) in product(SUMS, groups)]
    return [*others, *lows, *sums[: VIEWS - len(others) - len(lows)]]


def _group_by(keys: str, condition: str, calls: str) -> str:
    named = ", ".join(f"{key} AS g{number}" for number, key in enumerate(keys.split(", ")))
    return f"SELECT {named}, {calls} FROM facts WHERE {condition} GROUP BY {keys}"


def facts(uids: np.ndarray) -> pa.RecordBatch:
    """The facts with these numbers."""
    mixed = uids * 2654435761 % (1 << 31)
    names = pa.array([f"s{number}" for number in range(50)])
    columns = [
        pa.array(uids),
        pa.array(mixed % 1000),
        pa.array((mixed // 7 % 100).astype(np.int32)),
        names.take(pa.array(mixed // 11 % 50)),
        pa.array(mixed // 13 % 1024 / 2),
        pa.array(mixed // 17 % 1000),
    ]
    return pa.record_batch(columns, schema=FACTS)


def delta(rows: int, tick: int) -> DeltaBatch:
    """New rows behind ``rows`` and all earlier ticks', and the oldest that are still there taken back."""
    new = np.arange(INSERTED) + rows + INSERTED * tick
    old = np.arange(RETRACTED) + RETRACTED * tick
    weights = pa.array(np.repeat([1, -1], [INSERTED, RETRACTED]))
    return DeltaBatch.from_weighted(facts(np.concatenate([new, old])).append_column("_weight", weights))


def check(flow: IncrementalFlow, views: list[str], tables: dict[str, pa.Table]) -> None:
    """``AssertionError`` if a view is not what DuckDB computes."""
    with duckdb.connect() as other:
        for name, rows in tables.items():
            other.register(name, rows)
        for number, sql in enumerate(views):
            expected = sorted(other.sql(sql).fetchall())
            found = flow.snapshot(f"v{number}")
            if sorted(zip(*found.to_pydict().values(), strict=True)) != expected:
                raise AssertionError(f"DuckDB has other rows: {sql}")


def main() -> None:
    """Load, tick, check, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--ticks", type=int, default=100)
    parser.add_argument("--extremes", type=int, default=0)
    options = parser.parse_args()
    compiled.load()
    views, ticks = texts(options.extremes), WARM + options.ticks
    dims = pa.record_batch(
        [pa.array(np.arange(100, dtype=np.int32)), pa.array([f"r{number % 10}" for number in range(100)])], schema=DIMS
    )
    with IncrementalFlow() as flow:
        flow.register_source("facts", FACTS)
        flow.register_source("dims", DIMS)
        for number, sql in enumerate(views):
            flow.register_view(f"v{number}", sql)
        flow.tick({"facts": facts(np.arange(options.rows)), "dims": dims})
        times = []
        for tick in range(ticks):
            change = delta(options.rows, tick)
            started = time.process_time(), time.perf_counter()
            flow.tick("facts", change)
            times.append((time.process_time() - started[0], time.perf_counter() - started[1]))
        last = pa.Table.from_batches([facts(np.arange(RETRACTED * ticks, options.rows + INSERTED * ticks))])
        check(flow, views, {"facts": last, "dims": pa.Table.from_batches([dims])})
    measured = np.array(times[WARM:]) * 1000
    figures = {
        f"{kind} {name}": round(float(np.percentile(measured[:, column], share)), 2)
        for column, kind in enumerate(("cpu", "wall"))
        for name, share in (("p10", 10), ("median", 50))
    }
    print(f"{VIEWS} views, {options.extremes} of extremes, {INSERTED + RETRACTED} rows: {figures} ms")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"views": VIEWS, "extremes": options.extremes, "ms": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
