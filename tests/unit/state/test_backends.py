"""What every backend keeps."""

import random

import pytest

from weirflow.errors import ConfigError, DependencyMissing, StateError
from weirflow.state import InMemoryStateBackend, RocksDbStateBackend, TtlStateBackend
from weirflow.state.backends import rocksdb
from weirflow.state.backends.sorted_keys import SortedKeys

LAST = b"\xff" * 4


def test_what_is_written_is_read(backend):
    backend.write({"op": {b"a": b"1", b"b": b""}, "other": {b"a": b"2"}})
    assert backend.get("op", b"a") == b"1"
    assert backend.get("op", b"b") == b""
    assert backend.multi_get("op", [b"b", b"x", b"a", b"a"]) == [b"", None, b"1", b"1"]
    assert backend.get("other", b"a") == b"2"
    assert backend.operators() == ["op", "other"]


def test_an_operator_that_was_never_written_is_empty(backend):
    assert backend.get("op", b"a") is None
    assert backend.multi_get("op", [b"a"]) == [None]
    assert list(backend.scan("op", b"", LAST)) == []
    assert backend.operators() == []


def test_a_batch_puts_and_removes(backend):
    backend.write({"op": {b"a": b"1", b"b": b"2"}})
    backend.write({"op": {b"a": None, b"b": b"3", b"never": None}})
    assert list(backend.scan("op", b"", LAST)) == [(b"b", b"3")]
    assert backend.multi_get("op", [b"a", b"b"]) == [None, b"3"]


