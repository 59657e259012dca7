"""States with a name: listed, described, restored, deleted, copied."""

import operator

import pytest

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.savepoints import Savepoints
from weirflow.errors import ConfigError, ObjectExists, ObjectNotFound, StorageError
from weirflow.state import InMemoryStateBackend, KeyedStateStore, KeyGroupRange, RocksDbStateBackend, StateDescriptor

ALL = KeyGroupRange(0, 128)
COUNT = StateDescriptor("count", int, int)


@pytest.fixture(params=["memory", "rocksdb"])
def backend(request, tmp_path):
    backend = InMemoryStateBackend() if request.param == "memory" else RocksDbStateBackend(tmp_path / "db", fsync=0)
    store = KeyedStateStore(backend, "clicks")
    store.reducing(COUNT, operator.add).add_many(range(20), [1] * 20)
    store.broadcast(StateDescriptor("rules", None, dict[str, int], version=3)).put("limit", 10)
    store.flush()
    yield backend
    backend.close()


@pytest.fixture(params=["memory://", "file"])
def storage(request, tmp_path):
    return open_checkpoint_storage("memory://" if request.param == "memory://" else tmp_path / "storage")


def total(backend):
    store = KeyedStateStore(backend, "clicks")
    count = store.reducing(COUNT, operator.add)
    found = 0
    for key in store.keys("count"):
        store.set_key(key)
        found += count.get()
    return found


def test_a_savepoint_is_listed_described_and_restored(storage, backend, tmp_path):
    savepoints = Savepoints(storage)
    made = savepoints.create("before the sale", {ALL: backend})
    store = KeyedStateStore(backend, "clicks")
    store.reducing(COUNT, operator.add).add_many(range(20), [1] * 20)
    store.flush()
    savepoints.create("after", {ALL: backend})
    assert [one.name for one in savepoints.list()] == ["after", "before the sale"]
    found = savepoints.get("before the sale")
    assert found == made
    assert found.describe().splitlines()[1:] == [
        "operator  slot   kind       version  values  bytes",
        "clicks    count  reducing   1        20      239",
        "clicks    rules  broadcast  3        1       17",
    ]
    assert found.size == sum(info.size for info in storage.list("savepoints/before the sale/files/"))
    for path in (None, tmp_path / "restored"):
        restored = savepoints.restore("before the sale", ALL, path=path)
        assert total(restored) == 20
        restored.close()
    assert total(savepoints.restore("after", ALL)) == 40


def test_a_deleted_savepoint_leaves_nothing(storage, backend):
    savepoints = Savepoints(storage)
    savepoints.create("one", {ALL: backend})
    savepoints.create("two", {ALL: backend})
    savepoints.delete("one")
    savepoints.delete("one")
    assert {info.name.split("/")[1] for info in storage.list()} == {"two"}
    assert total(savepoints.restore("two", ALL)) == 20
    with pytest.raises(ObjectNotFound, match="no savepoint 'one'"):
        savepoints.get("one")


def test_a_copy_is_on_its_own(storage, backend, tmp_path):
    savepoints, elsewhere = Savepoints(storage), open_checkpoint_storage(tmp_path / "elsewhere")
    made = savepoints.create("one", {ALL: backend})
    savepoints.copy("one", elsewhere)
    savepoints.copy("one", storage, new_name="two")
    savepoints.delete("one")
    copied = Savepoints(elsewhere).get("one")
    assert (copied.created, copied.slots, copied.size) == (made.created, made.slots, made.size)
    assert total(Savepoints(elsewhere).restore("one", ALL)) == 20
    assert (
        total(savepoints.restore("two", KeyGroupRange(0, 64)))
        + total(savepoints.restore("two", KeyGroupRange(64, 128)))
        == 20
    )
    with pytest.raises(ObjectExists):
        savepoints.copy("two", elsewhere, new_name="one")


def test_a_damaged_savepoint_is_not_copied(backend, tmp_path):
    storage, elsewhere = open_checkpoint_storage(tmp_path / "storage"), open_checkpoint_storage("memory://")
    made = Savepoints(storage).create("one", {ALL: backend})
    damaged = tmp_path / "storage" / made.files[0].object
    damaged.write_bytes(damaged.read_bytes() + b"x")
    with pytest.raises(StorageError, match=damaged.name):
        Savepoints(storage).copy("one", elsewhere)
    assert Savepoints(elsewhere).list() == []


def test_a_name_is_taken_once(storage, backend):
    savepoints = Savepoints(storage)
    made = savepoints.create("one", {ALL: backend})
    with pytest.raises(ObjectExists, match="savepoint 'one'"):
        savepoints.create("one", {ALL: InMemoryStateBackend()})
    assert savepoints.get("one") == made


def test_a_near_name_is_suggested(storage, backend):
    Savepoints(storage).create("friday", {ALL: backend})
    with pytest.raises(ObjectNotFound) as error:
        Savepoints(storage).restore("frday", ALL)
    assert error.value.hint == "did you mean 'friday'?"


@pytest.mark.parametrize("name", ["", "a/b", "..", "a\n", "x" * 300])
def test_a_name_that_cannot_be(storage, name):
    for act in (
        lambda: Savepoints(storage).create(name, {ALL: InMemoryStateBackend()}),
        lambda: Savepoints(storage).get(name),
        lambda: Savepoints(storage).delete(name),
    ):
        with pytest.raises(ConfigError):
            act()


def test_a_manifest_under_another_name_is_refused(storage, backend):
    Savepoints(storage).create("one", {ALL: backend})
    storage.put("savepoints/two/savepoint.json", storage.get("savepoints/one/savepoint.json"))
    with pytest.raises(StorageError, match="it is that of 'one'"):
        Savepoints(storage).get("two")
    storage.put("savepoints/one/savepoint.json", storage.get("savepoints/one/savepoint.json")[:-1])
    with pytest.raises(StorageError, match="checksum"):
        Savepoints(storage).list()
