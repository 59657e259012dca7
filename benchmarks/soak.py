"""A durable flow under a steady rate of small deltas: whether time, memory, disk and open files stay flat."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from weirflow import DeltaBatch, IncrementalFlow

KEYS = 10_000
# Every insertion is retracted again after this many others, so that nothing grows for good.
LIFE = 2500
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64())])


class Sample(NamedTuple):
    """What the process and the flow's folder hold at a moment."""

    memory: int
    open_files: int
    files: int
    disk: int


def soak(folder: Path, minutes: float, per_second: int = 1000) -> dict[str, float]:
    """Medians of the first tenth against the last; ticks of 1 to 4 rows, with tokens, a group-by and a join view."""
    flow = IncrementalFlow("soak", path=folder, fsync=1000, checkpoint_every=10_000, history=1000)
    flow.register_source("numbers", SCHEMA, dedup=100)
    flow.register_source("names", "k BIGINT, name STRING", key="k")
    flow.register_view("totals", "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM numbers GROUP BY k")
    flow.register_view("named", "SELECT name, v FROM numbers JOIN names USING (k)")
    flow.load("names", {"k": list(range(KEYS)), "name": [f"name {key}" for key in range(KEYS)]})
    inserts, changes = _deltas()
    for delta in inserts:
        flow.tick("numbers", delta)
    total = int(minutes * 60 * per_second)
    times = np.empty(total)
    samples: list[Sample] = []
    begun, busy = time.perf_counter(), time.thread_time()
    for number in range(total):
        started = time.perf_counter()
        flow.tick("numbers", changes[number % len(changes)], token=f"tick {number}")
        times[number] = time.perf_counter() - started
        if number % max(1, total // 100) == 0:
            samples.append(_sample(folder))
        ahead = begun + (number + 1) / per_second - time.perf_counter()
        if ahead > 0:
            time.sleep(ahead)
    seconds, busy = time.perf_counter() - begun, time.thread_time() - busy
    _check(flow)
    flow.close()
    tenth = total // 10
    # The first samples are of a flow that has yet to write its first checkpoint.
    first, last = samples[10:20], samples[-10:]
    return {
        "ticks/s": total / seconds,
        "at full speed, ticks/s": 1 / float(times.mean()),
        "processor ms a tick": busy / total * 1000,
        "first tenth ms": float(np.median(times[:tenth])) * 1000,
        "last tenth ms": float(np.median(times[-tenth:])) * 1000,
        "p99 ms": float(np.percentile(times, 99)) * 1000,
        "memory MB": max(one.memory for one in last) / 1e6,
        "memory ratio": _median(last, "memory") / _median(first, "memory"),
        "disk MB": max(one.disk for one in last) / 1e6,
        "disk ratio": _median(last, "disk") / _median(first, "disk"),
        "open files": max(one.open_files for one in last),
        "files": max(one.files for one in last),
    }


def _deltas() -> tuple[list[DeltaBatch], list[DeltaBatch]]:
    """The first ticks, which insert; then those that go round: one inserts, the next retracts an older insertion."""
    random = np.random.default_rng(3)
    rows = [
        pa.table([random.integers(0, KEYS, count), random.integers(0, 1 << 20, count) / 1024], schema=SCHEMA)
        for count in random.integers(1, 5, 2 * LIFE)
    ]
    changes = []
    for number, old in enumerate(rows):
        changes += [DeltaBatch.from_inserts(rows[(number + LIFE) % len(rows)]), DeltaBatch.from_deletes(old)]
    return [DeltaBatch.from_inserts(one) for one in rows[:LIFE]], changes


def _check(flow: IncrementalFlow) -> None:
    """The views against a recompute with Arrow."""
    numbers = flow.snapshot("numbers")
    wanted = numbers.group_by("k").aggregate([([], "count_all"), ("v", "sum")]).sort_by("k")
    found = flow.snapshot("totals").sort_by("k")
    named = (
        numbers.join(flow.snapshot("names"), "k")
        .select(["name", "v"])
        .sort_by([("name", "ascending"), ("v", "ascending")])
    )
    joined = flow.snapshot("named").sort_by([("name", "ascending"), ("v", "ascending")])
    if joined.to_pylist() != named.to_pylist():
        raise SystemExit("the join is wrong")
    for mine, theirs in zip(found.columns, (wanted["k"], wanted["count_all"], wanted["v_sum"]), strict=True):
        if mine.to_pylist() != theirs.to_pylist():
            raise SystemExit("the totals are wrong")


def _sample(folder: Path) -> Sample:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    paths = [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]
    return Sample(
        memory=pages * os.sysconf("SC_PAGE_SIZE"),
        open_files=len(list(Path("/proc/self/fd").iterdir())),
        files=len(paths),
        disk=sum(path.stat().st_size for path in paths),
    )


def _median(samples: list[Sample], what: str) -> float:
    return float(statistics.median(getattr(one, what) for one in samples))
