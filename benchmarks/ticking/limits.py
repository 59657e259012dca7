"""What the figures have to be, and whether they are."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ticking.race import Outcome, Plan

SUSTAINED_DELTA = 10_000
SUSTAINED_TICKS = 220
PEER_AT = (1_000_000, 100)
GROWTH = (100_000, 10_000_000)


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


def limits(results: Mapping[Plan, Mapping[str, Outcome]]) -> Iterator[Limit]:
    """Every limit, over what was measured."""
    by_scenario = {(plan.view, plan.rows, plan.delta): outcomes for plan, outcomes in results.items()}
    for view in dict.fromkeys(plan.view for plan in results):
        outcomes = by_scenario.get((view, *PEER_AT), {})
        ours = _median(outcomes, "weirflow")
        yield Limit(f"{view}: ours / Pathway", _ratio(ours, _median(outcomes, "pathway")), 0.5, at_most=True)
        yield Limit(f"{view}: Spark recompute / ours", _ratio(_median(outcomes, "spark"), ours), 100, at_most=False)
        small, large = (_median(by_scenario.get((view, rows, 100), {}), "weirflow") for rows in GROWTH)
        yield Limit(f"{view}: base of 10M / of 100k", _ratio(large, small), 2, at_most=True)
        loaded = by_scenario.get((view, GROWTH[1], 100), {}).get("weirflow")
        bulk = GROWTH[1] / loaded.load_s / 1e6 if loaded and loaded.load_s else None
        yield Limit(f"{view}: bulk load of 10M, M rows/s", bulk, 2, at_most=False)
    sustained = next((found["weirflow"] for plan, found in results.items() if plan.ticks >= SUSTAINED_TICKS), None)
    times = sustained.seconds if sustained and not sustained.skipped else None
    rate = SUSTAINED_DELTA * len(times) / sum(times) / 1e3 if times else None
    yield Limit("sustained, join, deltas of 10k, k rows/s", rate, 500, at_most=False)
    spread = float(np.quantile(times, 0.99)) / median(times) if times else None
    yield Limit("sustained: p99 / median", spread, 10, at_most=True)


def _median(outcomes: Mapping[str, Outcome], system: str) -> float | None:
    return outcomes[system].median_ms if system in outcomes else None


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other is not None else None
