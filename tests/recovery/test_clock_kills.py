"""A flow that follows the clock and is killed goes on with the readings it had: no row enters or leaves twice."""

import pytest
from support import clock_flow
from support.nursery import Nursery

TICKS = 16
POINTS = (
    "tick.before_log",
    "log.half_appended",
    "tick.before_publish",
    "checkpoint.before_manifest_put",
    "restore.in_replay",
)


@pytest.fixture(scope="module")
def nursery():
    with Nursery(clock_flow.__file__) as nursery:
        yield nursery


@pytest.fixture(scope="module")
def undisturbed():
    with clock_flow.opened(None) as flow:
        clock_flow.declare(flow)
        clock_flow.run(flow, TICKS)
        return clock_flow.contents(flow)


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_no_reading_and_takes_none_anew(nursery, tmp_path, undisturbed, point):
    path = tmp_path / "flow"
    first = nursery.live(path, 7, point=point, nth=2)
    second = nursery.live(path, TICKS, point=point, nth=1)
    assert first or second, f"{point} was never reached"
    nursery.live(path, TICKS)
    with clock_flow.opened(path) as flow:
        assert clock_flow.contents(flow) == undisturbed
