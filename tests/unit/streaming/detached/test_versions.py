"""Jobs and clients of different versions: each is told what the other runs under, and a job can be stopped."""

import inspect
import io
import json
import os
import pickle
import signal
import socket
import sys
import tempfile
from datetime import UTC, datetime
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path

import pytest
from support import old_job
from support.processes import ChildProcess
from typer.testing import CliRunner

from weirflow import __version__
from weirflow.checkpoint.keyed_state.manifest import FileRef
from weirflow.cli.app import app
from weirflow.errors import QueryError, UnsupportedError
from weirflow.spark.streaming.savepoint import StateColumn, StateOperator
from weirflow.streaming.detached.folder import JobFolder
from weirflow.streaming.detached.jobs import DetachedJobs
from weirflow.streaming.detached.query import DetachedQuery
from weirflow.streaming.detached.record import JobRecord, QueryRecord
from weirflow.streaming.detached.server import MEMBERS, JobServer
from weirflow.streaming.detached.wire import COMMON, PROTOCOL, value_of
from weirflow.streaming.query.handle import QueryInfo, QueryStatus
from weirflow.streaming.query.progress import QueryProgress
from weirflow.streaming.savepoints import named
from weirflow.types import Delivery, QueryState

KEY = b"k" * 32
OLD = (
    f"The job 'job' runs under another version of Weirflow (protocol 1), and this client under Weirflow {__version__} "
    f"(protocol {PROTOCOL}), which can only stop it."
)
HINT = "stop its queries and detach them again: they continue from their checkpoints; or use the job's version"


@pytest.fixture
def address():
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        yield Path(folder) / "socket"


@pytest.fixture
def job(tmp_path, address):
    """A job of the version before: its process, and the handle of its query."""
    folder = JobFolder(tmp_path, "job")
    folder.create()
    with ChildProcess([sys.executable, old_job.__file__, folder.path, address], name="job") as process:
        process.wait_until(lambda: "listens" in process.log, 30.0, "the job listens")
        yield process, DetachedQuery(folder, "orders")


def test_a_job_of_an_earlier_version_is_listed_and_told_apart(job, tmp_path):
    process, query = job
    [listed] = DetachedJobs(tmp_path).queries()
    assert (listed.name, listed.id, listed.active) == ("orders", "1", True)
    for ask in (
        query.status,
        query.last_progress,
        query.memory_batches,
        lambda: query.run_id,
        lambda: query.await_termination(1.0),
        lambda: query.savepoint("before"),
        lambda: str(query),
    ):
        with pytest.raises(UnsupportedError) as raised:
            ask()
        assert (raised.value.message, raised.value.hint) == (OLD, HINT)
    assert repr(query) == "<DetachedQuery orders, whose state is not known>"
    assert "status" not in process.log, "an answer that might be misread was asked for"


def test_a_job_of_an_earlier_version_is_stopped(job):
    process, query = job
    query.stop()
    assert query.status().state is QueryState.STOPPED
    assert "orders stop {'within': " in process.log


def test_a_job_of_an_earlier_version_may_be_ended_by_a_signal(job):
    process, query = job
    os.kill(process.pid, signal.SIGTERM)
    process.wait_until(lambda: not query.active, 30.0, "the job has ended")
    assert query.status().state is QueryState.STOPPED


def test_the_shell_lists_a_job_of_an_earlier_version_and_stops_it(job, tmp_path):
    shell, at = CliRunner(), ["--at", str(tmp_path)]
    listed = shell.invoke(app, ["streams", "list", *at], env={"COLUMNS": "400"})
    assert listed.exit_code == 0
    assert OLD in listed.stdout
    [found] = json.loads(shell.invoke(app, ["streams", "list", "--json", *at]).stdout)["queries"]
    assert (found["name"], found["state"], found["error"]["message"]) == ("orders", None, OLD)
    stopped = shell.invoke(app, ["streams", "stop", "orders", *at])
    assert (stopped.exit_code, stopped.stdout) == (0, "orders: stopped\n")


