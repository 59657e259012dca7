"""What Weirflow keeps for itself is readable by its owner alone, whatever the umask; output is as the umask says."""

import os
import stat
from contextlib import closing

import pytest
from support.sunk_shop import declare, order

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.state import RocksDbStateBackend


@pytest.fixture(autouse=True)
def permissive():
    before = os.umask(0)
    yield
    os.umask(before)


def modes(root):
    """The modes of all files and of all folders below and at a root."""
    every = [root, *root.rglob("*")]
    files = {stat.S_IMODE(path.stat().st_mode) for path in every if path.is_file()}
    return files, {stat.S_IMODE(path.stat().st_mode) for path in every if path.is_dir()}


def test_objects_are_their_owners_alone(tmp_path):
    storage = open_checkpoint_storage(tmp_path / "made" / "storage")
    storage.put("a/b/c", b"secret")
    storage.put_if_absent("d", b"secret")
    storage.put("d", b"another")
    assert modes(tmp_path / "made" / "storage") == ({0o600}, {0o700})


def test_a_folder_that_was_there_keeps_its_mode(tmp_path):
    (tmp_path / "own").mkdir(mode=0o755)
    storage = open_checkpoint_storage(tmp_path / "own")
    storage.put("a/b", b"secret")
    assert modes(tmp_path / "own") == ({0o600}, {0o755, 0o700})


def test_all_of_a_flow_is_its_owners_alone(tmp_path):
    with declare(IncrementalFlow("shop", path=tmp_path / "flow")) as flow:
        flow.sink("totals", lambda *_: None, name="told")
        order(flow, 5)
        flow.checkpoint()
        flow.checkpoint(tmp_path / "checkpoints")
    for folder in ("flow", "checkpoints"):
        assert modes(tmp_path / folder) == ({0o600}, {0o700}), folder


def test_what_a_repair_puts_aside_is_its_owners_alone(tmp_path):
    with declare(IncrementalFlow("shop", path=tmp_path / "flow")) as flow:
        order(flow, 5)
        order(flow, 7)
    (log,) = (tmp_path / "flow" / "log").glob("*.log")
    log.write_bytes(log.read_bytes()[:-1])
    flow, repair = IncrementalFlow.salvage(tmp_path / "flow")
    flow.close()
    assert repair.aside.is_dir()
    assert modes(tmp_path / "flow") == ({0o600}, {0o700})


def test_a_flow_in_shards_is_its_owners_alone(tmp_path):
    with declare(PartitionedFlow(str(tmp_path / "flow"), 2, InThisProcess())) as flow:
        order(flow, 5)
    assert modes(tmp_path / "flow") == ({0o600}, {0o700})


def test_what_a_sink_writes_is_as_the_umask_says(tmp_path):
    os.umask(0o027)
    with declare(IncrementalFlow("shop")) as flow:
        flow.sink("totals", tmp_path / "out")
        order(flow, 5)
    assert modes(tmp_path / "out") == ({0o640}, {0o750})


def test_state_in_rocksdb_is_behind_a_folder_of_its_owner(tmp_path):
    with closing(RocksDbStateBackend(tmp_path / "made" / "state")) as state:
        state.write({"operator": {b"key": b"value"}})
    assert stat.S_IMODE((tmp_path / "made" / "state").stat().st_mode) == 0o700
