"""Functions that a tick calls cannot tick the same flow: the tick that they are told of has not ended."""

import pytest
from support.sunk_shop import declare, order

from weirflow.errors import FlowReentered, SinkFailed
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow


@pytest.fixture(params=["in this process", "in shards"])
def flow(request, tmp_path):
    if request.param == "in shards":
        made = PartitionedFlow(str(tmp_path / "flow"), 2, InThisProcess())
    else:
        made = IncrementalFlow("shop", path=tmp_path / "flow")
    with declare(made) as opened:
        yield opened


ACTS = {
    "tick": lambda flow: order(flow, 1, "bob"),
    "replace_view": lambda flow: flow.replace_view("totals", "SELECT customer, 1 AS total FROM orders"),
    "refresh_view": lambda flow: flow.refresh_view("totals"),
    "close_flow": lambda flow: flow.close(),
}


@pytest.mark.parametrize("act", ["tick", "replace_view", "refresh_view", "close_flow"])
def test_a_callback_cannot_change_the_flow_that_calls_it(flow, act):
    errors, seen = [], []

    def change(epoch, _):
        with pytest.raises(FlowReentered, match="another thread") as error:
            ACTS[act](flow)
        errors.append(error.value)

    flow.on_delta("totals", change)
    flow.on_delta("totals", lambda epoch, _: seen.append(epoch))
    assert [order(flow, 5).epoch, order(flow, 7).epoch] == [1, 2]
    assert (seen, len(errors)) == ([1, 2], 2)
    assert flow.snapshot("totals").to_pylist() == [{"customer": "ann", "total": 12}]


@pytest.mark.parametrize("act", ["tick", "refresh_view", "flush", "close", "close_flow"])
def test_a_function_cannot_change_the_flow_whose_deltas_it_gets(flow, act):
    errors, seen = [], []
    acts = {**ACTS, "flush": lambda _: out.flush(), "close": lambda _: out.close()}

    def change(epoch, _):
        with pytest.raises(FlowReentered, match="another thread") as error:
            acts[act](flow)
        errors.append(error.value)
        seen.append(epoch)

    out = flow.sink("totals", change)
    assert [order(flow, 5).epoch, order(flow, 7).epoch] == [1, 2]
    assert (seen, len(errors), out.position, out.closed) == ([1, 2], 2, 2, False)
    assert flow.snapshot("totals").to_pylist() == [{"customer": "ann", "total": 12}]


def test_a_function_that_insists_is_a_sink_that_fails(flow):
    out = flow.sink("totals", lambda *_: order(flow, 1))
    order(flow, 5)
    with pytest.raises(SinkFailed, match="cannot tick"):
        order(flow, 7)
    assert (flow.epoch, out.position) == (1, 0)
    with pytest.raises(SinkFailed):
        out.close()
    assert order(flow, 7).epoch == 2


def test_a_function_cannot_have_its_flow_checkpointed(tmp_path):
    with declare(IncrementalFlow("shop", path=tmp_path / "flow")) as flow:
        errors = []

        def save(*_):
            with pytest.raises(FlowReentered) as error:
                flow.checkpoint()
            errors.append(error.value)

        flow.sink("totals", save)
        order(flow, 5)
        assert len(errors) == 1


def test_a_function_may_read_its_flow_and_tick_another(flow):
    other = declare(IncrementalFlow("other"))
    seen = []

    def copy(epoch, _):
        seen.append(flow.snapshot("totals").to_pylist())
        order(other, epoch)

    flow.sink("totals", copy)
    flow.on_delta("totals", copy)
    order(flow, 5)
    assert seen == [[{"customer": "ann", "total": 5}]] * 2
    assert other.snapshot("totals").to_pylist() == [{"customer": "ann", "total": 2}]
