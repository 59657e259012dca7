import os
import resource
import subprocess
import sys
import textwrap
import time
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.storage_contract import MB, StorageContract, listed

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ObjectExists, ObjectNotFound, StorageError


class TestLocal(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path):
        return open_checkpoint_storage(tmp_path / "new" / "root")


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


@pytest.fixture
def storage(root):
    return open_checkpoint_storage(root)


@contextmanager
def without_rights(folder: Path):
    """Within, this process may not write the folder: root becomes nobody, others lose the mode bits."""
    if os.geteuid() == 0:
        folder.chmod(0o755)
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)
    else:
        folder.chmod(0o500)
        try:
            yield
        finally:
            folder.chmod(0o700)


def everything_below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def test_opening_and_reading_make_nothing(root, storage):
    assert listed(storage) == []
    assert not storage.exists("a/b")
    storage.delete("a/b")
    assert not root.exists()


def test_only_objects_remain_after_writing(root, storage):
    storage.put("a/b", b"1")
    storage.put("a/b", b"2")
    storage.put_if_absent("c", b"3")
    with pytest.raises(ObjectExists):
        storage.put_if_absent("c", b"4")
    assert everything_below(root) == ["a/b", "c"]


def test_deleting_the_last_object_removes_its_folders(root, storage):
    storage.put("a/b/c", b"1")
    storage.put("a/d", b"1")
    storage.delete("a/b/c")
    assert sorted(path.name for path in (root / "a").iterdir()) == ["d"]


def test_all_is_synced_before_put_returns(root, monkeypatch):
    """The file before it gets its name, then the folders from the deepest to the root."""
    storage = open_checkpoint_storage(root)
    storage.put("warm", b"")
    steps = []
    real_sync, real_link = os.fsync, os.link

    def where(descriptor):
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())

    def sync(descriptor):
        steps.append(("sync", "temporary" if ".weirflow-tmp/" in where(descriptor) else where(descriptor)))
        real_sync(descriptor)

    def link(*args, **kwargs):
        steps.append(("link", args[1]))
        real_link(*args, **kwargs)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", link)
    storage.put_if_absent("x/y/z", b"data")
    assert steps == [
        ("sync", "temporary"),
        ("link", "z"),
        ("sync", str(root / "x" / "y")),
        ("sync", str(root / "x")),
        ("sync", str(root)),
    ]


def test_what_killed_writers_left_is_hidden_and_removed_after_an_hour(root, storage):
    storage.put("a", b"1")
    left = root / ".weirflow-tmp"
    for name, age in [("fresh", 0), ("old", 3700)]:
        (left / name).write_bytes(b"half")
        os.utime(left / name, (time.time() - age,) * 2)
    assert listed(storage) == [("a", 1)]
    open_checkpoint_storage(root)
    assert everything_below(root) == [".weirflow-tmp/fresh", "a"]


def test_a_writer_whose_temporary_file_was_removed_fails_and_writes_nothing(root, storage):
    def chunks():
        yield b"x"
        for path in (root / ".weirflow-tmp").iterdir():
            path.unlink()

    with pytest.raises(StorageError, match="removed"):
        storage.put("a", chunks())
    assert listed(storage) == []


@pytest.mark.parametrize("kind", ["file", "folder", "dangling"])
def test_symbolic_links_below_the_root_lead_nowhere(tmp_path, root, storage, kind):
    storage.put("real", b"1")
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "secret"
    secret.write_bytes(b"secret")
    target = {"file": secret, "folder": outside, "dangling": tmp_path / "absent"}[kind]
    (root / "link").symlink_to(target)
    name = "link/secret" if kind == "folder" else "link"

    assert listed(storage) == [("real", 1)]
    assert listed(storage, "link/") == []
    assert not storage.exists(name)
    for read in (storage.get, storage.head, lambda name: list(storage.stream(name))):
        with pytest.raises(ObjectNotFound):
            read(name)
    storage.delete(name)
    if kind == "folder":
        with pytest.raises(StorageError, match="link/secret"):
            storage.put(name, b"overwritten")
        with pytest.raises(StorageError, match="link/new"):
            storage.put_if_absent("link/new", b"overwritten")
    else:
        with pytest.raises(StorageError, match="in the way"):
            storage.put_if_absent(name, b"overwritten")
        storage.put(name, b"replaces the link, not its target")
    assert (secret.read_bytes(), [path.name for path in outside.iterdir()]) == (b"secret", ["secret"])


