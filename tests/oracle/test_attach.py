"""Streams of Spark that tick a flow: every batch once, errors typed, nothing left behind."""

import gc
import json
import os
import shutil
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.processes import wait_until

from weirflow import RestartPolicy, StreamingQueryListener, Trigger
from weirflow.errors import (
    ConfigError,
    DataError,
    FlowError,
    FlowReentered,
    SessionClosed,
    SinkFailed,
    StreamConflict,
    TickPending,
)
from weirflow.types import QueryState

SCHEMA = "customer STRING, amount BIGINT"
TOTALS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def inbox(tmp_path):
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def flow(session):
    with session.flow("attached") as flow:
        flow.register_source("orders", SCHEMA)
        flow.register_view("totals", TOTALS)
        yield flow


def land(inbox, name, *rows):
    """Put a file into the folder that the stream reads, whole and clearly later than the one before."""
    aside = inbox.parent / f"{name}.part"
    aside.write_text("".join(json.dumps(row) + "\n" for row in rows))
    moment = time.time() + len(list(inbox.iterdir()))
    os.utime(aside, (moment, moment))
    aside.rename(inbox / f"{name}.json")


def order(customer, amount, **more):
    return {"customer": customer, "amount": amount, **more}


def stream(session, inbox, schema=SCHEMA):
    return session.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(inbox))


def totals(flow):
    return {row["customer"]: row["total"] for row in flow.snapshot("totals").to_pylist()}


def test_each_batch_is_a_tick(session, flow, inbox):
    land(inbox, 1, order("ann", 5))
    land(inbox, 2, order("bob", 1), order("ann", 7))
    with flow.attach(stream(session, inbox), "orders") as attachment:
        attachment.process_all_available()
        assert (flow.epoch, totals(flow)) == (2, {"ann": 12, "bob": 1})
        land(inbox, 3, order("bob", 1))
        attachment.process_all_available()
        assert (flow.epoch, totals(flow)) == (3, {"ann": 12, "bob": 2})
        assert attachment.last_progress().batch == 2
        assert (attachment.active, attachment.exception) == (True, None)
        checkpoint = Path(attachment.describe().checkpoint.partition(",")[0])
        assert checkpoint.exists()
    assert (attachment.active, attachment.exception) == (False, None)
    assert not checkpoint.exists()


def test_a_frame_of_the_session_can_be_attached_and_ends_when_all_is_read(session, flow, inbox):
    land(inbox, 1, order("ann", 5))
    session.spark.readStream.schema(SCHEMA).json(str(inbox)).createOrReplaceTempView("arriving")
    frame = session.sql("SELECT upper(customer) AS customer, amount FROM arriving")
    attachment = flow.attach(frame, "orders", trigger="available now")
    assert attachment.await_termination(60)
    assert totals(flow) == {"ANN": 5}
    attachment.stop()


@pytest.mark.parametrize(
    ("schema", "option", "rows"),
    [
        (
            f"{SCHEMA}, _weight BIGINT",
            {},
            [order("ann", 5, _weight=1), order("bob", 1, _weight=1), order("ann", 5, _weight=-1)],
        ),
        (
            f"{SCHEMA}, op STRING",
            {"changes": "op"},
            [order("ann", 5, op="insert"), order("bob", 1, op="insert"), order("ann", 5, op="delete")],
        ),
    ],
)
def test_a_stream_of_changes_retracts(session, flow, inbox, schema, option, rows):
    for number, row in enumerate(rows):
        land(inbox, number, row)
    with flow.attach(stream(session, inbox, schema), "orders", **option) as attachment:
        attachment.process_all_available()
    assert totals(flow) == {"bob": 1}


