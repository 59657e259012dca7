"""What the kernel's state costs: bulk loads, probes, insertions and ticks over large bases.

    python benchmarks/kernel.py [--rows 1000000 10000000] [--ticks 1000]

Every figure comes from a base of the given size that has been changed for a while, so that it consists of several
runs; results are checked against NumPy. Prints medians and writes benchmarks/results/kernel.json.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.ordered import OrderedArrangement
from weirflow.ivm.kernel.sort_keys import SortColumn
from weirflow.ivm.zset.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RESULTS = Path(__file__).parent / "results" / "kernel.json"
DELTA = 100
FUEL = 8192
CHUNK = 1_000_000


class Clock:
    """Collects the time of named steps, in seconds."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}

    def run(self, name: str, step: Callable[[], Any]) -> Any:
        """What ``step`` returns."""
        started = time.perf_counter()
        result = step()
        self.times.setdefault(name, []).append(time.perf_counter() - started)
        return result

    def sum(self, name: str, *parts: str) -> None:
        """Add the times of several steps, round by round, as those of one."""
        self.times[name] = [sum(times) for times in zip(*(self.times[part] for part in parts), strict=True)]


def names(numbers: Any) -> pa.Array:
    """A string for each number, made chunk by chunk."""
    chunks = [numbers[start : start + CHUNK] for start in range(0, len(numbers), CHUNK)]
    return pa.concat_arrays([pa.array([f"customer {number:09d}" for number in chunk.tolist()]) for chunk in chunks])


def keys_of(kind: str, numbers: Any) -> pa.Array:
    """The key column for these numbers."""
    return pa.array(numbers) if kind == "int" else names(numbers)


def rows_by_key(kind: str, rows: int, ticks: int) -> Iterator[tuple[str, float]]:
    """An ``Arrangement`` of (key, payload) with a fan-out of one."""
    random = np.random.default_rng(1)
    numbers = random.permutation(rows)
    keys = keys_of(kind, numbers)
    arrangement = Arrangement([keys.type, pa.int64()], 1)
    clock = Clock()
    clock.run("bulk", lambda: arrangement.insert(Batch((keys, pa.array(numbers)), np.ones(rows, np.int64))))
    yield "bulk insertion, M rows/s", rows / clock.times["bulk"][0] / 1e6
    yield "bytes a row", arrangement.nbytes / rows
    fresh = rows
    for _ in range(ticks):
        wanted = random.choice(rows, DELTA, replace=False)
        probe = keys_of(kind, wanted)
        found = clock.run("probe", partial(arrangement.probe, [probe], consolidated=True))
        assert np.array_equal(np.sort(found.batch.columns[1].to_numpy()), np.sort(wanted))
        added = np.arange(fresh, fresh + DELTA)
        batch = Batch((keys_of(kind, added), pa.array(added)), np.ones(DELTA, np.int64))
        clock.run("insert", partial(arrangement.insert, batch))
        clock.run("maintain", partial(arrangement.maintain, FUEL))
        fresh += DELTA
    clock.sum("tick", "probe", "insert", "maintain")
    yield from spread(clock, "probe", "insert", "maintain", "tick")
    yield "runs", len(arrangement.runs)


