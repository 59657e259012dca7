"""What a tick costs, side by side with other systems in one run.

    python benchmarks/ticks.py --quick | --full [--systems NAME ...] [--views NAME ...]

Five views over a table of facts and a dimension, ticked with deltas of 70% new and 30% retracted rows. Weirflow,
differential dataflow, Pathway and Krishiv maintain the views; DuckDB, DataFusion and Spark recompute them over the
base, and applying the delta is not charged to them. Each system is a child process that reads the same Arrow files;
they take turns within each scenario, and no time counts unless the system's final view equals a recompute in NumPy, bit
by bit.

Weirflow's compiled kernels are loaded before the base; ``WEIRFLOW_COMPILED=off`` measures it on NumPy alone.

``python benchmarks/peers.py`` installs or builds the peers; those that are missing are left out. Prints medians in
milliseconds, then the limits, and writes benchmarks/results/ticks.json. The exit code is 1 when a limit is not met.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import peers
from ticking.data import FAN_OUT
from ticking.limits import BATCH_DELTA, BATCH_VIEWS, PEER_BASE, PROGRAMS, Limit, limits
from ticking.race import INCREMENTAL, OURS, RECOMPUTE, Outcome, Plan, race
from ticking.side import Side, Skipped
from ticking.views import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

RESULTS = Path(__file__).parent / "results" / "ticks.json"
SYSTEMS = (*INCREMENTAL, *RECOMPUTE)
BASES = (100_000, 1_000_000, 10_000_000)
SMALL_DELTA = 100
DELTAS = (1, SMALL_DELTA, BATCH_DELTA, 1_000_000)
SUSTAINED = Plan("join", PEER_BASE, BATCH_DELTA, ticks=220, warm_up=20, turns=1, budget_s=300, only=(OURS,))
DEADLINE = 900
ENOUGH = 15


class Pool:
    """Running sides: a new one of an incremental system whenever it is asked for, one for all of the others."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.shared: dict[str, Side] = {}
        self.versions: dict[str, str] = {}

    def enter(self, name: str) -> Side:
        """A side that is ready for a scenario. Raises ``Skipped`` when the system is not installed."""
        if name in self.shared:
            return self.shared[name]
        python = peers.python_of(name) if name in peers.PEERS else Path(sys.executable)
        if python is None or (name in peers.PROGRAMS and peers.program_of(name) is None):
            raise Skipped("not installed, see benchmarks/peers.py")
        side = Side(name, python, self.folder / f"{name}.log", DEADLINE)
        self.versions[name] = side.version
        if name in RECOMPUTE:
            self.shared[name] = self.stack.enter_context(side)
        return side


def quick(views: Sequence[str]) -> Iterator[Plan]:
    """All that has a limit: one base and delta for all systems; other deltas, other bases and a longer run for some."""
    yield from (Plan(view, PEER_BASE, SMALL_DELTA) for view in views)
    yield from (Plan(view, PEER_BASE, BATCH_DELTA, only=(OURS, *PROGRAMS)) for view in views if view in BATCH_VIEWS)
    yield from (Plan(view, rows, SMALL_DELTA, only=(OURS,)) for view in views for rows in (BASES[0], BASES[-1]))
    yield SUSTAINED


def full(views: Sequence[str]) -> Iterator[Plan]:
    """Every base with every delta that is not larger than the table it changes."""
    for rows in BASES:
        for view in views:
            changing = rows if VIEWS[view].changes == "facts" else rows // FAN_OUT
            yield from (Plan(view, rows, delta, budget_s=90) for delta in DELTAS if delta <= changing)
    yield SUSTAINED


def taking_part(plan: Plan, systems: Sequence[str]) -> list[str]:
    """The systems that run a plan: the size of a delta makes no difference to those that recompute."""
    if plan.only:
        return [name for name in systems if name in plan.only]
    return [name for name in systems if name in INCREMENTAL or plan.delta == SMALL_DELTA]


