import subprocess
import sys
import tempfile
import time

import pytest

from weirflow.spark.launch import scratch as module
from weirflow.spark.launch.scratch import Scratch, sweep_abandoned


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(folder):
    return {entry.name for entry in folder.iterdir()}


def test_close_removes_the_folder(tmp_path):
    scratch = Scratch()
    (scratch.path / "local").mkdir()
    (scratch.path / "local" / "block").write_bytes(b"rows")
    assert scratch.path.stat().st_mode & 0o777 == 0o700
    scratch.close()
    scratch.close()
    assert left(tmp_path) == set()


def test_a_living_sessions_folder_is_left_alone():
    first = Scratch()
    second = Scratch()
    assert first.path.exists()
    assert first.path != second.path
    sweep_abandoned()
    assert first.path.exists()
    assert second.path.exists()
    first.close()
    second.close()


def test_a_killed_sessions_folder_is_swept_by_the_next_start(tmp_path):
    program = (
        f"import os, tempfile; tempfile.tempdir = {str(tmp_path)!r}\n"
        "from weirflow.spark.launch.scratch import Scratch\n"
        "scratch = Scratch(); (scratch.path / 'rows').write_bytes(b'x'); print(scratch.path.name, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert left(tmp_path) == {killed.stdout.strip()}
    scratch = Scratch()
    assert left(tmp_path) == {scratch.path.name}
    scratch.close()


def test_folders_that_are_not_ours_are_left_alone(tmp_path):
    (tmp_path / "weirflow-session-without-lock").mkdir()
    (tmp_path / "somebody-elses").mkdir()
    (tmp_path / "somebody-elses" / ".lock").touch()
    sweep_abandoned()
    assert left(tmp_path) == {"weirflow-session-without-lock", "somebody-elses"}


def test_a_folder_swept_before_it_was_locked_is_replaced(tmp_path, monkeypatch):
    create = module._create_locked
    made = []

    def swept_once():
        path, lock = create()
        made.append(path)
        if len(made) == 1:
            (path / ".lock").unlink()
            path.rmdir()
        return path, lock

    monkeypatch.setattr(module, "_create_locked", swept_once)
    scratch = Scratch()
    assert scratch.path == made[1]
    assert scratch.path.is_dir()
    scratch.close()


def test_a_folder_that_vanishes_while_sweeping_is_no_error(tmp_path):
    begin = time.monotonic()
    scratch = Scratch()
    (scratch.path / ".lock").unlink()
    sweep_abandoned()
    scratch.close()
    assert left(tmp_path) == set()
    assert time.monotonic() - begin < 10
