"""Metadata under exceptions and forks: no lock, transaction or lease is left; a child leaves its parent's alone."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from support.interrupts import pester, raise_at, some_points
from support.processes import wait_until

from weirflow.errors import DocumentChanged, LeaseHeld, MetadataError, StateError
from weirflow.flows.leadership import Leadership
from weirflow.forks import unforked
from weirflow.metadata import LeaseKeeper, holder, open_metadata
from weirflow.metadata.sqlite import open_sqlite
from weirflow.state import RocksDbStateBackend

# A connection that was being made when the exception came is closed by the collector.
pytestmark = pytest.mark.filterwarnings("ignore:.*psycopg.Connection:ResourceWarning")

LONG = 60.0


@pytest.fixture(params=["sqlite", "postgresql"])
def uri(request, tmp_path):
    return (
        request.getfixturevalue("postgres").make_uri() if request.param == "postgresql" else f"{tmp_path}/metadata.db"
    )


def unlocked(uri):
    """Others can write."""
    with open_metadata(uri) as other:
        number = getattr(other.documents.get("free"), "version", 0)
        other.documents.put("free", number, expected_version=number)


def in_child(work):
    """Run something in a forked child that ends as Python does; what it raises is an error here."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:  # noqa: BLE001 - there is no one else to tell
            os.write(2, f"in the child: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    end = time.monotonic() + LONG
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError("the child hangs")
        time.sleep(0.005)
    assert ended[1] == 0


@pytest.mark.parametrize("most", [pytest.param(15, id="some"), pytest.param(400, id="all", marks=pytest.mark.campaign)])
def test_a_lease_that_was_not_returned_is_not_held(uri, most):
    """An exception while it is acquired: somebody else gets it at once."""
    with open_metadata(uri) as metadata, open_metadata(uri) as other:
        for n in some_points(lambda: metadata.acquire("counted", "a", LONG), most, "metadata/"):
            lease = None
            with raise_at(n, KeyboardInterrupt, "metadata/") as thrown, suppress(KeyboardInterrupt):
                lease = metadata.acquire(f"lease {n}", "a", LONG)
            if lease is None:
                assert other.acquire(f"lease {n}", "b", LONG).valid, thrown.where
            else:
                with pytest.raises(LeaseHeld):
                    other.acquire(f"lease {n}", "b", LONG)
            metadata.documents.put(f"document {n}", n, expected_version=0)
        unlocked(uri)


def test_calls_that_are_interrupted_can_be_repeated(uri):
    def work(metadata, name):
        lease = metadata.acquire(name, "a", LONG)
        lease.renew()
        document = metadata.documents.get("d")
        version = 0 if document is None else document.version
        metadata.documents.put("d", name, expected_version=version)
        lease.release()

    with open_metadata(uri) as metadata, open_metadata(uri) as other:
        for n in some_points(lambda: work(metadata, "counted"), 15, "metadata/"):
            with raise_at(n, KeyboardInterrupt, "metadata/"), suppress(KeyboardInterrupt):
                work(metadata, f"lease {n}")
            work(metadata, f"again {n}")
            assert other.acquire(f"again {n}", "b", LONG).valid
            assert other.documents.get("d").value == f"again {n}"
        unlocked(uri)


def test_a_release_that_was_interrupted_can_be_repeated(uri):
    with open_metadata(uri) as metadata, open_metadata(uri) as other:
        counted = metadata.acquire("counted", "a", LONG)
        for n in some_points(counted.release, 15, "metadata/"):
            lease = metadata.acquire(f"lease {n}", "a", LONG)
            with raise_at(n, KeyboardInterrupt, "metadata/"), suppress(KeyboardInterrupt):
                lease.release()
            lease.release()
            assert other.acquire(f"lease {n}", "b", LONG).valid


def test_tables_that_were_not_made_are_made_by_the_next(tmp_path):
    paths = (tmp_path / f"{number}.db" for number in range(10_000))

    for n in some_points(lambda: open_metadata(next(paths)).close(), 20, "metadata/"):
        path = next(paths)
        metadata = None
        with raise_at(n, KeyboardInterrupt, "metadata/"):
            try:
                metadata = open_metadata(path)
            except KeyboardInterrupt as interrupt:
                kept = interrupt  # and with it all that its frames hold
                unlocked(path)
                del kept
        if metadata is not None:
            metadata.close()


def test_a_transaction_that_was_left_open_is_ended(tmp_path):
    with closing(open_sqlite(tmp_path / "metadata.db")) as database:
        database._connection.execute("BEGIN IMMEDIATE")
        database.create(["CREATE TABLE t (x INTEGER)"])
        database._connection.execute("BEGIN IMMEDIATE")
        assert database.run("SELECT count(*) FROM t") == [(0,)]
        with closing(sqlite3.connect(tmp_path / "metadata.db", timeout=0)) as other:
            other.execute("INSERT INTO t VALUES (1)")
            other.commit()


def test_exceptions_of_another_thread(tmp_path):
    uri = str(tmp_path / "metadata.db")
    with open_metadata(uri) as metadata:
        acknowledged = []

        def step():
            found = metadata.documents.get("d")
            version, value = (0, 0) if found is None else (found.version, found.value)
            with suppress(DocumentChanged):
                metadata.documents.put("d", value + 1, expected_version=version)
                acknowledged.append(value + 1)

        pester(step, times=50)
        unlocked(uri)
        assert metadata.documents.get("d").value >= len(acknowledged) > 0
        assert acknowledged == sorted(set(acknowledged))


def test_a_keeper_that_was_not_returned_does_not_run(tmp_path):
    with open_metadata(tmp_path / "metadata.db") as metadata:
        lease = metadata.acquire("lease", "a", LONG)
        for n in some_points(lambda: LeaseKeeper(lease).stop(), 15, "metadata/"):
            keeper = None
            with raise_at(n, KeyboardInterrupt, "metadata/"), suppress(KeyboardInterrupt):
                keeper = LeaseKeeper(lease)
            if keeper is not None:
                keeper.stop()
            wait_until(lambda: not [one for one in threading.enumerate() if "keeper" in one.name], 10, "ended")


def test_what_is_no_error_of_the_database_does_not_end_a_keeper(tmp_path, monkeypatch):
    with open_metadata(tmp_path / "metadata.db") as metadata:
        lease = metadata.acquire("lease", "a", 1.0)
        renewed, renew = [], lease.renew

        def failing():
            renewed.append(time.monotonic())
            if len(renewed) < 3:
                raise MemoryError
            renew()

        monkeypatch.setattr(lease, "renew", failing)
        with LeaseKeeper(lease):
            wait_until(lambda: len(renewed) >= 4, 10, "renewed")
        assert lease.valid


# Leases of the dead

HOLD = """
import sys, time
from weirflow.metadata import open_metadata
metadata = open_metadata(sys.argv[1])
lease = metadata.acquire("flow", "the other", 600)
print(lease.token, flush=True)
time.sleep(600)
"""


def holding(uri):
    child = subprocess.Popen([sys.executable, "-c", HOLD, uri], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "1\n"
    return child


def all_threads_ended(pid):
    """Whether a process is a zombie as a whole: its first thread may be one while others still end."""
    process = Path(f"/proc/{pid}")
    return (process / "stat").read_text().split()[2] == "Z" and len(list((process / "task").iterdir())) == 1


def test_the_lease_of_a_process_that_died_is_free_at_once(uri):
    with holding(uri) as child, open_metadata(uri) as metadata:
        with pytest.raises(LeaseHeld):
            metadata.acquire("flow", "me", LONG)
        child.send_signal(signal.SIGSTOP)  # it lives
        with pytest.raises(LeaseHeld):
            metadata.acquire("flow", "me", LONG)
        child.kill()
        wait_until(lambda: all_threads_ended(child.pid), 10, "dead, and not buried")
        assert metadata.acquire("flow", "me", LONG).token == 2
        with pytest.raises(LeaseHeld):
            metadata.acquire("flow", "another", LONG)


def test_who_is_dead():
    mine = holder.make_claim()
    claim, _, where = mine.partition("@")
    machine, pid, begun = where.rsplit("/", 2)
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert mine != holder.make_claim()
    assert not holder.is_dead(mine)
    assert holder.is_dead(f"{claim}@{machine}/{ended.pid}/{begun}")
    assert holder.is_dead(f"{claim}@{machine}/{pid}/{int(begun) + 1}"), "another process has its number"
    assert not holder.is_dead(f"{claim}@other-boot/{machine.partition('/')[2]}/{ended.pid}/{begun}"), "another machine"
    assert not holder.is_dead(f"{claim}@{machine.rpartition('/')[0]}/1/{ended.pid}/{begun}"), "another container"
    for unknown in (claim, "", "claim", f"{claim}@", f"{claim}@{machine}/x/1", f"{claim}@{machine}/-1/1"):
        assert not holder.is_dead(unknown)


def test_a_system_that_does_not_tell_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(holder, "_machine", lambda: None)
    assert "@" not in holder.make_claim()
    assert not holder.is_dead(holder.make_claim())


def test_a_coordinator_that_could_not_begin_lets_the_lease_go(tmp_path):
    files = ("metadata/", "flows/leadership.py")

    def lead():
        return Leadership(str(tmp_path / "metadata.db"), "flow", "shop", LONG, None)

    for n in some_points(lambda: lead().end(), 20, files):
        leadership = None
        with raise_at(n, KeyboardInterrupt, files), suppress(KeyboardInterrupt):
            leadership = lead()
            leadership.end()
        if leadership is not None:
            leadership.end()
        lead().end()


# Forks


def test_a_forked_child_is_refused_and_ends_nothing(uri):
    with open_metadata(uri) as metadata:
        lease = metadata.acquire("flow", "parent", LONG)
        keeper = LeaseKeeper(lease)
        node = metadata.join("node", "here")

        def child():
            for call in (
                lambda: metadata.documents.get("d"),
                lambda: metadata.acquire("other", "child", LONG),
                lease.renew,
                lease.require,
                node.renew,
            ):
                with pytest.raises(MetadataError, match="forked"):
                    call()
            assert not lease.valid
            lease.release()
            node.leave()
            keeper.stop()
            metadata.close()
            if uri.startswith("postgresql"):
                with open_metadata(uri) as own, pytest.raises(LeaseHeld):
                    own.acquire("flow", "child", LONG)
            else:  # SQLite would take its parent's locks for its own
                with pytest.raises(MetadataError, match="forked"):
                    open_metadata(uri)
                with open_metadata(f"{uri}-of-the-child") as own:
                    assert own.acquire("flow", "child", LONG).valid

        in_child(child)
        assert lease.valid
        lease.renew()
        metadata.documents.put("d", 1, expected_version=0)
        assert [one.id for one in metadata.alive_nodes()] == ["node"]
        node.leave()
        keeper.stop()
        lease.release()


def test_a_fork_waits_for_threads_that_are_in_a_library():
    entered, leave, left = threading.Event(), threading.Event(), []

    def work():
        with unforked():
            entered.set()
            leave.wait(30)
            left.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(30)
    threading.Timer(0.2, leave.set).start()
    in_child(lambda: None)
    assert left
    thread.join()


def test_children_forked_while_threads_are_in_sqlite_can_use_it(tmp_path):
    with open_metadata(f"sqlite:///{tmp_path}/parent.db") as metadata:
        over = threading.Event()

        def work():
            while not over.is_set():
                metadata.documents.get("d")

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()

        def child():
            with open_metadata(f"sqlite:///{tmp_path}/child.db") as own:
                own.documents.get("d")

        try:
            for _ in range(20):
                in_child(child)
        finally:
            over.set()
            for thread in threads:
                thread.join()


def test_a_child_that_ends_as_python_does_ends_nothing_of_its_parent(uri, tmp_path):
    """Finalizers run at the end of a process, also for what is only in a variable."""
    program = """
import os, sys
from weirflow.metadata import open_metadata
from weirflow.state import RocksDbStateBackend
metadata = open_metadata(sys.argv[1])
state = RocksDbStateBackend(sys.argv[2])
state.write({"op": {b"a": b"1"}})
lease = metadata.acquire("flow", "parent", 60)
child = os.fork()
if child == 0:
    sys.exit(7)
assert os.waitpid(child, 0)[1] >> 8 == 7
lease.renew()
state.write({"op": {b"b": b"2"}})
assert state.get("op", b"a") == b"1"
print(metadata.documents.put("d", 1, expected_version=0))
metadata.close()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, uri, str(tmp_path / "state")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_memory_that_is_shared_by_name_is_not_shared_with_a_child():
    with open_metadata("memory://forked") as metadata:
        metadata.documents.put("d", 1, expected_version=0)

        def child():
            with open_metadata("memory://forked") as own:
                assert own.documents.get("d") is None

        in_child(child)
        assert metadata.documents.get("d").value == 1


def test_rocksdb_in_a_forked_child_is_refused(tmp_path):
    with closing(RocksDbStateBackend(tmp_path / "state")) as backend:
        backend.write({"op": {b"a": b"1"}})
        snapshot = backend.snapshot()

        def child():
            for call in (
                lambda: backend.get("op", b"a"),
                lambda: backend.write({"op": {b"a": b"2"}}),
                lambda: backend.scan("op", b"", b"z"),
                backend.operators,
                backend.snapshot,
            ):
                with pytest.raises(StateError, match="forked"):
                    call()
            with pytest.raises(StateError):
                snapshot.get("op", b"a")
            backend.close()

        in_child(child)
        backend.write({"op": {b"b": b"2"}})
        assert list(backend.scan("op", b"", b"z")) == [(b"a", b"1"), (b"b", b"2")]
        assert snapshot.get("op", b"b") is None


# Files


def test_files_are_for_their_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        with open_metadata(tmp_path / "new" / "metadata.db") as metadata:
            metadata.documents.put("d", 1, expected_version=0)
            files = sorted((tmp_path / "new").iterdir())
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}
    finally:
        os.umask(before)
    assert modes == {"metadata.db": 0o600, "metadata.db-shm": 0o600, "metadata.db-wal": 0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
