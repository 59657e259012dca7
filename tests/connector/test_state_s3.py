"""Checkpoints and savepoints of keyed state on a real S3 server."""

import operator

import pytest
from support.s3 import s3_server

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.checkpoint.keyed_state.savepoints import Savepoints
from weirflow.errors import StorageError
from weirflow.state import KeyedStateStore, KeyGroupRange, RocksDbStateBackend, StateDescriptor, group_ranges

ALL = KeyGroupRange(0, 128)
COUNT = StateDescriptor("count", int, int)


@pytest.fixture(scope="module")
def server():
    with s3_server() as running:
        yield running


@pytest.fixture
def storage(server):
    return open_checkpoint_storage(f"s3://{server.make_bucket()}/job", server.options)


@pytest.fixture
def backend(tmp_path):
    backend = RocksDbStateBackend(tmp_path / "state", fsync=0)
    store = KeyedStateStore(backend, "op")
    store.reducing(COUNT, operator.add).add_many(range(100), [1] * 100)
    store.flush()
    yield backend
    backend.close()


def keys(backend, groups):
    store = KeyedStateStore(backend, "op", owned=groups)
    store.reducing(COUNT, operator.add)
    return list(store.keys("count"))


def test_a_checkpoint_restores_to_two(storage, backend):
    checkpoints = KeyedStateCheckpoints(storage)
    checkpoints.save({ALL: backend}, epoch=1)
    checkpoints.save({ALL: backend}, epoch=2)
    found = [keys(checkpoints.restore(groups), groups) for groups in group_ranges(2)]
    assert sorted(found[0] + found[1]) == list(range(100))
    checkpoints.collect(keep=1)
    assert keys(checkpoints.restore(ALL), ALL)


def test_damage_is_named(storage, backend):
    checkpoints = KeyedStateCheckpoints(storage)
    ref = next(iter(checkpoints.save({ALL: backend}, epoch=1).parts[0].files.values()))
    storage.put(ref.object, b"x" * ref.size)
    with pytest.raises(StorageError, match=ref.sha256):
        checkpoints.restore(ALL)


def test_a_savepoint_goes_from_s3_to_local_files(storage, backend, tmp_path):
    savepoints, local = Savepoints(storage), open_checkpoint_storage(tmp_path / "local")
    savepoints.create("friday", {ALL: backend})
    savepoints.copy("friday", local)
    savepoints.delete("friday")
    assert list(storage.list()) == []
    assert sorted(keys(Savepoints(local).restore("friday", ALL), ALL)) == list(range(100))
