"""Sinks: every delta of a view once, whatever fails on the way."""

import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from support.sunk_shop import ANN_5_THEN_12, declare, order, written

from weirflow import DeltaBatch
from weirflow.errors import ConfigError, FlowError, HistoryGone, SinkConflict, SinkFailed
from weirflow.ivm.flow import IncrementalFlow, Lateness
from weirflow.ivm.flow.sinks import sink
from weirflow.ivm.flow.sinks.parquet import ParquetTarget
from weirflow.ivm.flow.sinks.sink import sink_terms


def shop(path=None, **options):
    return declare(IncrementalFlow("shop", path=path, **options))


def ranges(folder):
    """The epochs that each file says it holds."""
    return sorted(tuple(map(int, path.stem.split("-"))) for path in Path(folder).glob("*.parquet"))


def test_a_changelog_holds_every_row_with_its_weight_and_epoch(tmp_path):
    flow = shop()
    out = flow.sink("totals", tmp_path / "out")
    order(flow, 5)
    order(flow, 7)
    assert written(tmp_path / "out") == ANN_5_THEN_12
    assert out.position == 2
    assert "exactly-once" in out.describe()


def test_a_new_sink_begins_with_the_rows_of_now(tmp_path):
    flow = shop()
    order(flow, 5)
    order(flow, 7)
    flow.sink("totals", tmp_path / "out")
    order(flow, 1, "bob")
    assert written(tmp_path / "out") == [("ann", 12, 1, 2), ("bob", 1, 1, 3)]


def test_several_epochs_share_a_file(tmp_path):
    flow = shop()
    out = flow.sink("totals", tmp_path / "out", every=3)
    for amount in range(1, 6):
        order(flow, amount)
    assert ranges(tmp_path / "out") == [(0, 0), (1, 3)]
    assert out.position == 3
    assert out.flush() == 5
    assert ranges(tmp_path / "out") == [(0, 0), (1, 3), (4, 5)]
    out.close()
    with pytest.raises(FlowError, match="closed"):
        out.flush()


def test_what_waits_is_written_by_the_clock(tmp_path):
    flow = shop()
    with flow.sink("totals", tmp_path / "out", every="50 milliseconds") as out:
        order(flow, 5)
        deadline = time.monotonic() + 10
        while out.position < 1 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert written(tmp_path / "out") == [("ann", 5, 1, 1)]


@pytest.mark.parametrize("every", [1, 10])
def test_a_reopened_flow_goes_on_where_the_target_is(tmp_path, every):
    for amount in (5, 7):
        flow = shop(tmp_path / "flow")
        flow.sink("totals", tmp_path / "out", every=every)
        order(flow, amount)
        flow._backend._store.close()  # as if killed: nothing is flushed
    with shop(tmp_path / "flow") as flow:
        flow.sink("totals", tmp_path / "out")
    assert written(tmp_path / "out") == ANN_5_THEN_12


def test_a_checkpoint_first_writes_what_it_would_drop(tmp_path):
    flow = shop(tmp_path / "flow")
    flow.sink("totals", tmp_path / "out", every=100)
    order(flow, 5)
    order(flow, 7)
    flow.checkpoint()
    flow._backend._store.close()
    assert written(tmp_path / "out") == ANN_5_THEN_12


@pytest.mark.parametrize("act", ["checkpoint", "flush"])
def test_who_writes_while_a_tick_is_told_writes_that_tick_too(tmp_path, act):
    with shop(tmp_path / "flow") as flow:
        out = flow.sink("totals", tmp_path / "out", every=100)
        flow.on_delta("totals", lambda *_: flow.checkpoint() if act == "checkpoint" else out.flush())
        order(flow, 5)
        order(flow, 7)
    assert written(tmp_path / "out") == ANN_5_THEN_12


def test_a_view_that_rests_does_not_fall_behind(tmp_path):
    flow = shop(tmp_path / "flow", checkpoint_every=2)
    flow.register_source("other", "x BIGINT")
    flow.register_view("resting", "SELECT x FROM other")
    flow.sink("resting", tmp_path / "out")
    for amount in range(9):
        order(flow, amount)
    flow._backend._store.close()
    flow = shop(tmp_path / "flow", checkpoint_every=2)
    out = flow.sink("resting", tmp_path / "out")
    assert out.position == 9


def test_deltas_that_left_memory_come_from_the_log(tmp_path):
    flow = shop(tmp_path / "flow")
    flow.sink("totals", tmp_path / "out", every=100)
    order(flow, 5)
    order(flow, 7)
    flow._backend._store.close()
    with shop(tmp_path / "flow", history=0) as flow:
        flow.sink("totals", tmp_path / "out")
        order(flow, 1, "bob")
    assert written(tmp_path / "out") == [*ANN_5_THEN_12, ("bob", 1, 1, 3)]


