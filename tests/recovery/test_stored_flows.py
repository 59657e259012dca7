"""Flows, keyed state and process functions as an earlier version has stored them: whole, and they go on.

``stored/flows.zip`` was written by ``support/stored_shop.py`` with the code of commit c5f4e2d.
"""

import zipfile
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from support.stored_shop import (
    ALL,
    ANN_5,
    BOB_6,
    TILL,
    InThisProcess,
    KeyedStateCheckpoints,
    PartitionedFlow,
    Savepoints,
    Slots,
    Visit,
    declare,
    run_visits,
    visit,
)

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.ivm.durability.checkup import check_flow
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.checkup import check_shards
from weirflow.state import RocksDbStateBackend, TtlStateBackend

STORED = Path(__file__).parent / "stored" / "flows.zip"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path):
    with zipfile.ZipFile(STORED) as stored:
        stored.extractall(tmp_path)
    return tmp_path


def money(text):
    return Decimal(text)


# What the flow has after its last tick, and after Bob's order; ``stock`` is left out of the first, for each flow has
# counted it as often as it needed to.
STORED_ROWS = {
    "orders": [
        (1, "ann", money("10.00"), ("new", "big")),
        (3, "ann", money("2.50"), None),
        (4, "cid", money("7.25"), ("new",)),
        (5, "ann", money("1.00"), (None,)),
    ],
    "customers": [("ann", "Chur"), ("bob", "Basel")],
    "clicks": [("/", NOON), ("/", NOON), ("/cart", datetime(2026, 1, 1, 11, 55, tzinfo=UTC))],
    "totals": [("ann", 3, money("13.50"), money("10.00")), ("cid", 1, money("7.25"), money("7.25"))],
    "top": [("cid", money("7.25"))],
    "by_city": [("Chur", money("13.50"))],
    "strangers": [("cid",)],
    "ranked": [(1, 1), (3, 2), (5, 3), (4, 1)],
    "tagged": [(1, "new"), (1, "big"), (4, "new"), (5, None)],
    "spread": [(5.1875, 1)],
    "pages": [("/", 2), ("/cart", 1)],
}
ROWS_WITH_BOB = {
    **STORED_ROWS,
    "orders": [*STORED_ROWS["orders"], (6, "bob", money("0.75"), ("last",))],
    "totals": [*STORED_ROWS["totals"], ("bob", 1, money("0.75"), money("0.75"))],
    "top": [("bob", money("0.75"))],
    "by_city": [("Chur", money("13.50")), ("Basel", money("0.75"))],
    "ranked": [*STORED_ROWS["ranked"], (6, 1)],
    "tagged": [*STORED_ROWS["tagged"], (6, "last")],
    "spread": [(4.3, 1)],
}
# Before a tick retracted Bob's first order.
TOTALS_BEFORE = [
    ("ann", 2, money("12.50"), money("10.00")),
    ("bob", 1, money("5.50"), money("5.50")),
    ("cid", 1, money("7.25"), money("7.25")),
]
TOTALS_TYPES = [pa.string(), pa.int64(), pa.decimal128(20, 2), pa.decimal128(10, 2)]


def rows(table):
    columns = [[tuple(one) if isinstance(one, list) else one for one in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True))


def require(flow, wanted, *, stock):
    """The flow has exactly these rows, of the types that they had."""
    wanted = {**wanted, "in_stock": [(20 * stock, 20)]}
    assert {name: rows(flow.snapshot(name)) for name in wanted} == {
        name: Counter(found) for name, found in wanted.items()
    }
    assert flow.schema("totals").types == TOTALS_TYPES
    assert {*flow.sources, *flow.views} == {*wanted, "stock"}


def go_on(flow):
    """What the flow remembers of ticks, streams and times holds for those that follow."""
    epoch, third = flow.epoch, flow.epoch_of("third")
    assert flow.epoch_of("first") == 1
    again = flow.tick("orders", [BOB_6], token="third")
    assert (again.replayed, again.epoch) == (True, third)
    assert flow.position("tills") == TILL
    assert flow.feed("orders", [BOB_6], position=TILL).replayed
    late = flow.tick("clicks", [{"page": "/", "at": datetime(2026, 1, 1, 11, 49, tzinfo=UTC)}])
    assert (late.epoch, late.late, dict(late.views)) == (epoch + 1, 1, {})


