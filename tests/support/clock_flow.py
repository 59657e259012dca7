"""A flow whose rows and readings follow from the number of the tick, and lives of it as ``Nursery`` runs them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from support.nursery import die_at, serve

from weirflow.ivm.flow import IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

START = dt.datetime(2025, 3, 9, 5, tzinfo=dt.UTC)
VIEWS = {
    "recent": "SELECT id FROM t WHERE at > now() - INTERVAL 1 HOUR AND at <= now()",
    "today": "SELECT COUNT(*) FILTER (WHERE CAST(at AS DATE) = current_date()) AS n, COUNT(*) AS every FROM t",
}


def declare(flow: IncrementalFlow) -> None:
    """Its source and views."""
    flow.register_source("t", "id INT, at TIMESTAMP")
    for name, sql in VIEWS.items():
        flow.register_view(name, sql)


def run(flow: IncrementalFlow, ticks: int) -> None:
    """All that is left of so many ticks; every second one lets time pass."""
    while flow.epoch < ticks:
        number = flow.epoch
        if number % 2:
            flow.advance(START + dt.timedelta(minutes=17 * number))
        else:
            flow.tick(
                "t", [{"id": number, "at": START + dt.timedelta(minutes=17 * number + 20 * at)} for at in range(3)]
            )


def contents(flow: IncrementalFlow) -> dict[str, Any]:
    """What it shows."""
    found = {name: sorted(map(str, flow.snapshot(name).to_pylist())) for name in VIEWS}
    return {**found, "clock": flow.clock, "epoch": flow.epoch}


def opened(path: Path | str | None, every: int = 5) -> IncrementalFlow:
    """The flow, at a path or in memory."""
    options: dict[str, Any] = {} if path is None else {"path": path, "checkpoint_every": every, "fsync": 0}
    return IncrementalFlow("clock", clock="manual", time_zone="America/New_York", **options)


def _live(order: dict[str, Any]) -> None:
    die_at(order)
    with opened(order["path"], order["checkpoint_every"]) as flow:
        declare(flow)
        run(flow, order["ticks"])


if __name__ == "__main__":
    with opened(None) as flow:  # what is imported and made at first use is there for all children
        declare(flow)
        run(flow, 2)
    serve(_live)
