"""Checkpoints of keyed state: incremental, verified, restored to any parallelism and either backend."""

import dataclasses
import operator
from datetime import timedelta

import pytest

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.errors import ConfigError, MigrationMissing, ObjectNotFound, StateError, StorageError
from weirflow.state import (
    InMemoryStateBackend,
    KeyedStateStore,
    KeyGroupRange,
    Migrations,
    RocksDbStateBackend,
    StateDescriptor,
    Ttl,
    TtlStateBackend,
    dry_run,
    group_ranges,
    key_group,
    state_migration,
)
from weirflow.state.encoding.keys import encode_key
from weirflow.state.encoding.layout import BROADCAST

ALL = KeyGroupRange(0, 128)
COUNT = StateDescriptor("count", int, int)
TAGS = StateDescriptor("tags", int, dict[str, int])
RULES = StateDescriptor("rules", None, dict[str, str])
KINDS = ["memory", "rocksdb"]


class Job:
    """An operator in several instances, each with its own backend and key groups."""

    def __init__(self, backends):
        self.backends = backends
        self.stores = {groups: KeyedStateStore(backend, "op", owned=groups) for groups, backend in backends.items()}
        self.counts = {groups: store.reducing(COUNT, operator.add) for groups, store in self.stores.items()}
        self.tags = {groups: store.map(TAGS) for groups, store in self.stores.items()}
        self.rules = {groups: store.broadcast(RULES) for groups, store in self.stores.items()}

    @classmethod
    def new(cls, kind, folder, parallelism=1):
        return cls(
            {
                groups: InMemoryStateBackend()
                if kind == "memory"
                else RocksDbStateBackend(folder / f"new-{groups}", fsync=0)
                for groups in group_ranges(parallelism)
            }
        )

    @classmethod
    def restored(cls, checkpoints, kind, folder, parallelism=1, epoch=None):
        return cls(
            {
                groups: checkpoints.restore(
                    groups, epoch=epoch, path=None if kind == "memory" else folder / f"restored-{groups}"
                )
                for groups in group_ranges(parallelism)
            }
        )

    def add(self, keys):
        for groups, store in self.stores.items():
            mine = [key for key in keys if key_group(encode_key(key)) in groups]
            self.counts[groups].add_many(mine, [1] * len(mine))
            for key in mine:
                store.set_key(key)
                self.tags[groups].put(str(key % 3), key)
            self.rules[groups].put("last", str(len(keys)))
            store.flush()

    def contents(self):
        found = {}
        for groups, store in self.stores.items():
            for key in store.keys("count"):
                store.set_key(key)
                assert key not in found
                found[key] = (self.counts[groups].get(), dict(self.tags[groups].items()))
        return found, [dict(rules.items()) for rules in self.rules.values()]

    def close(self):
        for backend in self.backends.values():
            backend.close()


@pytest.fixture
def storage(tmp_path):
    return open_checkpoint_storage(tmp_path / "storage")


@pytest.fixture
def checkpoints(storage):
    return KeyedStateCheckpoints(storage)


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", KINDS)
@pytest.mark.parametrize(("old", "new"), [(1, 1), (2, 2), (2, 4), (4, 2), (3, 1), (1, 5)])
def test_a_checkpoint_restores_to_any_parallelism_and_backend(tmp_path, before, after, old, new):
    checkpoints = KeyedStateCheckpoints(open_checkpoint_storage("memory://"))
    job = Job.new(before, tmp_path, old)
    job.add(range(200))
    job.add(range(0, 200, 7))
    checkpoints.save(job.backends, epoch=1)
    wanted, rules = job.contents()
    assert len(wanted) == 200
    job.add(range(500))
    restored = Job.restored(checkpoints, after, tmp_path, new)
    assert restored.contents() == (wanted, rules[:1] * new)
    for groups, backend in restored.backends.items():
        assert {key[:2] for key, _ in backend.scan("op", b"", BROADCAST)} <= {
            group.to_bytes(2, "big") for group in range(groups.first, groups.end)
        }
    restored.add([1000])
    assert restored.contents()[0] == wanted | {1000: (1, {"1": 1000})}
    job.close()
    restored.close()


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_is_new_is_written(tmp_path, checkpoints, kind):
    job = Job.new(kind, tmp_path)
    job.add(range(5_000))
    checkpoints.save(job.backends, epoch=1)
    first = checkpoints.written
    job.add([7])
    checkpoints.save(job.backends, epoch=2)
    assert checkpoints.written - first < first / 10
    again = KeyedStateCheckpoints(checkpoints._storage)
    again.save(job.backends, epoch=3)
    assert again.written < first / 10
    for epoch in (1, 2, 3):
        restored = Job.restored(again, "memory", tmp_path, epoch=epoch)
        assert restored.contents()[0][7] == (min(epoch, 2), {"1": 7})
    job.close()


