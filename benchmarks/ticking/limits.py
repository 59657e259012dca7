"""What the figures have to be, and whether they are."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ticking.race import Outcome, Plan

DELTA = 100
PEER_BASE = 1_000_000
BATCH_DELTA = 10_000
# The peers that are compiled programs, and the views in which ours is held to be near them.
PROGRAMS = ("dbsp", "differential")
BATCH_VIEWS = ("group-by", "join")
SMALL_BASE, LARGE_BASE = 100_000, 10_000_000


@dataclass(frozen=True)
class Limit:
    """A figure and its bound; a figure that was not measured in this run is None and neither met nor missed."""

    name: str
    figure: float | None
    bound: float
    at_most: bool

    @property
    def verdict(self) -> str:
        """``ok``, ``not met`` or ``not measured``."""
        if self.figure is None:
            return "not measured"
        met = self.figure <= self.bound if self.at_most else self.figure >= self.bound
        return "ok" if met else "not met"

    def __str__(self) -> str:
        figure = "" if self.figure is None else f"{self.figure:.2f}"
        return f"{self.name:<48}{figure:>10}  {'<=' if self.at_most else '>='} {self.bound:<6} {self.verdict}"


def limits(results: Mapping[Plan, Mapping[str, Outcome]]) -> Iterator[Limit]:
    """Every limit, over what was measured."""
    found = {(plan.view, plan.rows): outcomes for plan, outcomes in results.items() if plan.delta == DELTA}
    for view in dict.fromkeys(view for view, _ in found):
        small, beside, large = (found.get((view, rows), {}) for rows in (SMALL_BASE, PEER_BASE, LARGE_BASE))
        ours, pathway, spark = (_median(beside, system) for system in ("weirflow", "pathway", "spark"))
        yield Limit(f"{view}: ours / Pathway", _ratio(ours, pathway), 0.5, at_most=True)
        if view in BATCH_VIEWS:
            yield Limit(f"{view}: ours / DBSP", _ratio(ours, _median(beside, "dbsp")), 2, at_most=True)
        yield Limit(f"{view}: Spark recompute / ours", _ratio(spark, ours), 100, at_most=False)
        growth = _ratio(_median(large, "weirflow"), _median(small, "weirflow"))
        yield Limit(f"{view}: base of 10M / of 100k", growth, 2, at_most=True)
        if view == "join":
            loaded = large.get("weirflow")
            bulk = LARGE_BASE / loaded.load_s / 1e6 if loaded and not loaded.skipped else None
            yield Limit(f"{view}: bulk load of 10M, M rows/s", bulk, 2, at_most=False)
    for plan, outcomes in results.items():
        if plan.delta == BATCH_DELTA and plan.rows == PEER_BASE and plan.view in BATCH_VIEWS and not plan.alone:
            ratios = [_ratio(_median(outcomes, "weirflow"), _median(outcomes, peer)) for peer in PROGRAMS]
            worst = max((ratio for ratio in ratios if ratio is not None), default=None)
            yield Limit(f"{plan.view} of {plan.delta:,}: ours / DBSP or differential", worst, 1.2, at_most=True)
        if plan.delta == BATCH_DELTA and plan.alone and not outcomes["weirflow"].skipped:
            times = outcomes["weirflow"].seconds
            rate = plan.delta * len(times) / sum(times) / 1000
            yield Limit(f"sustained {plan.view}, k rows/s", rate, 500, at_most=False)
            yield Limit("sustained: p99 / median", float(np.quantile(times, 0.99)) / median(times), 10, at_most=True)


def _median(outcomes: Mapping[str, Outcome], system: str) -> float | None:
    return outcomes[system].median_ms if system in outcomes else None


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other is not None else None
