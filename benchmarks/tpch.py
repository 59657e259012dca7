"""What a refresh of TPC-H costs: ticks of its 22 queries, side by side with Spark that computes them anew.

    python benchmarks/tpch.py [--scale F] [--queries N ...]

Each query is a view of a flow of its own over all eight tables. Ten batches, each with about 0.1 % of the orders and
their lines as insertions and as many deletions, are ticks; after each tick Spark runs the query over cached tables, as
they are after the last batch. Loading and applying the batches is not charged to Spark. No time counts unless the view
equals Spark's result in the end. Prints medians in milliseconds and writes benchmarks/results/tpch.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from ticking.data import weighted
from tpch_tables import QUERIES, SCHEMAS, TpchTables

from weirflow import DeltaBatch, IncrementalFlow, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RESULTS = Path(__file__).parent / "results" / "tpch.json"
BATCHES = 10
SHARE = 0.001
WARM_UP = 2
CHANGING = ("orders", "lineitem")


class Refreshes:
    """The base and the batches, the same for every query."""

    def __init__(self, scale: float) -> None:
        tables = TpchTables(scale)
        random = np.random.default_rng(1)
        alive, size = np.arange(tables.orders), max(1, round(tables.orders * SHARE))
        self.base = tables.small() | tables.of_orders(alive)
        self.batches: list[dict[str, DeltaBatch]] = []
        self.rows = 0
        for number in range(BATCHES):
            removed = random.choice(alive, size, replace=False)
            added = np.arange(size) + tables.orders + number * size
            alive = np.concatenate([np.setdiff1d(alive, removed, assume_unique=True), added])
            self.batches.append(_delta(tables.of_orders(added), tables.of_orders(removed)))
            self.rows += sum(len(delta) for delta in self.batches[-1].values())
        self.final = {**self.base, **tables.of_orders(alive)}


def _delta(added: Mapping[str, pa.RecordBatch], removed: Mapping[str, pa.RecordBatch]) -> dict[str, DeltaBatch]:
    deltas = {}
    for name, rows in added.items():
        both = pa.concat_batches([rows, removed[name]])
        weights = np.repeat([1, -1], [len(rows), len(removed[name])])
        deltas[name] = DeltaBatch.from_weighted(weighted(both, weights))
    return deltas


def measure(query: int, refreshes: Refreshes, session: Session) -> dict[str, Any]:
    """The figures of one query. Ends the program when the view is not what Spark returns."""
    sql = QUERIES[query]
    with IncrementalFlow(f"q{query}") as flow:
        for name, schema in SCHEMAS.items():
            flow.register_source(name, schema)
        flow.register_view("view", sql)
        loading = _seconds(lambda: flow.tick(dict(refreshes.base)))
        for _ in range(WARM_UP):
            session.sql(sql).to_arrow()
        ticks, recomputes = [], []
        for batch in refreshes.batches:
            ticks.append(_seconds(partial(flow.tick, batch)))
            recomputes.append(_seconds(lambda: session.sql(sql).to_arrow()))
        ours, theirs = _rows(flow.snapshot("view")), _rows(session.sql(sql).to_arrow())
    if ours != theirs:
        raise SystemExit(f"q{query} is wrong: only ours {ours - theirs}, only Spark's {theirs - ours}")
    tick, spark = median(ticks) * 1000, median(recomputes) * 1000
    return {
        "tick_ms": round(tick, 3),
        "spark_ms": round(spark, 1),
        "ratio": round(spark / tick, 1),
        "slowest_tick_ms": round(max(ticks) * 1000, 3),
        "load_s": round(loading, 2),
        "rows": ours.total(),
        "reads_changes": any(name in sql for name in CHANGING),
    }


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def main() -> None:
    """Print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.05, help="TPC-H's scale factor; 1 has 6 million lines")
    parser.add_argument("--queries", type=int, nargs="+", choices=sorted(QUERIES), default=sorted(QUERIES), metavar="N")
    arguments = parser.parse_args()
    print(f"making tables of scale {arguments.scale}", file=sys.stderr)
    refreshes = Refreshes(arguments.scale)
    results: dict[int, dict[str, Any]] = {}
    with Session.embedded(cores=2, driver_memory="4g", progress="off") as session:
        for name, rows in refreshes.final.items():
            session.register(name, session.from_arrow(pa.table(rows)).repartition(2).cache())
            session.sql(f"SELECT COUNT(*) FROM {name}").to_arrow()
        for query in arguments.queries:
            print(f"q{query}: {len(results) + 1} of {len(arguments.queries)}", file=sys.stderr)
            results[query] = measure(query, refreshes, session)
    lines = len(refreshes.final["lineitem"])
    print(f"{lines:,} lines, {refreshes.rows / BATCHES:,.0f} changed rows in a batch; medians of {BATCHES}")
    print(f"{'query':<8}{'tick ms':>12}{'Spark ms':>12}{'Spark / tick':>14}")
    for query, figures in results.items():
        mark = "" if figures["reads_changes"] else " *"
        print(f"{f'q{query}{mark}':<8}{figures['tick_ms']:>12.2f}{figures['spark_ms']:>12.1f}{figures['ratio']:>14.1f}")
    print("* reads neither orders nor lines")
    RESULTS.parent.mkdir(exist_ok=True)
    report = {"scale": arguments.scale, "lines": lines, "batches": BATCHES, "queries": results}
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