def line(plan: Plan, outcomes: Mapping[str, Outcome]) -> str:
    """A row of the table: medians, and how many times ours each is."""
    ours = outcomes[OURS].median_ms if OURS in outcomes else None
    cells = []
    for name in SYSTEMS:
        figure = outcomes[name].median_ms if name in outcomes else None
        if figure is None:
            cells.append(f"{'-':>16}")
        else:
            ratio = f"{figure / ours:>6.{'2' if figure < 10 * ours else '0'}f}x" if ours and name != OURS else " " * 7
            few = "*" if len(outcomes[name].seconds) < ENOUGH else " "
            cells.append(f"{figure:>8.2f}{few}{ratio}")
    return f"{plan.title:<34}" + "".join(cells)


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument(
        "--quick",
        action="store_true",
        help="what has a limit: base of 1M and deltas of 100; other bases of Weirflow alone",
    )
    size.add_argument("--full", action="store_true", help="all bases and deltas; takes hours")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--views", nargs="+", choices=VIEWS, default=list(VIEWS))
    options = parser.parse_args()
    results: dict[Plan, dict[str, Outcome]] = {}
    print(f"{'median ms, and times ours':<34}" + "".join(f"{name:>12}{'':4}" for name in SYSTEMS))
    with TemporaryDirectory(prefix="weirflow-ticks-") as folder, ExitStack() as stack:
        pool = Pool(Path(folder), stack)
        for plan in (quick if options.quick else full)(options.views):
            systems = taking_part(plan, options.systems)
            if not systems:
                continue
            results[plan] = race(plan, Path(folder), pool.enter, systems)
            print(line(plan, results[plan]), flush=True)
            for name, outcome in results[plan].items():
                if outcome.skipped:
                    print(f"  {name}: {outcome.skipped}", flush=True)
    print(f"* fewer than {ENOUGH} ticks: slow systems do fewer\n")
    print("versions: " + ", ".join(f"{name} {version}" for name, version in pool.versions.items()))
    for note in notes(results):
        print(note)
    verdicts = list(limits(results))
    for limit in verdicts:
        print(limit)
    save(results, pool.versions, verdicts)
    failed = any(outcomes[OURS].skipped for outcomes in results.values() if OURS in outcomes)
    if failed or any(limit.verdict == "not met" for limit in verdicts):
        raise SystemExit("a limit is not met")


def notes(results: Mapping[Plan, Mapping[str, Outcome]]) -> Iterator[str]:
    """Our own figures that have no limit: memory over the largest base, and the spread of many ticks."""
    largest = max(plan.rows for plan in results)
    for plan, outcomes in results.items():
        ours = outcomes.get(OURS)
        if ours is None or ours.skipped:
            continue
        if plan == SUSTAINED:
            p50, p99 = np.quantile(ours.seconds, (0.5, 0.99)) * 1000
            spread = f"p50 {p50:.2f}, p99 {p99:.2f}, max {max(ours.seconds) * 1000:.2f} ms"
            yield f"sustained, {len(ours.seconds)} ticks of {plan.delta:,} rows: {spread}"
        elif plan.rows == largest and plan.delta == SMALL_DELTA:
            figures = f"{plan.rows / ours.load_s / 1e6:.2f} M rows/s, {ours.bytes / plan.rows:.0f} MB a million rows"
            yield f"{plan.view}: bulk load of {plan.rows:,} rows at {figures}"


def save(results: Mapping[Plan, Mapping[str, Outcome]], versions: Mapping[str, str], verdicts: Sequence[Limit]) -> None:
    """Write everything that was printed, and the spread of the times."""
    scenarios = [
        {
            "view": plan.view,
            "base": plan.rows,
            "delta": plan.delta,
            "systems": {name: figures(outcome) for name, outcome in outcomes.items()},
        }
        for plan, outcomes in results.items()
    ]
    report = {
        "versions": dict(versions),
        "scenarios": scenarios,
        "limits": [
            {"name": one.name, "figure": one.figure, "bound": one.bound, "verdict": one.verdict} for one in verdicts
        ],
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")


def figures(outcome: Outcome) -> dict[str, object]:
    """One system's part of the report."""
    if outcome.skipped:
        return {"skipped": outcome.skipped}
    times = np.array(outcome.seconds) * 1000
    spread = {"median_ms": np.median(times), "p99_ms": np.quantile(times, 0.99), "max_ms": times.max()}
    rounded: dict[str, object] = {name: round(float(figure), 4) for name, figure in spread.items()}
    rounded["sending_ms"] = round(float(np.median(outcome.sending)) * 1000, 4)
    return rounded | {"ticks": len(times), "load_s": round(outcome.load_s, 3), "load_bytes": outcome.bytes}


if __name__ == "__main__":
    main()