def test_a_failing_tick_ends_the_stream_and_comes_again(session, flow, inbox, tmp_path):
    flow.register_view("share", "SELECT customer, 100 div total AS share FROM totals")
    land(inbox, 1, order("ann", 0))
    options = {"checkpoint": tmp_path / "checkpoint"}
    attachment = flow.attach(stream(session, inbox), "orders", **options)
    with pytest.raises(DataError, match="zero"):
        attachment.process_all_available()
    assert isinstance(attachment.exception, DataError)
    assert (attachment.active, flow.pending, flow.epoch) == (False, False, 0)
    attachment.stop()
    assert isinstance(attachment.exception, DataError)
    flow.drop("share")
    with flow.attach(stream(session, inbox), "orders", **options) as again:
        again.process_all_available()
    assert totals(flow) == {"ann": 0}


def test_a_tick_of_someone_else_that_waits_is_left_alone(session, flow, inbox):
    flow.register_view("share", "SELECT customer, 100 div total AS share FROM totals")
    with pytest.raises(DataError):
        flow.tick("orders", [order("bob", 0)])
    land(inbox, 1, order("ann", 1))
    attachment = flow.attach(stream(session, inbox), "orders")
    with pytest.raises(TickPending):
        attachment.process_all_available()
    attachment.stop()
    assert flow.pending
    flow.discard()


def test_a_batch_that_spark_repeats_is_recognised_whatever_came_in_between(session, flow, inbox, tmp_path, monkeypatch):
    monkeypatch.setattr("weirflow.ivm.flow.state._TOKENS", 3)
    checkpoint = tmp_path / "checkpoint"
    land(inbox, 1, order("ann", 5))
    with flow.attach(stream(session, inbox), "orders", checkpoint=checkpoint) as attachment:
        attachment.process_all_available()
    for number in range(5):
        flow.tick("orders", [order("bob", 1)], token=f"other {number}")
    shutil.rmtree(checkpoint / "commits")  # Spark was killed before it noted that the batch is done
    land(inbox, 2, order("ann", 7))
    with flow.attach(stream(session, inbox), "orders", checkpoint=checkpoint) as attachment:
        attachment.process_all_available()
    assert totals(flow) == {"ann": 12, "bob": 5}


