"""The deadline of a tick also holds for what Spark does for it: its jobs are stopped."""

import time

import pytest

from weirflow.errors import TickTimeout

ENDLESS = "SELECT a.v FROM t AS a JOIN t AS b ON a.k = b.k AND a.v + b.v < 0"
RECOMPUTED = (
    "SELECT v, COUNT(*) AS n FROM t CROSS JOIN range(2000000000000) AS r WHERE (r.id + v) % 7 = 1 AND v > 1 GROUP BY v"
)


@pytest.fixture
def flow_in(session):
    made = []

    def make(shards):
        made.append(session.flow(f"timeout_{shards}", partitions=shards))
        made[-1].register_source("t", "k BIGINT, v BIGINT")
        return made[-1]

    yield make
    for flow in made:
        flow.close()


def stopped(session, flow, delta):
    started = time.monotonic()
    with pytest.raises(TickTimeout):
        flow.tick("t", delta, timeout=2)
    taken = time.monotonic() - started
    assert 2 <= taken < 30
    assert (flow.epoch, flow.pending) == (1, True)
    until = time.monotonic() + 30
    while list(session.operations) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(session.operations) == []


@pytest.mark.parametrize(
    ("shards", "view", "mode", "slow"),
    [
        (None, RECOMPUTED, "diff", [{"k": 1, "v": 2}]),
        (2, ENDLESS, "incremental", {"k": [1] * 60_000, "v": list(range(60_000))}),
        pytest.param(2, RECOMPUTED, "diff", [{"k": 1, "v": 2}], marks=pytest.mark.campaign),
    ],
    ids=["recomputed", "in shards", "recomputed in shards"],
)
def test_a_tick_that_takes_too_long_is_stopped_and_can_be_discarded(session, flow_in, shards, view, mode, slow):
    flow = flow_in(shards)
    flow.register_view("v", view, mode=mode)
    flow.tick("t", [{"k": 1, "v": 1}], timeout=60)
    stopped(session, flow, slow)
    flow.discard()
    assert flow.tick("t", [{"k": 2, "v": -5}], timeout=60).epoch == 2
    expected = [{"v": -5}] if mode == "incremental" else []
    assert sorted(flow.snapshot("v").to_pylist(), key=repr) == expected
    assert sorted(row["v"] for row in flow.snapshot("t").to_pylist()) == [-5, 1]
