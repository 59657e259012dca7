"""Queries that outlive their client, whoever is killed: found again by name, nothing lost, nothing doubled."""

import os
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from support import detached_jobs
from support.detached_jobs import job_pids, land, no_job_left, written
from support.processes import ChildProcess, alive, java_children, wait_gone, wait_until

from weirflow import Session
from weirflow.errors import AlreadyExists, ConfigError, SessionError, StreamNotFound, UnsupportedError, UserCodeError
from weirflow.types import QueryState

FILE = detached_jobs.__file__
SECRET = "canary-4b1d"
SETTINGS = {"cores": 2, "driver_memory": "1g", "progress": "off", "spark_conf": {"spark.hadoop.x.secret": SECRET}}
CLIENT = """
import sys, time
from pathlib import Path
from support.detached_jobs import {function}
from weirflow import Session

# A function of a script, which is sent as a copy.
def job(session):
    return {function}(session)

with Session.single_node(Path(sys.argv[1]) / "session", cores=2, driver_memory="1g") as session:
    session.streams.detach(job)
    print("detached", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A place for a Session; what jobs leave in the temporary folder is seen, and no job is left running."""
    with tempfile.TemporaryDirectory(prefix="wj-") as scratch:
        monkeypatch.setenv("TMPDIR", scratch)
        monkeypatch.setattr(tempfile, "tempdir", scratch)
        with no_job_left(tmp_path):
            yield tmp_path


def temporary():
    """What jobs have left in the temporary folder."""
    return list(Path(tempfile.gettempdir()).iterdir())


def processes(folder):
    """The one job under a folder, and all that it has started."""
    [pid] = job_pids(folder)
    assert java_children(pid)
    return {pid, *java_children(pid)}


def opened(folder):
    return Session.single_node(folder / "session", **SETTINGS)


def client(folder, function):
    return ChildProcess(
        [sys.executable, "-W", "error", "-c", CLIENT.format(function=function), folder],
        name="client",
        env={"PYTHONPATH": str(Path(FILE).parent.parent)},
    )


def batch(query):
    last = query.last_progress()
    return -1 if last is None else last.batch


def test_a_query_outlives_its_killed_client(folder):
    land(folder, 1, 2)
    with client(folder, "copy") as child:
        child.wait_until(lambda: "detached" in child.log, 60.0, "detached")
        assert java_children(child.pid) == set()
        child.kill()
    with opened(folder) as session:
        query = session.streams.get("copy")
        assert (query.job, query.active) == ("job", True)
        assert session.streams.get(query.id).name == session.streams.get("job").name == "copy"
        query.process_all_available()
        before = batch(query)
        land(folder, 3)
        query.process_all_available()
        assert batch(query) > before
        with pytest.raises(AlreadyExists, match="'job' runs already"):
            session.streams.detach(f"{FILE}:copy", name="job")
        assert not query.await_termination(0.1)
        everything = processes(folder)
        query.stop()
        assert alive(everything) == set()
        assert query.status().state is QueryState.STOPPED
        assert (query.exception, query.await_termination(), batch(query)) == (None, True, before + 1)
    assert temporary() == []
    assert written(folder) == Counter([1, 2, 3])


def test_a_killed_job_goes_on_from_its_checkpoint(folder):
    land(folder, 1, 2)
    with opened(folder) as session:
        query = session.streams.detach(f"{FILE}:copy")
        query.process_all_available()
        everything = processes(folder)
        [job] = job_pids(folder)
        assert SECRET not in str((psutil.Process(job).cmdline(), psutil.Process(job).environ()))
        land(folder, 3)
        os.kill(job, signal.SIGKILL)
        wait_gone(everything, 30.0)
        assert query.status().state is QueryState.FAILED
        assert "'copy' was ended from outside" in query.exception.message
        assert "continues from its checkpoint" in query.exception.hint
        with pytest.raises(SessionError, match="kill -9"):
            query.await_termination()

        again = session.streams.detach(f"{FILE}:copy")
        assert again.id == query.id
        assert query.active
        again.process_all_available()
        everything = processes(folder)
        [job] = job_pids(folder)
        os.kill(job, signal.SIGTERM)
        assert query.await_termination(60)
        wait_gone(everything, 30.0)
        assert again.status().state is QueryState.STOPPED
    kept = [path.read_bytes() for path in (folder / "session" / "jobs").rglob("*") if path.is_file()]
    assert SECRET.encode() not in b"".join(kept)
    assert temporary() == []
    assert written(folder) == Counter([1, 2, 3])


@pytest.mark.campaign  # what feeds a flow is killed in test_stream_kills.py, too
def test_a_killed_job_that_feeds_a_flow_counts_each_batch_once(folder):
    land(folder, 1, 2)
    with opened(folder) as session:
        query = session.streams.detach(f"{FILE}:summed")
        assert query.name == "sums/numbers"
        query.process_all_available()
        everything = processes(folder)
        os.kill(*job_pids(folder), signal.SIGKILL)
        wait_gone(everything, 30.0)
        land(folder, 3)
        again = session.streams.detach(f"{FILE}:summed")
        assert again.id == query.id
        again.process_all_available()
        again.stop()
        flow = session.flow("sums")
        assert (flow.epoch, flow.snapshot("sums").to_pylist()) == (2, [{"count": 3, "total": 6}])


