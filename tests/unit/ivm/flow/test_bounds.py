"""What a flow remembers beside its rows is bounded in bytes: history, tokens, digests."""

import pyarrow as pa
import pytest

from weirflow.errors import ConfigError, HistoryGone
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.flow.outputs.history import History
from weirflow.ivm.zset.batch import Batch


def new_flow(**options):
    flow = IncrementalFlow(**options)
    flow.register_source("t", "v BIGINT, s STRING")
    flow.register_view("big", "SELECT v, s FROM t WHERE v >= 0")
    return flow


def held(batch):
    return sum(column.get_total_buffer_size() for column in batch.columns)


def test_history_keeps_no_more_bytes_than_it_may():
    history = History(epochs=1000, nbytes=100_000)
    for epoch in range(1, 101):
        history.append(epoch, {"v": Batch.of_arrow(pa.table({"x": pa.array(range(1000), pa.int64())}))})
    kept = history.since(history.oldest, "v")
    assert 1 <= len(kept) < 10
    assert sum(held(delta) + delta.weights.nbytes for _, delta in kept) <= 100_000
    with pytest.raises(HistoryGone):
        history.since(history.oldest - 1, "v")


@pytest.mark.parametrize("view", ["t", "big"])
def test_a_remembered_slice_does_not_keep_the_table_it_was_cut_from(view):
    flow = new_flow()
    table = pa.table({"v": pa.array(range(100_000), pa.int64()), "s": pa.array(["x" * 20] * 100_000)})
    for number in range(20):
        flow.tick("t", table.slice(number * 10, 2))
    kept = flow._backend._outputs.history.since(0, view)
    assert len(kept) == 20
    assert sum(held(delta) for _, delta in kept) < 50_000
    assert flow.snapshot(view, epoch=1).num_rows == 2


def test_a_token_that_is_too_long_is_refused():
    flow = new_flow()
    row = [{"v": 1, "s": "a"}]
    with pytest.raises(ConfigError, match="256 characters") as error:
        flow.tick("t", row, token="x" * 257)
    assert "hash" in error.value.hint
    assert (flow.epoch, flow.pending) == (0, False)
    assert [flow.tick("t", row, token="x" * 256).replayed for _ in range(2)] == [False, True]


def test_only_the_last_tokens_are_remembered(monkeypatch):
    monkeypatch.setattr("weirflow.ivm.flow.state._TOKENS", 5)
    flow = new_flow()
    for number in range(8):
        flow.tick("t", [{"v": number, "s": "a"}], token=str(number))
    assert list(flow._backend._state.tokens) == ["3", "4", "5", "6", "7"]


def test_as_many_digests_are_remembered_as_were_asked_for():
    flow = IncrementalFlow()
    flow.register_source("t", "v BIGINT", dedup=3)
    for number in range(10):
        flow.tick("t", [{"v": number}])
    assert len(flow._backend._state.inputs["t"].digests) == 3
