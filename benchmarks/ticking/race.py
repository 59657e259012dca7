"""One scenario: all systems loaded with the same base, then ticked in turns, then checked."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from statistics import median
from typing import TYPE_CHECKING

from ticking.data import DimensionChanges, FactChanges, read, write
from ticking.side import Side, Skipped
from ticking.views import VIEWS, difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

OURS = "weirflow"
INCREMENTAL = (OURS, "differential", "pathway", "krishiv")
RECOMPUTE = ("duckdb", "datafusion", "spark")


@dataclass(frozen=True)
class Plan:
    """A view, the rows of its base, the rows of a delta, and how many ticks are run, in how many turns.

    Plans that are for Weirflow alone ask how it scales.
    """

    view: str
    rows: int
    delta: int
    ticks: int = 66
    warm_up: int = 6
    turns: int = 3
    budget_s: float = 15  # of one system: a slow one does fewer ticks
    only: tuple[str, ...] = ()  # those that take part, if not all do

    @property
    def alone(self) -> bool:
        """Whether it is for Weirflow."""
        return self.only == (OURS,)

    @property
    def title(self) -> str:
        """The view, the rows of its base and those of a delta."""
        return f"{self.view} {self.rows:,} / {self.delta:,}"


@dataclass
class Outcome:
    """What one system did: the times of its measured ticks, and how many it did at all."""

    seconds: list[float] = field(default_factory=list)
    sending: list[float] = field(default_factory=list)
    done: int = 0
    load_s: float = 0.0
    bytes: int = 0
    skipped: str | None = None

    @property
    def median_ms(self) -> float | None:
        """The median tick, when the result was right."""
        return None if self.skipped else median(self.seconds) * 1000


def race(plan: Plan, folder: Path, enter: Callable[[str], Side], systems: Iterable[str]) -> dict[str, Outcome]:
    """Run the scenario. ``enter`` gives a running side: a new one of an incremental system, any of another."""
    files = _files(plan, folder)
    expected = cache(lambda ticks: VIEWS[plan.view].expected(*_after(plan, ticks).tables()))
    outcomes = {name: Outcome() for name in systems}
    sides: dict[str, Side] = {}
    try:
        for name, outcome in outcomes.items():
            with _skipping(outcome):
                sides[name] = enter(name)
                opened = sides[name].ask("open", view=plan.view, rows=plan.rows, **files)
                outcome.load_s, outcome.bytes = opened["load_s"], opened["bytes"]
        for turn in range(plan.turns + 1):  # one system, then the next: a busy moment of the machine hits them all
            for name, outcome in _remaining(outcomes):
                with _skipping(outcome):
                    _turn(plan, turn, sides[name], outcome)
                    if turn in {0, plan.turns}:
                        _check(sides[name], folder / "view", expected(outcome.done if name in INCREMENTAL else 0))
    finally:
        for name, side in sides.items():
            if name in INCREMENTAL:
                side.close()
    return outcomes


def _files(plan: Plan, folder: Path) -> dict[str, str]:
    """Where base and deltas are, once they are there."""
    changes = _after(plan, 0)
    paths = {"facts": folder / f"facts-{plan.rows}", "dims": folder / f"dims-{plan.rows}", "deltas": folder / "deltas"}
    for name, batch in zip(("facts", "dims"), changes.tables(), strict=True):
        if not paths[name].exists():
            write(paths[name], [batch])
    write(paths["deltas"], (changes.tick() for _ in range(plan.ticks)))
    return {name: str(path) for name, path in paths.items()}


def _after(plan: Plan, ticks: int) -> FactChanges | DimensionChanges:
    """The tables as they are when so many deltas have been applied."""
    kind = FactChanges if VIEWS[plan.view].changes == "facts" else DimensionChanges
    changes = kind(plan.rows, plan.delta)
    for _ in range(ticks):
        changes.tick()
    return changes


def _turn(plan: Plan, turn: int, side: Side, outcome: Outcome) -> None:
    """The ticks of one turn, and those that an earlier one had no time for; turn 0 is the warm-up."""
    last = plan.warm_up + (plan.ticks - plan.warm_up) * turn // plan.turns
    answer = side.ask("ticks", first=outcome.done, last=last, budget_s=plan.budget_s / (plan.turns + 1))
    outcome.done += len(answer["seconds"])
    if turn:
        outcome.seconds += answer["seconds"]
        outcome.sending += answer["sending"]


def _remaining(outcomes: Mapping[str, Outcome]) -> Iterator[tuple[str, Outcome]]:
    return ((name, outcome) for name, outcome in outcomes.items() if outcome.skipped is None)


def _check(side: Side, path: Path, expected: pa.Table) -> None:
    """Raises ``Skipped`` when the view is not what it has to be: a wrong result has no time."""
    side.ask("view", path=str(path))
    with read(path) as reader:
        found = difference(reader.read_all(), expected)
    path.unlink()
    if found:
        raise Skipped(f"wrong result: {found}")


@contextmanager
def _skipping(outcome: Outcome) -> Iterator[None]:
    try:
        yield
    except Skipped as reason:
        outcome.skipped = str(reason)
