"""What durability costs a flow, how fast it comes back, and whether it stays flat.

    python benchmarks/flow.py [--rows N] [--soak MINUTES]

Every system of figures is measured side by side in this run; views are checked before a time counts. Writes
benchmarks/results/flow.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from prometheus_client import CollectorRegistry
from soak import soak

from weirflow import IncrementalFlow
from weirflow.observability.metrics import FlowMetrics

RESULTS = Path(__file__).parent / "results" / "flow.json"
KEYS = 10_000
TICKS = 600
WARM_UP = 100
# What each figure has to stay under.
LIMITS = {
    "durable tick, synced once in 10 / in memory": 3.0,
    "reopening, seconds": 2.0,
    "metrics, microseconds a tick": 10.0,
    "soak: last / first tenth, median tick": 1.5,
    "soak: last / first tenth, memory": 1.2,
    "soak: last / first tenth, disk": 1.5,
    "soak: 1,000 / ticks a second at full speed": 0.9,
}


def new_flow(**options: Any) -> IncrementalFlow:
    """A table of numbers and its totals."""
    flow = IncrementalFlow("bench", **options)
    flow.register_source("numbers", "k BIGINT, v DOUBLE")
    flow.register_view("totals", "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM numbers GROUP BY k")
    return flow


def rows(random: np.random.Generator, count: int) -> pa.Table:
    """Random rows; the doubles are exact, so that sums are the same in any order."""
    return pa.table({"k": random.integers(0, KEYS, count), "v": random.integers(0, 1 << 20, count) / 1024})


def check(flow: IncrementalFlow) -> None:
    """The view against a recompute with Arrow."""
    wanted = flow.snapshot("numbers").group_by("k").aggregate([([], "count_all"), ("v", "sum")]).sort_by("k")
    found = flow.snapshot("totals").sort_by("k")
    for mine, theirs in zip(found.columns, (wanted["k"], wanted["count_all"], wanted["v_sum"]), strict=True):
        if mine.to_pylist() != theirs.to_pylist():
            raise SystemExit("the view is wrong")


def tick_times(flows: dict[str, IncrementalFlow]) -> dict[str, float]:
    """The mean tick of each flow, in milliseconds; they take turns, each with the same 100 rows."""
    random = np.random.default_rng(1)
    times: dict[str, list[float]] = {name: [] for name in flows}
    for _ in range(WARM_UP + TICKS):
        delta = rows(random, 100)
        for name, flow in flows.items():
            started = time.perf_counter()
            flow.tick("numbers", delta)
            times[name].append((time.perf_counter() - started) * 1000)
    for flow in flows.values():
        check(flow)
        flow.close()
    # The mean, for a sync once in ten ticks is not in the median.
    return {name: statistics.mean(sorted(one[WARM_UP:])[: -TICKS // 50]) for name, one in times.items()}


def reopening(folder: Path, count: int) -> dict[str, float]:
    """Load, checkpoint and reopen a flow of ``count`` rows."""
    random = np.random.default_rng(2)
    flow = new_flow(path=folder)
    started = time.perf_counter()
    flow.load("numbers", rows(random, count))
    loaded = time.perf_counter()
    flow.checkpoint()
    saved = time.perf_counter()
    flow.close()
    before = time.perf_counter()
    flow = new_flow(path=folder)
    opened = time.perf_counter() - before
    if flow.snapshot("totals")["n"].to_numpy().sum() != count:
        raise SystemExit("rows are missing")
    flow.close()
    return {"load M rows/s": count / (loaded - started) / 1e6, "checkpoint s": saved - loaded, "reopening s": opened}


def metrics_cost(count: int = 100_000) -> float:
    """Microseconds that a tick spends on being counted."""
    metrics = FlowMetrics("bench", CollectorRegistry())
    started = time.perf_counter()
    for _ in range(count):
        metrics.tick(0.001, rows_in=2, rows_out=4, late=1, dropped=1)
    return (time.perf_counter() - started) / count * 1e6


def main() -> None:
    """Print the figures and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the flow that is reopened")
    parser.add_argument("--soak", type=float, default=0.0, help="minutes of small ticks at 1,000 a second")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        ticks = tick_times(
            {
                "in memory": new_flow(),
                "synced once in 10": new_flow(path=folder / "ten", fsync=10, checkpoint_every=0),
                "synced every tick": new_flow(path=folder / "each", fsync=1, checkpoint_every=0),
            }
        )
        opened = reopening(folder / "large", arguments.rows)
        soaked = soak(folder / "soak", arguments.soak) if arguments.soak else {}
    ratios = {
        "durable tick, synced once in 10 / in memory": ticks["synced once in 10"] / ticks["in memory"],
        "reopening, seconds": opened["reopening s"],
        "metrics, microseconds a tick": metrics_cost(),
    }
    if soaked:
        ratios["soak: last / first tenth, median tick"] = soaked["last tenth ms"] / soaked["first tenth ms"]
        ratios["soak: last / first tenth, memory"] = soaked["memory ratio"]
        ratios["soak: last / first tenth, disk"] = soaked["disk ratio"]
        ratios["soak: 1,000 / ticks a second at full speed"] = 1000 / soaked["at full speed, ticks/s"]
    for title, figures in (("tick of 100 rows, ms", ticks), (f"{arguments.rows:,} rows", opened), ("soak", soaked)):
        for what, figure in figures.items():
            print(f"{title:24}{what:24}{figure:>10.2f}")
    for what, ratio in ratios.items():
        print(f"{what:48}{ratio:>8.2f}  <= {LIMITS[what]:<5}{'ok' if ratio <= LIMITS[what] else 'not met'}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"ticks": ticks, "reopening": opened, "soak": soaked, "ratios": ratios}, indent=2))
    if any(ratio > LIMITS[what] for what, ratio in ratios.items()):
        raise SystemExit("a limit is not met")


if __name__ == "__main__":
    main()
