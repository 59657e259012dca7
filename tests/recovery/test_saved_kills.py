"""A flow in shards that is killed while it is saved, or another that goes on from there: nothing is half done."""

import pytest
from support import saved_shop, shop_flow
from support.nursery import Nursery

from weirflow.ivm.flow import IncrementalFlow

TICKS = 8
POINTS = [
    ("saved.before_pack", 1),  # as it is saved
    ("checkpoint.before_manifest_put", 1),
    ("checkpoint.after_manifest_put", 1),
    ("saved.before_pack", 20),  # as it is restored
    ("partitioned.before_commit", 12),
    ("partitioned.after_commit", 12),
    ("partitioned.before_job", 11),  # into other shards
    ("partitioned.before_commit", 14),
    ("partitioned.after_commit", 14),
]


@pytest.fixture(scope="module")
def nursery():
    with Nursery(saved_shop.__file__) as nursery:
        yield nursery


@pytest.fixture(scope="module")
def expected():
    with IncrementalFlow("shop") as flow:
        shop_flow.declare(flow)
        shop_flow.run(flow, TICKS)
        return shop_flow.contents(flow)


@pytest.mark.parametrize(("point", "nth"), POINTS)
def test_what_was_saved_is_whole_and_what_goes_on_has_all_of_it(nursery, tmp_path, expected, point, nth):
    path = str(tmp_path / "shop")
    assert nursery.live(path, TICKS, point=point, nth=nth), f"{point} was not reached"
    assert saved_shop.newest(path) in (0, TICKS)
    nursery.live(path, TICKS)
    for shards in (3, saved_shop.OTHER_SHARDS):
        with saved_shop.other(path, shards) as flow:
            assert (flow.epoch, flow.pending) == (TICKS, False)
            assert shop_flow.contents(flow) == expected
            shop_flow.tick(flow, TICKS)  # its token is known
            assert flow.epoch == TICKS
            shop_flow.tick(flow, TICKS + 1)
            assert flow.epoch == TICKS + 1