def test_a_scan_is_ordered_and_ends_before_its_end(backend):
    backend.write({"op": {bytes([one]): b"x" for one in (5, 3, 9, 1, 255)}})
    assert [key for key, _ in backend.scan("op", b"\x03", b"\x09")] == [b"\x03", b"\x05"]
    assert [key for key, _ in backend.scan("op", b"\x03", b"\x09", reverse=True)] == [b"\x05", b"\x03"]
    assert [key for key, _ in backend.scan("op", b"\x06", b"\x08", reverse=True)] == []
    assert [key for key, _ in backend.scan("op", b"", LAST, reverse=True)] == [
        b"\xff",
        b"\x09",
        b"\x05",
        b"\x03",
        b"\x01",
    ]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_shows_once_and_in_order_what_stays_while_it_is_read(backend, reverse):
    keys = [number.to_bytes(2, "big") for number in range(5000)]
    backend.write({"op": dict.fromkeys(keys[::2], b"stays")})
    found = []
    for number, (key, data) in enumerate(backend.scan("op", keys[10], keys[-10], reverse=reverse)):
        found.append((key, data))
        if number % 100 == 0:
            other = keys[(number * 7) % 5000 // 2 * 2 + 1]
            backend.write({"op": {other: None if backend.get("op", other) else b"other"}})
    stayed = [pair for pair in found if pair[1] == b"stays"]
    assert stayed == sorted([(key, b"stays") for key in keys[10:-10:2]], reverse=reverse)
    assert [key for key, _ in found] == sorted({key for key, _ in found}, reverse=reverse)


def test_the_first_of_a_scan_does_not_cost_the_whole():
    backend = InMemoryStateBackend()
    backend.write({"op": {number.to_bytes(4, "big"): b"x" for number in range(20_000)}})
    keys = backend._keys["op"]
    assert 0 < len(keys.first(b"", LAST)) <= 2048
    assert 0 < len(keys.last(b"", LAST)) <= 2048


def test_a_snapshot_does_not_change(backend):
    backend.write({"op": {b"a": b"1"}, "other": {b"b": b"2"}})
    snapshot = backend.snapshot()
    backend.write({"op": {b"a": b"9", b"c": b"3"}, "other": {b"b": None}, "third": {b"x": b"y"}})
    assert snapshot.operators() == ["op", "other"]
    assert (snapshot.get("op", b"a"), snapshot.get("op", b"c"), snapshot.get("third", b"x")) == (b"1", None, None)
    assert list(snapshot.scan("other", b"", LAST)) == [(b"b", b"2")]
    assert list(snapshot.scan("op", b"", LAST, reverse=True)) == [(b"a", b"1")]
    snapshot.close()


def test_scans_of_a_snapshot_do_not_disturb_each_other(backend):
    keys = [number.to_bytes(2, "big") for number in range(1000)]
    backend.write({"op": dict.fromkeys(keys, b"old")})
    snapshot = backend.snapshot()
    backend.write({"op": dict.fromkeys(keys[::2], b"new") | dict.fromkeys(keys[1::2])})
    on, back = snapshot.scan("op", b"", LAST), snapshot.scan("op", keys[0], keys[999], reverse=True)
    pairs = [(next(on)[0], next(back)[0]) for _ in range(999)]
    assert pairs == list(zip(keys[:999], keys[998::-1], strict=True))
    assert (next(on), next(on, None), next(back, None)) == ((keys[999], b"old"), None, None)
    snapshot.close()


def test_random_writes_and_scans_equal_a_dict(backend):
    chosen = random.Random(1)
    model = {}
    for _ in range(60):
        changes = {
            chosen.randrange(3000).to_bytes(2, "big"): chosen.choice([None, b"1", b"2"])
            for _ in range(chosen.choice([1, 5, 2000]))
        }
        backend.write({"op": changes})
        model = {key: data for key, data in (model | changes).items() if data is not None}
        start, end = sorted(chosen.randrange(3000).to_bytes(2, "big") for _ in range(2))
        wanted = sorted((key, data) for key, data in model.items() if start <= key < end)
        assert list(backend.scan("op", start, end)) == wanted
        assert list(backend.scan("op", start, end, reverse=True)) == wanted[::-1]


def test_a_closed_backend_says_so(backend):
    backend.write({"op": {b"a": b"1"}})
    backend.close()
    backend.close()
    for act in (
        lambda: backend.get("op", b"a"),
        lambda: backend.multi_get("op", [b"a"]),
        lambda: backend.write({"op": {b"a": b"2"}}),
        lambda: backend.scan("op", b"", LAST),
        backend.operators,
        backend.snapshot,
    ):
        with pytest.raises(StateError, match="closed"):
            act()


def test_rocksdb_is_there_when_it_is_opened_again(tmp_path):
    first = RocksDbStateBackend(tmp_path / "state")
    first.write({"default": {b"a": b"1"}, "op é": {b"b": b"2"}, "": {b"c": b"3"}})
    # What is still in use would keep the folder locked.
    unfinished, snapshot = first.scan("op é", b"", LAST), first.snapshot()
    next(unfinished)
    first.close()
    second = RocksDbStateBackend(tmp_path / "state")
    assert second.operators() == ["default", "op é"]
    assert (second.get("default", b"a"), second.get("op é", b"b"), second.get("", b"c")) == (b"1", b"2", b"3")
    assert list(unfinished) == []
    second.close()
    del snapshot


def test_rocksdb_is_opened_once_at_a_time(tmp_path):
    first = RocksDbStateBackend(tmp_path / "state")
    with pytest.raises(StateError, match="could not be opened") as error:
        RocksDbStateBackend(tmp_path / "state")
    assert error.value.hint == "close the other backend first"
    first.close()


def test_rocksdb_says_that_files_are_damaged(tmp_path):
    first = RocksDbStateBackend(tmp_path / "state")
    first.write({"op": {b"a": b"1"}})
    first.close()
    (tmp_path / "state" / "CURRENT").write_bytes(b"nonsense\n")
    with pytest.raises(StateError, match="could not be opened"):
        RocksDbStateBackend(tmp_path / "state")


def test_rocksdb_remembers_the_recent_and_finds_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr("weirflow.state.recent._MOST_BYTES", 1000)
    backend = RocksDbStateBackend(tmp_path / "state", fsync=0)
    model = {}
    chosen = random.Random(2)
    for _ in range(300):
        keys = [bytes([chosen.randrange(60)]) for _ in range(4)]
        assert backend.multi_get("op", keys) == [model.get(key) for key in keys]
        changes = {bytes([chosen.randrange(60)]): chosen.choice([None, b"%d" % chosen.randrange(99)]) for _ in range(3)}
        backend.write({"op": changes})
        model |= changes
    backend.close()


@pytest.mark.parametrize("fsync", [0, 1, 3])
def test_rocksdb_syncs_as_often_as_it_is_told(tmp_path, fsync):
    backend = RocksDbStateBackend(tmp_path / "state", fsync=fsync)
    synced = []
    write = backend._db.write

    class Watched:
        def write(self, batch, options):
            synced.append(options.sync)
            return write(batch, options)

        def __getattr__(self, name):
            return getattr(database, name)

    database, backend._db = backend._db, Watched()
    for number in range(6):
        backend.write({"": {b"a": b"%d" % number}})
    backend._db = database
    backend.close()
    assert synced == {0: [False] * 6, 1: [True] * 6, 3: [False, False, True] * 2}[fsync]


def test_rocksdb_cannot_be_synced_less_than_never(tmp_path):
    with pytest.raises(ConfigError):
        RocksDbStateBackend(tmp_path, fsync=-1)


def test_without_rocksdict_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(rocksdb, "rocksdict", None)
    with pytest.raises(DependencyMissing) as error:
        RocksDbStateBackend(tmp_path)
    assert error.value.hint == "pip install 'weirflow[rocksdb]'"


def test_backends_say_what_they_are(tmp_path):
    memory = InMemoryStateBackend()
    memory.write({"op": {b"a": b"1"}})
    assert repr(TtlStateBackend(memory)) == "<<state in memory, 1 entries>, expiring>"


def test_sorted_keys_follow_small_and_large_changes():
    chosen = random.Random(3)
    model = {}
    keys = SortedKeys(model)
    for size in [5000, 3, 3, 2, 4000, 1, 1, 6000, 5, 5]:
        fresh = {chosen.randrange(1 << 20).to_bytes(3, "big") for _ in range(size)}
        keys.touch(fresh)
        model |= dict.fromkeys(fresh)
        for key in chosen.sample(sorted(model), min(size, len(model)) // 2):
            keys.touch([key])
            del model[key]
        assert keys.between(b"", b"\xff" * 4) == sorted(model)
        copied = keys.copy(dict(model))
        assert copied.between(b"\x05", b"\x09") == sorted(key for key in model if b"\x05" <= key < b"\x09")
    for key in sorted(model):
        keys.touch([key])
        del model[key]
        if chosen.random() < 0.01:
            keys.between(b"", b"")
    assert keys.between(b"", b"\xff" * 4) == []