def test_a_flow_of_one_process_goes_on(folder):
    assert check_flow(folder / "flow").is_whole
    with IncrementalFlow("shop", path=folder / "flow") as flow:
        assert (flow.epoch, flow.epoch_of("third")) == (12, 12)
        require(flow, STORED_ROWS, stock=5)
        assert rows(flow.snapshot("totals", epoch=9)) == Counter(TOTALS_BEFORE)
        go_on(flow)
        assert flow.tick("orders", [ANN_5]).dropped == 1
        flow.tick("orders", [BOB_6])
        require(flow, ROWS_WITH_BOB, stock=5)
        flow.checkpoint()
    assert check_flow(folder / "flow").is_whole
    with IncrementalFlow("shop", path=folder / "flow") as flow:
        assert flow.epoch == 15
        require(flow, ROWS_WITH_BOB, stock=5)


def test_a_flow_of_one_process_goes_on_without_a_checkpoint_of_its_own(folder):
    with IncrementalFlow("shop", path=folder / "flow") as flow:
        flow.tick("orders", [BOB_6])
    with IncrementalFlow("shop", path=folder / "flow") as flow:
        assert flow.epoch == 13
        require(flow, ROWS_WITH_BOB, stock=5)


def open_shards(folder):
    return PartitionedFlow(str(folder / "shards"), 2, InThisProcess(), name="shop")


def test_a_flow_in_shards_does_the_tick_that_was_begun_and_goes_on(folder):
    assert check_shards(open_checkpoint_storage(folder / "shards")).is_whole
    with open_shards(folder) as flow:
        assert (flow.epoch, flow.pending, flow.partitions) == (10, False, 2)
        assert (flow.epoch_of("third"), flow.epoch_of("begun")) == (9, 10)
        assert rows(flow.snapshot("totals", epoch=9)) == Counter(STORED_ROWS["totals"])
        require(flow, ROWS_WITH_BOB, stock=2)
        go_on(flow)
        assert flow.tick("orders", [BOB_6]).dropped == 1
        flow.tick("customers", [{"name": "bob", "city": "Chur"}])
        moved = {
            **ROWS_WITH_BOB,
            "customers": [("ann", "Chur"), ("bob", "Chur")],
            "by_city": [("Chur", money("14.25"))],
        }
        require(flow, moved, stock=2)
    assert check_shards(open_checkpoint_storage(folder / "shards")).is_whole
    with open_shards(folder) as flow:
        flow.rescale(3)
        require(flow, moved, stock=2)


def test_a_flow_restores_what_was_saved_of_another(folder):
    flow = IncrementalFlow("shop")
    flow.restore(folder / "saved")
    assert (flow.epoch, flow.epoch_of("third")) == (9, 9)
    require(flow, STORED_ROWS, stock=2)
    go_on(flow)
    assert flow.tick("orders", [ANN_5]).dropped == 1
    flow.tick("orders", [BOB_6])
    flow.checkpoint(folder / "saved")
    again = IncrementalFlow("shop")
    again.restore(folder / "saved")
    require(again, ROWS_WITH_BOB, stock=2)
    earlier = IncrementalFlow("shop")
    earlier.restore(folder / "saved", epoch=5)
    assert rows(earlier.snapshot("totals")) == Counter(TOTALS_BEFORE)
    assert rows(earlier.snapshot("in_stock")) == Counter([(20, 20)])


def test_what_was_saved_is_what_a_changed_flow_begins_with(folder):
    flow = IncrementalFlow("shop")
    declare(flow)
    plan = flow.restore(folder / "saved", epoch=5)
    assert set(plan.kept) == set(flow.views)
    assert rows(flow.snapshot("totals")) == Counter(TOTALS_BEFORE)


# Keyed state


def kept(slots, key):
    slots.store.set_key(key)
    return {
        "last": slots.last.get(),
        "pages": slots.pages.get(),
        "times": dict(slots.times.items()),
        "count": slots.count.get(),
        "mean": slots.mean.get(),
        "raw": slots.raw.get(),
        "logins": slots.logins.get(),
    }


BOB = {
    "last": Visit("/2", 1.0, money("0.2")),
    "pages": ["/2"],
    "times": {2: datetime(2026, 1, 2, tzinfo=UTC)},
    "count": 2,
    "mean": 2.0,
    "raw": {"a": 2, "b": ["bob", None]},
    "logins": [2],
}
ANN = {
    "last": Visit("/3", 1.5, money("0.3")),
    "pages": ["/1", "/3"],
    "times": {1: datetime(2026, 1, 1, tzinfo=UTC), 3: datetime(2026, 1, 3, tzinfo=UTC)},
    "count": 4,
    "mean": 2.0,
    "raw": {"a": 3, "b": ["ann", None]},
    "logins": [1, 3],
}
ANN_WITH_4 = {
    "last": Visit("/4", 2.0, money("0.4")),
    "pages": ["/1", "/3", "/4"],
    "times": {**ANN["times"], 4: datetime(2026, 1, 4, tzinfo=UTC)},
    "count": 8,
    "mean": 8 / 3,
    "raw": {"a": 4, "b": ["ann", None]},
    "logins": [1, 3, 4],
}
RULES = {"rule 1": False, "rule 2": True, "rule 3": False}
ALARMS = [(1_000, "ann"), (2_000, "bob"), (3_000, "ann")]


