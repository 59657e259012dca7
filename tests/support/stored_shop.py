"""Writes what ``recovery/test_stored_flows.py`` opens: flows and keyed state as a version stores them.

To store what another version writes, check it out elsewhere and run, with its own code and this file::

    PYTHONPATH=<checkout>/src python tests/support/stored_shop.py tests/recovery/stored/flows.zip

What is imported from a place that has changed is looked for at all of its places.
"""

from __future__ import annotations

import operator
import shutil
import sys
import tempfile
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.failpoints import watch_failpoints
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.flow.position import Position
from weirflow.ivm.flow.source import Lateness
from weirflow.ivm.zset import DeltaBatch
from weirflow.process import ProcessFunction, ProcessRunner
from weirflow.state import (
    Aggregate,
    InMemoryStateBackend,
    KeyedStateStore,
    KeyGroupRange,
    RocksDbStateBackend,
    StateDescriptor,
    Ttl,
    TtlStateBackend,
)


def _first(name: str, *modules: str) -> Any:
    """What has this name in the first of the modules that there is."""
    for module in modules:
        try:
            return getattr(import_module(module), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise ImportError(f"{name} is in none of {', '.join(modules)}")


InThisProcess = _first("InThisProcess", "weirflow.ivm.sharded.executor", "weirflow.ivm.partitioned.executor")
PartitionedFlow = _first("PartitionedFlow", "weirflow.ivm.sharded.flow", "weirflow.ivm.partitioned.flow")
KeyedStateCheckpoints = _first(
    "KeyedStateCheckpoints", "weirflow.checkpoint.keyed_state.checkpoints", "weirflow.checkpoint.keyed_state"
)
Savepoints = _first("Savepoints", "weirflow.checkpoint.keyed_state.savepoints", "weirflow.checkpoint.savepoints")

SHARDS = 2
ALL = KeyGroupRange(0, 128)
STOCK = 20
PICTURE = "." * 5_000

SOURCES: dict[str, dict[str, Any]] = {
    "orders": {"schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), tags ARRAY<STRING>", "dedup": 1},
    "customers": {"schema": "name STRING, city STRING", "key": "name"},
    "clicks": {"schema": "page STRING, at TIMESTAMP", "lateness": Lateness("at", "10 minutes")},
    "stock": {"schema": "item BIGINT, n BIGINT, picture STRING", "key": "item"},
    "gone": {"schema": "id BIGINT"},
}
VIEWS = {
    "totals": "SELECT customer, COUNT(*) AS n, SUM(amount) AS total, MAX(amount) AS most FROM orders GROUP BY customer",
    "top": "SELECT customer, total FROM totals ORDER BY total DESC LIMIT 1",
    "by_city": "SELECT city, SUM(amount) AS total FROM orders o JOIN customers c ON o.customer = c.name GROUP BY city",
    "strangers": "SELECT DISTINCT customer FROM orders WHERE customer NOT IN (SELECT name FROM customers)",
    "ranked": "SELECT id, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY id) AS place FROM orders",
    "tagged": "SELECT id, tag FROM orders LATERAL VIEW EXPLODE(tags) AS tag",
    "spread": "SELECT AVG(CAST(amount AS DOUBLE)) AS mean, MIN(id) AS first FROM orders",
    "pages": "SELECT page, COUNT(*) AS n FROM clicks GROUP BY page",
    "in_stock": "SELECT SUM(n) AS n, COUNT(*) AS items FROM stock",
}
REPLACED = "SELECT customer, total FROM totals ORDER BY total LIMIT 1"

ANN_1 = {"id": 1, "customer": "ann", "amount": Decimal("10.00"), "tags": ["new", "big"]}
BOB_2 = {"id": 2, "customer": "bob", "amount": Decimal("5.50"), "tags": []}
ANN_3 = {"id": 3, "customer": "ann", "amount": Decimal("2.50"), "tags": None}
CID_4 = {"id": 4, "customer": "cid", "amount": Decimal("7.25"), "tags": ["new"]}
ANN_5 = {"id": 5, "customer": "ann", "amount": Decimal("1.00"), "tags": [None]}
BOB_6 = {"id": 6, "customer": "bob", "amount": Decimal("0.75"), "tags": ["last"]}
TILL = Position("tills", "till 7", "42")


def declare(flow: Any) -> None:
    """Sources and views; doing it again changes nothing."""
    for name, given in SOURCES.items():
        flow.register_source(name, **given)
    for name, sql in VIEWS.items():
        flow.register_view(name, sql)


def begin(flow: Any) -> None:
    """Ticks of every kind: with a token, from a stream, with late rows, with retractions."""
    declare(flow)
    people = [{"name": "ann", "city": "Bern"}, {"name": "bob", "city": "Basel"}]
    flow.tick({"orders": [ANN_1, BOB_2, ANN_3], "customers": people}, token="first")
    flow.feed("orders", [CID_4], position=TILL)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    flow.tick("clicks", [{"page": "/", "at": noon}, {"page": "/cart", "at": noon - timedelta(minutes=5)}])
    flow.tick("clicks", [{"page": "/", "at": noon - timedelta(hours=1)}, {"page": "/", "at": noon}])
    flow.tick("stock", [{"item": item, "n": 1, "picture": PICTURE} for item in range(STOCK)])


def count_stock(flow: Any) -> None:
    """One more of each item."""
    (n,) = {row["n"] for row in flow.snapshot("stock").to_pylist()}
    flow.tick("stock", [{"item": item, "n": n + 1, "picture": PICTURE} for item in range(STOCK)])


def go_on(flow: Any) -> None:
    """What follows a checkpoint: rows retracted and changed, a view replaced, a source dropped."""
    retracted = DeltaBatch.from_deletes([BOB_2], schema=flow.schema("orders"))
    flow.tick({"orders": retracted, "customers": [{"name": "ann", "city": "Chur"}]}, token="second")
    flow.replace_view("top", REPLACED)
    flow.drop("gone")
    flow.tick("orders", [ANN_5], token="third")


def write_flow(folder: Path) -> None:
    """A flow of one process that was killed: two checkpoints, the second with a compaction, and a log behind them."""
    with IncrementalFlow("shop", path=folder / "open") as flow:
        begin(flow)
        passed: list[str] = []
        watch_failpoints(passed.append)
        for _ in range(4):
            flow.checkpoint()
            count_stock(flow)
        watch_failpoints(None)
        assert "compact.after_pack" in passed, "no pack was compacted"
        go_on(flow)
        shutil.copytree(folder / "open", folder / "flow")
    shutil.rmtree(folder / "open")


def write_saved(folder: Path) -> None:
    """What was saved of a flow elsewhere: whole, and then once more with what was new."""
    flow = IncrementalFlow("shop")
    begin(flow)
    flow.checkpoint_full(folder / "saved")
    count_stock(flow)
    go_on(flow)
    flow.checkpoint(folder / "saved")


class Stoppable(InThisProcess):
    """Runs stages here until it is stopped; what is then begun waits for whoever opens the flow next."""

    stopped = False

    def run(self, stages: Any) -> Any:
        """Run them, or fail."""
        if self.stopped:
            raise OSError("the machine is gone")
        return super().run(stages)


def write_shards(folder: Path) -> None:
    """A flow in shards whose last tick was begun, and was not done when it was closed."""
    executor = Stoppable()
    with PartitionedFlow(str(folder / "shards"), SHARDS, executor, name="shop") as flow:
        begin(flow)
        count_stock(flow)
        go_on(flow)
        executor.stopped = True
        with suppress(OSError):
            flow.tick("orders", [BOB_6], token="begun")
        assert flow.pending


# Keyed state


@dataclass(frozen=True)
class Visit:
    """A value with parts."""

    page: str
    seconds: float
    price: Decimal | None = None


class Slots:
    """A slot of each kind, for keys of text."""

    def __init__(self, backend: Any) -> None:
        self.store = store = KeyedStateStore(backend, "visits")
        self.last = store.value(StateDescriptor("last", str, Visit, version=2))
        self.pages = store.list(StateDescriptor("pages", str, list[str]))
        self.times = store.map(StateDescriptor("times", str, dict[int, datetime]))
        self.count = store.reducing(StateDescriptor("count", str, int), operator.add)
        mean = Aggregate(lambda: (0, 0), lambda sums, new: (sums[0] + new, sums[1] + 1), lambda sums: sums[0] / sums[1])
        self.mean = store.aggregating(StateDescriptor("mean", str, tuple[int, int]), mean)
        self.rules = store.broadcast(StateDescriptor("rules", None, dict[str, bool]))
        self.alarms = store.timers(StateDescriptor("alarms", str, None))
        self.raw = store.value(StateDescriptor("raw", str, pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())})))
        self.logins = store.list(StateDescriptor("logins", str, list[int], Ttl(timedelta(minutes=10), time="event")))


