"""A coordinator that was late: while it slept another one took the flow over, without any lease that would tell."""

import uuid

import pytest

from weirflow.errors import LeaseLost
from weirflow.failpoints import watch_failpoints
from weirflow.ivm.sharded.commits import Commit
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.sharded.recent_ticks import recent_ticks

MANY = 40
"""Ticks after which commits of before are deleted, so that their names are free."""


@pytest.fixture
def place():
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture(autouse=True)
def unwatched():
    yield
    watch_failpoints(None)


def opened(place):
    flow = PartitionedFlow(place, 2, InThisProcess())
    flow.register_source("orders", "customer STRING, amount BIGINT")
    flow.register_view("totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    return flow


def order(flow, customer):
    flow.tick("orders", [{"customer": customer, "amount": 1}])


def totals(flow):
    return sorted((row["customer"], row["total"]) for row in flow.snapshot("totals").to_pylist())


def take_over(place, ticks):
    """What happens at a failpoint the first time: another coordinator ticks so often."""

    def rival(name):
        if name == at:
            watch_failpoints(None)
            with opened(place) as other:
                for _ in range(ticks):
                    order(other, "rival")

    at = "partitioned.before_commit"
    watch_failpoints(rival)


@pytest.mark.parametrize("ticks", [1, MANY])
def test_who_was_late_has_published_nothing(place, ticks):
    with opened(place) as flow:
        order(flow, "early")
        take_over(place, ticks)
        with pytest.raises(LeaseLost, match="Another coordinator of this flow has published"):
            order(flow, "late")
        with pytest.raises(LeaseLost):
            flow.retry()
    with opened(place) as flow:
        # The rival found the tick that was begun, and carried it out before its own.
        assert totals(flow) == [("early", 1), ("late", 1), ("rival", ticks)]
        assert flow.epoch == ticks + 2


def test_what_the_late_one_left_is_no_tick_of_the_flow(place):
    with opened(place) as flow:
        order(flow, "early")
        take_over(place, MANY)
        with pytest.raises(LeaseLost):
            order(flow, "late")
    with opened(place) as flow:
        watch = flow.watch_output("totals", from_epoch=flow.epoch - 2)
        order(flow, "next")
        epochs = [next(watch)[0] for _ in range(3)]
        assert epochs == list(range(flow.epoch - 2, flow.epoch + 1))


def commit(number, epoch, fence, kind="tick"):
    return Commit("flow", number, epoch, fence, kind, "definition", 2)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(commit(4, 3, fence=1), 4, id="left by the late one"),
        pytest.param(commit(4, 4, fence=2), 3, id="of the same coordinator"),
    ],
)
def test_the_ticks_that_are_known_begin_behind_what_nobody_went_on_from(before, after):
    found = recent_ticks([before, commit(5, 5, fence=2), commit(6, 6, fence=2)])
    assert found.after == after
    assert [epoch for epoch, _ in found.outputs] == list(range(after + 1, 7))


def test_the_ticks_of_one_are_those_of_the_next_that_took_the_flow_over():
    found = recent_ticks([commit(4, 3, fence=1), commit(5, 3, fence=2, kind="open"), commit(6, 4, fence=2)])
    assert [epoch for epoch, _ in found.outputs] == [3, 4]
