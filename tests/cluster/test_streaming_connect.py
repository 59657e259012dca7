"""Streaming queries on a Spark Connect server: the same handles and errors, and a query that outlives its client."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid

import pyarrow as pa
import pytest
from support.processes import wait_until

from weirflow import IncrementalFlow, Session, StreamingQueryListener, Trigger
from weirflow.errors import ConfigError, StreamRefused, UnsupportedError, WeirflowError
from weirflow.testing.sequence import SequenceSource
from weirflow.types import QueryState

NUMBERS = pa.schema({"n": pa.int64()})
CHILD = """
import sys
from weirflow import Session

session = Session.distributed(sys.argv[1], token=sys.argv[2])
query = session.read_stream("rate", rowsPerSecond=10).write_stream().format("memory").query_name("left").start()
print(query.id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def remote(connect_server, exclusive_spark):
    with Session.distributed(connect_server.url, token=connect_server.token, progress="off") as session:
        yield session


@pytest.fixture
def numbers():
    with SequenceSource(NUMBERS) as source:
        source.add([{"n": 1}, {"n": 2}])
        yield source


class Noting(StreamingQueryListener):
    def __init__(self):
        self.events = []

    def on_started(self, event):
        self.events.append(("started", event.name))

    def on_progress(self, event):
        self.events.append(("progress", event.progress.input_rows))

    def on_terminated(self, event):
        self.events.append(("terminated", event.exception, event.last_progress.batch))


def test_a_query_runs_on_the_server(remote, numbers):
    noting = Noting()
    remote.streams.add_listener(noting)
    writer = numbers.stream(remote).where("n > 1").write_stream().format("memory").trigger(Trigger.available_now())
    with writer.query_name("remote").start() as query:
        assert query.await_termination(60)
        assert query.status().state is QueryState.FINISHED
        assert pa.Table.from_batches(query.memory_batches())["n"].to_pylist() == [2]
        assert query.last_progress().input_rows == 2
        assert query.describe().checkpoint == "a temporary folder of the server"
    wait_until(lambda: len(noting.events) == 3, 30.0, "three events")
    assert noting.events == [("started", "remote"), ("progress", 2), ("terminated", None, 0)]


def test_errors_and_refusals_are_typed(remote, numbers, tmp_path):
    stream = numbers.stream(remote)
    with pytest.raises(StreamRefused, match="never final"):
        stream.groupBy("n").count().write_stream().format("memory").start()
    with pytest.raises(ConfigError, match="that the server can reach"):
        stream.write_stream().format("parquet").option("path", tmp_path / "out").start()

    def fail(frame, number):
        raise ValueError("no such luck")

    query = stream.write_stream().foreach_batch(fail).start()
    with pytest.raises(WeirflowError, match="no such luck"):
        query.await_termination(60)
    assert query.status().state is QueryState.FAILED


def test_a_flow_is_not_where_the_server_is(remote, numbers):
    with IncrementalFlow("here") as flow:
        flow.register_source("numbers", "n BIGINT")
        with pytest.raises(UnsupportedError, match="where the flow is not"):
            numbers.stream(remote).write_stream().flow(flow, "numbers").start()


def test_a_query_outlives_a_killed_client(connect_server, exclusive_spark):
    url = f"{connect_server.url}/;session_id={uuid.uuid4()};user_id=tests"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, url, connect_server.token],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "WEIRFLOW_PROGRESS": "off"},
    )
    try:
        query_id = child.stdout.readline().strip()
    finally:
        child.kill()
        child.wait(30)
        child.stdin.close()
        child.stdout.close()
    with Session.distributed(url, token=connect_server.token, progress="off") as session:
        query = session.streams.get("left")
        assert query.id == query_id
        assert session.streams.get(query_id) is query
        wait_until(lambda: query.last_progress() is not None, 30.0, "running")
        assert "another client" in query.describe().sink
        query.stop()
        assert query.status().state is QueryState.STOPPED
