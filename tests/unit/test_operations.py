import contextlib
import gc
import threading
import time
import weakref

import pytest
from support.processes import wait_until

from weirflow.errors import (
    OperationCancelled,
    OperationTimeout,
    OperationUnknown,
    QueryError,
    SessionError,
    UnsupportedError,
)
from weirflow.observability.progress import SilentDisplay
from weirflow.session.operations import Operations
from weirflow.types import OperationState

DEADLINE = 20.0


class ForeignError(Exception):
    """What Spark raises, in this test."""


class FakeControl:
    """A Spark whose jobs end when they are cancelled."""

    def __init__(self):
        self.marks = []  # (thread, tag) of the work that is marked now
        self.log = []
        self.cancelled = {}
        self.done = 0
        self.broken = None
        self._lock = threading.Lock()

    def begin(self, tag):
        if self.broken is not None:
            raise self.broken
        self.log.append(("begin", tag))
        self.marks.append((threading.get_ident(), tag))

    def end(self, tag):
        self.log.append(("end", tag))
        self.marks.remove((threading.get_ident(), tag))

    def cancel(self, tag):
        self.event(tag).set()
        self.cancelled[tag] = self.cancelled.get(tag, 0) + 1

    def progress(self, _):
        return self.done, 10

    def assignments(self, tag, frame):
        return [tag, frame]

    def explain(self, tag, frame):
        return f"{frame} of {tag}"

    def event(self, tag):
        with self._lock:
            self.__dict__.setdefault("events", {})
            return self.events.setdefault(tag, threading.Event())

    def run_until_cancelled(self):
        """What a Spark job does: runs on the marked thread until somebody cancels it."""
        tag = next(tag for thread, tag in self.marks if thread == threading.get_ident())
        if not self.event(tag).wait(DEADLINE):
            raise AssertionError("never cancelled")
        raise ForeignError("job cancelled")


@pytest.fixture
def control():
    return FakeControl()


@pytest.fixture
def operations(control):
    @contextlib.contextmanager
    def translated():
        try:
            yield
        except ForeignError as error:
            raise QueryError(str(error)) from error

    return Operations(lambda: control, translated, SilentDisplay())


def only(operations):
    [operation] = operations
    return operation


def test_a_call_is_listed_and_marked_while_it_runs(operations, control):
    def call():
        operation = only(operations)
        assert (operation.description, operation.state) == ("count", OperationState.RUNNING)
        assert control.marks == [(threading.get_ident(), operation.id)]
        return operation, 42

    operation, result = operations.run("count", call)
    assert result == 42
    assert list(operations) == []
    assert control.marks == []
    assert operation.state is OperationState.SUCCEEDED
    assert operation.error is None
    assert operation.wait(0)
    assert operations.get(operation.id) is operation


def test_a_failure_is_translated_and_kept(operations):
    seen = []

    def call():
        seen.append(only(operations))
        raise ForeignError("broke")

    with pytest.raises(QueryError, match="broke") as caught:
        operations.run("count", call)
    assert seen[0].state is OperationState.FAILED
    assert seen[0].error is caught.value
    assert list(operations) == []


def test_a_call_inside_another_is_part_of_it(operations, control):
    ids = []

    def inner():
        ids.append(only(operations).id)
        raise ForeignError("inner broke")

    def outer():
        ids.append(only(operations).id)
        with pytest.raises(QueryError, match="inner broke"):
            operations.run("inner", inner)
        return operations.run("again", lambda: 7)

    assert operations.run("outer", outer) == 7
    assert len(set(ids)) == 1
    assert [kind for kind, _ in control.log] == ["begin", "end"]


def test_a_spark_that_cannot_be_marked_leaves_the_thread_as_it_was(operations, control):
    control.broken = SessionError("gone")
    with pytest.raises(SessionError):
        operations.run("count", lambda: 1)
    assert list(operations) == []
    control.broken = None
    # Were the thread still counted as inside an operation, this one would not be listed.
    assert operations.run("count", lambda: only(operations).description) == "count"


