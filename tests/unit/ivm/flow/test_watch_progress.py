"""Watches that are told of epochs without changes, and those that come back after a restart."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from weirflow import DeltaBatch, IncrementalFlow
from weirflow.errors import HistoryGone, WatchOverflow

SCHEMA = pa.schema([("id", pa.int64())])
OTHER = "other"


def filled(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("numbers", SCHEMA)
    flow.register_source(OTHER, SCHEMA)
    flow.register_view("even", "SELECT id FROM numbers WHERE id % 2 = 0")
    return flow


def taken(watch) -> list[tuple[int, list]]:
    found = []
    while (item := watch.get(timeout=0)) is not None:
        found.append((item[0], item[1].to_pylist()))
    return found


def test_an_epoch_that_changes_nothing_is_told_to_who_wants_to_know():
    flow = filled(IncrementalFlow("f"))
    told, untold = flow.watch_output("even", progress=True), flow.watch_output("even")
    for number in (1, 2, 3):
        flow.tick("numbers", [{"id": number}])
        assert taken(told) == [(number, [{"id": 2, "_weight": 1}] if number == 2 else [])]
    assert taken(untold) == [(2, [{"id": 2, "_weight": 1}])]


def test_of_epochs_that_nobody_read_only_the_last_is_told_and_a_delta_takes_its_place():
    flow = filled(IncrementalFlow("f"))
    watch = flow.watch_output("even", progress=True, capacity=1)
    for number in (1, 3, 5):
        flow.tick("numbers", [{"id": number}])
    assert taken(watch) == [(3, [])]
    flow.tick("numbers", [{"id": 7}])
    flow.tick("numbers", [{"id": 8}])
    flow.tick("numbers", [{"id": 9}])
    assert taken(watch) == [(5, [{"id": 8, "_weight": 1}]), (6, [])]


def test_epochs_without_changes_never_fill_a_watch():
    flow = filled(IncrementalFlow("f"))
    watch = flow.watch_output("even", progress=True, capacity=1)
    flow.tick("numbers", [{"id": 2}])
    for number in (1, 3, 5):
        flow.tick("numbers", [{"id": number}])
    assert taken(watch) == [(1, [{"id": 2, "_weight": 1}]), (4, [])]
    flow.tick("numbers", [{"id": 2}])
    flow.tick("numbers", [{"id": 1}])
    flow.tick("numbers", [{"id": 4}])
    assert [epoch for epoch, _ in (watch.get(0), watch.get(0)) if epoch] == [5, 6]
    with pytest.raises(WatchOverflow) as behind:
        watch.get(0)
    assert behind.value.epoch == 6


def test_a_watch_that_holds_ticks_back_has_room_for_an_epoch_without_changes():
    flow = filled(IncrementalFlow("f"))
    watch = flow.watch_output("even", progress=True, capacity=1, policy="block")
    flow.tick("numbers", [{"id": 1}])
    flow.tick("numbers", [{"id": 2}], timeout=5)
    thread = threading.Thread(target=flow.tick, args=("numbers", [{"id": 4}]))
    thread.start()
    assert watch.get(timeout=5)[0] == 2
    thread.join(5)
    assert watch.get(timeout=5)[0] == 3


def test_a_view_that_waits_can_be_watched_for_progress():
    flow = IncrementalFlow("f")
    flow.register_view("early", "SELECT id FROM numbers")
    watch = flow.watch_output("early", progress=True)
    flow.register_source("numbers", SCHEMA)
    flow.register_source(OTHER, SCHEMA)
    flow.tick(OTHER, [{"id": 1}])
    flow.tick("numbers", [{"id": 1}])
    assert taken(watch) == [(2, [{"id": 1, "_weight": 1}])]


def ticked(path, count: int, **options) -> None:
    with filled(IncrementalFlow("f", path=path, **options)) as flow:
        for number in range(flow.epoch + 1, count + 1):
            flow.tick("numbers", [{"id": number}, {"id": 2 * number}])


def expected(after: int, upto: int) -> list[tuple[int, DeltaBatch]]:
    def rows(number: int) -> list[dict]:
        return [{"id": one} for one in (number, 2 * number) if one % 2 == 0]

    return [(number, DeltaBatch.from_inserts(rows(number), schema=SCHEMA)) for number in range(after + 1, upto + 1)]


def read(watch, count: int) -> list[tuple[int, DeltaBatch]]:
    return [watch.get(timeout=0) for _ in range(count)]


@pytest.mark.parametrize("after", [5, 7, 9, 10, 11])
def test_after_a_restart_a_watch_goes_on_from_before_the_last_checkpoint(tmp_path, after):
    ticked(tmp_path, 12, checkpoint_every=7)  # sources and views are entries of the log, too
    with IncrementalFlow("f", path=tmp_path, checkpoint_every=7) as flow:
        watch = flow.watch_output("even", from_epoch=after)
        assert read(watch, 12 - after) == expected(after, 12)
        flow.tick("numbers", [{"id": 13}, {"id": 26}])
        assert read(watch, 1) == expected(12, 13)
        again = flow.watch_output("even", from_epoch=after)
        assert read(again, 13 - after) == expected(after, 13)


def test_what_was_brought_back_counts_as_history(tmp_path):
    ticked(tmp_path, 12, checkpoint_every=7)
    with IncrementalFlow("f", path=tmp_path, checkpoint_every=7, history=8) as flow:
        assert read(flow.watch_output("even", from_epoch=5), 7) == expected(5, 12)
        with pytest.raises(HistoryGone) as gone:
            flow.watch_output("even", from_epoch=3)
        assert gone.value.oldest == 5
        flow.tick("numbers", [{"id": 13}, {"id": 26}])
        flow.tick("numbers", [{"id": 14}, {"id": 28}])
        with pytest.raises(HistoryGone) as gone:
            flow.watch_output("even", from_epoch=5)
        assert gone.value.oldest == 6
        assert read(flow.watch_output("even", from_epoch=6), 8) == expected(6, 14)


def test_what_the_log_has_let_go_of_is_gone_and_not_looked_for_twice(tmp_path, monkeypatch):
    ticked(tmp_path, 40, checkpoint_every=7)
    with IncrementalFlow("f", path=tmp_path, checkpoint_every=7) as flow:
        asked = []
        own = flow._backend.recalled
        monkeypatch.setattr(flow._backend, "recalled", lambda after: asked.append(after) or own(after))
        for _ in range(2):
            with pytest.raises(HistoryGone):
                flow.watch_output("even", from_epoch=2)
        assert asked == [2]
        with pytest.raises(HistoryGone):
            flow.watch_output("even", from_epoch=1)
        assert asked == [2]


def test_a_view_that_began_anew_has_no_earlier_deltas(tmp_path):
    with filled(IncrementalFlow("f", path=tmp_path)) as flow:
        flow.tick("numbers", [{"id": 2}])
        flow.replace_view("even", "SELECT id, id + 1 AS next FROM numbers WHERE id % 2 = 0")
        flow.tick("numbers", [{"id": 4}])
        flow.checkpoint()
        flow.tick("numbers", [{"id": 6}])
    with IncrementalFlow("f", path=tmp_path) as flow:
        with pytest.raises(HistoryGone) as gone:
            flow.watch_output("even", from_epoch=1)
        assert gone.value.oldest == 2
        assert [epoch for epoch, _ in read(flow.watch_output("even", from_epoch=2), 2)] == [3, 4]


def test_the_identity_of_a_flow_survives_with_it(tmp_path):
    with IncrementalFlow("f", path=tmp_path) as flow:
        identity = flow.identity
    with IncrementalFlow("f", path=tmp_path) as flow:
        assert flow.identity == identity
    assert IncrementalFlow("f").identity != IncrementalFlow("f").identity
