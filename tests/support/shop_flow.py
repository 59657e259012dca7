"""A flow whose ticks follow from their number, to be killed anywhere and compared with one that never was."""

from __future__ import annotations

import json
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from support.maintained import comparable

from weirflow import DeltaBatch
from weirflow.ivm.flow.position import Position
from weirflow.sql.typing.type_syntax import parse_ddl

if TYPE_CHECKING:
    from weirflow.ivm.flow import IncrementalFlow
    from weirflow.ivm.sharded.flow import PartitionedFlow

SOURCES = {
    "orders": ("id BIGINT, customer STRING, amount DECIMAL(10,2)", None),
    "customers": ("name STRING, city STRING", "name"),
}
VIEWS = {
    "totals": "SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer",
    "top": "SELECT customer, total FROM totals ORDER BY total DESC, customer LIMIT 3",
    "by_city": """
        SELECT c.city, SUM(o.amount) AS total, MAX(o.id) AS last
        FROM orders o JOIN customers c ON o.customer = c.name GROUP BY c.city
    """,
    "without_city": "SELECT DISTINCT customer FROM orders WHERE customer NOT IN (SELECT name FROM customers)",
}
_ORDERS = parse_ddl(SOURCES["orders"][0])
_NAMES = [f"customer {number}" for number in range(8)]


def declare(flow: IncrementalFlow | PartitionedFlow) -> None:
    """Sources and views; doing it again changes nothing."""
    for name, (schema, key) in SOURCES.items():
        flow.register_source(name, schema, key=key)
    for name, sql in VIEWS.items():
        flow.register_view(name, sql)


def delta(number: int) -> dict[str, Any]:
    """The deltas of a tick, counted from 1; every second one retracts an order of the tick before it."""
    chosen = random.Random(number)
    rows = DeltaBatch.from_inserts([_order(number, place) for place in range(3)], schema=_ORDERS)
    if number % 2 == 0:
        rows += DeltaBatch.from_deletes([_order(number - 1, chosen.randrange(3))], schema=_ORDERS)
    deltas: dict[str, Any] = {"orders": rows}
    if chosen.random() < 0.5:
        name = chosen.choice(_NAMES)
        deltas["customers"] = [{"name": name, "city": chosen.choice(["Bern", "Basel", "Chur"])}]
    return deltas


def run(flow: IncrementalFlow | PartitionedFlow, ticks: int) -> None:
    """Bring the flow to this number of ticks; a tick that was done before the process died is not done again."""
    for number in range(1, ticks + 1):
        tick(flow, number)


def tick(flow: IncrementalFlow | PartitionedFlow, number: int) -> None:
    """One tick, unless the flow has it. Every third one comes from a stream, which begins again with its last."""
    if number % 3:
        flow.tick(delta(number), token=f"tick {number}")
        return
    last = flow.position("thirds")
    if last is None or number >= int(last.at):
        flow.feed(delta(number), position=Position("thirds", "shop", str(number)))


def contents(flow: IncrementalFlow | PartitionedFlow) -> dict[str, Counter[Any]]:
    """All rows of all sources and views."""
    found = {}
    for name in (*SOURCES, *VIEWS):
        table = flow.snapshot(name)
        columns = [[comparable(value) for value in column.to_pylist()] for column in table.columns]
        found[name] = Counter(zip(*columns, strict=True))
    return found


def open_sinks(flow: IncrementalFlow, path: Path | str) -> None:
    """Sinks of three kinds beside the flow's folder: files, files that each life begins anew, and a function."""

    def note(epoch: int, delta: DeltaBatch) -> None:
        with Path(f"{path}-calls").open("a") as calls:
            calls.write(json.dumps([epoch, sorted(map(str, delta.to_arrow().to_pylist()))]) + "\n")

    flow.sink("totals", f"{path}-totals", every=3)
    flow.sink("top", f"{path}-top", every=4, resync=True)
    flow.sink("by_city", note, every=4)


def sunk(path: Path | str) -> dict[str, Any]:
    """What the sinks have written: every row with its epoch, the sum of all rows, and the function's calls by epoch."""
    calls = Path(f"{path}-calls").read_text().splitlines() if Path(f"{path}-calls").exists() else []
    by_epoch: dict[int, list[str]] = {}
    for epoch, rows in map(json.loads, calls):
        assert by_epoch.setdefault(epoch, rows) == rows, "a repeated call has other rows"
    totals = pq.read_table(f"{path}-totals").to_pylist()
    top: Counter[Any] = Counter()
    for row in pq.read_table(f"{path}-top").to_pylist():
        top[row["customer"], row["total"]] += row["_weight"]
    return {"totals": Counter(map(str, totals)), "top": {row: n for row, n in top.items() if n}, "calls": by_epoch}


def _order(number: int, place: int) -> dict[str, Any]:
    chosen = random.Random(number * 10 + place)
    return {
        "id": number * 10 + place,
        "customer": chosen.choice(_NAMES),
        "amount": Decimal(chosen.randrange(1, 99999)).scaleb(-2),
    }
