"""A flow that let go of rows is killed while its state goes to other shards: that has happened, or it has not."""

import pytest
from support import moved_shop
from support.nursery import Nursery

from weirflow.failpoints import MOVED_POINTS
from weirflow.ivm.flow import IncrementalFlow

KILLS = [
    ("partitioned.before_commit", 7),  # of the first move: an open, a definition and four ticks come before it
    ("moved.after_pack", 2),
    ("moved.before_pack", 5),
    ("moved.before_pack", 1),
    ("checkpoint.before_pack", 30),
    ("partitioned.after_commit", 7),
    ("moved.after_pack", 9),
    *((point, nth) for point in MOVED_POINTS for nth in (3, 8)),
]
FIRST = 2
"""Kills that are part of every run; the others are for campaigns."""
THEN = {"partitioned.before_commit": (4, 3), "partitioned.after_commit": (4, 2)}
"""The epoch and the shards after a kill around the commit of the first move."""


@pytest.fixture(scope="module")
def nursery():
    with Nursery(moved_shop.__file__) as nursery:
        yield nursery


@pytest.fixture(scope="module")
def expected():
    """What is in the views after each tick."""
    with IncrementalFlow("moved") as flow:
        moved_shop.declare(flow)
        found = [moved_shop.contents(flow)]
        for delta in moved_shop.deltas():
            flow.tick(delta)
            found.append(moved_shop.contents(flow))
        return found


@pytest.mark.parametrize(
    ("point", "nth"), [*KILLS[:FIRST], *(pytest.param(*one, marks=pytest.mark.campaign) for one in KILLS[FIRST:])]
)
def test_state_has_moved_or_it_has_not(nursery, tmp_path, expected, point, nth):
    path = str(tmp_path / "flow")
    assert nursery.live(path, moved_shop.TICKS, point=point, nth=nth), f"{point} was not reached"
    with moved_shop.open_flow(path) as flow:
        assert (flow.epoch, flow.partitions) == THEN.get(point, (flow.epoch, flow.partitions))
        assert flow.partitions in moved_shop.SHARDS.values()
        assert moved_shop.contents(flow) == expected[flow.epoch]
    nursery.live(path, moved_shop.TICKS)
    with moved_shop.open_flow(path) as flow:
        assert (flow.epoch, flow.partitions) == (moved_shop.TICKS, 5)
        assert moved_shop.contents(flow) == expected[moved_shop.TICKS]
        flow.rescale(1)
        flow.tick(moved_shop.deltas()[moved_shop.TICKS])
        assert moved_shop.contents(flow) == expected[moved_shop.TICKS + 1]
