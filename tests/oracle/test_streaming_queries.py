"""The life of a streaming query: status, progress, errors, restarts, listeners, the end."""

import gc
import threading
import weakref

import pyarrow as pa
import pytest
from support.processes import wait_until

from weirflow import OutputMode, RestartPolicy, StreamingQueryListener, Trigger
from weirflow.errors import (
    AlreadyExists,
    ConfigError,
    DataError,
    SessionClosed,
    StreamNotFound,
    TableNotFound,
    UserCodeError,
)
from weirflow.testing.sequence import SequenceSource
from weirflow.types import OperationState, QueryState

NUMBERS = pa.schema({"n": pa.int64()})


@pytest.fixture
def numbers():
    with SequenceSource(NUMBERS) as source:
        yield source


def one(n):
    return [{"n": n}]


def held(query):
    return sorted(pa.Table.from_batches(query.memory_batches())["n"].to_pylist())


class Collecting:
    """A function for foreach_batch that keeps what it is given and raises as told."""

    def __init__(self, *errors):
        self.rows = []
        self.errors = list(errors)

    def __call__(self, frame, number):
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
        self.rows.extend((number, n) for n in frame.to_arrow()["n"].to_pylist())


def test_a_query_says_what_it_does(session, numbers):
    numbers.add([*one(1), *one(2)])
    counted = numbers.stream(session).groupBy("n").count()
    writer = counted.write_stream().output_mode(OutputMode.UPDATE).format("memory").query_name("counting")
    with writer.start() as query:
        query.process_all_available()
        wait_until(lambda: "counting: waiting\n" in str(query), 30.0, "waiting")
        progress = query.last_progress()
        assert (query.name, query.active, query.exception) == ("counting", True, None)
        assert (progress.batch, progress.input_rows, progress.output_rows, progress.state_rows) == (0, 2, 2, 2)
        assert progress.state_bytes > 0
        assert progress.duration_ms > 0
        assert progress.watermark is None
        assert progress.query_id == query.id
        assert [operation.description for operation in session.operations] == ["stream counting"]
        assert next(iter(session.operations)).note == str(progress)
        assert "<th>rows/s</th>" in query._repr_html_()
        info = query.describe()
        assert (info.sink, info.delivery, info.trigger) == (
            "memory",
            "at-least-once",
            "as soon as the last batch is done",
        )
        assert "temporary" in info.checkpoint
    assert (query.status().state, query.active) == (QueryState.STOPPED, False)
    assert len(query.memory_batches()) >= 1


def test_what_a_batch_runs_is_part_of_the_query(session, numbers):
    listed = []

    def take(frame, number):
        frame.to_arrow()
        list(frame.to_batches())
        listed.append([operation.description for operation in session.operations])
        with pytest.raises(TableNotFound, match="nowhere"):
            session.sql("SELECT * FROM nowhere")

    numbers.add(one(1))
    writer = numbers.stream(session).write_stream().foreach_batch(take).query_name("taking")
    with writer.trigger(Trigger.available_now()).start() as query:
        query.await_termination(60)
    assert listed == [["stream taking"]]


def test_a_query_that_is_done_is_finished(session, numbers):
    numbers.add(one(1))
    query = numbers.stream(session).write_stream().format("memory").trigger(Trigger.available_now()).start()
    assert query.await_termination(60)
    assert query.status().state is QueryState.FINISHED
    assert held(query) == [1]
    query.stop()
    assert query.status().state is QueryState.FINISHED


def test_a_query_goes_on_from_its_checkpoint(session, numbers, tmp_path):
    def run(take):
        writer = numbers.stream(session).write_stream().option("checkpoint.location", tmp_path / "saved")
        with writer.foreach_batch(take).trigger(Trigger.available_now()).start() as query:
            query.await_termination(60)
            return query.id, query.describe().checkpoint

    first, second = Collecting(), Collecting()
    numbers.add(one(1))
    before = run(first)
    numbers.add(one(2))
    assert run(second) == before
    assert "as given" in before[1]
    assert (first.rows, second.rows) == ([(0, 1)], [(1, 2)])


