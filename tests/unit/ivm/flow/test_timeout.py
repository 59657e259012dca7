"""A tick with a timeout is done in time or fails whole, and its delta is kept as after every failed tick."""

import threading
import time

import pytest
from prometheus_client import CollectorRegistry

from weirflow.errors import ConfigError, FlowError, TickTimeout
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.kernel.deadline import Deadline, check, checked, remaining
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

AT_ONCE = 1e-9
TOTALS = "SELECT k, SUM(v) AS total FROM t GROUP BY k"
# Each row of one side meets each of the other: minutes of work, of which nothing is left.
ENDLESS = "SELECT a.v FROM t AS a JOIN t AS b ON a.k = b.k AND a.v + b.v < 0"


@pytest.fixture(params=["here", "in shards"])
def flow(request, tmp_path):
    if request.param == "here":
        with IncrementalFlow() as one:
            yield one
    else:
        with PartitionedFlow(str(tmp_path), 2, InThisProcess(), registry=CollectorRegistry()) as one:
            yield one


def with_totals(flow):
    flow.register_source("t", "k STRING, v BIGINT")
    flow.register_view("totals", TOTALS)
    flow.tick("t", [{"k": "a", "v": 1}])
    return flow


def rows(flow, view="totals"):
    return sorted(map(tuple, (row.values() for row in flow.snapshot(view).to_pylist())))


def test_a_tick_that_runs_out_of_time_has_changed_nothing_and_is_pending(flow):
    with_totals(flow)
    with pytest.raises(TickTimeout, match="did not finish within 1e-09 s") as caught:
        flow.tick("t", [{"k": "b", "v": 2}], timeout=AT_ONCE)
    assert caught.value.code == "TICK_TIMEOUT"
    assert isinstance(caught.value, FlowError)
    assert (flow.epoch, flow.pending, rows(flow), rows(flow, "t")) == (1, True, [("a", 1)], [("a", 1)])


def test_it_can_be_retried_with_more_time(flow):
    with_totals(flow)
    with pytest.raises(TickTimeout):
        flow.tick("t", [{"k": "b", "v": 2}], timeout=AT_ONCE)
    with pytest.raises(TickTimeout):
        flow.retry(timeout=AT_ONCE)
    assert flow.pending
    assert flow.retry(timeout=60).epoch == 2
    assert (flow.pending, rows(flow)) == (False, [("a", 1), ("b", 2)])


def test_it_can_be_discarded(flow):
    with_totals(flow)
    with pytest.raises(TickTimeout):
        flow.load("t", [{"k": "b", "v": 2}], timeout=AT_ONCE)
    flow.discard()
    flow.tick("t", [{"k": "c", "v": 3}], timeout=60)
    assert (flow.epoch, rows(flow)) == (2, [("a", 1), ("c", 3)])


def test_an_endless_join_ends_in_time_and_no_other_flow_notices():
    slow, other = with_totals(IncrementalFlow()), with_totals(IncrementalFlow())
    slow.register_view("endless", ENDLESS)
    done = threading.Event()

    def tick_meanwhile():
        for number in range(20):
            other.tick("t", [{"k": "a", "v": number}], timeout=60)
        done.set()

    meanwhile = threading.Thread(target=tick_meanwhile)
    started = time.monotonic()
    meanwhile.start()
    with pytest.raises(TickTimeout, match=r"within 0\.5 s"):
        slow.tick("t", {"k": ["a"] * 60_000, "v": list(range(60_000))}, timeout=0.5)
    assert time.monotonic() - started < 10
    meanwhile.join(60)
    assert done.is_set()
    assert rows(other) == [("a", 1 + sum(range(20)))]
    assert (slow.epoch, slow.pending, rows(slow)) == (1, True, [("a", 1)])
    slow.discard()
    slow.tick("t", [{"k": "a", "v": -5}])
    assert rows(slow, "endless") == [(-5,), (-5,), (1,)]


def test_endless_recursion_ends_in_time():
    flow = IncrementalFlow()
    flow.register_source("edge", "a BIGINT, b BIGINT")
    flow.register_view(
        "reach",
        "WITH RECURSIVE r(n) AS (SELECT a FROM edge UNION SELECT r.n + e.b FROM r JOIN edge AS e ON e.a = 0)"
        " SELECT n FROM r",
    )
    started = time.monotonic()
    with pytest.raises(TickTimeout):
        flow.tick("edge", [{"a": 0, "b": 1}], timeout=0.2)
    assert time.monotonic() - started < 10
    assert (flow.epoch, flow.pending, flow.snapshot("reach").num_rows) == (0, True, 0)


def test_the_wait_for_a_reader_counts(flow):
    with_totals(flow)
    with flow.watch_output("totals", capacity=1, policy="block") as watch:
        flow.tick("t", [{"k": "b", "v": 2}])
        started = time.monotonic()
        with pytest.raises(TickTimeout):
            flow.tick("t", [{"k": "c", "v": 3}], timeout=0.2)
        assert 0.2 <= time.monotonic() - started < 10
        assert watch.get(timeout=10)[0] == 2
        assert flow.retry(timeout=60).epoch == 3
        assert watch.get(timeout=10)[0] == 3


def test_a_feed_that_runs_out_of_time_is_not_kept(flow):
    from weirflow.ivm.flow.position import Position  # noqa: PLC0415 - read by this test alone

    with_totals(flow)
    with pytest.raises(TickTimeout):
        flow.feed("t", [{"k": "b", "v": 2}], position=Position("s", "o", "1"), timeout=AT_ONCE)
    assert not flow.pending
    flow.feed("t", [{"k": "b", "v": 2}], position=Position("s", "o", "1"), timeout=60)
    assert rows(flow) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "1"])
def test_a_timeout_is_a_number_of_seconds(flow, timeout):
    with_totals(flow)
    with pytest.raises(ConfigError, match="timeout"):
        flow.tick("t", [{"k": "b", "v": 2}], timeout=timeout)
    assert (flow.epoch, flow.pending) == (1, False)


def test_a_deadline_holds_inside_of_its_block_and_its_thread():
    check()
    assert remaining() is None
    late = Deadline(AT_ONCE)
    with late:
        assert remaining() == 0.0
        seen = []
        thread = threading.Thread(target=lambda: seen.append(remaining()))
        thread.start()
        thread.join(10)
        with Deadline(None):
            check()
        with pytest.raises(TickTimeout):
            check()
        with pytest.raises(TickTimeout):
            list(checked([1]))
    with Deadline(60):
        check()
        assert list(checked(iter(range(3000)))) == list(range(3000))
        with Deadline(30):
            assert 20 < remaining() < 31
        assert 50 < remaining() < 61
    assert remaining() is None
    assert seen == [None]
    assert list(checked(range(3000))) == list(range(3000))
