"""Runners: order, watermarks, lateness, broadcast, outputs, and batches that are done whole or not at all."""

import operator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from weirflow.errors import (
    ColumnNotFound,
    ConfigError,
    DataError,
    StateError,
    StateTypeError,
    UserCodeError,
)
from weirflow.process import CoProcessFunction, ProcessFunction, ProcessRunner, run_co_process, run_process
from weirflow.state import Aggregate, InMemoryStateBackend, StateDescriptor, Ttl
from weirflow.state.encoding.layout import slot_bytes, slot_of
from weirflow.testing import ManualClock, ProcessHarness


class Counter(ProcessFunction):
    output = "word STRING, n BIGINT, timestamp BIGINT, watermark BIGINT, now BIGINT"

    def open(self, ctx):
        self.n = ctx.value(StateDescriptor("n", str, int))

    def on_element(self, ctx, key, row):
        if row.get("boom"):
            raise ValueError("boom")
        self.n.set(self.n.get(0) + 1)
        ctx.emit(
            {"word": key, "n": self.n.get(), "timestamp": ctx.timestamp, "watermark": ctx.watermark, "now": ctx.now}
        )


def words(text):
    return [{"word": word} for word in text]


def counted(results):
    return [(row["word"], row["n"]) for result in results for row in result.rows.to_pylist()]


@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize("form", [list, iter, pa.Table.from_pylist, pa.RecordBatch.from_pylist])
def test_rows_are_run_in_the_order_of_arrival(parallelism, form):
    batches = [form(words("aba")), form(words("cab"))]
    results = run_process(Counter(), batches, key="word", parallelism=parallelism)
    assert counted(results) == [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("a", 3), ("b", 2)]


def test_results_have_the_declared_types_also_without_rows():
    (result,) = run_process(Counter(), [], key="word")
    assert result.rows.schema.types == [pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64()]


def test_each_batch_runs_when_its_result_is_asked_for():
    taken = []
    results = run_process(Counter(), (taken.append(text) or words(text) for text in "ab"), key="word")
    next(results)
    assert taken == ["a"]


class Largest(ProcessFunction):
    """Overrides on_batch."""

    output = "word STRING, rows BIGINT, timestamps ARRAY<BIGINT>"

    def on_batch(self, ctx, key, rows):
        timestamps = [ctx.timestamp for _ in rows]
        ctx.emit({"word": key, "rows": len(timestamps), "timestamps": timestamps})


def test_on_batch_has_all_rows_of_a_key_and_the_time_of_each():
    rows = [{"word": word, "at": at} for at, word in enumerate("abaab")]
    first, _ = run_process(Largest(), [rows], key="word", event_time="at")
    assert first.rows.to_pylist() == [
        {"word": "a", "rows": 3, "timestamps": [0, 2, 3]},
        {"word": "b", "rows": 2, "timestamps": [1, 4]},
    ]


@pytest.mark.parametrize(
    ("key", "expected"),
    [("a", 1), (["a"], (1,)), (["b", "a"], ("x", 1)), (lambda row: row["a"] + 1, 2)],
)
def test_keys_are_columns_tuples_of_them_or_functions(key, expected):
    class Keys(ProcessFunction):
        output = "key STRING"

        def on_element(self, ctx, key, _row):
            ctx.emit({"key": repr(key)})

    first, _ = run_process(Keys(), [[{"a": 1, "b": "x"}]], key=key)
    assert first.rows.to_pylist() == [{"key": repr(expected)}]


# Time


def test_rows_see_the_watermark_of_the_batches_before():
    batches = [[{"word": "a", "at": at}] for at in (1000, 3000, 2000)]
    results = list(
        run_process(Counter(), batches, key="word", event_time="at", watermark_delay=timedelta(milliseconds=500))
    )
    assert [result.watermark for result in results] == [500, 2500, 2500, (1 << 63) - 1]
    assert [row["watermark"] for result in results for row in result.rows.to_pylist()] == [None, 500]
    assert [result.late for result in results] == [0, 0, 1, 0]


def test_a_row_at_the_watermark_is_late_and_one_without_time_never():
    second = [{"word": "b", "at": 1000}, {"word": "c", "at": 1001}, {"word": "d", "at": None}]
    batches = [[{"word": "a", "at": 1000}], second]
    results = list(run_process(Counter(), batches, key="word", event_time="at"))
    assert counted(results) == [("a", 1), ("c", 1), ("d", 1)]
    assert results[1].late == 1