def opened(backend):
    return Slots(TtlStateBackend(backend, lambda: 0))


def require_state(slots, ann, *, rules=RULES, alarms=ALARMS):
    assert (kept(slots, "ann"), kept(slots, "bob")) == (ann, BOB)
    assert dict(slots.rules.items()) == rules
    assert sorted((at, slots.alarms.key(data)) for at, data in slots.alarms.until(10_000)) == alarms


def continue_state(backend):
    """Read all, write to all slots, and let a time come at which something expires."""
    slots = opened(backend)
    require_state(slots, ANN)
    visit(slots, "ann", 4)
    require_state(slots, ANN_WITH_4, rules={**RULES, "rule 4": True}, alarms=[*ALARMS, (4_000, "ann")])
    expiring = TtlStateBackend(backend, lambda: 0)
    later = Slots(expiring)
    expiring.set_watermark(12 * 60_000)
    later.store.set_key("ann")
    assert later.logins.get() == [3, 4]


@pytest.mark.parametrize("into", ["memory", "rocksdb"])
@pytest.mark.parametrize("name", ["memory", "rocksdb"])
def test_checkpoints_and_savepoints_of_keyed_state_go_on(folder, name, into):
    storage = open_checkpoint_storage(folder / "state" / name)
    checkpoints, savepoints = KeyedStateCheckpoints(storage), Savepoints(storage)
    paths = [folder / one if into == "rocksdb" else None for one in ("one", "two", "three", "four")]

    assert checkpoints.epochs() == [1, 2]
    early = checkpoints.restore(ALL, epoch=1, path=paths[0])
    slots = opened(early)
    slots.store.set_key("ann")
    assert (slots.count.get(), slots.pages.get(), dict(slots.rules.items())) == (1, ["/1"], {"rule 1": False})
    early.close()

    for restored in (checkpoints.restore(ALL, path=paths[1]), savepoints.restore("before", ALL, path=paths[2])):
        continue_state(restored)
        checkpoints.save({ALL: restored}, epoch=checkpoints.epochs()[-1] + 1)
        restored.close()
    again = checkpoints.restore(ALL, path=paths[3])
    require_state(opened(again), ANN_WITH_4, rules={**RULES, "rule 4": True}, alarms=[*ALARMS, (4_000, "ann")])
    again.close()
    assert [(one.slot, one.version, one.values) for one in savepoints.get("before").slots if one.slot == "last"] == [
        ("last", 2, 2)
    ]


def test_the_folder_of_a_rocksdb_goes_on(folder):
    backend = RocksDbStateBackend(folder / "state" / "folder")
    continue_state(backend)
    backend.close()
    backend = RocksDbStateBackend(folder / "state" / "folder")
    require_state(opened(backend), ANN_WITH_4, rules={**RULES, "rule 4": True}, alarms=[*ALARMS, (4_000, "ann")])
    backend.close()


# Process functions


def finish(runner):
    """The rows of one more batch, of the clock that has moved on, and of the end."""
    found = [runner.run([{"user": "bob", "at": 9}, {"user": "cid", "at": 3}]), runner.finish()]
    return (
        sorted(tuple(row.values()) for result in found for row in result.rows.to_pylist()),
        sorted(tuple(row.values()) for result in found for row in result.sides["reminders"].to_pylist()),
        [result.late for result in found],
    )


# The watermark was 8, so that the row of cid is late; the reminders of ann and bob are due.
FINISHED = ([("ann", 2), ("bob", 2)], [("ann", 105), ("bob", 105)], [1, 0])


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_checkpoint_of_a_process_function_goes_on(folder, parallelism):
    checkpoints = KeyedStateCheckpoints(open_checkpoint_storage(folder / "process" / "checkpoints"))
    with run_visits(200, parallelism=parallelism, backend=checkpoints.restore) as runner:
        assert runner.epoch == 2
        assert finish(runner) == FINISHED


def test_the_rocksdb_of_a_process_function_goes_on(folder):
    path = folder / "process" / "rocksdb"
    with closing(RocksDbStateBackend(path)) as backend, run_visits(100, parallelism=1, backend=backend) as runner:
        assert runner.epoch == 2
        assert runner.run([{"user": "cid", "at": 8}]).late == 1
    with closing(RocksDbStateBackend(path)) as backend, run_visits(200, parallelism=1, backend=backend) as runner:
        assert runner.epoch == 3
        assert finish(runner) == FINISHED
