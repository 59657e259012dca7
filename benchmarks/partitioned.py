"""Ticks of a flow in shards on Spark, side by side with jobs that do nothing and with Spark recomputing the view.

Run it with `make bench-partitioned`, or `python benchmarks/partitioned.py --rows 2000000` for a smaller base. Prints
one line for each figure with its limit and writes benchmarks/results/partitioned.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import psutil
import pyarrow as pa

from weirflow import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from weirflow import PartitionedIncrementalFlow

VIEW = """
    SELECT o.segment, COUNT(*) AS items, SUM(l.price) AS revenue
    FROM items l JOIN orders o ON l.order_id = o.order_id
    WHERE l.price > 10
    GROUP BY o.segment
"""
SHARDS = 2
CALLERS, OF_CALLER = 16, 10
RESULTS = Path(__file__).parent / "results" / "partitioned.json"


class Figures:
    """What was measured, and the limits that were missed."""

    def __init__(self) -> None:
        self.measured: dict[str, float] = {}
        self.missed: list[str] = []

    def add(self, name: str, value: float, *, most: float | None = None, least: float | None = None) -> None:
        """Print a figure, and note whether it keeps to its limit."""
        limit = f"  at most {most}" if most is not None else f"  at least {least}" if least is not None else ""
        missed = (most is not None and value > most) or (least is not None and value < least)
        print(f"{name:<60} {value:12.3f}{limit}{'  MISSED' if missed else ''}", flush=True)
        self.measured[name] = round(value, 4)
        if missed:
            self.missed.append(name)

    def finish(self) -> int:
        """Write the figures; returns 1 if a limit was missed."""
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({"figures": self.measured, "missed": self.missed}, indent=2) + "\n")
        return 1 if self.missed else 0


def main() -> int:
    """Measure all; returns 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of the base")
    parser.add_argument("--delta", type=int, default=10_000_000, help="rows of the large delta")
    rows, delta = vars(parser.parse_args()).values()
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder, Session.embedded(cores=2, driver_memory="6g") as session:
        ticks(session, figures)
        queued(session, figures)
        base(session, figures, rows, Path(folder))
        memory(session, figures, delta)
    return figures.finish()


def ticks(session: Session, figures: Figures) -> None:
    """A tick of 100 rows against a job of as many tasks and exchanges that does nothing."""
    flow = new_flow(session, "ticks")
    flow.tick({"orders": orders(session, 10_000), "items": items(session, 100_000, 10_000)})
    for number in range(15):
        flow.tick("items", small(number))
        nothing(session, 1)
    ours, theirs, cold = [], [], []
    for number in range(30):
        change = small(100 + number)
        ours.append(seconds(partial(flow.tick, "items", change)))
        theirs.append(seconds(lambda: nothing(session, 1)))
    for number in range(10):
        forget(flow)
        cold.append(seconds(partial(flow.tick, "items", small(200 + number))))
    figures.add("tick of 100 rows, ms", 1000 * statistics.median(ours))
    figures.add("a job that does nothing, ms", 1000 * statistics.median(theirs))
    figures.add("tick / job that does nothing", statistics.median(ours) / statistics.median(theirs), most=1.3)
    figures.add("tick with cold shards, ms", 1000 * statistics.median(cold))
    flow.close()


def queued(session: Session, figures: Figures) -> None:
    """Ticks of 100 rows that several threads bring, which share jobs, against the same ticks one at a time."""
    flows = [new_flow(session, name) for name in ("one at a time", "queued")]
    for flow in flows:
        flow.tick({"orders": orders(session, 10_000), "items": items(session, 100_000, 10_000)})
        for number in range(15):
            flow.tick("items", small(number))
    alone, together = flows
    few = CALLERS * OF_CALLER // 4
    numbers = range(100, 100 + CALLERS * OF_CALLER)
    one_by_one = [seconds(partial(tick_each, alone, numbers[:few]))]
    at_once = seconds(partial(tick_from_threads, together, numbers))
    one_by_one.append(seconds(partial(tick_each, alone, numbers[few : 2 * few])))
    tick_each(alone, numbers[2 * few :])
    expected, found = [sorted(map(str, flow.snapshot("revenue").to_pylist())) for flow in flows]
    assert found == expected, "ticks that share jobs do not give what they give one at a time"
    rates = [2 * few / sum(one_by_one), len(numbers) / at_once]
    figures.add("ticks of 100 rows one at a time, per s", rates[0])
    figures.add(f"ticks of 100 rows from {CALLERS} threads, per s", rates[1])
    figures.add(f"{CALLERS} threads / one at a time", rates[1] / rates[0], least=5)
    for flow in flows:
        flow.close()


def tick_each(flow: PartitionedIncrementalFlow, numbers: Sequence[int]) -> None:
    """Ticks one behind the other."""
    for number in numbers:
        flow.tick("items", small(number))


