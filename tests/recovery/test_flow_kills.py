"""A flow that is killed at any of its failpoints goes on as if nothing had happened: no tick is lost or doubled."""

import random

import pytest
from support import shop_flow
from support.nursery import Nursery

from weirflow.failpoints import POINTS
from weirflow.ivm.flow import IncrementalFlow

TICKS = 17
# So many that the log holds some entries when the next life begins.
FIRST_LIFE = 10
# What another failpoint has to leave behind before this one is reached.
FIRST = {"log.before_truncate": "log.half_appended"}


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as nursery:
        yield nursery


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed") / "shop"
    with IncrementalFlow("shop") as flow:
        shop_flow.declare(flow)
        shop_flow.open_sinks(flow, path)
        shop_flow.run(flow, TICKS)
        contents = shop_flow.contents(flow)
    return contents, shop_flow.sunk(path)


def check(path, undisturbed):
    with IncrementalFlow("shop", path=path) as flow:
        assert flow.epoch == TICKS
        assert (shop_flow.contents(flow), shop_flow.sunk(path)) == undisturbed


@pytest.mark.parametrize("nth", [1, pytest.param(2, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_and_doubles_nothing(nursery, tmp_path, undisturbed, point, nth):
    path = tmp_path / "shop"
    if not killed_at(nursery, path, point, nth):
        path = tmp_path / "once"  # a point that these lives reach only once
        assert killed_at(nursery, path, point, 1), f"{point} was never reached"
    nursery.live(path, TICKS)
    check(path, undisturbed)


def killed_at(nursery, path, point, nth):
    """Two lives of a flow, one after the other; whether one of them ended at the nth time it came to the point."""
    first = nursery.live(path, FIRST_LIFE, point=FIRST.get(point, point), nth=nth)
    second = nursery.live(path, TICKS, point=point, nth=1 if point in FIRST else nth)
    return second or (first and point not in FIRST)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(340))
def test_kill_after_kill_loses_and_doubles_nothing(nursery, tmp_path, undisturbed, seed):
    chosen = random.Random(seed)
    path = tmp_path / "shop"
    kills = 0
    while kills < 4:
        every = chosen.choice([0, 1, 5, 9])
        kills += nursery.live(
            path, TICKS, point=chosen.choice(POINTS), nth=chosen.randrange(1, 12), checkpoint_every=every
        )
        if chosen.random() < 0.1:
            break
    nursery.live(path, TICKS)
    check(path, undisturbed)


def test_a_flow_that_is_closed_goes_on(nursery, tmp_path, undisturbed):
    for ticks in (5, 11, 11, TICKS):
        assert not nursery.live(tmp_path / "shop", ticks)
    check(tmp_path / "shop", undisturbed)
