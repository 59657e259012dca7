import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from weirflow.errors import MetadataError
from weirflow.metadata import open_metadata, sqlite

WRITE_UNTIL_KILLED = """
import sys
from weirflow.metadata import open_metadata
metadata = open_metadata(sys.argv[1])
while True:
    lease = metadata.acquire("flow", "a", 60)
    print(lease.token, flush=True)
    lease.release()
"""


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("not a database " * 100)
    with pytest.raises(MetadataError, match="not a database"):
        open_metadata(file)
    assert file.read_text() == "not a database " * 100


def test_a_folder_is_no_database(tmp_path):
    with pytest.raises(MetadataError, match="unable to open") as failed:
        open_metadata(tmp_path)
    assert "a SQLite file on a local disk" in failed.value.hint


def test_a_folder_that_cannot_be_made_is_a_metadata_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MetadataError):
        open_metadata(tmp_path / "file" / "metadata.db")


def test_it_writes_ahead_and_syncs(tmp_path):
    with open_metadata(tmp_path / "metadata.db") as metadata:
        run = metadata._database.run
        assert (run("PRAGMA journal_mode"), run("PRAGMA synchronous")) == ([("wal",)], [(2,)])


def test_a_lock_that_is_kept_is_an_error_and_nothing_has_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.2)
    with open_metadata(tmp_path / "metadata.db") as metadata:
        lease = metadata.acquire("flow", "a", 60)
        blocker = sqlite3.connect(tmp_path / "metadata.db", isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(MetadataError, match="locked by another process"):
            lease.renew()
        assert lease.valid
        blocker.execute("ROLLBACK")
        blocker.close()
        lease.renew()


def test_it_waits_for_others_that_are_opening_the_file(tmp_path):
    writer = sqlite3.connect(tmp_path / "metadata.db", isolation_level=None, check_same_thread=False)
    writer.execute("CREATE TABLE other (a TEXT)")
    writer.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(open_metadata, tmp_path / "metadata.db")
        time.sleep(0.1)
        assert not opening.done()
        writer.execute("COMMIT")
        writer.close()
        opening.result(30).close()


def test_a_creation_that_fails_leaves_nothing(tmp_path):
    with open_metadata(tmp_path / "metadata.db") as metadata:
        with pytest.raises(MetadataError):
            metadata._database.create(["CREATE TABLE half (a TEXT)", "CREATE nonsense"])
        assert not metadata._database.has_table("half")
        metadata.acquire("flow", "a", 60)


@pytest.mark.parametrize("after", [1, 7, 40])
def test_tokens_that_were_given_survive_kill_9(tmp_path, after):
    file = tmp_path / "metadata.db"
    child = subprocess.Popen([sys.executable, "-c", WRITE_UNTIL_KILLED, file], stdout=subprocess.PIPE, text=True)
    with child:
        for _ in range(after):
            child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
        said = [after, *map(int, child.stdout.read().split())]
    with open_metadata(file) as metadata:
        metadata._database.run("UPDATE weirflow_leases SET expires = 0")
        assert metadata.acquire("flow", "b", 60).token in (said[-1] + 1, said[-1] + 2)
        assert metadata._database.run("PRAGMA integrity_check") == [("ok",)]