def tick_from_threads(flow: PartitionedIncrementalFlow, numbers: Sequence[int]) -> None:
    """The same from several threads, each of which waits for its own ticks."""
    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(lambda caller: tick_each(flow, numbers[caller::CALLERS]), range(CALLERS)))


def base(session: Session, figures: Figures, rows: int, folder: Path) -> None:
    """A delta of a thousandth of the base against Spark recomputing the view over Parquet files of the same rows."""
    count = rows // 4
    orders(session, count).write.parquet(str(folder / "orders"))
    items(session, rows, count).write.parquet(str(folder / "items"))
    flow = new_flow(session, "base")
    flow.tick("orders", session.read_parquet(str(folder / "orders")))
    load = seconds(lambda: flow.tick("items", session.read_parquet(str(folder / "items"))))
    figures.add(f"load of {rows:,} rows, M rows/s", rows / load / 1e6)
    took, recomputed = [], []
    for number in range(5):
        change = items(session, rows // 1000, count, first=(10 + number) * rows)
        change.write.mode("append").parquet(str(folder / "items"))
        part = change.to_arrow()
        took.append(seconds(partial(flow.tick, "items", part)))
        recomputed.append(seconds(lambda: recompute(session, folder)))
    expected = sorted(recompute(session, folder).to_pylist(), key=str)
    assert sorted(flow.snapshot("revenue").to_pylist(), key=str) == expected, "the view is not what Spark computes"
    figures.add(f"tick of {rows // 1000:,} rows, s", statistics.median(took))
    figures.add("Spark recomputes the view, s", statistics.median(recomputed))
    figures.add("recompute / tick", statistics.median(recomputed) / statistics.median(took), least=10)
    flow.close()


def memory(session: Session, figures: Figures, rows: int) -> None:
    """What a delta that is a large frame adds to the memory of this process."""
    flow = new_flow(session, "memory")
    flow.tick({"orders": orders(session, 1000), "items": items(session, 1000, 1000)})
    process = psutil.Process()
    before = process.memory_info().rss
    peak = [before]
    with sampled(lambda: peak.append(process.memory_info().rss)):
        flow.tick("items", items(session, rows, 1000, first=10**9))
    figures.add(f"growth of the driver's Python by a delta of {rows:,} rows, MB", (max(peak) - before) / 2**20, most=64)
    flow.close()


def new_flow(session: Session, name: str) -> PartitionedIncrementalFlow:
    """The view over empty sources."""
    flow = session.flow(name, partitions=SHARDS)
    flow.register_source("orders", "order_id BIGINT, segment STRING", key="order_id")
    flow.register_source("items", "order_id BIGINT, line BIGINT, price BIGINT")
    flow.register_view("revenue", VIEW)
    return flow


def orders(session: Session, count: int) -> Any:
    """Orders as a frame."""
    return session.sql(f"SELECT id AS order_id, concat('segment ', id % 1000) AS segment FROM range({count})")


def items(session: Session, count: int, of: int, first: int = 0) -> Any:
    """Items of ``of`` orders as a frame."""
    return session.sql(
        f"SELECT pmod(hash(id), {of}) AS order_id, id AS line, id % 997 AS price FROM range({first}, {first + count})"
    ).selectExpr("CAST(order_id AS BIGINT)", "line", "price")


def small(number: int) -> pa.Table:
    """A delta of 100 rows."""
    lines = range(10**9 + 100 * number, 10**9 + 100 * number + 100)
    return pa.table(
        {"order_id": [line % 10_000 for line in lines], "line": lines, "price": [line % 997 for line in lines]}
    )


def recompute(session: Session, folder: Path) -> pa.Table:
    """The view over the files."""
    for name in ("orders", "items"):
        session.read_parquet(str(folder / name)).createOrReplaceTempView(name)
    return session.sql(VIEW).to_arrow()


def nothing(session: Session, exchanges: int) -> None:
    """A job with the tasks and exchanges of a tick, whose functions pass on what they get."""
    native = session.spark.newSession()
    native.conf.set("spark.sql.adaptive.enabled", "false")
    schema = "shard int, parcel binary"
    frame = native.range(0, SHARDS, 1, SHARDS).selectExpr("CAST(id AS INT) AS shard", "CAST('x' AS BINARY) AS parcel")
    frame = frame.mapInArrow(_pass_on, schema)
    for _ in range(exchanges):
        frame = frame.repartitionById(SHARDS, "shard").mapInArrow(_pass_on, schema)
    frame.collect()


def _pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def forget(flow: PartitionedIncrementalFlow) -> None:
    """Let the next tick find no shard's state in its worker."""
    backend: Any = flow._backend  # noqa: SLF001 - nobody else wants this
    ledger = backend._coordinator._ledger  # noqa: SLF001 - as above
    ledger.commit = msgspec.structs.replace(ledger.commit, versions={})


@contextmanager
def sampled(take: Callable[[], object]) -> Iterator[None]:
    """Take a sample every 20 ms while the block runs."""
    done = threading.Event()

    def run() -> None:
        while not done.wait(0.02):
            take()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