def test_a_raising_function_ends_the_query_with_its_error(session, numbers):
    numbers.add(one(1))
    query = numbers.stream(session).write_stream().foreach_batch(Collecting(ValueError("no such luck"))).start()
    with pytest.raises(UserCodeError, match="ValueError: no such luck") as raised:
        query.await_termination(60)
    assert isinstance(raised.value.__cause__, ValueError)
    assert query.exception is raised.value
    assert query.status().state is QueryState.FAILED
    assert session.streams.active == []
    query.stop()
    assert query.exception is raised.value


def test_an_error_of_spark_is_typed(session, numbers):
    numbers.add(one(0))
    query = numbers.stream(session).selectExpr("1 div n AS n").write_stream().format("memory").start()
    with pytest.raises(DataError) as raised:
        query.process_all_available()
    assert "zero" in raised.value.message
    assert "=== Streaming Query" not in raised.value.message
    assert isinstance(query.exception, DataError)
    with pytest.raises(DataError):
        query.await_termination()


def test_a_transient_error_is_tried_again(session, numbers):
    numbers.add(one(1))
    numbers.add(one(2))
    take = Collecting(None, ConnectionError("gone"), TimeoutError("gone again"))
    writer = numbers.stream(session).write_stream().foreach_batch(take).trigger(Trigger.available_now())
    with writer.restart(RestartPolicy(delay=0.05)).start() as query:
        assert query.await_termination(60)
        assert query.restarts == 2
        assert [progress.batch for progress in query.recent_progress][-2:] == [0, 1]
    assert take.rows == [(0, 1), (1, 2)]
    assert query.status().state is QueryState.FINISHED
    assert "up to 3 in a row" in query.describe().restarts


def test_a_terminal_error_stays_terminal_and_attempts_end(session, numbers):
    numbers.add(one(1))
    for errors, restarts in (([KeyError("x")], 0), ([OSError("a"), OSError("b"), OSError("c")], 2)):
        take = Collecting(*errors)
        writer = numbers.stream(session).write_stream().foreach_batch(take)
        query = writer.restart(RestartPolicy(attempts=2, delay=0.01)).start()
        with pytest.raises(UserCodeError) as raised:
            query.await_termination(60)
        assert (query.restarts, take.rows) == (restarts, [])
        assert raised.value.__cause__ is errors[-1]


def test_a_query_waiting_for_its_restart_can_be_stopped(session, numbers):
    numbers.add(one(1))
    writer = numbers.stream(session).write_stream().foreach_batch(Collecting(OSError("gone")))
    with writer.restart(RestartPolicy(delay=60)).start() as query:
        wait_until(lambda: query.status().state is QueryState.RESTARTING, 30.0, "restarting")
        assert isinstance(query.exception, UserCodeError)
    assert query.status().state is QueryState.STOPPED


def test_stop_waits_for_the_batch(session, numbers, tmp_path):
    entered, known, rows = threading.Event(), threading.Event(), []

    def slowly(frame, number):
        entered.set()
        known.wait()
        wait_until(lambda: query._run._gate._closed, 60.0, "asked to stop")
        rows.append(number)

    numbers.add(one(1))
    numbers.add(one(2))
    writer = numbers.stream(session).write_stream().foreach_batch(slowly)
    query = writer.option("checkpointLocation", tmp_path / "saved").start()
    known.set()
    assert entered.wait(60)
    query.stop()
    assert rows == [0]
    take = Collecting()
    writer = numbers.stream(session).write_stream().foreach_batch(take).trigger(Trigger.available_now())
    with writer.option("checkpointLocation", tmp_path / "saved").start() as query:
        query.await_termination(60)
    assert {number for number, _ in take.rows} <= {0, 1}
    assert (1, 2) in take.rows


