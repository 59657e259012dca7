"""Clients and a job over a real socket; what runs in the job is a stand-in that needs no Spark."""

import os
import socket
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from weirflow.errors import (
    ConfigError,
    EndpointUnreachable,
    QueryError,
    StreamNotFound,
    UnsupportedError,
    UserCodeError,
)
from weirflow.streaming.detached import query as handles
from weirflow.streaming.detached.folder import JobFolder
from weirflow.streaming.detached.query import DetachedQuery
from weirflow.streaming.detached.record import JobRecord, QueryEnd, QueryRecord
from weirflow.streaming.detached.server import MEMBERS, JobServer
from weirflow.streaming.detached.wire import PROTOCOL, JobGone, NoAnswer, Question, ask
from weirflow.streaming.query.handle import QueryInfo, QueryStatus, StreamingQuery
from weirflow.types import Delivery, QueryState

KEY = b"k" * 32
INFO = QueryInfo("orders", "1", None, "once", "nowhere", Delivery.UNKNOWN, "-", "-", "none")


class Standing:
    """A query that runs until it is stopped."""

    def __init__(self):
        self.name = "orders"
        self.run_id = "2"
        self.restarts = 3
        self.exception = None
        self.ended = threading.Event()

    @property
    def active(self):
        return not self.ended.is_set()

    def status(self):
        return QueryStatus(QueryState.WAITING, "for rows")

    def await_termination(self, timeout):
        return self.ended.wait(timeout)

    def process_all_available(self):
        raise UserCodeError("it raised", hint="do not")

    def last_progress(self):
        raise RuntimeError("a bug")

    def memory_batches(self):
        return [threading.Lock()]

    def stop(self, within):
        assert within == 1.0
        self.ended.set()


@pytest.fixture
def address():
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        yield Path(folder) / "socket"


@pytest.fixture
def query():
    return Standing()


@pytest.fixture
def server(address, query):
    server = JobServer(address, KEY, [query])
    yield server
    server.close()


def put(address, member, *, key=KEY, query="orders", patience=10.0, **arguments):
    return ask(str(address), key, Question(query, member, arguments, PROTOCOL), patience)


def test_members_are_asked_for_by_name(address, server):
    assert put(address, "status") == QueryStatus(QueryState.WAITING, "for rows")
    assert put(address, "restarts") == 3
    assert put(address, "await_termination", timeout=0.01) is False


def test_all_members_are_those_of_a_query():
    assert [name for name in sorted(MEMBERS) if not hasattr(StreamingQuery, name)] == []
    assert [name for name in sorted(MEMBERS) if not hasattr(DetachedQuery, name)] == []


def test_an_error_that_is_answered_is_raised_and_one_that_is_asked_for_is_returned(address, server, query):
    with pytest.raises(UserCodeError, match="it raised") as raised:
        put(address, "process_all_available")
    assert raised.value.hint == "do not"
    query.exception = UserCodeError("before")
    assert put(address, "exception").message == "before"


def test_what_is_not_allowed_or_does_not_exist_is_refused(address, server):
    for member in ("spark", "_run", "__class__", "__reduce__", "nope", ""):
        with pytest.raises(UnsupportedError, match="has no"):
            put(address, member)
    with pytest.raises(StreamNotFound, match="'other'"):
        put(address, "status", query="other")
    with pytest.raises(QueryError, match="failed in the job: TypeError"):
        put(address, "status", wrong=1)
    with pytest.raises(QueryError, match="failed in the job: RuntimeError: a bug"):
        put(address, "last_progress")
    with pytest.raises(QueryError, match="cannot be sent"):
        put(address, "memory_batches")


def test_whoever_does_not_know_the_key_is_told_nothing(address, server):
    with pytest.raises(JobGone):
        put(address, "status", key=b"wrong")
    assert put(address, "restarts") == 3


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 100,
        b"\0" * 4,
        b"\x7f\xff\xff\xff",
        b"\0\0\0\x05hello",
        os.urandom(4096),
    ],
    ids=["nothing", "http", "ones", "empty", "huge", "no answer", "random"],
)
def test_rubbish_harms_nobody(address, server, sent):
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(address))
        stranger.sendall(sent)
        stranger.shutdown(socket.SHUT_WR)
        assert put(address, "restarts") == 3