def test_deltas_before_the_last_checkpoint_come_from_the_one_before(tmp_path):
    with shop(tmp_path / "flow") as flow:
        order(flow, 5)
        flow.checkpoint()
        flow.sink("totals", tmp_path / "out").close()
        order(flow, 7)
        flow.checkpoint()
        order(flow, 1)
    with shop(tmp_path / "flow") as flow:
        flow.sink("totals", tmp_path / "out")
    expected = [("ann", 5, 1, 1), ("ann", 5, -1, 2), ("ann", 12, 1, 2), ("ann", 12, -1, 3), ("ann", 13, 1, 3)]
    assert written(tmp_path / "out") == sorted(expected)


def test_a_sink_that_was_away_too_long_says_what_to_do(tmp_path):
    with shop(tmp_path / "flow") as flow:
        flow.sink("totals", tmp_path / "out").close()
        for amount in range(5):
            order(flow, amount)
            flow.checkpoint()
    with shop(tmp_path / "flow") as flow:
        with pytest.raises(SinkConflict, match="not kept") as caught:
            flow.sink("totals", tmp_path / "out")
        assert "resync=True" in caught.value.hint
        flow.sink("totals", tmp_path / "out", resync=True)
        order(flow, 1, "bob")
    assert written(tmp_path / "out") == [("ann", 10, 1, 5), ("bob", 1, 1, 6)]


def test_what_another_flow_wrote_is_not_continued(tmp_path):
    with shop(tmp_path / "flow") as flow:
        flow.sink("totals", tmp_path / "out")
        order(flow, 5)
    before = written(tmp_path / "out")
    with shop() as other, pytest.raises(SinkConflict, match="another flow"):
        other.sink("totals", tmp_path / "out")
    assert written(tmp_path / "out") == before


def test_what_another_definition_wrote_is_not_continued(tmp_path):
    with shop(tmp_path / "flow") as flow:
        flow.register_view("base", "SELECT customer FROM orders")
        flow.register_view("top", "SELECT customer FROM base")
        flow.sink("top", tmp_path / "out")
        flow.drop("top")
        flow.drop("base")
        flow.register_view("base", "SELECT upper(customer) AS customer FROM orders")
        flow.register_view("top", "SELECT customer FROM base")
        with pytest.raises(SinkConflict, match="another definition"):
            flow.sink("top", tmp_path / "out")


def test_a_target_ahead_of_its_flow_is_refused(tmp_path):
    with shop(tmp_path / "flow") as flow:
        shutil.copytree(tmp_path / "flow", tmp_path / "backup")
        flow.sink("totals", tmp_path / "out")
        order(flow, 5)
    with shop(tmp_path / "backup") as old, pytest.raises(SinkConflict, match="up to epoch 1"):
        old.sink("totals", tmp_path / "out")


# Failures


def block(folder):
    """Make a folder impossible to write to, as a full disk would; returns what makes it possible again."""
    aside = Path(f"{folder}.aside")
    folder.rename(aside)
    folder.write_text("in the way")

    def unblock():
        folder.unlink()
        aside.rename(folder)

    return unblock


def test_a_failed_write_undoes_no_tick_and_holds_the_next_one_back(tmp_path):
    flow = shop()
    out = flow.sink("totals", tmp_path / "out")
    unblock = block(tmp_path / "out")
    assert order(flow, 5).epoch == 1
    assert isinstance(out.error, SinkFailed)
    with pytest.raises(SinkFailed, match="totals"):
        order(flow, 7)
    with pytest.raises(SinkFailed):
        out.flush()
    assert (flow.epoch, flow.pending, out.position) == (1, False, 0)
    unblock()
    order(flow, 7)
    assert written(tmp_path / "out") == ANN_5_THEN_12
    assert out.error is None


def test_ticks_may_go_on_while_the_deltas_are_few(tmp_path, monkeypatch):
    monkeypatch.setattr(sink, "_MOST_EPOCHS", 3)
    flow = shop()
    out = flow.sink("totals", tmp_path / "out", on_failure="keep")
    unblock = block(tmp_path / "out")
    for amount in range(1, 5):
        order(flow, amount)
    with pytest.raises(SinkFailed):
        order(flow, 5)
    assert "failing" in out.describe()
    unblock()
    order(flow, 5)
    assert Counter(row[3] for row in written(tmp_path / "out")) == {1: 1, 2: 2, 3: 2, 4: 2, 5: 2}


def test_a_checkpoint_waits_for_a_sink_that_fails(tmp_path):
    flow = shop(tmp_path / "flow", checkpoint_every=3)
    flow.sink("totals", tmp_path / "out", on_failure="keep")
    unblock = block(tmp_path / "out")
    for amount in range(1, 6):
        order(flow, amount)
    with pytest.raises(SinkFailed):
        flow.checkpoint()
    assert not list((tmp_path / "flow").glob("manifests/*"))
    with pytest.raises(SinkFailed):
        flow.close()
    assert flow.closed
    unblock()
    with shop(tmp_path / "flow") as flow:
        flow.sink("totals", tmp_path / "out")
    assert Counter(row[3] for row in written(tmp_path / "out")) == {1: 1, 2: 2, 3: 2, 4: 2, 5: 2}


class Dead(ParquetTarget):
    """Takes the first rows, then nothing any more."""

    tried = 0

    def write(self, after, upto, deltas):
        if upto == 0:
            super().write(after, upto, deltas)
        else:
            self.tried += 1
            raise ConnectionError("no answer")


