"""A partitioned flow that is killed anywhere goes on as if nothing had happened: no tick lost, no delta told twice."""

import random
from pathlib import Path

import pytest
from support import partitioned_shop, shop_flow
from support.generator.campaign import seeds, shown
from support.nursery import Nursery

from weirflow.errors import LeaseLost
from weirflow.failpoints import PARTITIONED_POINTS
from weirflow.ivm.flow import IncrementalFlow

TICKS = 22
# So many that old commits are deleted in the next life.
FIRST_LIFE = 12


@pytest.fixture(scope="module")
def nursery():
    with Nursery(partitioned_shop.__file__) as nursery:
        yield nursery


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed") / "shop"
    with IncrementalFlow("shop") as flow:
        shop_flow.declare(flow)
        shop_flow.run(flow, TICKS)
        contents = shop_flow.contents(flow)
    with partitioned_shop.open_shop(path) as flow:
        assert list(partitioned_shop.run(flow, TICKS, Path(f"{path}-told"))) == list(range(1, TICKS + 1))
        assert shop_flow.contents(flow) == contents
    return contents, partitioned_shop.told(Path(f"{path}-told"))


def check(path, undisturbed):
    with partitioned_shop.open_shop(path) as flow:
        assert flow.epoch == TICKS
        assert not flow.pending
        assert (shop_flow.contents(flow), partitioned_shop.told(Path(f"{path}-told"))) == undisturbed


@pytest.mark.parametrize("nth", [pytest.param(1, marks=pytest.mark.campaign), 6])
@pytest.mark.parametrize("point", PARTITIONED_POINTS)
def test_a_kill_loses_and_doubles_nothing(nursery, tmp_path, undisturbed, point, nth):
    path = tmp_path / "shop"
    nursery.live(path, FIRST_LIFE, point=point, nth=nth)
    assert nursery.live(path, TICKS, point=point, nth=nth), f"{point} was not reached"
    nursery.live(path, TICKS)
    check(path, undisturbed)


@pytest.mark.campaign
def test_kill_after_kill_loses_and_doubles_nothing(nursery, tmp_path, undisturbed, capsys):
    show, kills = shown(capsys), 0
    for seed in seeds(40):
        chosen = random.Random(seed)
        path = tmp_path / str(seed)
        while nursery.live(path, TICKS, point=chosen.choice(PARTITIONED_POINTS), nth=chosen.randrange(1, 8)):
            kills += 1
        check(path, undisturbed)
        show(f"up to seed {seed}: {kills} kills")


@pytest.fixture(scope="module")
def undisturbed_one_by_one(tmp_path_factory):
    path = tmp_path_factory.mktemp("one-by-one") / "shop"
    with partitioned_shop.open_shop(path) as flow:
        for _ in partitioned_shop.run(flow, TICKS, Path(f"{path}-told"), recomputed=None):
            pass
        return shop_flow.contents(flow), partitioned_shop.told(Path(f"{path}-told"))


@pytest.mark.parametrize("nth", [pytest.param(1, marks=pytest.mark.campaign), 3])
@pytest.mark.parametrize("point", PARTITIONED_POINTS)
def test_a_kill_of_ticks_that_share_jobs_loses_and_doubles_nothing(
    nursery, tmp_path, undisturbed_one_by_one, point, nth
):
    path = tmp_path / "shop"
    killed = nursery.live(path, TICKS, point=point, nth=nth, together=True)
    # Old commits are deleted only when there are many.
    assert killed or point == "partitioned.before_collect"
    nursery.live(path, TICKS, point=point, nth=nth, together=True)
    nursery.live(path, TICKS, together=True)
    check(path, undisturbed_one_by_one)


def test_ticks_that_were_begun_together_survive_that_their_heirs_are_killed_too(nursery, tmp_path):
    path = tmp_path / "shop"
    assert not nursery.live(path, 4, together=True)
    # The first commit of a life says that it has the flow, the second is that of four ticks.
    assert nursery.live(path, 8, point="partitioned.before_commit", nth=2, together=True)
    for _ in range(2):
        assert nursery.live(path, 0, point="partitioned.before_commit", nth=2, together=True)
    with partitioned_shop.open_shop(path) as flow, IncrementalFlow("shop") as whole:
        shop_flow.declare(whole)
        shop_flow.run(whole, 8)
        assert flow.epoch == 8
        assert shop_flow.contents(flow) == shop_flow.contents(whole)
        assert [flow.epoch_of(f"tick {number}") for number in range(5, 9)] == [5, 6, 7, 8]


def test_a_tick_that_was_begun_survives_that_its_heirs_are_killed_too(nursery, tmp_path):
    path = tmp_path / "shop"
    assert not nursery.live(path, 4)
    # The first commit of a life says that it has the flow, the second is the tick's.
    assert nursery.live(path, 5, point="partitioned.before_commit", nth=2)
    for _ in range(3):
        assert nursery.live(path, 0, point="partitioned.before_commit", nth=2)
    with partitioned_shop.open_shop(path) as flow, IncrementalFlow("shop") as whole:
        shop_flow.declare(whole)
        shop_flow.run(whole, 5)
        assert flow.epoch == 5
        assert shop_flow.contents(flow) == shop_flow.contents(whole)


def test_without_a_lease_the_one_who_opened_last_has_the_say(tmp_path):
    path = tmp_path / "shop"
    with partitioned_shop.open_shop(path) as first, partitioned_shop.open_shop(tmp_path / "other") as other:
        shop_flow.declare(first)
        shop_flow.run(first, 3)
        with partitioned_shop.open_shop(path) as second:
            with pytest.raises(LeaseLost, match="Another coordinator"):
                shop_flow.tick(first, 4)
            shop_flow.run(second, 5)
            with pytest.raises(LeaseLost, match="Another coordinator"):
                first.retry()
            with pytest.raises(LeaseLost, match="Another coordinator"):
                first.register_view("more", "SELECT COUNT(*) AS n FROM orders")
        shop_flow.declare(other)
        shop_flow.run(other, 5)
        with partitioned_shop.open_shop(path) as third:
            assert third.epoch == 5
            assert shop_flow.contents(third) == shop_flow.contents(other)