def test_cancel_from_another_thread(operations, control):
    job = operations.submit("long", control.run_until_cancelled)
    assert list(operations) == [job]
    operations.cancel(job.id)
    with pytest.raises(OperationCancelled, match="'long' was cancelled") as caught:
        job.result(DEADLINE)
    assert caught.value.operation_id == job.id
    assert isinstance(caught.value.__cause__, QueryError)
    assert job.state is OperationState.CANCELLED
    assert list(operations) == []


def test_the_thread_that_waits_gets_the_cancellation(operations, control):
    outcome = []

    def work():
        try:
            operations.run("long", control.run_until_cancelled)
        except OperationCancelled as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: list(operations), DEADLINE, "running")
    operations.cancel_all()
    thread.join(DEADLINE)
    assert [type(error) for error in outcome] == [OperationCancelled]


def test_spark_is_asked_again_until_it_has_stopped(operations, control):
    def two_jobs():
        with contextlib.suppress(ForeignError):
            control.run_until_cancelled()
        tag = only(operations).id
        control.event(tag).clear()  # the next job starts after the first was cancelled
        control.run_until_cancelled()

    job = operations.submit("two jobs", two_jobs)
    job.cancel()
    with pytest.raises(OperationCancelled):
        job.result(DEADLINE)
    assert control.cancelled[job.id] >= 2


def test_a_request_that_fails_is_made_again(operations, control, monkeypatch):
    failures = [ConnectionError()]
    cancel = control.cancel
    monkeypatch.setattr(control, "cancel", lambda tag: cancel(tag) if not failures else _raise(failures.pop()))
    job = operations.submit("work", control.run_until_cancelled)
    wait_until(lambda: control.marks, DEADLINE, "running")
    job.cancel()
    with pytest.raises(OperationCancelled):
        job.result(DEADLINE)


def _raise(error):
    raise error


def test_work_that_ends_in_spite_of_cancel_has_succeeded(operations):
    def call():
        only(operations).cancel()
        return "done"

    assert operations.run("quick", call) == "done"


def test_cancel_before_the_work_starts(operations, control, monkeypatch):
    started = []
    begun = threading.Event()
    original = SilentDisplay.begin
    monkeypatch.setattr(SilentDisplay, "begin", lambda *args: (begun.wait(DEADLINE), original(*args)))
    job = operations.submit("long", lambda: started.append(1))
    job.cancel()
    assert job.state is OperationState.CANCELLING
    begun.set()
    with pytest.raises(OperationCancelled):
        job.result(DEADLINE)
    assert started == []
    assert job.state is OperationState.CANCELLED


def test_cancel_after_the_end_does_nothing(operations, control):
    job = operations.submit("quick", lambda: 1)
    assert job.result(DEADLINE) == 1
    job.cancel()
    assert job.state is OperationState.SUCCEEDED
    assert control.cancelled == {}


def test_an_unknown_id(operations):
    with pytest.raises(OperationUnknown, match="'nope'") as caught:
        operations.cancel("nope")
    assert caught.value.operation_id == "nope"


def test_the_deadline_stops_the_work(operations, control):
    begin = time.monotonic()
    with pytest.raises(OperationTimeout, match="'long' did not finish in time") as caught:
        operations.run_with_timeout("long", control.run_until_cancelled, 0.05)
    assert time.monotonic() - begin < DEADLINE / 2
    assert list(operations) == []
    assert operations.get(caught.value.operation_id).state is OperationState.TIMED_OUT


def test_work_that_does_not_stop_is_left_behind_and_stays_listed(operations):
    release = threading.Event()
    begin = time.monotonic()
    with pytest.raises(OperationTimeout):
        operations.run_with_timeout("stubborn", lambda: release.wait(DEADLINE * 2), 0.05)
    assert time.monotonic() - begin < DEADLINE / 2
    stubborn = only(operations)
    assert stubborn.state is OperationState.CANCELLING
    release.set()
    assert stubborn.wait(DEADLINE)
    assert list(operations) == []


def test_work_within_the_deadline(operations):
    assert operations.run_with_timeout("quick", lambda: 5, DEADLINE) == 5