def test_a_stream_that_skips_batches_is_refused(session, flow, inbox, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    land(inbox, 1, order("ann", 5))
    with flow.attach(stream(session, inbox), "orders", checkpoint=checkpoint) as attachment:
        attachment.process_all_available()
    with session.flow("too late") as late:
        late.register_source("orders", SCHEMA)
        land(inbox, 2, order("ann", 7))
        attachment = late.attach(stream(session, inbox), "orders", checkpoint=checkpoint)
        with pytest.raises(StreamConflict, match="batch 1, but the flow expects batch 0"):
            attachment.process_all_available()
        assert late.epoch == 0


def test_another_stream_under_the_name_is_refused(session, flow, inbox, tmp_path):
    land(inbox, 1, order("ann", 5))
    with flow.attach(stream(session, inbox), "orders") as attachment:
        attachment.process_all_available()
    attachment = flow.attach(stream(session, inbox), "orders")
    with pytest.raises(StreamConflict, match="Another stream"):
        attachment.process_all_available()
    attachment.stop()
    assert totals(flow) == {"ann": 5}
    with flow.attach(stream(session, inbox), "orders", name="once more") as attachment:
        attachment.process_all_available()
    assert totals(flow) == {"ann": 10}


def test_one_name_is_attached_once_at_a_time(session, flow, inbox):
    with flow.attach(stream(session, inbox), "orders"), pytest.raises(FlowError, match="already"):
        flow.attach(stream(session, inbox), "orders")


@pytest.mark.parametrize(
    ("attached", "options", "message"),
    [
        ("rows", {}, "streaming frame"),
        ("stream", {"source": "ordres"}, "ordres"),
        ("stream", {"name": "../elsewhere"}, "cannot be the name"),
    ],
)
def test_what_cannot_be_attached_is_refused(session, flow, inbox, attached, options, message):
    what = session.sql("SELECT 1 AS one") if attached == "rows" else stream(session, inbox)
    with pytest.raises(ConfigError, match=message):
        flow.attach(what, **{"source": "orders", **options})
    assert session.spark.streams.active == []


def test_closing_the_flow_stops_the_stream(session, inbox):
    flow = session.flow("closing")
    flow.register_source("orders", SCHEMA)
    attachment = flow.attach(stream(session, inbox), "orders")
    flow.close()
    assert not attachment.active
    assert session.spark.streams.active == []


def test_a_batch_that_stops_its_own_stream_is_the_last_one(session, flow, inbox):
    attached = Future()
    flow.on_delta("totals", lambda *_: attached.result(60).stop())
    land(inbox, 1, order("ann", 5))
    land(inbox, 2, order("ann", 7))
    attachment = flow.attach(stream(session, inbox), "orders")
    attached.set_result(attachment)
    assert attachment.await_termination(60)
    assert (attachment.exception, flow.epoch, totals(flow)) == (None, 1, {"ann": 5})


def test_a_batch_cannot_close_its_flow_and_the_stream_goes_on(session, flow, inbox):
    refused = []

    def close(*_):
        try:
            flow.close()
        except FlowReentered as error:
            refused.append(error.code)

    flow.on_delta("totals", close)
    for number in (1, 2):
        land(inbox, number, order("ann", number))
    with flow.attach(stream(session, inbox), "orders") as attachment:
        attachment.process_all_available()
        assert attachment.active
    assert (refused, totals(flow)) == (["FLOW_REENTERED"] * 2, {"ann": 3})


class Noting(StreamingQueryListener):
    def __init__(self):
        self.events = []
        self.over = threading.Event()

    def on_started(self, event):
        self.events.append(("started", event.name))

    def on_progress(self, event):
        self.events.append(("batch", event.progress.batch, event.progress.input_rows))

    def on_terminated(self, event):
        self.events.append(("terminated", event.exception))
        self.over.set()


def test_an_attached_stream_is_a_query_of_the_session(session, flow, inbox):
    listener = Noting()
    session.streams.add_listener(listener)
    land(inbox, 1, order("ann", 5))
    flow.attach(stream(session, inbox), "orders")  # nobody keeps the handle
    gc.collect()
    query = session.streams.get("attached/orders")
    query.process_all_available()
    assert session.streams.active == [query]
    assert [one.description for one in session.operations] == ["stream attached/orders"]
    assert query.describe().sink == "the source orders of the flow attached"
    assert session.streams.await_any(0.01) is None
    session.streams.stop_all()
    assert (session.streams.active, query.status().state) == ([], QueryState.STOPPED)
    assert query.await_termination(0)
    assert listener.over.wait(30)
    session.streams.remove_listener(listener)
    assert listener.events == [("started", "attached/orders"), ("batch", 0, 1), ("terminated", None)]
    assert totals(flow) == {"ann": 5}


def test_the_end_of_an_attached_stream_is_awaited_by_the_session(session, flow, inbox):
    land(inbox, 1, order("ann", 5))
    attachment = flow.attach(stream(session, inbox), "orders", trigger="available now")
    assert session.streams.await_any(60) in (attachment, None)  # None if it has ended already
    assert attachment.await_termination(60)
    assert attachment.status().state is QueryState.FINISHED


def test_a_restart_policy_brings_the_batch_again(session, flow, inbox, monkeypatch):
    failures = [ConnectionError("try again")]
    feed = flow.feed

    def failing(*args, **options):
        summary = feed(*args, **options)
        if failures:
            raise failures.pop()  # after the tick, as if the process had lost its driver
        return summary

    monkeypatch.setattr(flow, "feed", failing)
    for number in (1, 2):
        land(inbox, number, order("ann", number))
    options = {"trigger": "available now", "restart": RestartPolicy(delay=0.01)}
    attachment = flow.attach(stream(session, inbox), "orders", **options)
    assert attachment.await_termination(60)
    assert (attachment.restarts, flow.epoch, totals(flow)) == (1, 2, {"ann": 3})


def restored(session, flow, inbox, tmp_path, place, **options):
    """A query that begins with the savepoint."""
    read = session.read_stream("json", inbox, schema=SCHEMA, maxFilesPerTrigger=1)
    writer = read.write_stream().flow(flow, "orders", **options).option("checkpointLocation", tmp_path / place)
    return writer.from_savepoint("before", tmp_path / "points").trigger(Trigger.available_now()).start()


def test_a_savepoint_of_an_attached_stream_goes_on_exactly_once(session, flow, inbox, tmp_path):
    land(inbox, 1, order("ann", 1))
    with flow.attach(stream(session, inbox), "orders", checkpoint=tmp_path / "first") as attachment:
        attachment.process_all_available()
        attachment.savepoint("before", tmp_path / "points")
    land(inbox, 2, order("ann", 10))
    assert restored(session, flow, inbox, tmp_path, "second", name="orders").await_termination(60)
    assert totals(flow) == {"ann": 11}

    land(inbox, 3, order("ann", 100))
    with flow.attach(stream(session, inbox), "orders", checkpoint=tmp_path / "second") as attachment:
        attachment.process_all_available()
    assert totals(flow) == {"ann": 111}

    late = flow.attach(stream(session, inbox), "orders", checkpoint=tmp_path / "first")
    with pytest.raises(StreamConflict, match="Another stream"):
        late.process_all_available()
    with pytest.raises(StreamConflict, match="Another stream"):
        restored(session, flow, inbox, tmp_path, "third", name="orders").await_termination(60)
    assert totals(flow) == {"ann": 111}


def test_a_savepoint_does_not_double_rows_of_a_flow_that_has_gone_on(session, flow, inbox, tmp_path):
    read = session.read_stream("json", inbox, schema=SCHEMA, maxFilesPerTrigger=1)
    land(inbox, 1, order("ann", 1))
    writer = read.write_stream().flow(flow, "orders").option("checkpointLocation", tmp_path / "first")
    with writer.start() as query:
        query.process_all_available()
        query.savepoint("before", tmp_path / "points")
        land(inbox, 2, order("ann", 10))
        query.process_all_available()
    with pytest.raises(StreamConflict, match=r"up to 1 .* of batch 0: rows would be lost or doubled"):
        restored(session, flow, inbox, tmp_path, "second").await_termination(60)
    assert totals(flow) == {"ann": 11}


def test_closing_a_session_writes_what_sinks_still_have(tmp_path, open_durable):
    session = open_durable(tmp_path / "session")
    columns = "customer STRING, total BIGINT, _weight BIGINT, _epoch BIGINT"
    session.spark.sql(f"CREATE TABLE out ({columns}) USING parquet LOCATION '{tmp_path}/out'")
    for name, target in {"fails": {"to": tmp_path / "full"}, "writes": {"table": "out"}}.items():
        flow = session.flow(name)
        flow.register_source("orders", SCHEMA)
        flow.register_view("totals", TOTALS)
        flow.sink("totals", every=100, **target)
        flow.tick("orders", [order("ann", 5)])
    shutil.rmtree(tmp_path / "full")
    (tmp_path / "full").write_text("in the way")
    with pytest.raises(SinkFailed):
        session.close()
    assert written(tmp_path / "out") == [("ann", 5, 1, 1)]
    with pytest.raises(SessionClosed):
        session.sql("SELECT 1")


@pytest.mark.campaign
def test_a_durable_session_goes_on_with_stream_and_sink_together(tmp_path, inbox, open_durable):
    for number in (1, 2):
        with open_durable(tmp_path / "session") as durable:
            flow = durable.flow("shop")
            flow.register_source("orders", SCHEMA)
            flow.register_view("totals", TOTALS)
            flow.sink("totals", tmp_path / "out")
            land(inbox, number, order("ann", number))
            flow.attach(stream(durable, inbox), "orders")
            wait_until(lambda flow=flow, number=number: flow.epoch == number, 60.0, "ticked")
    rows = written(tmp_path / "out")
    assert rows == [("ann", 1, -1, 2), ("ann", 1, 1, 1), ("ann", 3, 1, 2)]


def written(folder):
    return sorted(tuple(row.values()) for row in pq.read_table(folder).to_pylist())