def test_the_root_itself_may_be_a_link(tmp_path, storage, root):
    storage.put("a", b"1")
    (tmp_path / "alias").symlink_to(root)
    assert listed(open_checkpoint_storage(tmp_path / "alias")) == [("a", 1)]


def test_a_pipe_is_not_an_object(root, storage):
    storage.put("a", b"1")
    os.mkfifo(root / "pipe")
    with pytest.raises(ObjectNotFound):
        storage.get("pipe")
    assert listed(storage) == [("a", 1)]


def test_foreign_files_without_object_names_are_not_shown(root, storage):
    storage.put("a", b"1")
    (root / "line\nbreak").touch()
    Path(os.fsdecode(os.fsencode(root) + b"/not-utf8-\xff")).touch()
    assert listed(storage) == [("a", 1)]


def test_an_object_in_the_way_of_a_folder_and_the_reverse(storage):
    storage.put("object", b"1")
    storage.put("folder/object", b"1")
    for method in (storage.put, storage.put_if_absent):
        with pytest.raises(StorageError, match="in the way"):
            method("object/below", b"2")
        with pytest.raises(StorageError, match="in the way"):
            method("folder", b"2")
    with pytest.raises(ObjectNotFound):
        storage.get("object/below")
    with pytest.raises(ObjectNotFound):
        storage.get("folder")
    storage.delete("folder")
    assert listed(storage) == [("folder/object", 1), ("object", 1)]


def test_a_file_cannot_be_the_root(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file: it is not a folder"):
        open_checkpoint_storage(tmp_path / "file")
    with pytest.raises(StorageError, match="file/below"):
        open_checkpoint_storage(tmp_path / "file" / "below").put("a", b"")


def test_permission_denied_names_the_path_and_what_to_do(tmp_path, root, storage):
    storage.put("a", b"1")
    for folder in tmp_path.parents[0], tmp_path:
        folder.chmod(0o755)
    with without_rights(root):
        for call in (
            lambda: storage.put("b", b"2"),
            lambda: storage.put_if_absent("new/b", b"2"),
            lambda: storage.delete("a"),
        ):
            with pytest.raises(StorageError) as caught:
                call()
            assert str(root) in caught.value.message
            assert "let this user" in caught.value.hint
    assert [(info.name, info.size) for info in storage.list()] == [("a", 1)]


def test_a_full_disk_leaves_what_was_there(root):
    """A limit on the file size stands for the full disk: the write fails in the middle."""
    open_checkpoint_storage(root).put("a", b"before")
    script = """
        import resource, sys
        from weirflow.checkpoint import open_checkpoint_storage
        from weirflow.errors import StorageError

        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
        storage = open_checkpoint_storage(sys.argv[1])
        for put, name in [(storage.put, "a"), (storage.put_if_absent, "b")]:
            try:
                put(name, (b"x" * 100_000 for _ in range(20)))
            except StorageError as error:
                print(error.message.rsplit("/", 1)[1])
        storage.put("c", b"after")
    """
    result = run_script(script, str(root))
    assert result.splitlines() == ["a: File too large.", "b: File too large."]
    assert everything_below(root) == ["a", "c"]
    assert open_checkpoint_storage(root).get("a") == b"before"


def test_huge_objects_are_never_in_memory(storage):
    chunks = 300
    tracemalloc.start()
    try:
        storage.put("huge", (bytes([i % 251]) * MB for i in range(chunks)))
        total = sum(len(chunk) for chunk in storage.stream("huge", MB))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == chunks * MB
    assert peak < 8 * MB


def test_no_descriptor_is_left_open(storage):
    before = len(list(Path("/proc/self/fd").iterdir()))
    storage.put("a/b/c", b"x" * 100)
    for _ in range(3):
        storage.get("a/b/c")
        next(storage.stream("a/b/c", 10))
        next(storage.list())
        with pytest.raises(ObjectNotFound):
            storage.get("a/b")
        with pytest.raises(ObjectExists):
            storage.put_if_absent("a/b/c", b"y")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_too_many_open_files_is_a_storage_error(storage):
    storage.put("a", b"x")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(StorageError, match="ulimit"):
            storage.get("a")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def run_script(script: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    ).stdout
