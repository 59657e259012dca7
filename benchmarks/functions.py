"""Ticks of views with functions that the kernel does not have, side by side with recomputing the same view.

    python benchmarks/functions.py [--rows N] [--rounds N]

Each side is a flow of its own over the same rows, and they take turns; the views are compared after the last round.
Writes benchmarks/results/functions.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS = Path(__file__).parent / "results" / "functions.json"
VIEW = "SELECT id, sin(id) AS code FROM people"
CALLED = "SELECT id, shortened(name) AS code FROM people"
DELTA = 1_000
WARM_UP = 2
LEAST = 10.0
"""How many times faster a tick has to be than the recompute."""


def people(first: int, count: int) -> pa.Table:
    """Rows with as many different names as there are rows."""
    ids = np.arange(first, first + count)
    return pa.table({"id": ids, "name": pa.array([f"name {one * 7919 % 1_000_003}" for one in ids.tolist()])})


def rounds(session: Session, rows: int, count: int) -> Iterator[tuple[str, float]]:
    """The duration of each side's ticks in milliseconds, by turns."""
    session.udf("shortened", lambda name: name[:6], "STRING", deterministic=True)
    flows = {}
    for side, sql, mode in (("spark", VIEW, "incremental"), ("python", CALLED, "incremental"), ("diff", VIEW, "diff")):
        flow = flows[side] = session.flow(side)
        flow.register_source("people", "id BIGINT, name STRING", key=["id"])
        flow.register_view("codes", sql, mode=mode)
        if side == "spark" and "evaluated by Spark" not in flow.explain("codes"):
            raise SystemExit("The kernel has the function by now: measure one that Spark evaluates.")
        flow.tick("people", people(0, rows))
    for number in range(count + WARM_UP):
        for side, flow in flows.items():
            delta = people(rows + number * DELTA, DELTA)
            begun = time.perf_counter()
            flow.tick("people", delta)
            if number >= WARM_UP:
                yield side, (time.perf_counter() - begun) * 1000
    found = [flows[side].snapshot("codes").sort_by("id") for side in ("spark", "diff")]
    assert found[0].equals(found[1]), "both sides hold the same rows"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    times: dict[str, list[float]] = {}
    with Session.embedded(progress="off", driver_memory="3g") as session:
        for side, taken in rounds(session, arguments.rows, arguments.rounds):
            times.setdefault(side, []).append(taken)
    medians = {side: statistics.median(taken) for side, taken in times.items()}
    ratios = {side: medians["diff"] / medians[side] for side in ("spark", "python")}
    for side, taken in medians.items():
        print(f"{side:<8} {taken:10.1f} ms for {DELTA:,} of {arguments.rows:,} rows")
    for side, ratio in ratios.items():
        print(f"{side:<8} {ratio:10.1f} times as fast as the recompute")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"rows": arguments.rows, "ms": medians, "ratios": ratios}, indent=2) + "\n")
    if ratios["spark"] < LEAST:
        raise SystemExit(f"A tick is to be at least {LEAST:g} times as fast as the recompute.")


if __name__ == "__main__":
    main()