def test_a_failure_within_the_deadline_is_raised_as_it_is(operations):
    def call():
        raise ForeignError("broke")

    with pytest.raises(QueryError, match="broke"):
        operations.run_with_timeout("quick", call, DEADLINE)


def test_an_interrupt_while_waiting_for_the_deadline_cancels(operations, control, monkeypatch):
    def interrupted(self, timeout=None):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("weirflow.session.operations.Operation.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        operations.run_with_timeout("long", control.run_until_cancelled, DEADLINE)
    wait_until(lambda: not list(operations), DEADLINE, "stopped")


def test_an_interrupt_stops_the_spark_work(operations, control):
    def call():
        operation.append(only(operations))
        raise KeyboardInterrupt

    operation = []
    with pytest.raises(KeyboardInterrupt):
        operations.run("long", call)
    wait_until(lambda: control.cancelled.get(operation[0].id), DEADLINE, "cancelled")
    assert operation[0].state is OperationState.CANCELLED
    assert list(operations) == []


def test_an_iterator_is_an_operation_until_its_end(operations, control):
    numbers = operations.drain("numbers", lambda: iter([1, 2, 3]))
    assert list(operations) == []  # nothing runs before it is read
    assert next(numbers) == 1
    operation = only(operations)
    assert control.marks == []  # between items the thread is the reader's
    assert list(numbers) == [2, 3]
    assert operation.state is OperationState.SUCCEEDED
    assert list(operations) == []
    assert control.cancelled == {}


def test_an_empty_iterator(operations):
    assert list(operations.drain("nothing", lambda: iter([]))) == []
    assert list(operations) == []


@pytest.mark.parametrize("leave", ["close", "drop"])
def test_a_reader_who_leaves_stops_spark(operations, control, leave):
    numbers = operations.drain("numbers", lambda: iter([1, 2, 3]))
    next(numbers)
    operation = only(operations)
    if leave == "close":
        numbers.close()
    else:
        del numbers
        gc.collect()
    assert list(operations) == []
    assert operation.state is OperationState.CANCELLED
    wait_until(lambda: control.cancelled.get(operation.id), DEADLINE, "cancelled")


def test_a_cancelled_iterator_tells_its_reader(operations):
    numbers = operations.drain("numbers", lambda: iter([1, 2, 3]))
    next(numbers)
    operation = only(operations)
    operation.cancel()
    with pytest.raises(OperationCancelled):
        next(numbers)
    assert operation.state is OperationState.CANCELLED


def test_an_iterator_that_fails(operations):
    def broken():
        yield 1
        raise ForeignError("broke")

    numbers = operations.drain("numbers", broken)
    next(numbers)
    operation = only(operations)
    with pytest.raises(QueryError, match="broke"):
        next(numbers)
    assert operation.state is OperationState.FAILED


def test_stopping_everything_does_not_wait_for_readers(operations, control):
    numbers = operations.drain("numbers", lambda: iter([1, 2, 3]))
    next(numbers)
    job = operations.submit("long", control.run_until_cancelled)
    begin = time.monotonic()
    operations.stop_all(DEADLINE)
    assert time.monotonic() - begin < DEADLINE / 2
    assert job.state is OperationState.CANCELLED
    with pytest.raises(OperationCancelled):
        next(numbers)


def test_progress_is_asked_for_while_it_runs_and_kept_after(operations, control):
    seen = []

    def call():
        operation = only(operations)
        for control.done in (3, 7):
            seen.append((operation.progress.done, operation.progress.total))
        return operation

    operation = operations.run("count", call)
    control.done = 99
    assert seen == [(3, 10), (7, 10)]
    assert (operation.progress.done, operation.progress.total) == (7, 10)
    assert "7/10 tasks" in repr(operation)


def test_seconds_stop_at_the_end(operations):
    operation = operations.submit("quick", lambda: 1)
    operation.wait(DEADLINE)
    assert operation.seconds == operation.seconds < DEADLINE


def test_assignments_are_asked_of_spark(operations):
    job = operations.submit("quick", lambda: 1)
    job.result(DEADLINE)
    assert job.assignments() == [job.id, None]


def test_a_submission_is_about_the_frame_that_was_computed_last_in_it(operations):
    def call():
        operations.run("first", lambda: 1, "a frame")
        list(operations.drain("second", lambda: iter([1]), "another frame"))
        operations.run("count", lambda: 1)

    job = operations.submit("both", call)
    job.result(DEADLINE)
    assert job.assignments() == [job.id, "another frame"]
    assert job.explain() == f"another frame of {job.id}"


def test_an_operation_is_about_its_frame_while_it_runs(operations):
    (running,) = operations.run("to_arrow", lambda: list(operations), "a frame")
    assert running.assignments() == [running.id, "a frame"]
    batches = operations.drain("to_batches", lambda: iter([1, 2]), "a stream")
    next(batches)
    (running,) = operations
    assert running.explain() == f"a stream of {running.id}"
    batches.close()


def test_a_frame_computed_inside_of_something_unknown_is_nobodys(operations):
    job = operations.submit("quick", lambda: 1)
    with operations.inside():
        assert operations.run("to_arrow", lambda: list(operations), "a frame") == []
    job.result(DEADLINE)
    assert job.assignments() == [job.id, None]


def test_an_operation_that_computed_no_frame_has_no_plan(operations):
    job = operations.submit("write parquet", lambda: 1)
    job.result(DEADLINE)
    with pytest.raises(UnsupportedError, match=r"No plan is known of 'write parquet'\.") as caught:
        job.explain()
    assert "submit, to_arrow, collect" in caught.value.hint


class Data:
    """Something that can be seen to go."""


def test_a_frame_is_kept_for_those_alone_who_hold_the_operation(operations):
    def run():
        frame = Data()
        (operation,) = operations.run("to_arrow", lambda: list(operations), frame)
        return operation, weakref.ref(frame)

    held, held_frame = run()
    dropped, dropped_frame = run()
    dropped = dropped.id
    gc.collect()
    assert dropped_frame() is None
    assert operations.get(dropped).assignments() == [dropped, None]
    assert (operations.get(dropped).state, operations.get(dropped).wait(0)) == (OperationState.SUCCEEDED, True)
    assert operations.get(held.id) is held
    assert held.assignments() == [held.id, held_frame()]
    assert held_frame() is not None


def test_a_result_within_a_deadline_is_the_callers_alone(operations):
    result = operations.run_with_timeout("quick", Data, DEADLINE)
    seen = weakref.ref(result)
    del result
    gc.collect()
    assert seen() is None


def test_an_interrupt_of_the_display_leaves_nothing_listed(operations, monkeypatch):
    monkeypatch.setattr(operations._display, "end", lambda _: _raise(KeyboardInterrupt()))
    seen = []
    with pytest.raises(KeyboardInterrupt):
        operations.run("quick", lambda: seen.extend(operations))
    assert len(operations) == 0
    assert seen[0].wait(0)


def test_operations_of_long_ago_are_forgotten(operations):
    first, second, *_, last = [operations.run("quick", lambda: next(iter(operations)).id) for _ in range(1001)]
    with pytest.raises(OperationUnknown, match="ended long ago"):
        operations.get(first)
    assert [operations.get(second).id, operations.get(last).id] == [second, last]


def test_a_result_that_is_not_there_in_time(operations, control):
    job = operations.submit("long", control.run_until_cancelled)
    with pytest.raises(TimeoutError, match=job.id):
        job.result(0.01)
    assert job.state is OperationState.RUNNING
    job.cancel()
    assert job.wait(DEADLINE)


def test_operations_of_many_threads_are_kept_apart(operations, control):
    jobs = [operations.submit(f"job {number}", control.run_until_cancelled) for number in range(8)]
    assert len(operations) == 8
    jobs[3].cancel()
    assert jobs[3].wait(DEADLINE)
    assert [job.state for job in jobs].count(OperationState.RUNNING) == 7
    operations.stop_all(DEADLINE)
    assert {job.state for job in jobs} == {OperationState.CANCELLED}
    assert list(operations) == []
