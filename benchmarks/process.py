"""Rows a second of a process function on Spark, beside the same logic written in plain transformWithState.

    python benchmarks/process.py [--rows N] [--rounds R]

Each round runs both, over the same files and with the same settings: with few keys (many rows for each) and with many
(a row for each). The first batch of a query, in which workers start, does not count. What both put out is compared
before a figure counts, and a figure is the best of the rounds. Writes benchmarks/results/process.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from weirflow import Session, StreamingDataFrame, Trigger
from weirflow.process import ElementContext, OpenContext, ProcessFunction
from weirflow.process import Row as InputRow
from weirflow.state import StateDescriptor
from weirflow.testing.sequence import SequenceSource

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS = Path(__file__).parent / "results" / "process.json"
SCHEMA = pa.schema({"account": pa.int64(), "amount": pa.int64()})
BATCHES = 4
OUTPUT = "account BIGINT, total BIGINT"
TARGET = 0.9


class RunningTotal(ProcessFunction):
    """The total of each account after each payment."""

    output = OUTPUT

    def open(self, ctx: OpenContext) -> None:
        """One value for each account."""
        self.total = ctx.value(StateDescriptor("total", key=int, value=int))

    def on_element(self, ctx: ElementContext, key: int, row: InputRow) -> None:
        """Add up."""
        total = self.total.get(0) + row["amount"]
        self.total.set(total)
        ctx.emit({"account": key, "total": total})


class PlainTotal(StatefulProcessor):
    """The same for Spark, state read and written once for each key and batch."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """One value for each account."""
        self.total = handle.getValueState("total", "total BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803 - Spark's
        """Add up."""
        found = self.total.get()
        total = found[0] if found else 0
        for row in rows:
            total += row.amount
            yield Row(account=key[0], total=total)
        self.total.update((total,))

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Run:
    """What a query did."""

    rows_per_second: float
    total: int


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=60_000, help="rows of a batch with few keys")
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    found = []
    with Session.embedded(cores=2, progress="off") as session:
        for keys, rows in ((20, given.rows), (given.rows // 6, given.rows // 6)):
            found.append(measure(session, keys, rows, given.rounds))
            print(
                f"{found[-1]['keys']:>8,} keys: {found[-1]['weirflow']:>9,.0f} rows/s, plain "
                f"{found[-1]['plain']:>9,.0f} rows/s, ratio {found[-1]['ratio']:.2f} (target {TARGET})"
            )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"batches": BATCHES, "target": TARGET, "measured": found}, indent=2) + "\n")


def measure(session: Session, keys: int, rows: int, rounds: int) -> dict[str, Any]:
    """The best of some rounds, both ways in turn."""
    best = {"weirflow": 0.0, "plain": 0.0}
    with SequenceSource(SCHEMA) as source:
        for batch in range(BATCHES):
            accounts = [(at * 7919 + batch) % keys for at in range(rows)]
            source.add(pa.table({"account": accounts, "amount": [at % 100 for at in range(rows)]}))
        for _ in range(rounds):
            runs = {way: run(session, source, way) for way in best}
            assert runs["weirflow"].total == runs["plain"].total, "both put out the same"
            best = {way: max(best[way], one.rows_per_second) for way, one in runs.items()}
    return {"keys": keys, "rows": rows, **best, "ratio": best["weirflow"] / best["plain"]}


def run(session: Session, source: SequenceSource, way: str) -> Run:
    """Run a query over all batches."""
    stream = source.stream(session)
    totals: list[int] = []

    def take(batch: Any, _: int) -> None:
        totals.append(batch.agg({"total": "sum"}).collect()[0][0] or 0)

    made: StreamingDataFrame
    if way == "weirflow":
        made = stream.key_by("account").process(RunningTotal())
    else:
        native = stream.spark.groupBy("account").transformWithState(
            statefulProcessor=PlainTotal(), outputStructType=OUTPUT, outputMode="append", timeMode="None"
        )
        made = session.streams.frame(native)
    with tempfile.TemporaryDirectory() as folder:
        writer = made.write_stream().foreach_batch(take).option("checkpointLocation", folder)
        with writer.trigger(Trigger.available_now()).start() as query:
            query.await_termination(600)
            counted = [one for one in query.recent_progress if one.input_rows][1:]
    seconds = sum(one.duration_ms for one in counted) / 1000
    return Run(sum(one.input_rows for one in counted) / seconds, sum(totals))


if __name__ == "__main__":
    main()