def test_a_restart_policy_is_followed_without_the_client_and_a_terminal_error_stays_terminal(folder):
    land(folder, 1)
    with client(folder, "fussy") as child:
        child.wait_until(lambda: "detached" in child.log, 60.0, "detached")
        child.kill()
    with opened(folder) as session:
        query = session.streams.get("fussy")
        everything = processes(folder)
        land(folder, 13)
        wait_until(lambda: query.restarts == 1 and query.status().state is QueryState.WAITING, 60.0, "restarted")
        land(folder, 0)
        with pytest.raises(UserCodeError, match="ZeroDivisionError"):
            query.await_termination(60)
        wait_gone(everything, 60.0)
        assert query.status().state is QueryState.FAILED
        assert (type(query.exception), query.restarts) == (UserCodeError, 1)
        assert "ConnectionError: try again" in query.log.read_text()


def test_a_job_whose_spark_dies_goes_on_in_another_by_its_policy(folder):
    land(folder, 1)
    with opened(folder) as session:
        query = session.streams.detach(f"{FILE}:patient")
        wait_until(lambda: written(folder) == Counter([1]), 60.0, "the first number")
        [job] = job_pids(folder)
        before = java_children(job)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        land(folder, 2)
        assert not query.await_termination(0.5)
        wait_until(lambda: written(folder) == Counter([1, 2]), 90.0, "the second number")
        assert job_pids(folder) == {job}
        assert java_children(job).isdisjoint(before)
        assert (query.restarts, query.active, query.exception) == (1, True, None)
        everything = processes(folder)
        query.stop()
        wait_gone(everything, 60.0)
    assert temporary() == []


def test_a_job_may_have_several_queries(folder):
    land(folder, 1, 2)
    with opened(folder) as session:
        kept, counted = session.streams.detach(f"{FILE}:several", name="both", at=folder / "elsewhere")
        with pytest.raises(StreamNotFound, match="'both' has several queries"):
            session.streams.get("both", at=folder / "elsewhere")
        kept.process_all_available()
        counted.process_all_available()
        assert pa.Table.from_batches(kept.memory_batches()).to_pylist() == [{"n": 1}, {"n": 2}]
        savepoint = counted.savepoint("now", folder / "points")
        assert savepoint.query_id == counted.id
        everything = processes(folder)
        kept.stop()
        assert (kept.active, counted.active, alive(everything)) == (False, True, everything)
        counted.stop()
        assert alive(everything) == set()
        with pytest.raises(UnsupportedError, match="has stopped and its process has ended"):
            counted.memory_batches()
        assert {repr(query) for query in session.streams.detached(folder / "elsewhere")} == {
            "<DetachedQuery kept stopped>",
            "<DetachedQuery counted stopped>",
        }


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        ("fails", UserCodeError, "ValueError: no such luck\nTraceback"),
        ("returns_nothing", ConfigError, "returned None, which is not a streaming query"),
        ("refuses", StreamNotFound, "nothing to read"),
        ("ends", SessionError, "ended as it started"),
        ("absent", ConfigError, "has no 'absent'"),
    ],
)
def test_a_job_that_cannot_start_says_why_and_leaves_nothing(folder, function, error, said):
    (folder / "jobs.py").write_text(
        "import os\nfrom weirflow.errors import StreamNotFound\n"
        "def fails(session): raise ValueError('no such luck')\n"
        "def returns_nothing(session): return None\n"
        "def refuses(session): raise StreamNotFound('nothing to read', hint='look elsewhere')\n"
        "def ends(session): os._exit(3)\n"
    )
    with opened(folder) as session:
        with pytest.raises(error) as raised:
            session.streams.detach(f"{folder}/jobs.py:{function}")
        assert job_pids(folder) == set()
        assert said in raised.value.message
        assert session.streams.detached() == []
    assert temporary() == []


def test_a_client_that_is_interrupted_takes_its_job_along(folder):
    with client(folder, "slow") as child:
        child.wait_until((folder / "begun").exists, 60.0, "begun")
        everything = job_pids(folder)
        os.kill(child.pid, signal.SIGINT)
        child.wait_until(lambda: "KeyboardInterrupt" in child.log, 30.0, "interrupted")
        wait_gone(everything, 30.0)


def test_a_client_that_is_killed_as_it_detaches_leaves_the_job(folder):
    with client(folder, "slow") as child:
        child.wait_until((folder / "begun").exists, 60.0, "begun")
        child.kill()
    [job] = job_pids(folder)
    os.kill(job, signal.SIGTERM)
    wait_gone({job}, 30.0)