class Tardy(Counter):
    side_outputs = {"late": "word STRING, at BIGINT"}  # noqa: RUF012 - as users write it


def test_late_rows_go_to_the_side_output_that_is_declared_for_them():
    batches = [[{"word": "a", "at": 10}], [{"word": "b", "at": 9}, {"word": "b", "at": 11}]]
    results = list(run_process(Tardy(), batches, key="word", event_time="at"))
    assert results[1].sides["late"].to_pylist() == [{"word": "b", "at": 9}]
    assert (results[1].late, counted(results)) == (1, [("a", 1), ("b", 1)])


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (1500, 1500),
        (datetime(1970, 1, 1, 0, 0, 1, 500_900), 1500),  # noqa: DTZ001 - without a zone it is UTC
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1000),
        (datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC), -1),
    ],
)
def test_times_are_timestamps_or_milliseconds(at, expected):
    first, _ = run_process(Counter(), [[{"word": "a", "at": at}]], key="word", event_time="at")
    assert first.rows["timestamp"].to_pylist() == [expected]


def test_the_clock_never_goes_back():
    now = iter([50, 40, 60])
    results = run_process(Counter(), [words("a")] * 3, key="word", finish=False, clock=lambda: next(now))
    assert [row["now"] for result in results for row in result.rows.to_pylist()] == [50, 50, 60]


class Expiring(ProcessFunction):
    output = "clock BIGINT, event BIGINT"

    def open(self, ctx):
        second = timedelta(seconds=1)
        self.clock = ctx.value(StateDescriptor("clock", str, int, Ttl(second)))
        self.event = ctx.value(StateDescriptor("event", str, int, Ttl(second, time="event")))

    def on_element(self, ctx, _key, _row):
        ctx.emit({"clock": self.clock.get(0), "event": self.event.get(0)})
        for slot in (self.clock, self.event):
            slot.set(slot.get(0) + 1)


def test_state_expires_by_the_clock_and_by_the_watermark():
    test = ProcessHarness(Expiring(), key="word", event_time="at")
    test.push({"word": "a", "at": 100})
    assert test.push({"word": "a", "at": 100}) == [{"clock": 1, "event": 1}]
    test.advance_clock(timedelta(seconds=1))
    assert test.push({"word": "a", "at": 100}) == [{"clock": 0, "event": 2}]
    test.advance_watermark(1100)
    assert test.push({"word": "a", "at": 2000}) == [{"clock": 1, "event": 0}]


def test_state_expires_by_the_watermark_that_was_reached_before_a_restart():
    backend = InMemoryStateBackend()
    before = ProcessRunner(Expiring(), key="word", event_time="at", backend=backend)
    before.run([{"word": "a", "at": 100}])
    before.run([{"word": "b", "at": 1100}])
    after = ProcessRunner(Expiring(), key="word", event_time="at", backend=backend)
    assert after.run([{"word": "a", "at": 1200}]).rows["event"].to_pylist() == [0]


# Kinds of state, broadcast, two inputs


def test_every_kind_of_state_is_the_key_s():
    class Kinds(ProcessFunction):
        output = "word STRING, lengths ARRAY<BIGINT>, by_length MAP<BIGINT,BIGINT>, total BIGINT, mean DOUBLE"

        def open(self, ctx):
            self.lengths = ctx.list(StateDescriptor("lengths", str, list[int]))
            self.by_length = ctx.map(StateDescriptor("by_length", str, dict[int, int]))
            self.total = ctx.reducing(StateDescriptor("total", str, int), operator.add)
            mean = Aggregate(lambda: [0, 0], lambda sums, x: [sums[0] + x, sums[1] + 1], lambda sums: sums[0] / sums[1])
            self.mean = ctx.aggregating(StateDescriptor("mean", str, list[int]), mean)

        def on_element(self, ctx, key, row):
            n = row["n"]
            self.lengths.add(n)
            self.by_length.put(n, self.by_length.get(n, 0) + 1)
            self.total.add(n)
            self.mean.add(n)
            ctx.emit(
                {
                    "word": key,
                    "lengths": self.lengths.get(),
                    "by_length": list(self.by_length.items()),
                    "total": self.total.get(),
                    "mean": self.mean.get(),
                }
            )

    test = ProcessHarness(Kinds(), key="word")
    test.push({"word": "a", "n": 1}, {"word": "b", "n": 9}, {"word": "a", "n": 4}, {"word": "a", "n": 1})
    assert test.output[-1] == {
        "word": "a",
        "lengths": [1, 4, 1],
        "by_length": [(1, 2), (4, 1)],
        "total": 6,
        "mean": 2.0,
    }