def ticks_during_a_merge(rows: int, ticks: int) -> Iterator[tuple[str, float]]:
    """The same ticks while the base is being merged with one half as large, in slices."""
    random = np.random.default_rng(4)
    arrangement = Arrangement([pa.int64(), pa.int64()], 1)
    for numbers in (np.arange(rows), np.arange(rows, rows + rows // 2)):
        column = pa.array(random.permutation(numbers))
        arrangement.insert(Batch((column, column), np.ones(len(numbers), np.int64)))
    clock = Clock()
    fresh = 2 * rows
    for _ in range(ticks):
        wanted, added = random.choice(rows, DELTA, replace=False), pa.array(np.arange(fresh, fresh + DELTA))
        found = clock.run("probe", partial(arrangement.probe, [pa.array(wanted)]))
        assert np.array_equal(np.sort(found.batch.columns[1].to_numpy()), np.sort(wanted))
        clock.run("insert", partial(arrangement.insert, Batch((added, added), np.ones(DELTA, np.int64))))
        clock.run("maintain", partial(arrangement.maintain, FUEL))
        fresh += DELTA
    clock.sum("tick", "probe", "insert", "maintain")
    yield from spread(clock, "probe", "maintain", "tick")
    yield "tick, p99 / median", float(np.quantile(clock.times["tick"], 0.99) / np.median(clock.times["tick"]))
    yield "tick, slowest ms", max(clock.times["tick"]) * 1e3
    yield "runs", len(arrangement.runs)


def sums_by_key(rows: int, ticks: int) -> Iterator[tuple[str, float]]:
    """An ``AdditiveArrangement`` with three accumulators a key."""
    random = np.random.default_rng(2)
    values = random.integers(1, 100, (rows, 3))
    sums = AdditiveArrangement([pa.int64()], 3)
    clock = Clock()
    clock.run("bulk", lambda: sums.add([pa.array(np.arange(rows))], values))
    yield "bulk addition, M rows/s", rows / clock.times["bulk"][0] / 1e6
    for _ in range(ticks):
        touched, change = random.integers(0, rows, DELTA), random.integers(-5, 5, (DELTA, 3))
        keys = [pa.array(touched)]
        before = clock.run("lookup", partial(sums.lookup, keys))
        assert np.array_equal(before, values[touched])
        clock.run("add", partial(sums.add, keys, change))
        clock.run("maintain", partial(sums.maintain, FUEL))
        np.add.at(values, touched, change)
    clock.sum("lookup + add", "lookup", "add")
    yield from spread(clock, "lookup", "add", "lookup + add", "maintain")
    yield "runs", len(sums.runs)


def first_by_key(rows: int, ticks: int) -> Iterator[tuple[str, float]]:
    """An ``OrderedArrangement`` of ten rows a key, asked for the greatest."""
    random = np.random.default_rng(3)
    groups = rows // 10
    numbers = random.permutation(rows)
    ordered = OrderedArrangement([pa.int64(), pa.int64()], 1, [SortColumn(1, descending=True)])
    clock = Clock()
    clock.run(
        "bulk", lambda: ordered.insert(Batch((pa.array(numbers % groups), pa.array(numbers)), np.ones(rows, int)))
    )
    yield "bulk insertion, M rows/s", rows / clock.times["bulk"][0] / 1e6
    best = np.arange(groups) + 9 * groups
    for _ in range(ticks):
        touched = random.choice(groups, DELTA, replace=False)
        gone = Batch((pa.array(touched), pa.array(best[touched])), np.where(best[touched] >= 0, -1, 0))
        clock.run("insert", partial(ordered.insert, gone))
        best[touched] -= groups
        found = clock.run("first", partial(ordered.first, [pa.array(touched)], 1))
        expected = best[touched]
        assert np.array_equal(found.batch.columns[1].to_numpy(), expected[expected >= 0])
        clock.run("maintain", partial(ordered.maintain, FUEL))
    yield from spread(clock, "first", "insert", "maintain")


def spread(clock: Clock, *steps: str) -> Iterator[tuple[str, float]]:
    """The median and the 99th percentile of each step, in milliseconds."""
    for step in steps:
        times = np.array(clock.times[step]) * 1e3
        yield f"{step}, ms", float(np.median(times))
        yield f"{step}, p99 ms", float(np.quantile(times, 0.99))


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--ticks", type=int, default=1000)
    options = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    for rows in options.rows:
        for name, figures in (
            ("rows by int key", rows_by_key("int", rows, options.ticks)),
            ("rows by string key", rows_by_key("string", rows, options.ticks)),
            ("ticks during a merge", ticks_during_a_merge(rows, 2 * options.ticks)),
            ("sums by int key", sums_by_key(rows, options.ticks)),
            ("first by int key", first_by_key(rows, options.ticks)),
        ):
            title = f"{name}, base of {rows:,}"
            print(f"\n{title}")
            results[title] = {}
            for what, figure in figures:
                results[title][what] = round(figure, 4)
                print(f"  {what:<28}{figure:>10.3f}", flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"delta": DELTA, "fuel": FUEL, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
