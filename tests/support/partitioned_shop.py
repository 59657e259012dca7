"""The shop's flow in shards, and notes of what its watches were told, by all processes that ever ran it.

As a script it serves a ``Nursery``.
"""

from __future__ import annotations

import json
import os
from collections import deque
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import shop_flow
from support.flow_engine import FlowEngine
from support.nursery import die_at, serve
from support.together import together

from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirflow.ivm.flow.outputs.watch import Watch

SHARDS = 3


def open_shop(path: Path | str, **options: Any) -> PartitionedFlow:
    """The flow in a folder, run by this process."""
    return PartitionedFlow(str(path), SHARDS, InThisProcess(FlowEngine()), name="shop", **options)


def run(flow: PartitionedFlow, ticks: int, file: Path, recomputed: str | None = "totals") -> Iterator[int]:
    """Bring the flow to this number of ticks and note every delta in ``file``; yields after each tick."""
    shop_flow.declare(flow)
    if recomputed is not None:
        flow.force_diff_based(recomputed)
    watches = {name: flow.watch_output(name, from_epoch=seen(file)) for name in shop_flow.VIEWS}
    _note(flow, watches, file)
    for number in range(1, ticks + 1):
        if number > flow.epoch:
            shop_flow.tick(flow, number)
            _note(flow, watches, file)
            yield flow.epoch


def run_together(flow: PartitionedFlow, ticks: int, file: Path) -> None:
    """As ``run``, with four ticks at a time that wait together."""
    shop_flow.declare(flow)
    watches = {name: flow.watch_output(name, from_epoch=seen(file)) for name in shop_flow.VIEWS}
    _note(flow, watches, file)
    while flow.epoch < ticks:
        numbers = range(flow.epoch + 1, min(flow.epoch + 5, ticks + 1))
        deltas = {number: shop_flow.delta(number) for number in numbers}
        done = together(flow, [partial(flow.tick, delta, token=f"tick {at}") for at, delta in deltas.items()])
        assert [one.epoch for one in done] == list(numbers)
        _note(flow, watches, file)


def seen(file: Path) -> int:
    """The last epoch that is noted completely."""
    return max((epoch for epoch, view, _ in _lines(file) if not view), default=0)


def told(file: Path) -> dict[tuple[int, str], list[str]]:
    """For each epoch and view the rows that watches were told; a repetition must have the same."""
    found: dict[tuple[int, str], list[str]] = {}
    for epoch, view, rows in _lines(file):
        if view:
            assert found.setdefault((epoch, view), rows) == rows, f"epoch {epoch} of {view} was told in two ways"
    return found


def _note(flow: PartitionedFlow, watches: dict[str, Watch], file: Path) -> None:
    """All deltas that are there, then a line that says that the epoch is complete."""
    lines: list[tuple[int, str, list[str]]] = []
    for view, watch in watches.items():
        while (one := watch.get(timeout=0)) is not None:
            epoch, delta = one
            lines.append((epoch, view, sorted(map(str, delta.to_arrow().to_pylist()))))
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for line in [*sorted(lines), (flow.epoch, "", [])]:
        os.write(out, json.dumps(line).encode() + b"\n")
    os.close(out)


def _lines(file: Path) -> list[tuple[int, str, list[str]]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _live(order: dict[str, Any]) -> None:
    die_at(order)
    told = Path(f"{order['path']}-told")
    with open_shop(order["path"]) as flow:
        if order["together"]:
            run_together(flow, order["ticks"], told)
        else:
            deque(run(flow, order["ticks"], told), maxlen=0)


if __name__ == "__main__":
    with open_shop("memory://warm") as flow:  # what is imported and made at first use is there for all children
        shop_flow.declare(flow)
        shop_flow.run(flow, 2)
    serve(_live)
