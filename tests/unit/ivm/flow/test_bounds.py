"""What a flow remembers beside its rows is bounded in bytes: history, tokens, digests."""

import time

import pyarrow as pa
import pytest

from weirflow.errors import ConfigError, DataError, HistoryGone
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.flow.outputs.history import History
from weirflow.ivm.flow.seen_content import SeenContent
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


def evicted(flow):
    line = next(line for line in flow.metrics().splitlines() if line.startswith("weirflow_dedup_evicted_total"))
    return float(line.rpartition(" ")[2])


def test_what_dedup_forgets_is_counted():
    with IncrementalFlow(name="forgetful") as flow:
        flow.register_source("t", "v BIGINT", dedup=3)
        assert [flow.tick("t", [{"v": v}]).dropped for v in (1, 2, 3, 1)] == [0, 0, 0, 1]
        assert evicted(flow) == 0
        assert [flow.tick("t", [{"v": v}]).dropped for v in (4, 5, 1, 5, 3)] == [0, 0, 0, 1, 0]
        assert evicted(flow) == 4
        flow.register_view("bad", "SELECT 1 / v AS w FROM t")
        with pytest.raises(DataError):
            flow.tick("t", [{"v": 0}])
        flow.discard()
        assert evicted(flow) == 4


@pytest.mark.parametrize("how", ["content", 10_000_000])
def test_content_is_remembered_ten_million_deltas_long_and_over_a_restart(tmp_path, how):
    with IncrementalFlow(path=tmp_path) as flow:
        flow.register_source("t", "v BIGINT", dedup=how)
        assert flow.source("t").dedup == 10_000_000
        for number in range(50):
            flow.tick("t", [{"v": number}])
        flow.checkpoint()
        flow.tick("t", [{"v": 50}])
    with IncrementalFlow(path=tmp_path) as flow:
        flow.register_source("t", "v BIGINT", dedup="content")
        assert [flow.tick("t", [{"v": v}]).dropped for v in (0, 49, 50, 51, 51)] == [1, 1, 1, 0, 1]
        assert sorted(flow.snapshot("t").column("v").to_pylist()) == [*range(52)]


def test_a_look_at_a_long_history_is_no_search():
    seen = SeenContent(200_000)
    seen.extend(number.to_bytes(16, "little") for number in range(250_000))
    assert len(seen) == 200_000
    assert [number.to_bytes(16, "little") in seen for number in (0, 49_999, 50_000, 249_999)] == [
        False,
        False,
        True,
        True,
    ]
    started = time.process_time()
    assert not any(number.to_bytes(16, "big") in seen for number in range(1, 10_000))
    assert time.process_time() - started < 1  # a search through a list takes minutes


def test_a_wrong_word_for_dedup_is_refused():
    with pytest.raises(ConfigError, match=r"'contents'.*'content'"):
        IncrementalFlow().register_source("t", "v BIGINT", dedup="contents")
