"""State, timers, watermark and clock survive checkpoints, savepoints and other numbers of instances."""

import random
from collections import Counter
from contextlib import closing
from datetime import timedelta

import pytest

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.checkpoint.keyed_state.savepoints import Savepoints
from weirflow.process import ProcessFunction, ProcessRunner
from weirflow.state import RocksDbStateBackend, StateDescriptor
from weirflow.testing import ManualClock, ProcessHarness


class Sessions(ProcessFunction):
    """Visits of a user up to a gap of 10, closed by event time; a reminder 5 after the first one, by the clock."""

    output = "user BIGINT, first BIGINT, last BIGINT, visits BIGINT"
    side_outputs = {"reminders": "user BIGINT, at BIGINT", "late": "user BIGINT, at BIGINT"}  # noqa: RUF012 - as users

    def open(self, ctx):
        self.visits = ctx.list(StateDescriptor("visits", int, list[int]))
        self.blocked = ctx.broadcast(StateDescriptor("blocked", None, dict[int, bool]))

    def on_broadcast(self, _ctx, row):
        self.blocked.put(row["user"], True)

    def on_element(self, ctx, key, _row):
        if key in self.blocked:
            return
        visits = self.visits.get()
        if visits:
            ctx.timers.delete(max(visits) + 10)
        else:
            ctx.timers.register(ctx.now + 5, "processing")
        self.visits.add(ctx.timestamp)
        ctx.timers.register(max([*visits, ctx.timestamp]) + 10)

    def on_timer(self, ctx, key, ts, kind):
        if kind == "processing":
            ctx.side("reminders", {"user": key, "at": ts})
            return
        visits = self.visits.get()
        ctx.emit({"user": key, "first": min(visits), "last": max(visits), "visits": len(visits)})
        self.visits.clear()


def batches():
    rng = random.Random(7)
    return [
        [{"user": rng.randrange(30), "at": 7 * batch + rng.randint(-6, 5)} for _ in range(12)] for batch in range(8)
    ]


def outputs(results):
    rows, sides = Counter(), Counter()
    for result in results:
        rows.update(tuple(row.values()) for row in result.rows.to_pylist())
        for tag, table in result.sides.items():
            sides.update((tag, *row.values()) for row in table.to_pylist())
    return rows, sides


def runner(clock, parallelism, backend=None):
    return ProcessRunner(
        Sessions(),
        key="user",
        event_time="at",
        watermark_delay=timedelta(milliseconds=2),
        operator="sessions",
        parallelism=parallelism,
        backend=backend,
        clock=clock,
    )


def run_with(change, parallelism):
    """The outputs of all batches; before the fifth, ``change`` puts another runner in the place of the first."""
    clock, results = ManualClock(), []
    running = runner(clock, parallelism)
    for number, batch in enumerate(batches()):
        if number == 4:
            running = change(running, clock)
        results.append(running.run(batch, broadcast=[{"user": 4}] if number == 1 else ()))
        clock.advance(timedelta(milliseconds=2))
    return outputs([*results, running.finish()])


EXPECTED = run_with(lambda running, _: running, 1)


def test_the_run_says_something():
    rows, sides = EXPECTED
    assert len(rows) > 8
    assert {tag for tag, *_ in sides} == {"reminders", "late"}


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 4), (4, 2), (1, 3), (3, 1), (2, 128)])
def test_a_checkpoint_goes_on_in_any_number_of_instances(before, after):
    checkpoints = KeyedStateCheckpoints(open_checkpoint_storage("memory://"))

    def change(running, clock):
        assert running.snapshot(checkpoints).epoch == 4
        restored = runner(clock, after, checkpoints.restore)
        assert (restored.epoch, restored.watermark, restored.now) == (4, running.watermark, running.now)
        return restored

    assert run_with(change, before) == EXPECTED


def test_what_ran_after_the_checkpoint_is_run_again():
    checkpoints = KeyedStateCheckpoints(open_checkpoint_storage("memory://"))

    def change(running, clock):
        running.snapshot(checkpoints)
        for batch in batches()[4:]:
            running.run(batch)
        running.finish()
        return runner(clock, 2, checkpoints.restore)

    assert run_with(change, 4) == EXPECTED


def test_a_savepoint_goes_on_in_rocksdb(tmp_path):
    savepoints = Savepoints(open_checkpoint_storage(str(tmp_path / "savepoints")))
    opened = []

    def restore(groups):
        opened.append(savepoints.restore("now", groups, path=tmp_path / str(groups), fsync=0))
        return opened[-1]

    def change(running, clock):
        savepoints.create("now", running.backends)
        slots = {slot.slot for slot in savepoints.get("now").slots}
        assert {"visits", "weirflow.event_timers", "weirflow.processing_timers"} <= slots
        return runner(clock, 2, restore)

    try:
        assert run_with(change, 3) == EXPECTED
    finally:
        for backend in opened:
            backend.close()


def test_rocksdb_opened_again_goes_on_where_it_was(tmp_path):
    clock, results = ManualClock(), []
    for number, batch in enumerate(batches()):
        with closing(RocksDbStateBackend(tmp_path / "state", fsync=0)) as backend:
            running = runner(clock, 1, backend)
            assert running.epoch == number
            results.append(running.run(batch, broadcast=[{"user": 4}] if number == 1 else ()))
        clock.advance(timedelta(milliseconds=2))
    with closing(RocksDbStateBackend(tmp_path / "state", fsync=0)) as backend:
        results.append(runner(clock, 1, backend).finish())
    assert outputs(results) == EXPECTED


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_harness_goes_back_to_its_snapshot(parallelism):
    test = ProcessHarness(Sessions(), key="user", event_time="at")
    test.push({"user": 1, "at": 3})
    test.advance_clock(timedelta(milliseconds=2))
    snapshot = test.snapshot()
    for _ in range(2):
        test.advance_clock(timedelta(milliseconds=3))
        test.advance_watermark(13)
        assert test.clock() == 5
        assert test.output == [{"user": 1, "first": 3, "last": 3, "visits": 1}]
        assert test.sides["reminders"] == [{"user": 1, "at": 5}]
        test.restore(snapshot, parallelism=parallelism)
        assert (test.output, test.sides["reminders"], test.clock()) == ([], [], 2)
