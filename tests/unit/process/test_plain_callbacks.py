"""Callbacks that would do nothing when they are called, and what they hand to their context."""

import numpy as np
import pytest

from weirflow import StreamingQueryListener
from weirflow.errors import ConfigError, UserCodeError, WeirflowError
from weirflow.process import ProcessFunction, run_process
from weirflow.state import StateDescriptor


def test_a_callback_that_yields_rows_is_refused_when_its_class_is_written():
    with pytest.raises(ConfigError, match=r"Words\.on_element\(\) is async or a generator"):

        class Words(ProcessFunction):
            def on_element(self, _ctx, key, _row):
                yield {"word": key}


def test_an_async_callback_is_refused_when_its_class_is_written():
    with pytest.raises(ConfigError, match=r"Listener\.on_started\(\) is async or a generator"):

        class Listener(StreamingQueryListener):
            async def on_started(self, event): ...


def run(act):
    class Words(ProcessFunction):
        output = "word STRING"
        side_outputs = {"beside": "word STRING"}  # noqa: RUF012 - as users write it

        def open(self, ctx):
            ctx.value(StateDescriptor("seen", str, bool))

        def on_element(self, ctx, _key, _row):
            act(ctx)

        def on_timer(self, ctx, key, ts, kind):
            pass

        def others(self):
            yield "a method of the user's own"

    return [
        one.rows.to_pylist() for one in run_process(Words(), [[{"word": "a", "at": 1}]], key="word", event_time="at")
    ]


@pytest.mark.parametrize("row", [None, "a", 5, [("word", "a")], object()], ids=repr)
@pytest.mark.parametrize("put", [lambda ctx, row: ctx.emit(row), lambda ctx, row: ctx.side("beside", row)])
def test_what_is_no_row_is_not_put_out(put, row):
    with pytest.raises(UserCodeError, match="which is not a row"):
        run(lambda ctx: put(ctx, row))


@pytest.mark.parametrize("tag", [None, 5, [], "nowhere"], ids=repr)
def test_what_is_no_side_output(tag):
    with pytest.raises(UserCodeError, match="has no side output"):
        run(lambda ctx: ctx.side(tag, {"word": "a"}))


@pytest.mark.parametrize("at", [True, 1.5, "5", None, 2**70, pytest.param(10**5000, id="5,000 digits")])
def test_what_is_no_time_of_a_timer(at):
    for act in (lambda ctx: ctx.timers.register(at), lambda ctx: ctx.timers.delete(at)):
        with pytest.raises(WeirflowError, match="is not a time"):
            run(act)


def test_integers_of_numpy_are_times():
    assert run(lambda ctx: ctx.timers.register(np.int64(5))) == [[], []]
