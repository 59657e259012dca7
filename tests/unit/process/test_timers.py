"""Timers are state: de-duplicated, deletable, fired once, in order, with the state of their callback."""

from datetime import timedelta

import pytest

from weirflow.errors import ConfigError, StateError, UserCodeError
from weirflow.process import END_OF_TIME, ProcessFunction, ProcessRunner, firing, run_process
from weirflow.state import StateDescriptor
from weirflow.testing import ManualClock, ProcessHarness


class Alarms(ProcessFunction):
    """Does with timers what rows say: ("set" | "unset", time, kind); ``again`` has on_timer register, too."""

    output = "key STRING, ts BIGINT, kind STRING, watermark BIGINT, timestamp BIGINT"

    def __init__(self, again=None):
        self.again = again

    def open(self, ctx):
        self.fired = ctx.value(StateDescriptor("fired", str, int))

    def on_element(self, ctx, _key, row):
        change = ctx.timers.register if row["do"] == "set" else ctx.timers.delete
        change(row["ts"], row.get("kind", "event"))

    def on_timer(self, ctx, key, ts, kind):
        self.fired.set(self.fired.get(0) + 1)
        ctx.emit({"key": key, "ts": ts, "kind": kind, "watermark": ctx.watermark, "timestamp": ctx.timestamp})
        if self.again is not None:
            self.again(ctx, ts, kind)


def harness(again=None, **options):
    return ProcessHarness(Alarms(again), key="key", **options)


def alarm(key, ts, do="set", kind="event"):
    return {"key": key, "ts": ts, "do": do, "kind": kind}


def fired(rows):
    return [(row["key"], row["ts"]) for row in rows]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_they_fire_in_the_order_of_time_then_key_when_the_watermark_reaches_them(parallelism):
    test = harness(parallelism=parallelism)
    test.push(*(alarm(key, ts) for key, ts in [("b", 20), ("a", 30), ("c", 10), ("a", 20), ("d", -5), ("e", 300)]))
    assert fired(test.output) == []
    assert fired(test.advance_watermark(20)) == [("d", -5), ("c", 10), ("a", 20), ("b", 20)]
    assert fired(test.advance_watermark(299)) == [("a", 30)]
    assert fired(test.advance_watermark(299)) == []
    assert fired(test.finish()) == [("e", 300)]
    assert test.stored() == {"fired": 5}


def test_registered_twice_it_fires_once_and_deleted_it_does_not():
    test = harness()
    test.push(
        alarm("a", 5), alarm("a", 5), alarm("b", 5), alarm("c", 5), alarm("b", 5, "unset"), alarm("a", 9, "unset")
    )
    test.push(alarm("a", 5), alarm("c", 5, "unset"), alarm("c", 5))
    assert fired(test.advance_watermark(5)) == [("a", 5), ("c", 5)]


def test_the_callback_sees_its_time_and_the_watermark():
    test = harness()
    test.push(alarm("a", 5), alarm("a", 7, kind="processing"))
    assert test.advance_watermark(6) == [{"key": "a", "ts": 5, "kind": "event", "watermark": 6, "timestamp": 5}]
    assert test.advance_clock(timedelta(milliseconds=7)) == [
        {"key": "a", "ts": 7, "kind": "processing", "watermark": 6, "timestamp": None}
    ]


def test_the_two_kinds_are_apart():
    test = harness()
    test.push(alarm("a", 5), alarm("a", 5, kind="processing"))
    test.push(alarm("a", 5, "unset"))
    assert test.advance_watermark(10) == []
    assert [row["kind"] for row in test.advance_clock(timedelta(milliseconds=5))] == ["processing"]


def test_in_the_past_it_fires_with_its_batch():
    test = harness()
    test.advance_watermark(100)
    assert fired(test.push(alarm("b", 100), alarm("a", 3), alarm("a", 101))) == [("a", 3), ("b", 100)]
    assert fired(test.push(alarm("c", 0, kind="processing"))) == [("c", 0)]


def test_registered_by_a_timer_for_later_it_fires_in_the_same_batch_in_order():
    test = harness(lambda ctx, ts, _: ctx.timers.register(ts + 10))
    test.push(alarm("a", 5), alarm("b", 18))
    assert fired(test.advance_watermark(30)) == [("a", 5), ("a", 15), ("b", 18), ("a", 25), ("b", 28)]


