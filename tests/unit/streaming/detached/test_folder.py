import os
import stat
import subprocess
import sys

import pytest

from weirflow.config import load_settings
from weirflow.errors import ConfigError, StorageError, StreamNotFound
from weirflow.streaming.detached.folder import JobFolder
from weirflow.streaming.detached.jobs import DetachedJobs, place_of_jobs

HOLD = """
import sys, time
from pathlib import Path
from weirflow.streaming.detached.folder import JobFolder
assert JobFolder(Path(sys.argv[1]), "job").lock() is not None
print("locked", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("name", ["orders", "a", "1", "_x", "orders-2.v1", "café", "x" * 100])
def test_a_name_is_a_folder(tmp_path, name):
    folder = JobFolder(tmp_path, name)
    folder.create()
    assert (tmp_path / name / "log").is_file()


@pytest.mark.parametrize("name", ["", ".", "..", ".x", "-x", "a/b", "../a", "a b", "a\n", "a\0", "x" * 101, "<lambda>"])
def test_other_names_are_refused(tmp_path, name):
    with pytest.raises(ConfigError, match="cannot be the name of a job"):
        JobFolder(tmp_path, name)


def test_the_folder_is_its_owners_alone(tmp_path):
    folder = JobFolder(tmp_path / "new" / "jobs", "job")
    folder.create()
    folder.write_key(b"secret")
    assert folder.key() == b"secret"
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.path.iterdir()} == {0o600}


def test_a_job_runs_as_long_as_its_process(tmp_path):
    folder = JobFolder(tmp_path, "job")
    assert not folder.running
    folder.create()
    assert not folder.running
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        assert folder.running
        assert folder.lock() is None
        holder.kill()
    assert not folder.running
    lock = folder.lock()
    assert folder.running
    os.close(lock)


def test_a_damaged_record_is_named(tmp_path):
    folder = JobFolder(tmp_path, "job")
    folder.create()
    assert folder.record() is None
    (folder.path / "record.json").write_text('{"job": "job"')
    with pytest.raises(StorageError, match=r"job/record\.json cannot be used"):
        DetachedJobs(tmp_path).queries()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    folder = JobFolder(tmp_path / "file", "job")
    assert not folder.running
    with pytest.raises(ConfigError, match=r"'job' cannot have its folder in .*file"):
        folder.create()


def test_jobs_are_under_the_path_of_the_session_unless_it_is_said_where(tmp_path):
    assert place_of_jobs(load_settings(path=tmp_path), None) == tmp_path / "jobs"
    assert place_of_jobs(load_settings(), tmp_path / "there") == tmp_path / "there"
    with pytest.raises(ConfigError, match="a Session without a path has none"):
        place_of_jobs(load_settings(), None)
    with pytest.raises(ConfigError, match=r"at is .s3://bucket.; it must be a path on this machine, not a URI"):
        place_of_jobs(load_settings(), "s3://bucket")


def test_where_there_are_no_jobs_none_is_found(tmp_path):
    jobs = DetachedJobs(tmp_path / "nowhere")
    assert jobs.queries() == []
    with pytest.raises(StreamNotFound, match="is called 'orders'") as raised:
        jobs.required("orders")
    assert raised.value.hint == "there are no jobs"


PRINT = """
import os, subprocess, sys
from pathlib import Path
from weirflow.session.job import _print_to
from weirflow.streaming.detached import folder as module
from weirflow.streaming.detached.folder import JobFolder
module._LOG_BYTES = 1000
folder = JobFolder(Path(sys.argv[1]), "job")
folder.create()
_print_to(folder.log)
for number in range(300):
    os.write(2, f"line {number}\\n".encode())
    if number % 10 == 0:
        print("printed", flush=True)
    if folder.rotate_log():
        _print_to(folder.log)
"""


def test_a_log_that_is_large_goes_on_in_another_file(tmp_path):
    subprocess.run([sys.executable, "-c", PRINT, tmp_path], check=True, timeout=60)
    folder = JobFolder(tmp_path, "job")
    files = sorted(file.name for file in folder.path.iterdir())
    assert files == ["log", "log.1", "log.2"]
    assert all((folder.path / name).stat().st_size < 1100 for name in files)
    lines = [line for line in folder.log_tail(0).splitlines() if line != "printed"]
    assert lines == [f"line {number}" for number in range(300)]
    assert folder.log_tail(2).splitlines() == ["line 298", "line 299"]
    assert stat.S_IMODE((folder.path / "log").stat().st_mode) == 0o600


def test_no_more_old_logs_are_kept_than_a_few(tmp_path, monkeypatch):
    monkeypatch.setattr("weirflow.streaming.detached.folder._LOG_BYTES", 3)
    folder = JobFolder(tmp_path, "job")
    folder.create()
    for number in range(9):
        assert not folder.rotate_log()
        folder.log.write_text(f"line {number}\n")
        assert folder.rotate_log()
    assert folder.log_tail(0).splitlines() == ["line 5", "line 6", "line 7", "line 8"]
    assert sorted(file.name for file in folder.path.iterdir()) == ["log", "log.1", "log.2", "log.3", "log.4"]