def visit(slots: Slots, key: str, number: int) -> None:
    """Write to every slot of a key."""
    with slots.store.batch():
        slots.store.set_key(key, timestamp_ms=number * 60_000)
        slots.last.set(Visit(f"/{number}", number / 2, Decimal(number).scaleb(-1)))
        slots.pages.add(f"/{number}")
        slots.times.put(number, datetime(2026, 1, number, tzinfo=UTC))
        slots.count.add(number)
        slots.mean.add(number)
        slots.alarms.add(number * 1_000)
        slots.raw.set({"a": number, "b": [key, None]})
        slots.logins.add(number)
        slots.rules.put(f"rule {number}", number % 2 == 0)


def write_state(folder: Path) -> None:
    """Two checkpoints and a savepoint of each backend, and the folder of a RocksDB."""
    for name in ("memory", "rocksdb"):
        inner = InMemoryStateBackend() if name == "memory" else RocksDbStateBackend(folder / "state" / "folder")
        storage = open_checkpoint_storage(folder / "state" / name)
        slots = Slots(TtlStateBackend(inner, lambda: 0))
        visit(slots, "ann", 1)
        KeyedStateCheckpoints(storage).save({ALL: inner}, epoch=1)
        visit(slots, "bob", 2)
        visit(slots, "ann", 3)
        KeyedStateCheckpoints(storage).save({ALL: inner}, epoch=2)
        Savepoints(storage).create("before", {ALL: inner})
        inner.close()