@pytest.mark.parametrize("kind", KINDS)
def test_old_checkpoints_are_collected_and_kept_ones_restore(tmp_path, checkpoints, storage, kind):
    job = Job.new(kind, tmp_path)
    for epoch in range(5):
        job.add(range(epoch * 10, epoch * 10 + 20))
        checkpoints.save(job.backends, epoch=epoch)
    before = len(list(storage.list()))
    checkpoints.collect(keep=2)
    assert checkpoints.epochs() == [3, 4]
    assert len(list(storage.list())) < before
    needed = {ref.object for epoch in (3, 4) for ref in checkpoints.find(epoch).parts[0].files.values()}
    assert {info.name for info in storage.list("state/files/")} == needed
    assert len(Job.restored(checkpoints, "memory", tmp_path, epoch=3).contents()[0]) == 50
    job.close()


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def delete(path):
    path.unlink()


def own_files(checkpoints, tmp_path):
    """The files that only the newest checkpoint has, by kind, and its manifest."""
    newest, before = checkpoints.find(2), checkpoints.find(1)
    old = {ref.object for ref in before.parts[0].files.values()}
    found = {"manifest": "state/manifests/00000000000000000002.json"}
    for name, ref in newest.parts[0].files.items():
        if ref.object not in old:
            kind = "sst" if name.endswith(".sst") else "pack" if name.isdigit() else name.split("-")[0]
            found[kind] = ref.object
    return {kind: tmp_path / "storage" / name for kind, name in found.items()}


FILES = [
    ("rocksdb", "sst"),
    ("rocksdb", "MANIFEST"),
    ("rocksdb", "manifest"),
    ("memory", "pack"),
    ("memory", "shared"),
    ("memory", "manifest"),
]


@pytest.mark.parametrize("damage", [truncate, flip, delete])
@pytest.mark.parametrize(("kind", "which"), FILES)
def test_damage_is_named_and_the_checkpoint_before_restores(tmp_path, checkpoints, kind, which, damage):
    job = Job.new(kind, tmp_path)
    job.add(range(10))
    checkpoints.save(job.backends, epoch=1)
    job.add(range(100))
    checkpoints.save(job.backends, epoch=2)
    job.close()
    path = own_files(checkpoints, tmp_path)[which]
    damage(path)
    # A deleted manifest is no checkpoint at all.
    for target in KINDS:
        with pytest.raises(ObjectNotFound if (which, damage) == ("manifest", delete) else StorageError) as error:
            Job.restored(checkpoints, target, tmp_path, epoch=2)
        assert damage is delete or path.name in error.value.message
        assert not list(tmp_path.glob("restored-*"))
    before = Job.restored(checkpoints, kind, tmp_path, epoch=1)
    assert len(before.contents()[0]) == 10
    before.close()


