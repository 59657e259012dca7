"""What our streaming queries cost beside plain PySpark: a windowed aggregation, same Spark, same run.

    python benchmarks/streaming.py [--rounds N] [--rows N]

Throughput is a backlog of files read to its end; latency is from a file's arrival until its batch has been taken. The
sides take turns, which one begins changes from round to round, and each figure is a median. Results are checked before
they are timed. Writes benchmarks/results/streaming.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow import OutputMode, Session, StreamingQueryListener, Trigger
from weirflow.testing.sequence import SequenceSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RESULTS = Path(__file__).parent / "results" / "streaming.json"
SCHEMA = pa.schema({"at": pa.timestamp("us", "UTC"), "key": pa.int64(), "value": pa.int64()})
START = datetime(2024, 1, 1, tzinfo=UTC)
FILES = 8
ARRIVALS = 16
QUIET_SECONDS = 0.4
LIMITS = {"throughput": 1.05, "latency": 1.05, "latency with a blocked listener": 1.05}


def rows(number: int, count: int) -> pa.Table:
    """A file's rows: ten minutes of event time, a thousand keys."""
    begin = START + timedelta(minutes=10 * number)
    at = [begin + timedelta(milliseconds=600_000 * i // count) for i in range(count)]
    return pa.table({"at": at, "key": [i % 1000 for i in range(count)], "value": list(range(count))}, schema=SCHEMA)


class Ours:
    """The query as a user of ours writes it."""

    def __init__(
        self, session: Session, source: SequenceSource, sink: Callable[[Any, int], None], *, ends: bool
    ) -> None:
        stream = source.stream(session).with_event_time("at", "1 minute").key_by("key").tumbling_window(60_000)
        writer = stream.agg(["count(*) AS n", "sum(value) AS total"]).write_stream().output_mode(OutputMode.UPDATE)
        writer = writer.trigger(Trigger.available_now()) if ends else writer
        self.query = writer.foreach_batch(sink).start()

    def wait(self) -> None:
        """Until the backlog is read."""
        self.query.await_termination()

    def stop(self) -> None:
        """End it."""
        self.query.stop()


class Plain:
    """The same query in plain PySpark."""

    def __init__(
        self, session: Session, source: SequenceSource, sink: Callable[[Any, int], None], *, ends: bool
    ) -> None:
        from pyspark.sql import functions as sf  # noqa: PLC0415 - once Spark is there

        frame = source.stream(session).spark.withWatermark("at", "1 minute")
        grouped = frame.groupBy(sf.window("at", "60000 milliseconds"), "key")
        counted = grouped.agg(sf.expr("count(*) AS n"), sf.expr("sum(value) AS total"))
        self._folder = tempfile.TemporaryDirectory()
        writer = counted.writeStream.outputMode("update").option("checkpointLocation", self._folder.name)
        self.query = (writer.trigger(availableNow=True) if ends else writer).foreachBatch(sink).start()

    def wait(self) -> None:
        """Until the backlog is read."""
        self.query.awaitTermination()

    def stop(self) -> None:
        """End it."""
        self.query.stop()
        with contextlib.suppress(OSError):
            self._folder.cleanup()


class Total:
    """A sink that computes a batch and adds up what it holds; tells when a batch is done."""

    def __init__(self) -> None:
        self.seen: dict[int, tuple[int, int]] = {}
        self.done = threading.Condition()

    def __call__(self, frame: Any, number: int) -> None:
        """Take a batch."""
        table = frame.toArrow()
        with self.done:
            self.seen[number] = (table.num_rows, sum(table["n"].to_pylist()))
            self.done.notify_all()

    def await_batches(self, count: int) -> None:
        """Wait until so many batches are done."""
        with self.done:
            if not self.done.wait_for(lambda: len(self.seen) >= count, 120):
                raise SystemExit(f"only {len(self.seen)} of {count} batches came")

    def settle(self) -> None:
        """Wait until no batch has come for a while: Spark runs one without rows to move the watermark."""
        with self.done:
            known = -1
            while known != len(self.seen):
                known = len(self.seen)
                self.done.wait_for(lambda: len(self.seen) != known, QUIET_SECONDS)  # noqa: B023 - called at once


class Blocked(StreamingQueryListener):
    """A listener that never comes back from its first progress."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def on_progress(self, event: object) -> None:  # noqa: ARG002 - it is not looked at
        """Block."""
        self.released.wait()


def throughput(session: Session, side: type[Ours | Plain], source: SequenceSource) -> tuple[float, dict[int, Any]]:
    """Seconds for the backlog, and what came out."""
    total = Total()
    began = time.perf_counter()
    query = side(session, source, total, ends=True)
    query.wait()
    took = time.perf_counter() - began
    query.stop()
    return took, total.seen


def latency(session: Session, side: type[Ours | Plain], count: int) -> float:
    """The median of milliseconds from a file's arrival to the end of its batch."""
    total = Total()
    times = []
    with SequenceSource(SCHEMA) as source:
        query = side(session, source, total, ends=False)
        for number in range(ARRIVALS):
            batches = len(total.seen)
            source.add(rows(number, count))
            began = time.perf_counter()
            total.await_batches(batches + 1)
            times.append((time.perf_counter() - began) * 1000)
            total.settle()
        query.stop()
    return statistics.median(times[2:])


def turns(rounds: int) -> Iterator[tuple[type[Ours | Plain], type[Ours | Plain]]]:
    """Who goes first, round by round."""
    for number in range(rounds):
        yield (Ours, Plain) if number % 2 else (Plain, Ours)


@contextlib.contextmanager
def blocked(session: Session) -> Iterator[None]:
    """With a listener that blocks."""
    listener = Blocked()
    session.streams.add_listener(listener)
    try:
        yield
    finally:
        listener.released.set()
        session.streams.remove_listener(listener)


def measure(session: Session, rounds: int, count: int) -> dict[str, dict[str, float]]:
    """Both sides' medians."""
    times: dict[str, dict[str, list[float]]] = {name: {"ours": [], "plain": []} for name in LIMITS}
    with SequenceSource(SCHEMA) as source:
        for number in range(FILES):
            source.add(rows(number, count))
        # The batches must agree before their times mean anything; this also warms up.
        if throughput(session, Ours, source)[1] != throughput(session, Plain, source)[1]:
            raise SystemExit("the two queries return different rows")
        for order in turns(rounds):
            for side in order:
                times["throughput"][_name(side)].append(throughput(session, side, source)[0])
    for order in turns(rounds):
        for side in order:
            times["latency"][_name(side)].append(latency(session, side, count // 100))
        times["latency with a blocked listener"]["plain"].append(times["latency"]["ours"][-1])
        with blocked(session):
            times["latency with a blocked listener"]["ours"].append(latency(session, Ours, count // 100))
    return {
        name: {
            "ours": statistics.median(sides["ours"]),
            "plain": statistics.median(sides["plain"]),
            "ratio": statistics.median(a / b for a, b in zip(sides["ours"], sides["plain"], strict=True)),
        }
        for name, sides in times.items()
    }


def _name(side: type[Ours | Plain]) -> str:
    return "ours" if side is Ours else "plain"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=200_000, help="rows of a file")
    options = parser.parse_args()
    with Session.embedded(cores=2, progress="off") as session:
        results = measure(session, options.rounds, options.rows)
    print(f"{'':34}{'ours':>10}{'plain':>10}{'ratio':>8}{'limit':>8}")
    for name, sides in results.items():
        unit = "s" if name == "throughput" else "ms"
        print(
            f"{name:34}{sides['ours']:>8.2f}{unit:>2}{sides['plain']:>8.2f}{unit:>2}"
            f"{sides['ratio']:>8.3f}{LIMITS[name]:>8.2f}"
        )
    print("The plain side of a blocked listener is our query without one.")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"rounds": options.rounds, "limits": LIMITS, "figures": results}, indent=2) + "\n")
    if any(results[name]["ratio"] > limit for name, limit in LIMITS.items()):
        raise SystemExit("a limit is not met")


if __name__ == "__main__":
    main()