def test_a_client_that_hangs_holds_up_nobody(address, server, query):
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(address))
        waiting = threading.Thread(target=lambda: put(address, "await_termination", timeout=60.0, patience=60.0))
        waiting.start()
        assert put(address, "restarts") == 3
        put(address, "stop", within=1.0)
        waiting.join(10)
        assert not waiting.is_alive()


def test_an_answer_that_takes_too_long_is_none(address, server):
    with pytest.raises(NoAnswer):
        put(address, "await_termination", timeout=1.0, patience=0.05)


def test_a_question_that_is_under_way_is_answered_before_the_end(address, query):
    server = JobServer(address, KEY, [query])
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(put(address, "await_termination", timeout=60.0)))
    waiting.start()
    time.sleep(0.1)
    query.ended.set()
    server.close()
    waiting.join(10)
    assert answers == [True]
    with pytest.raises(JobGone):
        put(address, "status")


def test_an_address_that_is_too_long_is_a_sentence(tmp_path, query):
    with pytest.raises(ConfigError, match="cannot listen at") as raised:
        JobServer(tmp_path / ("x" * 200), KEY, [query])
    assert "TMPDIR" in raised.value.hint


@pytest.fixture
def job(tmp_path, address, query):
    """A job in this very process: its folder, locked, and the record of its query."""
    folder = JobFolder(tmp_path, "job")
    folder.create()
    lock = folder.lock()
    server = JobServer(address, KEY, [query])
    folder.write_key(KEY)
    here = socket.gethostname()
    queries = [QueryRecord(INFO, "2")]
    record = JobRecord("job", os.getpid(), here, datetime.now(UTC), str(address), queries, protocol=PROTOCOL)
    folder.write(record)

    def end(state=None):
        server.close()
        if state is not None:
            ended = QueryEnd(state, "2", 3, None, None)
            folder.write(msgspec.structs.replace(record, queries=[QueryRecord(INFO, "2", ended)]))
        os.close(lock)

    return folder, record, end


def test_a_handle_talks_to_its_job_and_then_reads_how_it_ended(job, query):
    folder, _, end = job
    handle = DetachedQuery(folder, "orders")
    assert (handle.id, handle.run_id, handle.restarts, handle.active) == ("1", "2", 3, True)
    assert (repr(handle), handle.describe()) == ("<DetachedQuery orders waiting>", INFO)
    assert not handle.await_termination(0.01)
    threading.Timer(0.1, lambda: end(QueryState.FINISHED)).start()
    assert handle.await_termination()
    assert (handle.status().state, handle.restarts, handle.recent_progress) == (QueryState.FINISHED, 3, [])
    assert str(handle) == "orders: finished"
    handle.stop()
    with pytest.raises(UnsupportedError, match="has finished and its process has ended: it cannot give its rows"):
        handle.memory_batches()


def test_without_a_record_of_its_end_a_query_was_killed(job):
    folder, _, end = job
    end()
    handle = DetachedQuery(folder, "orders")
    assert handle.status().state is QueryState.FAILED
    assert str(folder.log) in handle.exception.hint


def test_a_job_that_runs_and_does_not_listen_is_unreachable(job, monkeypatch):
    folder, record, end = job
    monkeypatch.setattr(handles, "_GONE_SECONDS", 0.1)
    folder.write(msgspec.structs.replace(record, socket="/nowhere"))
    with pytest.raises(EndpointUnreachable, match=f"process {os.getpid()} of the job 'job' runs, but does not answer"):
        DetachedQuery(folder, "orders").status()
    folder.write(msgspec.structs.replace(record, host="another-machine"))
    with pytest.raises(UnsupportedError, match="runs on another-machine"):
        DetachedQuery(folder, "orders").status()
    end()


def test_a_query_that_is_not_in_the_job_any_more_is_not_found(job):
    folder, _, end = job
    with pytest.raises(StreamNotFound, match="has no query called 'other' any more"):
        DetachedQuery(folder, "other").status()
    end()