@pytest.mark.parametrize("which", ["CURRENT", "OPTIONS", "rocksdict"])
@pytest.mark.parametrize("damage", [truncate, flip, delete])
def test_damage_of_small_files_is_named(tmp_path, checkpoints, storage, which, damage):
    job = Job.new("rocksdb", tmp_path)
    job.add(range(10))
    files = checkpoints.save(job.backends, epoch=1).parts[0].files
    job.close()
    (name,) = [ref.object for file, ref in files.items() if file.startswith(which)]
    damage(tmp_path / "storage" / name)
    for groups in (ALL, KeyGroupRange(0, 64)):
        with pytest.raises(StorageError, match=name.rsplit("/", 1)[1]):
            checkpoints.restore(groups, path=tmp_path / "restored")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new-0-127", "storage"]


def test_a_damaged_file_that_is_still_needed_is_written_again(tmp_path, checkpoints):
    job = Job.new("memory", tmp_path)
    job.add(range(10))
    ref = checkpoints.save(job.backends, epoch=1).parts[0].files["shared"]
    (tmp_path / "storage" / ref.object).write_bytes(b"")
    checkpoints.save(job.backends, epoch=2)
    assert len(Job.restored(checkpoints, "memory", tmp_path).contents()[0]) == 10


def test_a_manifest_under_another_name_is_refused(tmp_path, checkpoints, storage):
    job = Job.new("memory", tmp_path)
    manifests = "state/manifests/{:020d}.json"
    checkpoints.save(job.backends, epoch=1)
    storage.put(manifests.format(5), storage.get(manifests.format(1)))
    with pytest.raises(StorageError, match="it is that of epoch 1"):
        checkpoints.restore(ALL)


def test_an_epoch_is_published_once(tmp_path, storage):
    job = Job.new("memory", tmp_path)
    KeyedStateCheckpoints(storage).save(job.backends, epoch=1)
    KeyedStateCheckpoints(storage).save(job.backends, epoch=1)
    job.add([1])
    with pytest.raises(StorageError, match="another checkpoint of epoch 1"):
        KeyedStateCheckpoints(storage).save(job.backends, epoch=1)
    with pytest.raises(StorageError, match="another checkpoint of epoch 1"):
        KeyedStateCheckpoints(storage, fence=2).save({ALL: InMemoryStateBackend()}, epoch=1)


def test_what_is_not_there_is_not_found(checkpoints):
    with pytest.raises(ObjectNotFound, match="no checkpoint of keyed state"):
        checkpoints.restore(ALL)
    checkpoints.save({ALL: InMemoryStateBackend()}, epoch=3)
    with pytest.raises(ObjectNotFound, match="no checkpoint of epoch 2") as error:
        checkpoints.restore(ALL, epoch=2)
    assert error.value.hint == "there are 3"


@pytest.mark.parametrize(
    "ranges", [[], [(1, 128)], [(0, 10), (11, 128)], [(0, 10), (9, 128)]], ids=["none", "late", "gap", "twice"]
)
def test_all_key_groups_are_saved_once(checkpoints, ranges):
    with pytest.raises(ConfigError):
        checkpoints.save({KeyGroupRange(*one): InMemoryStateBackend() for one in ranges}, epoch=1)


def test_groups_that_were_not_saved_cannot_be_restored(checkpoints):
    checkpoints.save({KeyGroupRange(0, 64): InMemoryStateBackend()}, epoch=1)
    with pytest.raises(StorageError, match="no state of the key groups 32-127; there is of 0-63"):
        checkpoints.restore(KeyGroupRange(32, 128))


def test_nothing_is_restored_over_something(checkpoints, tmp_path):
    checkpoints.save({ALL: InMemoryStateBackend()}, epoch=1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("precious")
    with pytest.raises(StateError, match="the path is taken"):
        checkpoints.restore(ALL, path=tmp_path / "mine")
    assert (tmp_path / "mine" / "file").read_text() == "precious"


def test_what_a_killed_process_has_left_is_removed(checkpoints, tmp_path):
    backend = RocksDbStateBackend(tmp_path / "old", fsync=0)
    left = [tmp_path / ".old.weirflow-linked", tmp_path / ".new.weirflow-restored"]
    for folder in left:
        folder.mkdir()
        (folder / "CURRENT").write_text("half a checkpoint")
    checkpoints.save({ALL: backend}, epoch=1)
    backend.close()
    checkpoints.restore(ALL, path=tmp_path / "new").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old", "storage"]


def test_a_path_that_cannot_be_written_is_named(checkpoints, tmp_path):
    checkpoints.save({ALL: InMemoryStateBackend()}, epoch=1)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="file/state: File exists") as error:
        checkpoints.restore(ALL, path=tmp_path / "file" / "state")
    assert error.value.hint is not None


