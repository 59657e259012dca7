"""A view in a vector store that somebody else has written."""

import logging

import pytest
from support.memory_vectors import MemoryVectors

from weirflow import DeltaBatch, IncrementalFlow, IvmVectorSink, spawn_vector_view
from weirflow.errors import ConfigError, SinkConflict, SinkFailed, WeirflowError


def library(path=None):
    flow = IncrementalFlow("library", path=path)
    flow.register_source("docs", "shelf STRING, id BIGINT, body STRING, v ARRAY<DOUBLE>")
    flow.register_view("chunks", "SELECT shelf, id, body, v FROM docs")
    return flow


def doc(number, body="a", v=(1.0, 0.5), shelf="x"):
    return {"shelf": shelf, "id": number, "body": body, "v": None if v is None else list(v)}


def held(store):
    return sorted((row["id"], row["body"], row["v"]) for row in store.rows.values())


def test_rows_come_change_and_go_by_key():
    flow, store = library(), MemoryVectors()
    flow.tick("docs", [doc(1), doc(2)])
    sink = spawn_vector_view(flow, "chunks", store, key=["shelf", "id"], vector="v")
    assert (store.layout.key, store.layout.vector) == (("shelf", "id"), "v")
    assert held(store) == [(1, "a", [1.0, 0.5]), (2, "a", [1.0, 0.5])]
    flow.tick("docs", DeltaBatch.from_updates([doc(1), doc(2)], [doc(1, "b", (0.25, 2.0)), doc(3, v=None)]))
    assert held(store) == [(1, "b", [0.25, 2.0]), (3, "a", None)]
    assert (store.epoch, sink.position) == (2, 2)
    assert sink.describe().startswith("chunks to vectors in memory, every 1 epochs, exactly-once")
    flow.close()
    assert store.closed == 1


def test_deltas_that_wait_are_written_as_what_they_come_to():
    flow, store = library(), MemoryVectors()
    sink = spawn_vector_view(flow, "chunks", store, key="id", every=100)
    flow.tick("docs", [doc(1), doc(2)])
    flow.tick("docs", DeltaBatch.from_updates([doc(1), doc(2)], [doc(1, "b")]))
    flow.tick("docs", DeltaBatch.from_updates([doc(1, "b")], [doc(1, "c")]))
    assert held(store) == []
    assert sink.flush() == 3
    assert held(store) == [(1, "c", [1.0, 0.5])]


def test_a_reopened_flow_goes_on_where_the_store_is(tmp_path):
    store = MemoryVectors()
    for number in (1, 2, 3):
        flow = library(tmp_path / "flow")
        spawn_vector_view(flow, "chunks", store, key="id", every=2)
        flow.tick("docs", [doc(number)])
        flow._backend._store.close()  # as if killed: nothing is flushed
    with library(tmp_path / "flow") as flow:
        spawn_vector_view(flow, "chunks", store, key="id")
    assert [row[0] for row in held(store)] == [1, 2, 3]


def test_another_flow_is_refused_unless_it_is_to_replace():
    store = MemoryVectors()
    for number in (1, 2):
        flow = library()
        flow.tick("docs", [doc(number)])
        if number == 2:
            with pytest.raises(SinkConflict):
                spawn_vector_view(flow, "chunks", store, key="id")
        spawn_vector_view(flow, "chunks", store, key="id", resync=number == 2)
    assert [row[0] for row in held(store)] == [2]
    assert store.closed == 1  # by the sink that could not be made


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([doc(5, v=(1.0,))], r"key \{'id': 5\} is of length 1 instead of 2"),
        ([doc(5, v=(float("nan"), 1.0))], r"key \{'id': 5\} has nan at place 1"),
        ([doc(None)], "whose key 'id' is NULL"),
        ([doc(5), doc(5, "b")], r"several rows for the key \{'id': 5\}"),
    ],
)
def test_what_a_store_cannot_hold_fails_with_a_sentence_and_writes_nothing(rows, message):
    flow, store = library(), MemoryVectors()
    flow.tick("docs", [doc(1)])
    sink = spawn_vector_view(flow, "chunks", store, key="id")
    flow.tick("docs", [doc(2), *rows])
    assert (held(store), store.epoch) == ([(1, "a", [1.0, 0.5])], 1)
    with pytest.raises(SinkFailed, match=message):
        flow.tick("docs", [doc(3)])
    with pytest.raises(SinkFailed):
        sink.close()
    flow.tick("docs", DeltaBatch.from_updates(rows, [doc(3)]))
    assert spawn_vector_view(flow, "chunks", store, key="id").flush() == 3
    assert [row[0] for row in held(store)] == [1, 2, 3]


def test_a_failed_backfill_says_what_to_do(caplog):
    flow, store = library(), MemoryVectors()
    flow.tick("docs", [doc(1), doc(2, v=(1.0, None)), doc(3, v=())])
    with pytest.raises(SinkFailed, match=r"has NULL at place 2|is of length 0") as failed:
        spawn_vector_view(flow, "chunks", store, key="id")
    assert "unfit='null'" in failed.value.hint
    with caplog.at_level(logging.WARNING):
        spawn_vector_view(flow, "chunks", store, key="id", unfit="null")
    assert "rows written to vectors in memory without their vectors, which do not fit: 2, such as" in caplog.text
    assert held(store) == [(1, "a", [1.0, 0.5]), (2, "a", None), (3, "a", None)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "nr"}, "no column 'nr'"),
        ({"key": []}, "at least one column"),
        ({"key": "v"}, "cannot be in a key"),
        ({"key": "id", "vector": "body"}, "no column of vectors"),
        ({"key": "id", "unfit": "skip"}, "cannot be treated as 'skip'"),
        ({"key": "id", "every": 0}, "every"),
        ({"key": "id", "on_failure": "shrug"}, "shrug"),
    ],
)
def test_what_cannot_be_right_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        spawn_vector_view(library(), "chunks", MemoryVectors(), **options)


def test_a_view_that_is_not_there_and_a_view_with_one_name_twice_are_refused():
    flow = library()
    flow.register_view("twice", "SELECT id, body AS one, shelf AS ONE, v FROM docs")
    for view in ("chunk", "twice"):
        with pytest.raises(WeirflowError):
            spawn_vector_view(flow, view, MemoryVectors(), key="id")


def test_a_flow_takes_the_target_itself():
    flow, store = library(), MemoryVectors()
    target = IvmVectorSink(store, "id")
    with flow.sink("chunks", target):
        flow.tick("docs", [doc(1)])
    assert held(store) == [(1, "a", [1.0, 0.5])]
    assert repr(target) == "<IvmVectorSink vectors in memory>"
    with pytest.raises(ConfigError, match="to is"):
        flow.sink("chunks", store)  # a store is no target


def test_a_sink_that_was_away_too_long_says_what_to_do(tmp_path):
    store = MemoryVectors()
    with library(tmp_path / "flow") as flow:
        spawn_vector_view(flow, "chunks", store, key="id").close()
        for number in range(5):
            flow.tick("docs", [doc(number)])
            flow.checkpoint()
    with library(tmp_path / "flow") as flow:
        with pytest.raises(SinkConflict, match="not kept"):
            spawn_vector_view(flow, "chunks", store, key="id")
        spawn_vector_view(flow, "chunks", store, key="id", resync=True)
    assert [row[0] for row in held(store)] == [0, 1, 2, 3, 4]
