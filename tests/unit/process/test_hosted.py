"""Functions of two inputs as another engine runs them: key by key, on its state and its timers, task by task."""

# ruff: noqa: ARG002 - functions keep to a contract

import copy

import pytest
from support.two_inputs import EVENT_TIME, KEY, embedded, multisets, orders_and_visits, random_pairs

from weirflow.errors import ConfigError, UserCodeError
from weirflow.process import CoProcessFunction, ProcessFunction
from weirflow.process.hosted.one_input import HostedProcessFunction
from weirflow.process.hosted.two_inputs import HostedCoProcessFunction
from weirflow.state import InMemoryStateBackend, StateDescriptor


class Engine:
    """State and timers of an engine: a ``Host``."""

    def __init__(self):
        self.backend = InMemoryStateBackend()
        self.kept = {}
        self.current = None

    def declare(self, slot, kind, ttl): ...

    def begin(self, key): ...

    def timers(self):
        return list(self.kept.get(self.current, ()))

    def register(self, at):
        self.kept.setdefault(self.current, set()).add(at)

    def delete(self, at):
        self.kept.setdefault(self.current, set()).discard(at)

    def run(self, function, pair, watermark, event_time):
        """A task: the rows of each key, the left ones first, then the timers that are due."""
        task = HostedCoProcessFunction(copy.deepcopy(function), event_time)
        task.time = "event" if any(event_time) else "processing"
        task.open(self)
        keys = {}
        for side, rows in enumerate(pair):
            for row in rows:
                keys.setdefault(row[KEY[side]], []).append((row[KEY[side]], *((row, None), (None, row))[side]))
        outputs = []
        for key, rows in keys.items():
            self.current = key
            outputs.append(task.rows(key, rows, 0, watermark))
        for key in [key for key, times in self.kept.items() if min(times, default=watermark + 1) <= watermark]:
            self.current = key
            outputs.append(task.due(key, 0, watermark))
            self.kept[key] = {at for at in self.kept[key] if at > watermark}
        task.close()
        tags = ("output", *task.tags)
        return {tag: [row for rows in outputs for row in rows[at]] for at, tag in enumerate(tags)}


def hosted(function, batches, event_time):
    """What each output gets, with the watermark of the batches before."""
    engine, found, watermark = Engine(), {tag: [] for tag in ("output", *function.side_outputs)}, 0
    latest = {name: 0 for name in event_time if name is not None}
    for pair in [*batches, ([], [])]:
        for tag, rows in engine.run(function, pair, watermark, event_time).items():
            found[tag] += rows
        for rows, name in zip(pair, event_time, strict=True):
            if name is not None:
                latest[name] = max([latest[name], *(int(row[name].timestamp() * 1000) for row in rows)])
        watermark = max(watermark, min(latest.values(), default=0))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_two_inputs_give_the_rows_of_an_embedded_run(seed):
    function, batches = orders_and_visits(), random_pairs(seed, rows=30)
    expected = embedded(function, batches, key=KEY, event_time=EVENT_TIME)
    assert multisets(hosted(function, batches, EVENT_TIME)) == multisets(expected)
    assert all(expected.values()), "every output is tried"


class Times(CoProcessFunction):
    output = "what STRING, at BIGINT"

    def open(self, ctx):
        self.seen = ctx.value(StateDescriptor("seen", int, int))

    def on_left(self, ctx, key, row):
        ctx.emit({"what": "left", "at": ctx.timestamp})

    def on_right(self, ctx, key, row):
        ctx.emit({"what": "right", "at": ctx.timestamp})
        if ctx.timestamp is not None:
            ctx.timers.register(ctx.timestamp + 1)

    def on_timer(self, ctx, key, ts, kind):
        ctx.emit({"what": kind, "at": ctx.timestamp})


@pytest.mark.parametrize("event_time", [("at", None), (None, "since"), (None, None)])
def test_rows_of_an_input_without_event_time_have_none_and_hold_nothing_back(event_time):
    batches = random_pairs(1)
    expected = embedded(Times(), batches, key=KEY, event_time=event_time)
    assert multisets(hosted(Times(), batches, event_time)) == multisets(expected)


@pytest.mark.parametrize("side", ["left", "right"])
def test_what_is_raised_says_in_which_callback(side):
    class Failing(CoProcessFunction):
        output = "n BIGINT"

        def on_left(self, ctx, key, row):
            raise ValueError("no such thing")

        on_right = on_left

    pair = ([{"customer": 7}], []) if side == "left" else ([], [{"id": 7}])
    with pytest.raises(UserCodeError) as caught:
        Engine().run(Failing(), pair, 0, (None, None))
    assert caught.value.message == f"Failing.on_{side} for the key 7 raised ValueError: no such thing"


class One(ProcessFunction):
    output = "n BIGINT"


def test_a_function_of_another_number_of_inputs_is_refused():
    with pytest.raises(ConfigError, match="Times has two inputs, and one stream was given") as caught:
        HostedProcessFunction(Times(), ["at"], None)
    assert caught.value.hint == "connect two: left.key_by(...).connect(right.key_by(...)).process(function)"
    with pytest.raises(ConfigError, match="One has one input, and two streams were connected"):
        HostedCoProcessFunction(One(), (None, None))
    with pytest.raises(ConfigError, match="is not a CoProcessFunction"):
        HostedCoProcessFunction(len, (None, None))