@pytest.mark.parametrize("keep", [0, -1])
def test_a_checkpoint_is_kept(checkpoints, keep):
    with pytest.raises(ConfigError):
        checkpoints.collect(keep)


def test_epochs_are_not_negative(checkpoints):
    with pytest.raises(ConfigError):
        checkpoints.save({ALL: InMemoryStateBackend()}, epoch=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_expiry_and_watermark_are_part_of_it(tmp_path, checkpoints, kind):
    def seen_in(backend):
        store = KeyedStateStore(backend, "op")
        return store, store.value(StateDescriptor("seen", int, int, Ttl(timedelta(seconds=1), "event")))

    halves, marks = group_ranges(2), (5500, 5800)
    backends = {}
    for groups, mark in zip(halves, marks, strict=True):
        inner = InMemoryStateBackend() if kind == "memory" else RocksDbStateBackend(tmp_path / str(groups), fsync=0)
        backends[groups] = TtlStateBackend(inner)
        store, seen = seen_in(backends[groups])
        for key in range(100):
            if key_group(encode_key(key)) in groups:
                store.set_key(key, timestamp_ms=4000 + 10 * key)
                seen.set(key)
        store.flush()
        backends[groups].set_watermark(mark)
    checkpoints.save(backends, epoch=1)
    restored = TtlStateBackend(checkpoints.restore(ALL))
    assert restored.watermark == 5500
    assert [key for key in seen_in(restored)[1].get_many(range(100)) if key is not None] == list(range(51, 100))
    for backend in backends.values():
        backend.close()


@dataclasses.dataclass
class Money:
    cents: int
    currency: str


@dataclasses.dataclass
class Account:
    money: Money
    open: bool


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", KINDS)
def test_a_checkpoint_of_an_older_version_migrates(tmp_path, checkpoints, before, after):
    steps = Migrations()
    state_migration("balance", from_version=1, to_version=2, migrations=steps)(lambda cents: Money(cents, "EUR"))
    v1, v2, v3, v4 = (
        StateDescriptor("balance", str, declared, version=version)
        for version, declared in enumerate([int, Money, Account, Account], 1)
    )
    backend = InMemoryStateBackend() if before == "memory" else RocksDbStateBackend(tmp_path / "old", fsync=0)
    for descriptor, key, value in ((v1, "ann", 7), (v2, "bob", Money(8, "USD"))):
        store = KeyedStateStore(backend, "op", migrations=steps)
        store.value(descriptor).set_many([key], [value])
        store.flush()
    checkpoints.save({ALL: backend}, epoch=1)
    backend.close()
    restored = checkpoints.restore(ALL, path=None if after == "memory" else tmp_path / "new")
    with pytest.raises(MigrationMissing, match="no migration leads from there to version 3"):
        KeyedStateStore(restored, "op", migrations=steps).value(v3)
    state_migration("balance", from_version=2, to_version=3, reads=Money, migrations=steps)(
        lambda money: Account(money, open=True)
    )
    assert [one.steps for one in dry_run(restored, {"op": [v3]}, migrations=steps)] == [(1, 2, 3), (2, 3)]
    store = KeyedStateStore(restored, "op", migrations=steps)
    assert store.value(v3).get_many(["ann", "bob"]) == [Account(Money(7, "EUR"), True), Account(Money(8, "USD"), True)]
    assert [one.missing for one in dry_run(restored, {"op": [v4]}, migrations=steps)] == [(3, 4), (3, 4)]
    restored.close()
