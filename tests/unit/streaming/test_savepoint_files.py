"""Savepoints of a checkpoint that goes on and is cleaned up meanwhile; the files of each kind of state store."""

import io
import json
import uuid
import zipfile

import pytest

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ObjectNotFound, StorageError
from weirflow.failpoints import watch_failpoints
from weirflow.streaming.savepoints.files import files_of_batch
from weirflow.streaming.savepoints.named import QuerySavepoints, SavedQuery

STATE = SavedQuery(["parquet"], "append", [], "parquet out")
RETAINED = 2


class Query:
    """Writes a checkpoint as Spark does with a source of files and a state that counts, and deletes what is old."""

    def __init__(self, folder):
        self.folder = folder
        self.batch = -1

    def run(self, batches=1):
        for _ in range(batches):
            self.batch += 1
            self._run(self.batch)
            self._clean(self.batch)

    def _run(self, batch):
        seen = f"{batch}.compact" if batch % 3 == 2 else f"{batch}"
        self.write(f"sources/0/{seen}", ",".join(map(str, range(batch + 1) if batch % 3 == 2 else [batch])))
        self.write(f"offsets/{batch}", f'v1\n{{}}\n{{"logOffset":{batch}}}')
        for partition in range(2):
            self.write(f"state/0/{partition}/{batch + 1}.delta", "1")
            self.write(f"state/0/{partition}/{batch + 1}.delta.crc", "checksum")
            if batch % 4 == 3:
                self.write(f"state/0/{partition}/{batch + 1}.snapshot", f"{batch + 1}")
        self.write("metadata", "{}")
        self.write("state/0/_metadata/metadata", "{}")
        self.write(f"commits/{batch}", "v1\n{}")

    def _clean(self, batch):
        self._delete("offsets/*", batch - RETAINED)
        self._delete("commits/*", batch - RETAINED)
        self._delete("sources/0/*", (batch + 1) // 3 * 3 - 1)
        needed = (batch + 1 - RETAINED) // 4 * 4  # the last snapshot that the oldest version is made of
        self._delete("state/0/[01]/*", needed)

    def _delete(self, pattern, before):
        for path in self.folder.glob(pattern):
            if int(path.name.split(".")[0]) < before:
                path.unlink()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def seen_files(files, end):
    """What a log of Spark's says has been read: the last compacted entry and those after it."""
    number, seen = end, []
    while number >= 0:
        if (compacted := f"sources/0/{number}.compact") in files:
            return [*map(int, files[compacted].split(",")), *seen]
        seen.insert(0, int(files[f"sources/0/{number}"]))
        number -= 1
    return seen


def counted(files, partition, version):
    """A version of the state as Spark loads it: a snapshot and the changes since."""
    number, changes, store = version, 0, f"state/0/{partition}/"
    while number > 0 and f"{store}{number}.snapshot" not in files:
        changes += int(files[f"{store}{number}.delta"])
        number -= 1
    return changes + (int(files[f"{store}{number}.snapshot"]) if number else 0)


@pytest.fixture
def query(tmp_path):
    yield Query(tmp_path / "saved")
    watch_failpoints(None)


def save(query, target="memory://"):
    savepoints = QuerySavepoints(open_checkpoint_storage(target))
    return savepoints, savepoints.create("now", str(query.folder), query="counts", query_id="1", state=STATE)


@pytest.mark.parametrize("batches", [1, 2, 5])
@pytest.mark.parametrize(
    ("point", "nth"),
    [
        ("savepoint.before_list", 1),
        *(("savepoint.after_file", nth) for nth in range(1, 10)),
        ("savepoint.before_manifest_put", 1),
    ],
)
def test_a_savepoint_is_of_one_batch_wherever_the_query_goes_on(query, point, nth, batches):
    query.run(batches)
    reached = 0

    def go_on(name):
        nonlocal reached
        reached += name == point
        if name == point and reached == nth:
            query.run(7)

    watch_failpoints(go_on)
    savepoints, made = save(query)
    place = f"memory://{uuid.uuid4()}"
    savepoints.restore("now", place)
    storage = open_checkpoint_storage(place)
    files = {info.name: storage.get(info.name).decode() for info in storage.list()}
    assert reached >= nth
    assert {f"commits/{made.batch}", f"offsets/{made.batch}", f"offsets/{max(made.batch - 1, 0)}"} <= files.keys()
    assert not {f"commits/{made.batch + 1}", f"offsets/{made.batch + 1}"} & files.keys()
    assert seen_files(files, made.batch) == list(range(made.batch + 1))
    assert [counted(files, partition, made.batch + 1) for partition in range(2)] == [made.batch + 1] * 2


def test_a_query_that_is_always_faster_is_told_what_to_do(query):
    query.run(3)
    watch_failpoints(lambda name: query.run(7) if name == "savepoint.before_list" else None)
    with pytest.raises(ObjectNotFound, match="counts deletes its files faster") as raised:
        save(query, "memory://too-fast")
    assert "minBatchesToRetain" in raised.value.hint
    assert QuerySavepoints(open_checkpoint_storage("memory://too-fast")).list() == []


def test_old_files_that_nothing_needs_may_vanish(query):
    query.run(4)
    for old in ("sources/0/0", "sources/0/1", "state/0/0/1.delta", "state/0/1/3.delta", "commits/2"):
        (query.folder / old).unlink(missing_ok=True)
    assert set(save(query)[1].files) == {
        "metadata",
        "commits/3",
        "offsets/2",
        "offsets/3",
        "sources/0/2.compact",
        "sources/0/3",
        "state/0/_metadata/metadata",
        "state/0/0/4.snapshot",
        "state/0/1/4.snapshot",
    }


def test_the_offsets_before_may_be_those_of_an_earlier_batch(query):
    """With asynchronous progress tracking Spark writes those of some batches only."""
    query.run(4)
    (query.folder / "offsets" / "2").unlink()
    assert {name for name in save(query)[1].files if name.startswith("offsets/")} == {"offsets/1", "offsets/3"}
    (query.folder / "offsets" / "1").unlink()
    with pytest.raises(ObjectNotFound, match="offsets/2 does not exist"):
        save(query)


def state_files(folder, **files):
    """The names of the state that the savepoint of batch 3, of version 4, has."""
    query = Query(folder)
    for name in ("metadata", "commits/3", "offsets/2"):
        query.write(name, "")
    query.write("offsets/3", 'v1\n{}\n{"other":"source"}')
    for name, content in files.items():
        path = folder / "state" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    found = files_of_batch(open_checkpoint_storage(folder), 3)
    return {name.removeprefix("state/") for name in found if name.startswith("state/")}


def snapshot(*shared, logs=()):
    """A snapshot of RocksDB that shares files with others."""
    made = io.BytesIO()
    note = {
        "sstFiles": [{"localFileName": name, "dfsSstFileName": name, "sizeBytes": 1} for name in shared],
        "logFiles": [{"localFileName": name, "dfsLogFileName": name, "sizeBytes": 1} for name in logs],
    }
    with zipfile.ZipFile(made, "w") as parts:
        parts.writestr("CURRENT", "")
        parts.writestr("metadata", f"v1\n{json.dumps(note)}")
    return made.getvalue()


def test_a_snapshot_of_rocksdb_brings_the_files_it_shares(tmp_path):
    files = {
        "0/0/3.zip": snapshot("1-a.sst"),
        "0/0/4.zip": snapshot("1-a.sst", "2-b.sst", logs=["3-c.log"]),
        "0/0/4.zip.crc": b"",
        "0/0/5.zip": snapshot("4-d.sst"),
        "0/0/SSTs/0-gone.sst": b"",
        "0/0/SSTs/1-a.sst": b"",
        "0/0/SSTs/2-b.sst": b"",
        "0/0/SSTs/4-d.sst": b"",
        "0/0/logs/3-c.log": b"",
        "0/0/_metadata/schema": b"",
    }
    assert state_files(tmp_path, **files) == {
        "0/0/4.zip",
        "0/0/4.zip.crc",
        "0/0/SSTs/1-a.sst",
        "0/0/SSTs/2-b.sst",
        "0/0/logs/3-c.log",
        "0/0/_metadata/schema",
    }


def test_changes_go_back_to_a_snapshot_in_each_store(tmp_path):
    files = {
        "0/0/left/2.zip": snapshot("1-a.sst"),
        **{f"0/0/left/{number}.changelog": b"" for number in range(1, 6)},
        "0/0/left/SSTs/1-a.sst": b"",
        **{f"0/0/right/{number}.delta": b"" for number in range(1, 6)},
    }
    assert state_files(tmp_path, **files) == {
        *(f"0/0/left/{name}" for name in ("2.zip", "3.changelog", "4.changelog", "SSTs/1-a.sst")),
        *(f"0/0/right/{number}.delta" for number in range(1, 5)),
    }


def test_files_with_ids_are_all_taken(tmp_path):
    files = {f"0/0/{number}_id-{number}.changelog": b"" for number in range(1, 6)}
    assert state_files(tmp_path / "whole", **files) == {f"0/0/{number}_id-{number}.changelog" for number in range(1, 5)}
    del files["0/0/4_id-4.changelog"]
    with pytest.raises(ObjectNotFound, match="0/0/ has no file of version 4"):
        state_files(tmp_path / "lacking", **files)


def test_a_snapshot_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(StorageError, match=r"0/0/4\.zip of the state"):
        state_files(tmp_path, **{"0/0/4.zip": b"no archive"})
