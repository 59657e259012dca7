"""A flow whose source lets go of rows and whose shards change on the way; a script that serves a ``Nursery``."""

from __future__ import annotations

from typing import Any

from support.late_ticks import COLUMNS, VIEWS
from support.late_ticks import ticks as late_ticks
from support.nursery import die_at, serve

from weirflow import IncrementalFlow, Lateness
from weirflow.ivm.kernel.runs import spine
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

CHOSEN = {
    **{name: VIEWS[name] for name in ("by_window", "by_hop", "named", "pairs")},
    "extremes": "SELECT name, MAX(x) AS high, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY name",
    "last": "SELECT name, x FROM t ORDER BY x DESC, name LIMIT 3",
}
SHARDS = {0: 3, 4: 2, 8: 5}
"""How many there are from an epoch on."""
TICKS = 10


def open_flow(path: str) -> PartitionedFlow:
    """The flow in a folder, run by this process."""
    return PartitionedFlow(path, SHARDS[0], InThisProcess(), name="moved")


def declare(flow: IncrementalFlow | PartitionedFlow) -> None:
    """Sources and views; doing it again changes nothing."""
    flow.register_source("t", COLUMNS, lateness=Lateness("at", "5 hours", keep=False))
    flow.register_source("names", "name STRING, v BIGINT", key="name")
    for name, sql in CHOSEN.items():
        flow.register_view(name, sql)


def deltas() -> list[dict[str, Any]]:
    """One for each tick."""
    return [
        {"t": rows, "names": [{"name": "abc"[number % 3], "v": number}]}
        for number, rows in enumerate(late_ticks(TICKS + 1, 12))
    ]


def contents(flow: IncrementalFlow | PartitionedFlow) -> dict[str, list[str]]:
    """All rows of all views."""
    return {name: sorted(map(str, flow.snapshot(name).to_pylist())) for name in CHOSEN}


def run(flow: PartitionedFlow, ticks: int) -> None:
    """Bring the flow to a tick, and its shards to their number on the way."""
    declare(flow)
    for number, delta in enumerate(deltas()[:ticks]):
        if number >= flow.epoch:
            if number in SHARDS and flow.partitions != SHARDS[number]:
                flow.rescale(SHARDS[number])
            flow.tick(delta, token=f"tick {number}")


def live(order: dict[str, Any]) -> None:
    """A life of the flow."""
    die_at(order)
    with open_flow(order["path"]) as flow:
        run(flow, order["ticks"])


spine.LEAST_TO_RELEASE = 1

if __name__ == "__main__":
    with open_flow("memory://warm") as flow:
        run(flow, 5)
    serve(live)
