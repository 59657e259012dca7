"""Subscriptions: what a reader gets, and that it adds up to the view."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest

from weirflow import DeltaBatch, IncrementalFlow
from weirflow.errors import ConfigError, DataError, HistoryGone, WatchOverflow
from weirflow.ivm.flow.outputs.subscription import Subscription


@pytest.fixture
def flow() -> IncrementalFlow:
    flow = IncrementalFlow("shop")
    flow.register_source("orders", "id BIGINT, who STRING NOT NULL, amount BIGINT", key="id")
    flow.register_view("large", "SELECT id, who, amount FROM orders WHERE amount > 10")
    return flow


def order(flow: IncrementalFlow, *rows: tuple[int, str, int]) -> None:
    flow.tick("orders", [{"id": number, "who": who, "amount": amount} for number, who, amount in rows])


def rows(batch) -> list[tuple]:
    return sorted(tuple(row.values()) for row in batch.to_pylist())


def test_a_subscription_begins_with_all_rows_and_goes_on_with_changes(flow):
    order(flow, (1, "ann", 20), (2, "bob", 5))
    with Subscription.of(flow, "large") as changes:
        assert changes.schema.names == ["id", "who", "amount", "_epoch", "_weight"]
        assert rows(changes.get(0)) == [(1, "ann", 20, 1, 1)]
        order(flow, (1, "ann", 30), (2, "bob", 15))
        assert rows(changes.get(0)) == [(1, "ann", 20, 2, -1), (1, "ann", 30, 2, 1), (2, "bob", 15, 2, 1)]
        assert changes.get(0) is None


def test_without_a_snapshot_only_changes_come(flow):
    order(flow, (1, "ann", 20))
    with Subscription.of(flow, "large", snapshot=False) as changes:
        order(flow, (2, "bob", 15))
        assert rows(changes.get(0)) == [(2, "bob", 15, 2, 1)]


@pytest.mark.parametrize("snapshot", [True, False])
def test_from_an_earlier_epoch(flow, snapshot):
    order(flow, (1, "ann", 20))
    order(flow, (2, "bob", 15))
    order(flow, (1, "ann", 1))
    with Subscription.of(flow, "large", as_of=1, snapshot=snapshot) as changes:
        if snapshot:
            assert rows(changes.get(0)) == [(1, "ann", 20, 1, 1)]
        assert rows(changes.get(0)) == [(2, "bob", 15, 2, 1)]
        assert rows(changes.get(0)) == [(1, "ann", 20, 3, -1)]


def test_an_epoch_that_is_not_kept_is_refused():
    flow = IncrementalFlow("shop", history=1)
    flow.register_source("orders", "id BIGINT")
    flow.register_view("all", "SELECT id FROM orders")
    for number in range(3):
        flow.tick("orders", [{"id": number}])
    with pytest.raises(HistoryGone):
        Subscription.of(flow, "all", as_of=1)


def test_progress_is_a_row_with_nothing_but_its_epoch(flow):
    with Subscription.of(flow, "large", progress=True) as changes:
        assert rows(changes.get(0)) == [(None, None, None, 0, 0, True)]
        order(flow, (1, "ann", 1))
        assert rows(changes.get(0)) == [(None, None, None, 1, 0, True)]
        order(flow, (1, "ann", 20))
        assert rows(changes.get(0)) == [(1, "ann", 20, 2, 1, False)]


def test_upserts_have_one_row_for_a_key(flow):
    order(flow, (1, "ann", 20), (2, "bob", 15), (3, "cid", 5))
    with Subscription.of(flow, "large", upsert=["ID"]) as changes:
        assert rows(changes.get(0)) == [(1, "ann", 20, 1, 1), (2, "bob", 15, 1, 1)]
        order(flow, (1, "ann", 30), (2, "bob", 1), (3, "cid", 11))
        assert rows(changes.get(0)) == [(1, "ann", 30, 2, 1), (2, "bob", 15, 2, -1), (3, "cid", 11, 2, 1)]


def test_upserts_by_a_key_that_does_not_identify_rows_are_refused(flow):
    order(flow, (1, "ann", 20), (2, "ann", 15))
    with Subscription.of(flow, "large", upsert=["who"]) as changes, pytest.raises(DataError, match="'who': 'ann'"):
        changes.get(0)


def test_upserts_applied_by_key_are_the_view(flow):
    held: dict[int, tuple] = {}
    with Subscription.of(flow, "large", upsert=["id"], progress=True) as changes:
        for step in range(60):
            order(flow, *((n, f"w{step % 3}", (step * 7 + n * 5) % 23) for n in range(step % 4)))
            while (batch := changes.get(0)) is not None:
                for number, who, amount, _, weight, is_progress in rows(batch):
                    if weight > 0:
                        held[number] = (number, who, amount)
                    elif not is_progress:
                        del held[number]
            assert sorted(held.values()) == sorted(tuple(row.values()) for row in flow.snapshot("large").to_pylist())


def test_columns_and_keys_that_cannot_be_are_refused(flow):
    with pytest.raises(ConfigError, match="no column 'idd'") as refused:
        Subscription.of(flow, "large", upsert=["idd"])
    assert refused.value.hint == "did you mean 'id'?"
    flow.register_view("odd", "SELECT id AS _epoch FROM orders")
    with pytest.raises(ConfigError, match="'_epoch'"):
        Subscription.of(flow, "odd")
    assert flow.gauges().waiting == {}


def test_closing_ends_a_reader_that_waits(flow):
    changes = Subscription.of(flow, "large", snapshot=False)
    threading.Timer(0.05, changes.close).start()
    assert list(changes) == []


def test_a_reader_that_falls_behind_is_told(flow):
    changes = Subscription.of(flow, "large", snapshot=False, capacity=1)
    order(flow, (1, "ann", 20))
    order(flow, (2, "ann", 20))
    assert changes.get(0) is not None
    with pytest.raises(WatchOverflow):
        changes.get(0)


def test_async_for(flow):
    order(flow, (1, "ann", 20))

    async def read() -> Counter:
        found: Counter = Counter()
        with Subscription.of(flow, "large", as_of=1) as changes:
            order(flow, (2, "bob", 15))
            async for batch in changes:
                found.update(rows(batch))
                if len(found) == 2:
                    break
        return found

    assert asyncio.run(read()) == Counter([(1, "ann", 20, 1, 1), (2, "bob", 15, 2, 1)])


def test_as_an_arrow_reader(flow):
    order(flow, (1, "ann", 20))
    changes = Subscription.of(flow, "large")
    reader = changes.reader()
    assert rows(reader.read_next_batch()) == [(1, "ann", 20, 1, 1)]
    changes.close()
    with pytest.raises(StopIteration):
        reader.read_next_batch()


def test_weights_of_more_than_one_row(flow):
    flow.register_source("bag", "x BIGINT")
    flow.register_view("bagged", "SELECT x FROM bag")
    with Subscription.of(flow, "bagged", snapshot=False) as changes:
        flow.tick("bag", DeltaBatch.from_weighted([{"x": 1, "_weight": 3}]))
        assert rows(changes.get(0)) == [(1, 1, 3)]