@pytest.mark.parametrize("back", [0, 3])
def test_registered_by_a_timer_for_the_same_time_it_waits_for_the_next_batch(back):
    test = harness(lambda ctx, ts, _: ctx.timers.register(ts - back))
    test.push(alarm("a", 5))
    assert fired(test.advance_watermark(30)) == [("a", 5)]
    assert fired(test.advance_watermark(30)) == [("a", 5 - back)]


def test_deleted_and_registered_anew_by_an_earlier_timer_it_fires_once():
    def again(ctx, ts, _):
        ctx.timers.delete(7)
        ctx.timers.register(7)

    test = harness(again)
    test.push(alarm("a", 5), alarm("a", 7))
    assert fired(test.advance_watermark(10)) == [("a", 5), ("a", 7)]


def test_deleted_by_an_earlier_timer_it_does_not_fire():
    test = harness(lambda ctx, *_: ctx.timers.delete(7))
    test.push(alarm("a", 5), alarm("a", 7), alarm("b", 7))
    assert fired(test.advance_watermark(10)) == [("a", 5), ("b", 7)]


def test_what_a_timer_raises_leaves_timers_and_state_as_before():
    def again(ctx, ts, _):
        ctx.timers.register(ts + 1000)
        if ts == 7:
            raise ValueError("no sevens")

    test = harness(again)
    test.push(alarm("a", 5), alarm("a", 7))
    before = test.stored()
    with pytest.raises(UserCodeError, match=r"Alarms\.on_timer for the key 'a' raised ValueError: no sevens"):
        test.advance_watermark(10)
    assert (test.stored(), test.watermark) == (before, None)
    test.push(alarm("a", 7, "unset"))
    assert fired(test.advance_watermark(10)) == [("a", 5)]


def test_one_that_a_failed_batch_deleted_fires_in_time():
    def again(_ctx, _ts, kind):
        if kind == "processing":
            raise ValueError("no")

    runner = ProcessRunner(Alarms(again), key="key", event_time="at", clock=ManualClock())
    runner.run([alarm("a", 5) | {"at": 1}, alarm("a", 9) | {"at": 1}])
    with pytest.raises(UserCodeError):
        runner.run([alarm("a", 5, "unset") | {"at": 6}, alarm("a", 0, kind="processing") | {"at": 6}])
    assert fired(runner.run([alarm("b", 20) | {"at": 6}]).rows.to_pylist()) == [("a", 5)]


def test_a_timer_that_goes_on_at_the_end_of_the_input_is_refused(monkeypatch):
    monkeypatch.setattr(firing, "MOST_AT_THE_END", 50)
    test = harness(lambda ctx, ts, _: ctx.timers.register(ts + 1))
    test.push(alarm("a", 5))
    with pytest.raises(UserCodeError, match="50 timers one after another"):
        test.finish()


def test_a_timer_may_look_for_the_end_of_the_input():
    test = harness(lambda ctx, ts, _: ctx.watermark == END_OF_TIME or ctx.timers.register(ts + 1))
    test.push(alarm("a", 5))
    assert fired(test.advance_watermark(6)) == [("a", 5), ("a", 6)]
    assert fired(test.finish()) == [("a", 7)]


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        (alarm("a", 5, kind="lunch"), ConfigError, "no timers of 'lunch' time"),
        (alarm("a", 5.5), ConfigError, "5.5 is not a time"),
        (alarm("a", None), ConfigError, "None is not a time"),
        (alarm("a", 1 << 63), ConfigError, "9223372036854775808 is not a time"),
    ],
)
def test_what_is_no_time_is_refused(row, error, message):
    with pytest.raises(error, match=message):
        harness().push(row)


def test_a_watermark_that_is_no_time_is_refused():
    with pytest.raises(ConfigError, match=r"'noon'.*must be an int"):
        harness().advance_watermark("noon")


class Stateless(ProcessFunction):
    output = "key STRING"

    def on_element(self, ctx, key, row):
        ctx.emit({"key": key})
        if row.get("timer"):
            ctx.timers.register(5)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_function_without_state_runs_and_has_no_timers(parallelism):
    rows = [{"key": key} for key in "abc"]
    first, last = run_process(Stateless(), [rows], key="key", parallelism=parallelism)
    assert (first.rows.to_pylist(), last.rows.to_pylist()) == (rows, [])
    with pytest.raises(StateError, match="needs keyed state"):
        next(run_process(Stateless(), [[{"key": "a", "timer": True}]], key="key"))