class Rules(ProcessFunction):
    output = "word STRING, rule STRING"

    def open(self, ctx):
        self.rules = ctx.broadcast(StateDescriptor("rules", None, dict[str, str]))
        self.seen = ctx.value(StateDescriptor("seen", str, int))

    def on_broadcast(self, _ctx, row):
        if row.get("read"):
            self.seen.get()
        self.rules.put(row["word"], row["rule"])

    def on_element(self, ctx, key, row):
        if row.get("write"):
            self.rules.put(key, "mine")
        ctx.emit({"word": key, "rule": self.rules.get(key, "none")})


@pytest.mark.parametrize("parallelism", [1, 5])
def test_broadcast_rows_reach_every_instance_before_the_rows(parallelism):
    runner = ProcessRunner(Rules(), key="word", parallelism=parallelism)
    rules = [{"word": word, "rule": f"rule of {word}"} for word in "abcdefgh"]
    result = runner.run(words("abcdefghx"), broadcast=rules)
    assert result.rows.to_pylist() == [*rules, {"word": "x", "rule": "none"}]
    assert runner.run(words("c")).rows.to_pylist() == [rules[2]]


def test_broadcast_state_is_read_only_for_rows_and_keyed_state_is_none_of_the_broadcast_s():
    runner = ProcessRunner(Rules(), key="word")
    runner.run(words("a"))
    with pytest.raises(StateError, match="'rules' cannot be changed for a key"):
        runner.run([{"word": "a", "write": True}])
    with pytest.raises(StateError, match="no current key"):
        runner.run([], broadcast=[{"word": "a", "rule": "x", "read": True}])
    assert runner.run(words("a")).rows.to_pylist() == [{"word": "a", "rule": "none"}]


class Both(CoProcessFunction):
    output = "side STRING, k STRING, seen BIGINT, timestamp BIGINT"

    def open(self, ctx):
        self.seen = ctx.value(StateDescriptor("seen", str, int))

    def on_left(self, ctx, key, _row):
        self._on("left", ctx, key)

    def on_right(self, ctx, key, _row):
        self._on("right", ctx, key)
        ctx.timers.register(ctx.timestamp + 10)

    def on_timer(self, ctx, key, _ts, _kind):
        self._on("timer", ctx, key)

    def _on(self, side, ctx, key):
        self.seen.set(self.seen.get(0) + 1)
        ctx.emit({"side": side, "k": key, "seen": self.seen.get(), "timestamp": ctx.timestamp})


@pytest.mark.parametrize("parallelism", [1, 3])
def test_two_inputs_share_state_and_timers_and_the_right_one_comes_first(parallelism):
    batches = [
        ([{"l": "a", "at": 5}], [{"r": "a", "since": 3}, {"r": "b", "since": 4}]),
        ([{"l": "b", "at": 20}], []),
        ([], [{"r": "c", "since": 14}]),
    ]
    results = run_co_process(Both(), batches, key=("l", "r"), event_time=("at", "since"), parallelism=parallelism)
    rows = [[tuple(row.values()) for row in result.rows.to_pylist()] for result in results]
    assert rows == [
        [("right", "a", 1, 3), ("right", "b", 1, 4), ("left", "a", 2, 5)],
        [("left", "b", 2, 20)],
        [("right", "c", 1, 14), ("timer", "a", 3, 13), ("timer", "b", 3, 14)],
        [("timer", "c", 2, 24)],
    ]


@pytest.mark.parametrize("options", [{"key": "id"}, {"key": ("l", "r"), "event_time": "at"}])
def test_two_inputs_need_two_keys_and_times(options):
    with pytest.raises(ConfigError, match="must be a tuple of 2"):
        run_co_process(Both(), [], **options)