def test_a_job_of_a_later_version_is_named_by_it(tmp_path, address):
    folder = JobFolder(tmp_path, "job")
    folder.create()
    lock = folder.lock()
    info = QueryInfo("orders", "1", None, "once", "nowhere", Delivery.UNKNOWN, "-", "-", "none")
    now, here = datetime.now(UTC), socket.gethostname()
    queries = [QueryRecord(info, "2")]
    folder.write(JobRecord("job", 1, here, now, str(address), queries, protocol=PROTOCOL + 1, version="9.1"))
    with pytest.raises(UnsupportedError, match=rf"runs under Weirflow 9\.1 \(protocol {PROTOCOL + 1}\), and this"):
        DetachedQuery(folder, "orders").status()
    os.close(lock)


# A client of an earlier version


class Standing:
    """A query that runs until it is stopped."""

    name = "orders"
    active = True

    def stop(self, within):
        self.active = within != 5.0


@pytest.fixture
def server(address):
    server = JobServer(address, KEY, [Standing()])
    yield server
    server.close()


def asked_as_before(address, member, **arguments):
    """The bytes that a client of the version before is answered."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(address))
    with Connection(client.detach()) as connection:
        answer_challenge(connection, KEY)
        deliver_challenge(connection, KEY)
        connection.send_bytes(json.dumps({"query": "orders", "member": member, "arguments": arguments}).encode())
        return connection.recv_bytes()


class Noting(pickle.Unpickler):
    """Notes what a pickle needs of modules."""

    def __init__(self, pickled):
        super().__init__(io.BytesIO(pickled))
        self.needed = set()

    def find_class(self, module, name):
        self.needed.add((module, name))
        return super().find_class(module, name)


@pytest.mark.parametrize("member", sorted(MEMBERS - COMMON))
def test_a_client_of_an_earlier_version_is_told_what_the_job_runs_under(address, server, member):
    answered = asked_as_before(address, member)
    noting = Noting(answered)
    noting.load()
    # Just these are where that version has them, too.
    assert noting.needed == {
        ("weirflow.streaming.detached.wire", "_Raised"),
        ("weirflow.errors", "_rebuild"),
        ("weirflow.errors", "UnsupportedError"),
    }
    with pytest.raises(UnsupportedError) as raised:
        value_of(answered)
    assert raised.value.message == (
        f"The job of 'orders' runs under Weirflow {__version__} (protocol {PROTOCOL}), and this client under another "
        f"version of Weirflow (protocol 1), which can only stop it."
    )
    assert raised.value.hint == HINT


def test_a_client_of_an_earlier_version_stops_the_query(address, server):
    assert pickle.loads(asked_as_before(address, "active")) is True
    assert asked_as_before(address, "stop", within=5.0) == pickle.dumps(None)
    assert pickle.loads(asked_as_before(address, "active")) is False


def test_what_is_pickled_is_that_of_the_protocol():
    """When this fails, count ``PROTOCOL`` up and write down here what it pickles."""
    progress = (
        "query_id run_id name batch trigger input_rows output_rows input_rows_per_second processed_rows_per_second "
        "watermark late_rows state_rows state_bytes duration_ms raw"
    )
    pickled = {
        QueryStatus: ("weirflow.streaming.query.handle", "state message"),
        QueryProgress: ("weirflow.streaming.query.progress", progress),
        named.QuerySavepoint: (
            "weirflow.streaming.savepoints.named",
            "name created query query_id batch state files format",
        ),
        named.SavedQuery: ("weirflow.streaming.savepoints.named", "sources mode operators sink"),
        StateOperator: ("weirflow.spark.streaming.savepoint", "name keys values"),
        StateColumn: ("weirflow.spark.streaming.savepoint", "name type made_by"),
        FileRef: ("weirflow.checkpoint.keyed_state.manifest", "object size sha256"),
    }
    found = {kind: (kind.__module__, " ".join(inspect.signature(kind).parameters)) for kind in pickled}
    assert (PROTOCOL, found) == (2, pickled)


def test_an_answer_of_a_class_that_is_elsewhere_is_a_typed_error():
    with pytest.raises(QueryError, match="cannot be read by this version of Weirflow"):
        value_of(old_job.ANSWERS["status"])
