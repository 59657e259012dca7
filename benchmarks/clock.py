"""What it costs that time passes, with a million rows in the window, against how many of them cross its edges.

    python benchmarks/clock.py [--rows N] [--rounds N]

A view holds the rows of the last hour, and a second one counts them by key. A minute passes again and again; in some of
these minutes 10 rows leave, in others 1,000 or 100,000. Side by side with it, the same number of rows is retracted by a
tick of a view without a clock, and the view is computed afresh by a query of a fixed time. The view is compared with
the rows it should hold after every minute. Writes benchmarks/results/clock.json.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from weirflow.ivm import compiled
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.zset.delta import DeltaBatch

RESULTS = Path(__file__).parent / "results" / "clock.json"
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
CROSSING = (10, 1_000, 100_000)
MINUTE = 60_000_000
MOMENT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("at", MOMENT)])
RECENT = "SELECT id, at FROM t WHERE at > now() - INTERVAL 1 HOUR"
COUNTED = "SELECT k, COUNT(*) AS n FROM t WHERE at > now() - INTERVAL 1 HOUR GROUP BY k"
MOST_OF_A_QUERY = 0.1
"""A minute in which 10 rows leave takes at most this part of a query over all rows."""


def rows(first: int, moments: np.ndarray) -> pa.Table:
    """Rows of these moments, numbered from ``first`` on."""
    ids = np.arange(first, first + len(moments))
    return pa.table([pa.array(ids), pa.array(ids % 1000), pa.array(moments).view(MOMENT)], schema=SCHEMA)


def loaded(total: int, minutes: list[int]) -> tuple[pa.Table, list[pa.Table]]:
    """All rows, and those that leave in each of the minutes: the others stay in the window until all is over."""
    begin = int(START.timestamp()) * 1_000_000
    dice = np.random.default_rng(7)
    leaving, first = [], 0
    for number, count in enumerate(minutes):
        # They leave an hour later.
        moments = begin - 60 * MINUTE + number * MINUTE + dice.integers(1, MINUTE, count)
        leaving.append(rows(first, moments))
        first += count
    staying = rows(first, begin + dice.integers(0, 60 * MINUTE, total - first))
    return pa.concat_tables([*leaving, staying]), leaving


def measure(total: int, rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds by how many rows cross: medians of a minute, a tick and a query."""
    minutes = [count for _ in range(rounds + 1) for count in CROSSING]
    table, leaving = loaded(total, minutes)
    clocked, plain = IncrementalFlow(clock="manual"), IncrementalFlow()
    for flow in (clocked, plain):
        flow.register_source("t", SCHEMA)
    for name, sql in (("recent", RECENT), ("counted", COUNTED)):
        clocked.register_view(name, sql)
        plain.register_view(name, sql.replace(" WHERE at > now() - INTERVAL 1 HOUR", ""))
    clocked.advance(START)
    for flow in (clocked, plain):
        flow.load("t", table)
    left = len(table)
    times: dict[str, dict[str, list[float]]] = {
        str(count): {"minute": [], "tick": [], "query": []} for count in CROSSING
    }
    for number, (count, gone) in enumerate(zip(minutes, leaving, strict=True)):
        now = START + dt.timedelta(minutes=number + 1)
        begun = time.perf_counter()
        done = clocked.advance(now)
        minute = time.perf_counter()
        plain.tick("t", DeltaBatch.from_deletes(gone, schema=SCHEMA))
        ticked = time.perf_counter()
        found = clocked.sql(RECENT.replace("now()", f"TIMESTAMP'{now:%Y-%m-%d %H:%M:%S}Z'"))
        queried = time.perf_counter()
        left -= count
        assert done.views["recent"] == count, (done, count)
        assert found.num_rows == left == sum(clocked.snapshot("counted").column("n").to_pylist())
        if number >= len(CROSSING):
            spans = {"minute": minute - begun, "tick": ticked - minute, "query": queried - ticked}
            for name, span in spans.items():
                times[str(count)][name].append(span * 1000)
    assert clocked.snapshot("recent").sort_by("id").equals(found.sort_by("id"))
    return {count: {name: statistics.median(of) for name, of in taken.items()} for count, taken in times.items()}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    compiled.load()
    found = measure(arguments.rows, arguments.rounds)
    print(f"{'rows that leave':>16} {'a minute':>12} {'a tick of them':>16} {'a query':>12}")
    for count, one in found.items():
        print(f"{int(count):>16,} {one['minute']:>9.2f} ms {one['tick']:>13.2f} ms {one['query']:>9.1f} ms")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"rows": arguments.rows, "milliseconds": found}, indent=2) + "\n")
    fewest = found[str(CROSSING[0])]
    if fewest["minute"] > MOST_OF_A_QUERY * fewest["query"]:
        sys.exit("a minute in which few rows leave takes too long")


if __name__ == "__main__":
    main()
