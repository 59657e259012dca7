"""Sinks of a flow in shards: every delta once, also across processes, as long as commits are kept."""

from collections import Counter

import pytest
from support.sunk_shop import ANN_5_THEN_12, declare, order, written

from weirflow.errors import ConfigError, SinkConflict, SinkFailed
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow


def shop(path, **options):
    return declare(PartitionedFlow(str(path / "flow"), 2, InThisProcess(), **options))


def test_a_changelog_holds_every_row_with_its_weight_and_epoch(tmp_path):
    with shop(tmp_path) as flow:
        out = flow.sink("totals", tmp_path / "out")
        order(flow, 5)
        order(flow, 7)
        assert written(tmp_path / "out") == ANN_5_THEN_12
        assert out.position == 2


def test_a_new_sink_begins_with_the_rows_of_now(tmp_path):
    with shop(tmp_path) as flow:
        order(flow, 5)
        order(flow, 3, "bob")
        order(flow, 7)
        flow.sink("totals", tmp_path / "out")
        order(flow, 1, "cleo")
    assert written(tmp_path / "out") == [("ann", 12, 1, 3), ("bob", 3, 1, 3), ("cleo", 1, 1, 4)]


@pytest.mark.parametrize("every", [1, 2])
def test_a_reopened_flow_goes_on_where_the_target_is(tmp_path, every):
    with shop(tmp_path) as flow:
        flow.sink("totals", tmp_path / "out", every=every)
        order(flow, 5)
    with shop(tmp_path) as flow:
        order(flow, 7)  # before the sink is there again
        flow.sink("totals", tmp_path / "out", every=every)
    assert written(tmp_path / "out") == ANN_5_THEN_12


def test_a_function_is_told_every_delta_by_whichever_process(tmp_path):
    told = Counter()

    def tell(epoch, delta):
        told.update((epoch, *row.values()) for row in delta.to_arrow().to_pylist())

    for amount in (5, 7):
        with shop(tmp_path) as flow:
            flow.sink("totals", tell)
            order(flow, amount)
    assert sorted(told.elements()) == [(1, "ann", 5, 1), (2, "ann", 5, -1), (2, "ann", 12, 1)]


def test_a_sink_that_was_away_too_long_says_what_to_do(tmp_path):
    with shop(tmp_path) as flow:
        flow.sink("totals", tmp_path / "out")
        order(flow, 5)
    with shop(tmp_path, history=2) as flow:
        for _ in range(4):
            order(flow, 1)
        with pytest.raises(SinkConflict, match="not kept any more") as refused:
            flow.sink("totals", tmp_path / "out")
        assert "resync=True" in refused.value.hint
        flow.sink("totals", tmp_path / "out", resync=True)
        order(flow, 1)
    assert written(tmp_path / "out") == [("ann", 9, -1, 6), ("ann", 9, 1, 5), ("ann", 10, 1, 6)]


def test_a_failed_write_undoes_no_tick_and_holds_the_next_one_back(tmp_path):
    with shop(tmp_path) as flow:
        told, broken = [], [True]

        def tell(epoch, delta):
            if epoch and broken:
                raise OSError("full")
            told.append(epoch)

        flow.sink("totals", tell)
        order(flow, 5)
        assert flow.epoch == 1
        with pytest.raises(SinkFailed, match="full"):
            order(flow, 7)
        assert (flow.epoch, flow.pending) == (1, False)
        broken.clear()
        order(flow, 7)
        assert (flow.epoch, told[-2:]) == (2, [1, 2])


def test_what_a_sink_cannot_do_is_refused(tmp_path):
    with shop(tmp_path) as flow:
        with pytest.raises(ConfigError, match="no Session"):
            flow.sink("totals", table="somewhere")
        with pytest.raises(ConfigError, match="one place"):
            flow.sink("totals")
        with pytest.raises(ConfigError, match="only tables can be merged"):
            flow.sink("totals", tmp_path / "out", mode="upsert", key="customer")
        out = flow.sink("totals", tmp_path / "out")
        order(flow, 1)
        flow.drop("totals")
        assert out.closed