def test_a_dead_target_is_not_tried_at_every_tick(tmp_path):
    flow = shop(tmp_path / "flow", checkpoint_every=1)
    target = Dead(tmp_path / "out")
    out = flow._backend.sink("totals", target, sink_terms("dead", 1, "keep", resync=False))
    out._pause = 60.0
    for amount in range(20):
        order(flow, amount)
    assert (flow.epoch, target.tried) == (20, 1)
    with pytest.raises(SinkFailed):
        flow.close()


class Unsure(ParquetTarget):
    """Writes, then loses the answer."""

    lost = 0

    def write(self, after, upto, deltas):
        super().write(after, upto, deltas)
        if upto and not self.lost:
            self.lost = upto
            raise ConnectionError("the answer was lost")


@pytest.mark.parametrize("every", [1, 2])
def test_a_write_that_only_seemed_to_fail_is_not_repeated(tmp_path, every):
    flow = shop()
    target = Unsure(tmp_path / "out")
    flow._backend.sink("totals", target, sink_terms("unsure", every, "keep", resync=False))
    for amount in (5, 7):
        order(flow, amount)
    flow.close()
    assert target.lost == every
    assert written(tmp_path / "out") == ANN_5_THEN_12


# Functions


def test_a_function_gets_the_rows_of_now_and_every_delta_after(tmp_path):
    flow = shop()
    order(flow, 5)
    seen = []
    out = flow.sink("totals", lambda epoch, delta: seen.append((epoch, delta)))
    order(flow, 7)
    change = DeltaBatch.from_updates([{"customer": "ann", "total": 5}], [{"customer": "ann", "total": 12}])
    assert seen == [(1, DeltaBatch.from_inserts([{"customer": "ann", "total": 5}])), (2, change)]
    assert "at-least-once" in out.describe()


def test_a_function_that_raised_is_called_again_with_what_it_lacks():
    flow, seen, broken = shop(), [], [True]

    def take(epoch, delta):
        if broken and epoch == 2:
            raise OSError("no connection")
        seen.append(epoch)

    out = flow.sink("totals", take, every=3)
    for amount in (1, 2, 3):
        order(flow, amount)
    assert (seen, flow.epoch) == ([1], 3)
    with pytest.raises(SinkFailed, match="no connection"):
        out.flush()
    broken.clear()
    out.flush()
    assert seen == [1, 2, 3]


def test_a_durable_flow_remembers_how_far_a_function_is(tmp_path):
    seen = []
    for amount in (5, 7):
        with shop(tmp_path / "flow") as flow:
            flow.sink("totals", lambda epoch, _: seen.append(epoch), name="notes")
            order(flow, amount)
    assert seen == [1, 2]


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"view": "orders"}, "is a source"),
        ({"view": "late.late"}, "late rows"),
        ({"view": "epochs"}, "_epoch"),
        ({"every": 0}, "every is 0"),
        ({"on_failure": "ignore"}, "ignore"),
        ({"mode": "upsert", "key": "customer"}, "Session"),
    ],
)
def test_what_a_sink_cannot_do_is_refused(tmp_path, options, message):
    flow = shop()
    flow.register_source("late", "at TIMESTAMP", lateness=Lateness("at", "1 hour"))
    flow.register_view("epochs", "SELECT amount AS _epoch FROM orders")
    with pytest.raises(ConfigError, match=message):
        flow.sink(**{"view": "totals", "to": tmp_path / "out", **options})
    assert not (tmp_path / "out").exists()
    order(flow, 5)


def test_two_sinks_of_one_name_are_refused(tmp_path):
    flow = shop()
    flow.sink("totals", tmp_path / "one")
    with pytest.raises(FlowError, match="already"):
        flow.sink("totals", tmp_path / "two")
    flow.sink("totals", tmp_path / "two", name="second")
    order(flow, 5)
    assert written(tmp_path / "one") == written(tmp_path / "two")


def test_a_dropped_view_ends_its_sinks(tmp_path):
    flow = shop()
    out = flow.sink("totals", tmp_path / "out", every=10)
    order(flow, 5)
    flow.drop("totals")
    assert out.closed
    assert written(tmp_path / "out") == [("ann", 5, 1, 1)]


def test_a_flow_with_sinks_is_not_restored_under_them(tmp_path):
    flow = shop()
    flow.sink("totals", tmp_path / "out")
    flow.checkpoint(tmp_path / "checkpoints")
    with pytest.raises(FlowError, match="sinks"):
        flow.restore(tmp_path / "checkpoints")


def test_a_reopened_flow_knows_where_its_history_begins(tmp_path):
    with shop(tmp_path / "flow") as flow:
        for amount in (5, 7, 9):
            order(flow, amount)
            flow.checkpoint()  # the log goes back to the one before the last
    with shop(tmp_path / "flow") as flow:
        with pytest.raises(HistoryGone):
            flow.watch_output("totals", from_epoch=0)
        assert len(flow.watch_output("totals", from_epoch=2)) == 1
        assert len(flow.watch_output("totals", from_epoch=3)) == 0