# Failures


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_batch_that_fails_changes_nothing(parallelism):
    test = ProcessHarness(Tardy(), key="word", event_time="at", parallelism=parallelism)
    test.push({"word": "a", "at": 1})
    before = test.stored()
    with pytest.raises(UserCodeError, match=r"Tardy\.on_element for the key 'b' raised ValueError: boom") as caught:
        test.push({"word": "a", "at": 2}, {"word": "c", "at": 2}, {"word": "b", "at": 3, "boom": True})
    assert isinstance(caught.value.__cause__, ValueError)
    assert (test.stored(), test.late) == (before, 0)
    assert [row["n"] for row in test.push({"word": "a", "at": 4}, {"word": "c", "at": 4})] == [2, 1]


class Emits(ProcessFunction):
    output = "n INT NOT NULL, s STRING"
    side_outputs = {"side": "s STRING"}  # noqa: RUF012 - as users write it

    def open(self, ctx):
        self.n = ctx.value(StateDescriptor("n", str, int))

    def on_element(self, ctx, key, row):
        self.n.set(self.n.get(0) + 1)
        if "state" in row:
            self.n.set(row["state"])
        if "side" in row:
            ctx.side(row["side"], {"s": key})
        if "row" in row:
            ctx.emit(row["row"])


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ({"row": {"n": 1, "x": 2}}, UserCodeError, "The output of Emits has no column 'x'"),
        ({"row": {"n": "one"}}, UserCodeError, "does not fit column 'n' of type INT"),
        ({"row": {"n": 1 << 40}}, UserCodeError, "does not fit column 'n' of type INT"),
        ({"row": {"s": "x"}}, UserCodeError, "NULL in column 'n', which is NOT NULL"),
        ({"side": "sid"}, UserCodeError, "no side output 'sid'"),
        ({"state": "one"}, StateTypeError, "'n'"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_of_the_batch_is_kept(row, error, message):
    test = ProcessHarness(Emits(), key="word")
    with pytest.raises(error, match=message):
        test.push({"word": "a"}, {"word": "a", **row})
    assert (test.stored(), test.output, test.sides) == ({}, [], {})


def test_errors_of_state_say_which_callback_met_them():
    with pytest.raises(StateTypeError) as caught:
        ProcessHarness(Emits(), key="word").push({"word": "a", "state": "one"})
    assert caught.value.__notes__ == ["  in Emits.on_element for the key 'a'"]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_key_of_another_type_is_refused(parallelism):
    with pytest.raises(StateTypeError, match="7"):
        ProcessHarness(Counter(), key="word", parallelism=parallelism).push({"word": 7})


def test_side_outputs_are_apart():
    test = ProcessHarness(Emits(), key="word")
    assert test.push({"word": "a", "side": "side", "row": {"n": 1}}) == [{"n": 1, "s": None}]
    assert test.sides == {"side": [{"s": "a"}]}


@pytest.mark.parametrize(
    ("batch", "options", "error", "message"),
    [
        ([{"x": 1}], {}, ColumnNotFound, "no column 'word'"),
        ([{"word": "a"}], {"event_time": "at"}, ColumnNotFound, "no column 'at'"),
        ([{"word": "a", "at": "noon"}], {"event_time": "at"}, DataError, "'noon' in column 'at'"),
        ([{"word": "a", "at": 1 << 70}], {"event_time": "at"}, DataError, "in column 'at' is not an event time"),
        ({"word": "a"}, {}, ConfigError, "A dict is not a batch"),
        ([1], {}, ConfigError, "A list is not a batch"),
        ([{"word": "a"}], {"key": lambda row: row["y"]}, UserCodeError, "key function raised KeyError"),
        ([], {"key": []}, ConfigError, "no column to key by"),
        ([], {"watermark_delay": timedelta(-1)}, ConfigError, "watermark_delay is"),
        ([], {"parallelism": 2, "backend": InMemoryStateBackend()}, ConfigError, "cannot share one backend"),
        ([], {"parallelism": 200}, ConfigError, "200 ranges"),
    ],
)
def test_what_cannot_be_run_is_refused(batch, options, error, message):
    with pytest.raises(error, match=message):
        list(run_process(Counter(), [batch], **{"key": "word", **options}))


class Silent(ProcessFunction):
    pass


class Odd(ProcessFunction):
    output = 7


class Uncopied(Counter):
    def __init__(self):
        self.lines = (line for line in ())


class Unopened(Counter):
    def open(self, _ctx):
        raise OSError("no network")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (Counter, ConfigError, "function is the class Counter"),
        (Both(), ConfigError, "function is a Both"),
        (Silent(), ConfigError, "Silent does not declare its output"),
        (Odd(), ConfigError, "The output of Odd is 7"),
        (Uncopied(), ConfigError, "Uncopied cannot be copied"),
        (Unopened(), UserCodeError, r"Unopened\.open raised OSError: no network"),
    ],
)
def test_functions_that_cannot_be_run_are_refused(function, error, message):
    with pytest.raises(error, match=message):
        ProcessRunner(function, key="word")


