"""What ticks of views over an order cost, side by side with DuckDB and Spark that compute them anew.

    python benchmarks/orders.py [--full] [--rows N] [--views NAME ...]

Ranks, the first rows of groups, percentiles, lag, running sums, and a self join with 1% of the rows on one key, over a
million rows and deltas of 100 (70% new, 30% retracted). Weirflow ticks as its users call it: from an Arrow delta in to
the view's Arrow delta out of a watch. DuckDB and Spark run the query over tables of their own on two cores; loading and
applying deltas is not charged to them. They take turns. No time counts unless Weirflow's view equals DuckDB's rows over
the table after the last delta, and Spark's equal DuckDB's over the base.

``--full`` ticks tables of 100,000 and 10 million rows, too, with groups of the same sizes: what grows then is the table
alone. Prints medians in milliseconds and the limits, and writes benchmarks/results/orders.json. The exit code is 1 when
a limit is not met.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from ordered_views import SCHEMA, VIEWS, OrderedView, changes
from ticking.limits import Limit
from ticking.views import difference

from weirflow import DeltaBatch, IncrementalFlow, Session
from weirflow.ivm import compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

duckdb: Any = import_module("duckdb")

RESULTS = Path(__file__).parent / "results" / "orders.json"
DELTA = 100
TURNS, TICKS_OF_A_TURN = 3, 10
WARM_UP = 3
BUDGET_S = 30.0  # of the ticks of a view: slow ones do fewer
SMALL_BASE, LARGE_BASE = 100_000, 10_000_000


@dataclass
class Figures:
    """The seconds of ticks and recomputes, and the rows that came out of a tick."""

    ticks: list[float] = field(default_factory=list)
    emitted: list[int] = field(default_factory=list)
    duckdb: list[float] = field(default_factory=list)
    spark: list[float] = field(default_factory=list)
    load_s: float = 0.0


class Ours:
    """A flow with one view, loaded with the base."""

    def __init__(self, view: OrderedView, base: pa.RecordBatch) -> None:
        self.flow = IncrementalFlow()
        self.flow.register_source("facts", SCHEMA)
        self.flow.register_view("view", view.sql)
        self.watch = self.flow.watch_output("view", snapshot=True)
        size = view.slice or len(base)
        started = time.perf_counter()
        for start in range(0, len(base), size):
            self.flow.tick({"facts": base.slice(start, size)})
            self._received()
        self.load_s = time.perf_counter() - started

    def tick(self, delta: pa.RecordBatch) -> tuple[float, int]:
        """The seconds of a tick, and the rows of the view's delta."""
        started = time.perf_counter()
        self.flow.tick("facts", DeltaBatch.from_weighted(delta))
        rows = self._received()
        return time.perf_counter() - started, rows

    def rows(self) -> pa.Table:
        """What the view holds."""
        return self.flow.snapshot("view")

    def _received(self) -> int:
        rows = 0
        while len(self.watch):
            _, delta = next(self.watch)
            rows += delta.to_arrow().num_rows
        return rows


class Recomputes:
    """DuckDB and Spark with the base in tables of their own."""

    def __init__(self, base: pa.RecordBatch, session: Session) -> None:
        self.database = duckdb.connect(config={"threads": 2})
        self.session = session
        self.load(base)
        session.register("facts", session.from_arrow(pa.table(base)).repartition(2).cache())
        session.sql("SELECT count(*) FROM facts").to_arrow()

    def load(self, rows: pa.RecordBatch) -> None:
        """Make it DuckDB's table."""
        self.database.register("arrow", pa.table(rows))
        self.database.execute("CREATE OR REPLACE TABLE facts AS SELECT * FROM arrow")
        self.database.unregister("arrow")

    def duckdb(self, view: OrderedView) -> pa.Table:
        """DuckDB's rows."""
        return self.database.sql(view.duckdb or view.sql).to_arrow_table()

    def spark(self, view: OrderedView) -> pa.Table:
        """Spark's rows."""
        return self.session.sql(view.sql).to_arrow()


def beside(view: OrderedView, rows: int, others: Recomputes) -> Figures:
    """Ticks and recomputes in turns. Ends the program when a result is wrong."""
    world = changes(rows, DELTA, same_hot_key=False)
    base = world.table()
    ours, figures = Ours(view, base), Figures()
    figures.load_s = ours.load_s
    expected = others.duckdb(view)
    _check(f"Spark's {view.name}", others.spark(view), expected)
    done = 0
    for turn in range(TURNS + 1):
        until = time.perf_counter() + BUDGET_S / (TURNS + 1)
        for _ in range(TICKS_OF_A_TURN if turn else WARM_UP):
            seconds, emitted = ours.tick(world.tick())
            done += 1
            if turn:
                figures.ticks.append(seconds)
                figures.emitted.append(emitted)
            if time.perf_counter() > until:
                break
        if turn:
            figures.duckdb.append(_seconds(lambda: others.duckdb(view)))
            figures.spark.append(_seconds(lambda: others.spark(view)))
    others.load(world.table())
    _check(view.name, ours.rows(), others.duckdb(view))
    others.load(base)
    return figures


