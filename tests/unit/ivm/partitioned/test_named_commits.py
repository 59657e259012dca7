"""A flow in shards can be opened as it was at a commit that somebody else has remembered."""

import uuid

import pyarrow as pa
import pytest

from weirflow import DeltaBatch
from weirflow.errors import ObjectNotFound
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

TOTALS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def place():
    return f"memory://{uuid.uuid4().hex}"


def opened(place, at=None):
    flow = PartitionedFlow(place, 2, InThisProcess(), at=at)
    flow.register_source("orders", "customer STRING, amount BIGINT")
    flow.register_view("totals", TOTALS)
    return flow


def order(flow, customer, amount):
    flow.tick("orders", [{"customer": customer, "amount": amount}])
    return flow._backend.commit_number


def totals(flow):
    return sorted((row["customer"], row["total"]) for row in flow.snapshot("totals").to_pylist())


def test_what_came_behind_a_commit_is_undone(place):
    with opened(place) as flow:
        named = order(flow, "ann", 5)
        order(flow, "ann", 7)
        order(flow, "bob", 1)
    with opened(place, named) as flow:
        assert (flow.epoch, totals(flow)) == (1, [("ann", 5)])
        order(flow, "cid", 2)
    with opened(place) as flow:
        assert (flow.epoch, totals(flow)) == (2, [("ann", 5), ("cid", 2)])


def test_a_commit_that_is_named_is_kept_while_others_go(place):
    with opened(place) as flow:
        named = order(flow, "ann", 5)
    for _ in range(3):
        with opened(place, named) as flow:
            for amount in range(10):
                order(flow, "bob", amount)
    with opened(place, named) as flow:
        assert totals(flow) == [("ann", 5)]


def test_a_tick_that_was_begun_behind_a_commit_is_given_up(place):
    with opened(place) as flow:
        named = order(flow, "ann", 5)
        with pytest.raises(Exception, match="overflow"):
            flow.tick("orders", [{"customer": "ann", "amount": 2**63 - 1}])
        assert flow.pending
    with opened(place, named) as flow:
        assert not flow.pending
        order(flow, "ann", 1)
        assert totals(flow) == [("ann", 6)]


def test_a_commit_that_is_gone_is_an_error(place):
    with pytest.raises(ObjectNotFound):
        opened(place, 3)


def test_what_a_tick_changed_is_read_with_weights(place):
    with opened(place) as flow:
        order(flow, "ann", 5)
        order(flow, "ann", 7)
        work = flow._backend.changed_rows("totals")
        changed = pa.Table.from_batches([batch for shard in range(2) for batch in work(shard)], work.schema)
    assert DeltaBatch.from_weighted(changed) == DeltaBatch.from_weighted(
        [{"customer": "ann", "total": 5, "_weight": -1}, {"customer": "ann", "total": 12, "_weight": 1}]
    )