# Process functions


class Visits(ProcessFunction):
    """The visits of a user up to a gap of 10, by event time; and a reminder 5 after the first one, by the clock."""

    output = "user STRING, visits BIGINT"
    side_outputs = {"reminders": "user STRING, at BIGINT"}  # noqa: RUF012 - as users write it

    def open(self, ctx: Any) -> None:
        """Declare the state."""
        self.visits = ctx.list(StateDescriptor("visits", str, list[int]))

    def on_element(self, ctx: Any, _key: str, _row: Any) -> None:
        """Note a visit."""
        visits = self.visits.get()
        if visits:
            ctx.timers.delete(max(visits) + 10)
        else:
            ctx.timers.register(ctx.now + 5, "processing")
        self.visits.add(ctx.timestamp)
        ctx.timers.register(max([*visits, ctx.timestamp]) + 10)

    def on_timer(self, ctx: Any, key: str, ts: int, kind: str) -> None:
        """Remind, or count the visits."""
        if kind == "processing":
            ctx.side("reminders", {"user": key, "at": ts})
            return
        ctx.emit({"user": key, "visits": len(self.visits.get())})
        self.visits.clear()


def run_visits(now: int, *, parallelism: int, backend: Any = None) -> ProcessRunner:
    """A runner of the function, at a moment of the clock."""
    return ProcessRunner(
        Visits(),
        key="user",
        event_time="at",
        operator="visits",
        parallelism=parallelism,
        backend=backend,
        clock=lambda: now,
    )


def write_process(folder: Path) -> None:
    """A checkpoint of two instances, and the RocksDB of one, both after two batches."""
    batches = [[{"user": "ann", "at": 1}, {"user": "bob", "at": 2}], [{"user": "ann", "at": 8}]]
    several = run_visits(100, parallelism=2)
    alone = run_visits(100, parallelism=1, backend=RocksDbStateBackend(folder / "process" / "rocksdb"))
    for runner in (several, alone):
        for batch in batches:
            runner.run(batch)
    several.snapshot(KeyedStateCheckpoints(open_checkpoint_storage(folder / "process" / "checkpoints")))
    for runner in (several, alone):
        runner.close()


def main(target: Path) -> None:
    """Write everything and pack it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for write in (write_flow, write_saved, write_shards, write_state, write_process):
            write(folder)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            # What RocksDB tells people in LOG is not of what it stores.
            for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "LOG"):
                packed.write(file, file.relative_to(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