def test_a_function_without_its_callback_says_so():
    with pytest.raises(UserCodeError, match="Counting has neither on_element nor on_batch"):
        ProcessHarness(type("Counting", (ProcessFunction,), {"output": "a INT"})(), key="word").push({"word": "a"})


def test_instances_are_copies_and_are_closed():
    class Closing(Counter):
        closed = []  # noqa: RUF012 - of all copies

        def open(self, ctx):
            super().open(ctx)
            self.opened = True

        def close(self):
            self.closed.append(self.opened)

    function = Closing()
    list(run_process(function, [words("a")], key="word", parallelism=3))
    assert (function.closed, hasattr(function, "opened")) == ([True] * 3, False)


def test_a_function_is_closed_behind_a_batch_that_failed():
    class Closing(Counter):
        closed = []  # noqa: RUF012 - of all copies

        def close(self):
            self.closed.append(True)

    with pytest.raises(UserCodeError, match="boom"):
        list(run_process(Closing(), [[{"word": "a", "boom": True}]], key="word"))
    assert Closing.closed == [True]


class Watched(InMemoryStateBackend):
    """Notes what each write has changed."""

    def __init__(self):
        super().__init__()
        self.written = []

    def write(self, changes):
        self.written.append({slot_of(key) for own in changes.values() for key in own})
        super().write(changes)


def test_state_timers_and_progress_are_one_write():
    class Timed(Counter):
        def on_element(self, ctx, key, row):
            super().on_element(ctx, key, row)
            ctx.timers.register(5)

    backend = Watched()
    ProcessRunner(Timed(), key="word", backend=backend).run(words("ab"))
    (written,) = backend.written
    assert {slot_bytes(slot) for slot in ("n", "weirflow.event_timers", "weirflow.progress")} <= written


class Failing(InMemoryStateBackend):
    """Writes so often, then fails."""

    def __init__(self, writes):
        super().__init__()
        self.writes = writes

    def write(self, changes):
        if self.writes == 0:
            raise StateError("the disk is full")
        self.writes -= 1
        super().write(changes)


def test_a_batch_that_cannot_be_written_can_be_run_again():
    backend = Failing(1)
    runner = ProcessRunner(Counter(), key="word", backend=backend)
    runner.run(words("a"))
    with pytest.raises(StateError, match="the disk is full"):
        runner.run(words("a"))
    backend.writes = 1
    assert counted([runner.run(words("a"))]) == [("a", 2)]


def test_a_batch_that_some_instances_have_written_is_torn():
    backends = iter([Failing(9), Failing(1)])
    runner = ProcessRunner(Counter(), key="word", parallelism=2, backend=lambda _: next(backends))
    runner.run(words("ab"))
    with pytest.raises(StateError, match="the disk is full"):
        runner.run(words("ab"))
    with pytest.raises(StateError, match="was not written by all of its instances"):
        runner.run(words("ab"))
    stored = iter(runner.backends.values())
    with pytest.raises(StateError, match="not at the same batch: 2, 1"):
        ProcessRunner(Counter(), key="word", parallelism=2, backend=lambda _: next(stored))


def test_a_manual_clock_goes_forward():
    clock = ManualClock(5)
    clock.advance(timedelta(seconds=1))
    assert clock() == 1005
    with pytest.raises(ConfigError, match="cannot be advanced"):
        clock.advance(timedelta(seconds=-1))
