"""What the 23 queries of Nexmark cost: events a second and the latency of ticks, beside Spark Structured Streaming.

    python benchmarks/nexmark.py --quick | --full [--queries NAME ...]

Each query is a view of a flow of its own, ticked with batches of people, auctions and bids as its users call it: from
Arrow batches in to the view's Arrow delta out of a watch. No time counts unless the view equals what Spark computes
over the same events in the end.

Some of the queries run in Spark Structured Streaming, too: plain PySpark on two cores, the same batches as Parquet
files, one of each table at a time, results to Arrow, checked in the same way. Of the others, most need ranks, distinct
counts or joins of aggregations, which it refuses. Prints a table and writes benchmarks/results/nexmark.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from nexmark_world.events import Events
from nexmark_world.query_files import QUERIES
from nexmark_world.schemas import SCHEMAS

from weirflow import IncrementalFlow, Session
from weirflow.ivm import compiled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULTS = Path(__file__).parent / "results" / "nexmark.json"
STREAMS = ("person", "auction", "bid")
# Those that run in Structured Streaming, too; of the ones that update their rows, what tells one row from another.
STREAMED: dict[str, tuple[str, ...]] = {
    "q01": (),
    "q02": (),
    "q03": (),
    "q12": ("bidder", "starttime", "endtime"),
    "q17": ("auction", "day"),
    "q20": (),
    "q22": (),
}
STREAMED_QUICKLY = ("q01", "q03", "q12", "q17", "q20")


@dataclass(frozen=True)
class Size:
    """How many events come in which batches; a slow query takes fewer, as many as fit into the budget."""

    events: int
    batch: int
    budget_s: float
    warm_up: int
    streamed: Sequence[str]
    streamed_batches: int
    streamed_warm_up: int = 3


QUICK = Size(100_000, 1_000, 4, 10, STREAMED_QUICKLY, 10)
FULL = Size(1_000_000, 1_000, 90, 50, tuple(STREAMED), 40)


@dataclass
class Figures:
    """The seconds of each batch that is not of the warm-up."""

    seconds: list[float] = field(default_factory=list)
    batches: int = 0

    def rounded(self, batch: int) -> dict[str, float]:
        """Events a second, and the median and the 99th percentile of milliseconds."""
        p99 = float(np.quantile(self.seconds, 0.99))
        return {
            "events_s": round(batch * len(self.seconds) / sum(self.seconds)),
            "median_ms": round(median(self.seconds) * 1000, 3),
            "p99_ms": round(p99 * 1000, 3),
            "batches": len(self.seconds),
        }


class Batches:
    """The stream in batches, made once for all queries."""

    def __init__(self, size: Size) -> None:
        self.events = Events()
        self.size = size.batch
        self.all = [self.events.between(at, at + size.batch) for at in range(0, size.events, size.batch)]

    def tables(self, batches: int) -> dict[str, pa.Table]:
        """The tables when so many batches have come."""
        so_far = self.all[:batches]
        streams = {name: pa.Table.from_batches([batch[name] for batch in so_far]) for name in STREAMS}
        return streams | {name: pa.table(rows) for name, rows in self.events.side_input().items()}


def ticked(query: str, batches: Batches, size: Size) -> tuple[Figures, pa.Table]:
    """The ticks of a query, and what its view holds in the end."""
    figures = Figures()
    with IncrementalFlow(query) as flow:
        for name, schema in SCHEMAS.items():
            flow.register_source(name, schema)
        flow.register_view("view", QUERIES[query])
        watch = flow.watch_output("view", snapshot=True)
        flow.tick(dict(batches.events.side_input()))
        until = time.perf_counter() + size.budget_s
        for batch in batches.all:
            started = time.perf_counter()
            flow.tick(dict(batch))
            while len(watch):
                next(watch)[1].to_arrow()
            ended = time.perf_counter()
            figures.batches += 1
            if figures.batches > size.warm_up:
                figures.seconds.append(ended - started)
            if ended > until and figures.seconds:
                break
        return figures, flow.snapshot("view")


def streamed(query: str, size: Size, session: Session, folder: Path) -> tuple[Figures, pa.Table]:
    """The batches of a streaming query, and what its sink has been given."""
    spark: Any = session.spark
    keys = STREAMED[query]
    for name in STREAMS:
        stream = spark.readStream.schema(spark.read.parquet(str(folder / name)).schema)
        stream.option("maxFilesPerTrigger", 1).parquet(str(folder / name)).createOrReplaceTempView(name)
    given: list[pa.Table] = []
    with TemporaryDirectory() as checkpoint:
        writer = (
            spark.sql(QUERIES[query])
            .writeStream.outputMode("update" if keys else "append")
            .option("checkpointLocation", checkpoint)
        )
        writer = writer.foreachBatch(lambda frame, _: given.append(frame.toArrow())).trigger(availableNow=True)
        running = writer.start()
        running.awaitTermination()
        progress = [one["durationMs"]["triggerExecution"] / 1000 for one in running.recentProgress]
        running.stop()
    figures = Figures(progress[size.streamed_warm_up : size.streamed_batches], size.streamed_batches)
    return figures, latest(given, keys) if keys else pa.concat_tables(given)


def latest(updates: Sequence[pa.Table], keys: Sequence[str]) -> pa.Table:
    """The rows that updates leave: those with equal keys replace each other."""
    rows = {tuple(row[key] for key in keys): row for table in updates for row in table.to_pylist()}
    return pa.Table.from_pylist(list(rows.values()), updates[0].schema)


def write(batches: Batches, count: int, folder: Path) -> None:
    """A Parquet file for each of the first batches of each table, read by Spark in the order of their times."""
    for name in STREAMS:
        (folder / name).mkdir()
        for number, batch in enumerate(batches.all[:count]):
            pq.write_table(pa.table(batch[name]), folder / name / f"{number:06d}.parquet")


def check(what: str, actual: pa.Table, expected: pa.Table) -> None:
    """Ends the program when the rows are not the same."""
    if sorted_rows(actual) != sorted_rows(expected.cast(actual.schema)):
        raise SystemExit(f"{what} is wrong: {actual.num_rows} rows, {expected.num_rows} expected")


def sorted_rows(table: pa.Table) -> pa.Table:
    """The rows in the order of all their columns."""
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


def measure(queries: Sequence[str], size: Size, session: Session) -> dict[str, dict[str, Any]]:
    """The figures of each query, printed as they come."""
    results: dict[str, dict[str, Any]] = {}
    batches = Batches(size)
    with TemporaryDirectory(prefix="weirflow-nexmark-") as name:
        folder = Path(name)
        write(batches, size.streamed_batches, folder)
        for query in queries:
            figures, view = ticked(query, batches, size)
            check(query, view, recomputed(query, batches.tables(figures.batches), session))
            results[query] = {"ours": figures.rounded(size.batch), "rows": view.num_rows}
            if query in size.streamed:
                figures, rows = streamed(query, size, session, folder)
                check(f"Spark's {query}", rows, recomputed(query, batches.tables(figures.batches), session))
                results[query]["spark"] = figures.rounded(size.batch)
            print(line(query, results[query]), flush=True)
    return results


def recomputed(query: str, tables: Mapping[str, pa.Table], session: Session) -> pa.Table:
    """What Spark answers over these tables."""
    for name, table in tables.items():
        session.register(name, table)
    return session.sql(QUERIES[query]).to_arrow()


def line(query: str, result: Mapping[str, Any]) -> str:
    """A row of the table."""
    ours, spark = result["ours"], result.get("spark")
    cells = f"{query:<6}{ours['events_s']:>12,}{ours['median_ms']:>10.2f}{ours['p99_ms']:>10.2f}{result['rows']:>10,}"
    if spark is None:
        return cells
    ratio = spark["median_ms"] / ours["median_ms"]
    return f"{cells}{spark['events_s']:>12,}{spark['median_ms']:>10.1f}{spark['p99_ms']:>10.1f}{ratio:>9.1f}x"


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--quick", action="store_true", help=f"{QUICK.events:,} events; less than three minutes")
    chosen.add_argument("--full", action="store_true", help=f"{FULL.events:,} events; more queries beside Spark")
    parser.add_argument("--queries", nargs="+", choices=list(QUERIES), default=list(QUERIES), metavar="NAME")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    compiled.load()
    started = time.perf_counter()
    print(f"batches of {size.batch:,} events; latencies in ms")
    heads = ("events/s", "median", "p99", "rows", "Spark's/s", "median", "p99", "times ours")
    print(f"{'query':<6}" + "".join(f"{head:>{12 if at in {0, 4, 7} else 10}}" for at, head in enumerate(heads)))
    with Session.embedded(cores=2, driver_memory="4g", progress="off") as session:
        spark: Any = session.spark
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        results = measure(options.queries, size, session)
    print(f"{time.perf_counter() - started:.0f} s in all", file=sys.stderr)
    report = {"events": size.events, "batch": size.batch, "queries": results}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