def test_a_batch_can_stop_its_own_query(session, numbers):
    numbers.add(one(1))
    started = threading.Event()

    def stopping(frame, number):
        started.wait()
        query.stop()

    query = numbers.stream(session).write_stream().foreach_batch(stopping).start()
    started.set()
    assert query.await_termination(60)
    assert query.status().state is QueryState.STOPPED


def test_a_dropped_handle_leaves_no_orphan(session, numbers):
    numbers.stream(session).write_stream().format("memory").query_name("dropped").start()
    gc.collect()
    wait_until(lambda: session.spark.streams.active == [] and not list(session.operations), 30.0, "stopped")


def test_queries_are_found_by_name_and_id(session, numbers):
    first = numbers.stream(session).write_stream().format("noop").query_name("first").start()
    second = numbers.stream(session).write_stream().format("noop").query_name("second").start()
    assert session.streams.active == [first, second]
    assert session.streams.get("first") is first
    assert session.streams.get(second.id) is second
    with pytest.raises(StreamNotFound) as raised:
        session.streams.get("secnd")
    assert raised.value.hint == "did you mean 'second'?"
    with pytest.raises(AlreadyExists, match="is already running"):
        numbers.stream(session).write_stream().format("noop").query_name("first").start()
    assert session.streams.await_any(0.05) is None
    threading.Timer(0.1, second.stop).start()
    assert session.streams.await_any(60) is second
    session.streams.stop_all()
    assert session.streams.active == []
    assert session.streams.await_any() is None


def test_cancelling_the_operation_stops_the_query(session, numbers):
    query = numbers.stream(session).write_stream().format("noop").query_name("cancelled").start()
    operation = next(iter(session.operations))
    session.operations.cancel(operation.id)
    assert query.await_termination(60)
    assert query.status().state is QueryState.STOPPED
    assert operation.wait(10)
    assert operation.state is OperationState.CANCELLED


def test_a_query_is_cancelled_by_its_own_id(session, numbers):
    query = numbers.stream(session).write_stream().format("noop").query_name("by id").start()
    assert not query.await_termination_timeout(0.01)
    session.operation_registry().cancel(query.id)
    assert query.await_termination_timeout(60)
    assert query.status().state is QueryState.STOPPED


class Noting(StreamingQueryListener):
    def __init__(self):
        self.events = []

    def on_started(self, event):
        self.events.append(("started", event.name))

    def on_progress(self, event):
        self.events.append(("progress", event.progress.batch))

    def on_terminated(self, event):
        self.events.append(("terminated", event.exception, event.last_progress, event.restarting))


class Bad(StreamingQueryListener):
    """Raises at the start, then blocks for good."""

    def __init__(self):
        self.released = threading.Event()

    def on_started(self, event):
        raise RuntimeError(f"a listener that fails on {event.name}")

    def on_progress(self, event):
        assert self.released.wait(), event


def test_listeners_are_told_and_cannot_harm(session, numbers, caplog):
    noting, bad = Noting(), Bad()
    session.streams.add_listener(bad)
    session.streams.add_listener(noting)
    try:
        numbers.add(one(1))
        numbers.add(one(2))
        take = Collecting(None, OSError("gone"))
        writer = numbers.stream(session).write_stream().foreach_batch(take).trigger(Trigger.available_now())
        with writer.query_name("told").restart(RestartPolicy(delay=0.01)).start() as query:
            assert query.await_termination(60)
        wait_until(lambda: len(noting.events) == 6, 30.0, "six events")
    finally:
        session.streams.remove_listener(noting)
        bad.released.set()
        session.streams.remove_listener(bad)
    kinds = [event[:2] if event[0] != "terminated" else "terminated" for event in noting.events]
    assert kinds == [
        ("started", "told"),
        ("progress", 0),
        "terminated",
        ("started", "told"),
        ("progress", 1),
        "terminated",
    ]
    failed, done = (event for event in noting.events if event[0] == "terminated")
    assert isinstance(failed[1].__cause__, OSError)
    assert (failed[2].batch, failed[3]) == (0, True)
    assert (done[1], done[2].batch, done[3]) == (None, 1, False)
    assert "a listener of streaming queries failed on QueryStarted" in caplog.text