def alone(view: OrderedView, rows: int) -> Figures:
    """Ticks over a table of another size."""
    world = changes(rows, DELTA, same_hot_key=True)
    ours, figures = Ours(view, world.table()), Figures()
    figures.load_s = ours.load_s
    until = time.perf_counter() + BUDGET_S
    for number in range(WARM_UP + TURNS * TICKS_OF_A_TURN):
        seconds, emitted = ours.tick(world.tick())
        if number >= WARM_UP:
            figures.ticks.append(seconds)
            figures.emitted.append(emitted)
        if time.perf_counter() > until and figures.ticks:
            break
    return figures


def _check(what: str, actual: pa.Table, expected: pa.Table) -> None:
    found = difference(actual, expected.sort_by(expected.column_names[0]))
    if found:
        raise SystemExit(f"{what} is wrong: {found}")


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def limits(
    measured: Mapping[str, Figures], small: Mapping[str, Figures], large: Mapping[str, Figures]
) -> Iterator[Limit]:
    """Every limit, over what was measured."""
    for name, figures in measured.items():
        tick = median(figures.ticks)
        yield Limit(f"{name}: Spark / ours", median(figures.spark) / tick, 20, at_most=False)
        yield Limit(f"{name}: DuckDB / ours", median(figures.duckdb) / tick, 1, at_most=False)
        growth = median(large[name].ticks) / median(small[name].ticks) if name in large else None
        yield Limit(f"{name}: table of 10M / of 100k", growth, 2, at_most=True)


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="tables of 100,000 and 10 million rows, too")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table")
    parser.add_argument("--views", nargs="+", choices=VIEWS, default=list(VIEWS), metavar="NAME")
    options = parser.parse_args()
    views: Sequence[OrderedView] = [VIEWS[name] for name in options.views]
    compiled.load()
    measured: dict[str, Figures] = {}
    print(f"{'median ms':<28}{'tick':>10}{'rows out':>12}{'DuckDB':>10}{'':8}{'Spark':>10}")
    with Session.embedded(cores=2, driver_memory="4g", progress="off") as session:
        others = Recomputes(changes(options.rows, DELTA, same_hot_key=False).table(), session)
        for view in views:
            measured[view.name] = beside(view, options.rows, others)
            print(_line(view.name, measured[view.name]), flush=True)
    small: dict[str, Figures] = {}
    large: dict[str, Figures] = {}
    for view in views if options.full else ():
        for rows, found in ((SMALL_BASE, small), (LARGE_BASE, large)):
            print(f"{view.name}: {rows:,} rows", file=sys.stderr)
            found[view.name] = alone(view, rows)
    print()
    verdicts = list(limits(measured, small, large))
    for limit in verdicts:
        print(limit)
    bases = {f"{options.rows}": measured, f"{SMALL_BASE} alone": small, f"{LARGE_BASE} alone": large}
    save({base: found for base, found in bases.items() if found}, verdicts)
    if any(limit.verdict == "not met" for limit in verdicts):
        raise SystemExit("a limit is not met")


def _line(name: str, figures: Figures) -> str:
    tick, database, spark = (median(times) * 1000 for times in (figures.ticks, figures.duckdb, figures.spark))
    recomputes = "".join(f"{other:>10.1f}{other / tick:>7.1f}x" for other in (database, spark))
    return f"{name:<28}{tick:>10.2f}{mean(figures.emitted):>12,.1f}{recomputes}"


def save(bases: Mapping[str, Mapping[str, Figures]], verdicts: Sequence[Limit]) -> None:
    """Write everything that was printed, and the spread of the times."""
    report = {
        "delta": DELTA,
        "bases": {base: {name: _figures(one) for name, one in found.items()} for base, found in bases.items()},
        "limits": [
            {"name": one.name, "figure": one.figure, "bound": one.bound, "verdict": one.verdict} for one in verdicts
        ],
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")


def _figures(figures: Figures) -> dict[str, object]:
    names = {"tick_ms": figures.ticks, "duckdb_ms": figures.duckdb, "spark_ms": figures.spark}
    medians: dict[str, object] = {name: round(median(times) * 1000, 3) for name, times in names.items() if times}
    return {
        **medians,
        "slowest_tick_ms": round(max(figures.ticks) * 1000, 3),
        "ticks": len(figures.ticks),
        "rows_out": round(mean(figures.emitted), 2),
        "load_s": round(figures.load_s, 2),
    }


if __name__ == "__main__":
    main()
