"""What a sink raises that is no error, such as Ctrl-C: nothing is lost or doubled, and the flow goes on."""

import threading
from contextlib import suppress

import pytest
from support.sunk_shop import ANN_5_THEN_12, declare, order, written

from weirflow.failpoints import watch_failpoints
from weirflow.ivm.flow import IncrementalFlow

WRITING = {"write_if_due", "_write", "_settle"}
INTERRUPTS = [KeyboardInterrupt, SystemExit, GeneratorExit]


@pytest.fixture
def interrupt_at():
    """Raises what a function asks for, at the next hit of a failpoint."""

    def arm(point, error):
        def hit(name):
            if name == point:
                watch_failpoints(None)
                raise error

        watch_failpoints(hit)

    yield arm
    watch_failpoints(None)


@pytest.mark.parametrize("interrupt", INTERRUPTS)
@pytest.mark.parametrize("path", [None, "flow"])
def test_a_function_that_was_interrupted_gets_what_it_lacks(tmp_path, interrupt, path):
    seen, armed = [], [True]

    def take(epoch, _):
        if armed and epoch == 2:
            armed.clear()
            raise interrupt
        seen.append(epoch)

    with declare(IncrementalFlow("shop", path=path and tmp_path / path)) as flow:
        out = flow.sink("totals", take)
        order(flow, 5)
        with pytest.raises(interrupt):
            order(flow, 7)
        assert (flow.epoch, flow.pending, seen) == (2, False, [1])
        order(flow, 1)
        order(flow, 1)
        assert (seen, out.position, out.error) == ([1, 2, 3, 4], 4, None)


@pytest.mark.parametrize("interrupt", INTERRUPTS)
@pytest.mark.parametrize("point", ["sink.before_write", "sink.before_file", "sink.after_write"])
def test_files_hold_every_delta_once_wherever_the_write_was_interrupted(tmp_path, interrupt_at, interrupt, point):
    with declare(IncrementalFlow("shop", path=tmp_path / "flow")) as flow:
        flow.sink("totals", tmp_path / "out")
        order(flow, 5)
        interrupt_at(point, interrupt)
        with pytest.raises(interrupt):
            order(flow, 7)
        order(flow, 1, "bob")
        order(flow, 1, "bob")
    later = [("bob", 1, -1, 4), ("bob", 1, 1, 3), ("bob", 2, 1, 4)]
    assert written(tmp_path / "out") == sorted(ANN_5_THEN_12 + later)


def order_or_be_interrupted(flow, amount):
    with suppress(KeyboardInterrupt):
        order(flow, amount)


def test_an_interrupt_at_any_call_of_a_write_loses_and_doubles_nothing(tmp_path):
    """Python looks for signals as calls begin and end; a profile function can raise at the same places."""
    calls = 0
    while True:
        with declare(IncrementalFlow("shop")) as flow:
            out = flow.sink("totals", tmp_path / str(calls))
            order(flow, 5)
            left = calls

            def profile(frame, event, _, sink=out):
                nonlocal left
                caller = frame if event.startswith("c_") else frame.f_back
                if caller and caller.f_code.co_name in WRITING and caller.f_locals.get("self") is sink:
                    left -= 1
                    if left == -1:
                        raise KeyboardInterrupt

            threading.setprofile(profile)
            ticking = threading.Thread(target=order_or_be_interrupted, args=(flow, 7))
            ticking.start()
            ticking.join()
            threading.setprofile(None)
            if left >= 0:
                break  # a write makes fewer calls than this
            out.flush()
        assert written(tmp_path / str(calls)) == ANN_5_THEN_12, f"interrupted at call {calls} of the write"
        calls += 1
    assert calls > 10


def test_what_interrupts_one_sink_as_the_flow_closes_does_not_keep_the_others_open(tmp_path):
    flow = declare(IncrementalFlow("shop", path=tmp_path / "flow"))

    def interrupted(epoch, _):
        if epoch:
            raise KeyboardInterrupt

    first = flow.sink("totals", interrupted, name="first", every=10)
    second = flow.sink("totals", tmp_path / "out", name="second", every=10)
    order(flow, 5)
    with pytest.raises(KeyboardInterrupt):
        flow.close()
    assert (first.closed, second.closed) == (True, True)
    assert written(tmp_path / "out") == [("ann", 5, 1, 1)]
    declare(IncrementalFlow("shop", path=tmp_path / "flow")).close()  # its path is free again


def test_the_clock_of_sinks_survives_a_function_that_exits():
    seen, armed, done = [], [True], threading.Event()

    def take(epoch, _):
        if armed:
            armed.clear()
            raise SystemExit
        seen.append(epoch)
        done.set()

    with declare(IncrementalFlow("shop")) as flow:
        flow.sink("totals", take, every="10 milliseconds")
        order(flow, 5)
        assert done.wait(30)
    assert seen == [1]