class Ending(StreamingQueryListener):
    """Overrides a method by its longer name."""

    def __init__(self):
        self.events = []

    def on_query_terminated(self, event):
        self.events.append((event.name, event.last_progress.batch, event.exception))


def test_a_listener_that_comes_late_is_told_the_name_and_the_last_batch(session, numbers):
    numbers.add(one(1))
    ending = Ending()
    with numbers.stream(session).write_stream().format("noop").query_name("begun before").start() as query:
        query.process_all_available()
        session.streams.add_listener(ending)
        query.stop()
        try:
            wait_until(lambda: ending.events, 30.0, "the end")
        finally:
            session.streams.remove_listener(ending)
    assert ending.events == [("begun before", 0, None)]


def test_a_failing_tick_leaves_the_flow_as_it_was(session, numbers):
    with session.flow("ticked") as flow:
        flow.register_source("numbers", "n BIGINT")
        flow.register_view("share", "SELECT 100 div n AS share FROM numbers")
        numbers.add(one(5))
        numbers.add(one(0))
        query = numbers.stream(session).write_stream().flow(flow, "numbers").start()
        with pytest.raises(DataError):
            query.await_termination(60)
        assert (flow.epoch, flow.pending) == (1, False)
        assert flow.snapshot("share").to_pylist() == [{"share": 20}]
        assert query.describe().sink == "the source numbers of the flow ticked"


def test_other_queries_have_no_memory(session, numbers):
    with (
        numbers.stream(session).write_stream().format("noop").start() as query,
        pytest.raises(ConfigError, match="not to memory"),
    ):
        query.memory_batches()


def test_a_durable_session_keeps_checkpoints_by_name_and_stops_queries(tmp_path, open_durable):
    source = SequenceSource(NUMBERS, tmp_path / "numbers")
    taken = []
    for n in (1, 2):
        source.add(one(n))
        with open_durable(tmp_path / "session") as durable:
            with pytest.raises(ConfigError, match="this query has none"):
                source.stream(durable).write_stream().format("noop").start()
            with pytest.raises(ConfigError, match="cannot be the name of a checkpoint's folder"):
                source.stream(durable).write_stream().format("noop").query_name("../up").start()
            take = Collecting()
            query = source.stream(durable).write_stream().foreach_batch(take).query_name("kept").start()
            query.process_all_available()
            assert f"{tmp_path}/session/checkpoints/queries/kept" in query.describe().checkpoint
        assert not query.active
        taken.append(take.rows)
    assert taken == [[(0, 1)], [(1, 2)]]
    with pytest.raises(SessionClosed):
        _ = durable.streams


@pytest.mark.parametrize("sink", ["memory", "function"])
def test_what_spark_kept_for_a_query_goes_with_its_handle(session, numbers, sink):
    """What the Session remembers of ended queries is small, and nothing waits for a collection of garbage."""
    writer = numbers.stream(session).write_stream().trigger(Trigger.available_now())
    writer = writer.format("memory") if sink == "memory" else writer.foreach_batch(Collecting())
    numbers.add(one(1))
    gc.collect()
    gc.disable()
    try:
        query = writer.start()
        query.await_termination(60)
        run_id, run = query.run_id, weakref.ref(query._run)
        del query, writer
        wait_until(lambda: run() is None, 20.0, "let go of")
    finally:
        gc.enable()
    assert session.streams.outcome(run_id) == (None, False)
    name, last = session.streams.known(run_id)
    assert name is not None
    assert last.input_rows == 1
