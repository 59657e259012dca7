"""What a Session costs and saves, side by side with plain PySpark in one run.

    python benchmarks/session.py [--rounds N]

Every figure is a median over rounds in which both sides take turns, each in a process of its own; results are
checked before they are timed. Writes benchmarks/results/session.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RESULTS = Path(__file__).parent / "results" / "session.json"
QUERY = "SELECT id % 100 AS k, COUNT(*) AS n, SUM(id) AS total FROM range(0, 1000000, 1, 2) GROUP BY 1"
REPEATS = 15
WARM_UP = 20
# What each ratio has to stay under.
LIMITS = {
    "to_arrow vs toArrow, same session": 1.05,
    "small mapInArrow job": 0.5,
    "job with two exchanges": 0.5,
    "start to first result": 0.6,
}


def same(batches: Iterator[Any]) -> Iterator[Any]:
    """The cheapest Python stage there is."""
    yield from batches


def map_job(spark: Any) -> list[int]:
    """A Python stage over two partitions."""
    return sorted(spark.range(0, 100, 1, 2).mapInArrow(same, "id long").toArrow()["id"].to_pylist())


def exchange_job(spark: Any) -> list[int]:
    """Two Python stages, each behind an exchange."""
    first = spark.range(0, 100, 1, 2).repartition(2, "id").mapInArrow(same, "id long")
    return sorted(first.repartition(2).mapInArrow(same, "id long").toArrow()["id"].to_pylist())


def median_ms(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """The median duration of a call, after two to warm up."""
    call()
    call()
    return statistics.median(_timed(call) for _ in range(repeats))


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def check(spark: Any) -> None:
    """Results first, then times."""
    if map_job(spark) != list(range(100)) or exchange_job(spark) != list(range(100)):
        raise SystemExit("the jobs return wrong rows")


def run_plain() -> dict[str, float]:
    """One process of plain PySpark, with the partition count and memory that a Session gets."""
    started = time.perf_counter()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - importing it is a part of the start

    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "2g").getOrCreate()
    spark.sql("SELECT 1").toArrow()
    start = (time.perf_counter() - started) * 1000
    spark.sparkContext.setLogLevel("OFF")
    check(spark)
    figures = {
        "start to first result": start,
        "small mapInArrow job": median_ms(lambda: map_job(spark)),
        "job with two exchanges": median_ms(lambda: exchange_job(spark)),
    }
    spark.stop()
    return figures


def run_weirflow() -> dict[str, float]:
    """One process of Weirflow; its two ways to Arrow take turns in the same session."""
    started = time.perf_counter()
    from weirflow import Session  # noqa: PLC0415 - importing it is a part of the start

    with Session.embedded(cores=2, progress="off") as session:
        session.sql("SELECT 1").to_arrow()
        start = (time.perf_counter() - started) * 1000
        spark = session.spark
        check(spark)
        if session.sql(QUERY).to_arrow().sort_by("k") != spark.sql(QUERY).toArrow().sort_by("k"):
            raise SystemExit("to_arrow and toArrow differ")
        ours: list[float] = []
        theirs: list[float] = []
        sides = [
            (ours, lambda: session.sql(QUERY).to_arrow()),
            (theirs, lambda: spark.sql(QUERY).toArrow()),
        ]
        for _ in range(WARM_UP + 4 * REPEATS):
            for times, call in sides:
                times.append(_timed(call))
            sides.reverse()  # the JVM still gets faster: neither side is always the earlier one
        return {
            "start to first result": start,
            "small mapInArrow job": median_ms(lambda: map_job(spark)),
            "job with two exchanges": median_ms(lambda: exchange_job(spark)),
            "to_arrow": statistics.median(ours[WARM_UP:]),
            "toArrow": statistics.median(theirs[WARM_UP:]),
        }


def run_side(side: str) -> dict[str, float]:
    """Run one side in a child process and read its figures."""
    command = [sys.executable, __file__, "--side", side]
    # Plain PySpark would start the workers with whatever python3 is first on the PATH.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def compare(rounds: int) -> dict[str, dict[str, float]]:
    """Both sides in turns, medians over rounds, and their ratios."""
    run_side("weirflow")  # writes the class archive if this machine has none yet
    plain: list[dict[str, float]] = []
    ours: list[dict[str, float]] = []
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        plain.append(run_side("plain"))
        ours.append(run_side("weirflow"))

    def row(weirflow_ms: list[float], plain_ms: list[float]) -> dict[str, float]:
        mine, theirs = statistics.median(weirflow_ms), statistics.median(plain_ms)
        return {"weirflow_ms": round(mine, 1), "plain_ms": round(theirs, 1), "ratio": round(mine / theirs, 3)}

    figures = {
        name: row([one[name] for one in ours], [one[name] for one in plain]) for name in LIMITS if name in plain[0]
    }
    figures["to_arrow vs toArrow, same session"] = row(
        [one["to_arrow"] for one in ours], [one["toArrow"] for one in ours]
    )
    return figures


def main() -> None:
    """Print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", choices=["plain", "weirflow"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        print(json.dumps(run_plain() if arguments.side == "plain" else run_weirflow()))
        return
    figures = compare(arguments.rounds)
    print(f"{'':36}{'Weirflow':>12}{'PySpark':>12}{'ratio':>8}{'limit':>8}")
    for name, limit in LIMITS.items():
        figure = figures[name]
        times = f"{figure['weirflow_ms']:>9.1f} ms{figure['plain_ms']:>9.1f} ms"
        print(f"{name:36}{times}{figure['ratio']:>8.2f}{limit:>8.2f}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"rounds": arguments.rounds, "limits": LIMITS, "figures": figures}, indent=2) + "\n")
    if any(figures[name]["ratio"] > limit for name, limit in LIMITS.items()):
        raise SystemExit("a limit is not met")


if __name__ == "__main__":
    main()
