"""Checkpoint storage in a local folder, fsynced: what a put returned for survives a power failure."""

from __future__ import annotations

import errno
import mmap
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NoReturn

from typing_extensions import override

from weirflow.arguments import Count, Positive, checked
from weirflow.checkpoint.storage.chunks import views
from weirflow.checkpoint.storage.contract import STREAM_CHUNK, CheckpointStorage, Data, ObjectInfo
from weirflow.checkpoint.storage.local.errors import os_errors
from weirflow.checkpoint.storage.local.folders import (
    make_folders,
    open_folders,
    open_subfolder,
    remove_empty_folders,
    sync_folders,
)
from weirflow.checkpoint.storage.names import TEMPORARY_FOLDER, check_name, check_prefix, is_name
from weirflow.errors import ObjectExists, ObjectNotFound, StorageError, UnsupportedError

# A writer touches its temporary file with every chunk. Should one sleep longer than this and lose the file,
# its put fails with a StorageError; nothing wrong becomes visible.
_ABANDONED_AFTER_SECONDS = 3600.0

# How often a put meets a folder that a delete has just removed because it was empty.
_PUBLISH_ATTEMPTS = 100

# How the system says that a name is not there; the second when a folder on the way is a file or a link.
_NOT_THERE = (FileNotFoundError, NotADirectoryError)

# Not blocking, because the name could be a pipe that someone put there.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@checked
class LocalStorage(CheckpointStorage):
    """Objects as files of a folder; see CheckpointStorage for the contract.

    An object is written and fsynced under ``.weirflow-tmp`` and then hard-linked or renamed to its name,
    which so never shows half of it. The folder is made by the first put. Opening removes what killed writers
    left behind more than an hour ago.

    Args:
        root: the folder; it may be a symbolic link itself, but none below it is followed.
        private: whether what is made here is its owner's alone, or as the umask says.

    Raises:
        StorageError: something that is not a folder is there.
    """

    supports_conditional_update = False

    def __init__(self, root: Path, *, private: bool = True) -> None:
        self._root = Path(os.path.realpath(root))
        self._file_mode, self._folder_mode = (0o600, 0o700) if private else (0o666, 0o777)
        with os_errors("open", self._root):
            if self._root.exists() and not self._root.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "it is not a folder")
        self._remove_abandoned()

    def __repr__(self) -> str:
        return f"<checkpoint storage {self.uri}>"

    @property
    @override
    def uri(self) -> str:
        return self._root.as_uri()

    @override
    def put(self, name: str, data: Data) -> ObjectInfo:
        with self._staged(check_name(name), data) as staged:
            self._publish(staged, name, replace=True)
            return staged.info

    @override
    def put_if_absent(self, name: str, data: Data) -> ObjectInfo:
        # Only saves the work: the link below decides.
        if self.exists(name):
            self._raise_exists(name)
        with self._staged(name, data) as staged:
            self._publish(staged, name, replace=False)
            return staged.info

    def put_if_match(self, name: str, data: Data, version: str) -> ObjectInfo:  # noqa: ARG002  # the protocol's
        """See CheckpointStorage; local files cannot."""
        raise UnsupportedError(
            f"{self._root / check_name(name)} cannot be updated conditionally: local files have no such operation.",
            hint="publish a new name with put_if_absent, or use an object store",
        )

    @contextmanager
    def _staged(self, name: str, data: Data) -> Iterator[_StagedObject]:
        path = self._root / name
        with ExitStack() as stack:
            with os_errors("write", path):
                folder = self._made(stack, [TEMPORARY_FOLDER])[-1]
                temporary = os.urandom(16).hex()
                file = os.open(temporary, _CREATE, self._file_mode, dir_fd=folder)
            stack.callback(_remove_temporary, temporary, folder)
            try:
                # The chunks are asked for outside os_errors, so that their own errors pass through.
                for view in views(data):
                    with os_errors("write", path):
                        _write_all(file, view)
                with os_errors("write", path):
                    # The kernel's clock ticks every few milliseconds; versions need a finer one.
                    now = time.time_ns()
                    os.utime(file, ns=(now, now))
                    os.fsync(file)
                    info = _info(name, os.fstat(file))
            finally:
                os.close(file)
            yield _StagedObject(folder, temporary, info)

    def _publish(self, staged: _StagedObject, name: str, *, replace: bool) -> None:
        *segments, leaf = name.split("/")
        for _ in range(_PUBLISH_ATTEMPTS):
            with os_errors("write", self._root / name), ExitStack() as stack:
                try:
                    folders = self._made(stack, segments)
                    if replace:
                        os.replace(staged.temporary, leaf, src_dir_fd=staged.folder, dst_dir_fd=folders[-1])
                    else:
                        os.link(*(staged.temporary, leaf), src_dir_fd=staged.folder, dst_dir_fd=folders[-1])
                except FileNotFoundError:
                    continue
                except FileExistsError:
                    if _is_in_the_way(leaf, folders[-1]):
                        raise
                    self._raise_exists(name)
                sync_folders(folders)
                return
        raise StorageError(
            f"Could not write {self._root / name}: its folder or temporary file was removed again and again.",
            uri=(self._root / name).as_uri(),
            hint="let nothing else clean up inside the storage folder",
        )

    def _made(self, stack: ExitStack, segments: Sequence[str]) -> list[int]:
        return make_folders(stack, self._root, segments, self._folder_mode)

    @override
    def get(self, name: str) -> bytes:
        file = self._open(name)
        with os_errors("read", self._root / name), file:
            return file.read()

    @override
    def map(self, name: str) -> memoryview:
        file = self._open(name)
        with os_errors("read", self._root / name), file:
            if os.fstat(file.fileno()).st_size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    @override
    def get_range(self, name: str, start: Count, length: Count) -> bytes:
        check_name(name)
        file = self._open(name)
        with os_errors("read", self._root / name), file:
            # read() would reserve memory for all of a length that is far beyond the end.
            left = max(0, os.fstat(file.fileno()).st_size - start)
            file.seek(start if left else 0)
            return file.read(min(length, left))

    @override
    def stream(self, name: str, chunk_size: Positive = STREAM_CHUNK) -> Iterator[bytes]:
        check_name(name)
        return self._chunks(name, chunk_size)

    def _chunks(self, name: str, chunk_size: int) -> Iterator[bytes]:
        with self._open(name) as file:
            while True:
                with os_errors("read", self._root / name):
                    chunk = file.read(chunk_size)
                if not chunk:
                    return
                yield chunk

    @override
    def head(self, name: str) -> ObjectInfo:
        *segments, leaf = check_name(name).split("/")
        with os_errors("read", self._root / name), ExitStack() as stack:
            try:
                folder = open_folders(stack, self._root, segments)[-1]
                status = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
            except _NOT_THERE:
                self._raise_not_found(name)
        if not stat.S_ISREG(status.st_mode):
            self._raise_not_found(name)
        return _info(name, status)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """See CheckpointStorage. One folder's names are in memory at a time."""
        segments = check_prefix(prefix).split("/")[:-1]
        return self._listed(prefix, segments)

    def _listed(self, prefix: str, segments: Sequence[str]) -> Iterator[ObjectInfo]:
        with ExitStack() as stack:
            with os_errors("list", self._root / prefix):
                try:
                    folder = open_folders(stack, self._root, segments)[-1]
                except _NOT_THERE:
                    return
            yield from self._walk(folder, prefix)

    def _walk(self, folder: int, prefix: str) -> Iterator[ObjectInfo]:
        with os_errors("list", self._root / prefix):
            names = _entries(folder)
        for entry in names:
            name = prefix + entry
            if entry.endswith("/"):
                with ExitStack() as stack:
                    with os_errors("list", self._root / name):
                        try:
                            subfolder = open_subfolder(stack, entry[:-1], folder)
                        except _NOT_THERE:
                            continue
                    yield from self._walk(subfolder, name)
            elif is_name(name):
                with os_errors("list", self._root / name):
                    try:
                        info = _info(name, os.stat(entry, dir_fd=folder, follow_symlinks=False))
                    except FileNotFoundError:
                        continue
                yield info

    def delete(self, name: str) -> None:
        """See CheckpointStorage. Folders left empty are removed too; the removal is durable on return."""
        *segments, leaf = check_name(name).split("/")
        with os_errors("delete", self._root / name), suppress(*_NOT_THERE), ExitStack() as stack:
            folders = open_folders(stack, self._root, segments)
            if _is_object(leaf, folders[-1]):
                os.unlink(leaf, dir_fd=folders[-1])
                os.fsync(folders[-1])
                remove_empty_folders(folders, segments)

    def _open(self, name: str) -> BinaryIO:
        *segments, leaf = check_name(name).split("/")
        with os_errors("read", self._root / name), ExitStack() as stack:
            try:
                folder = open_folders(stack, self._root, segments)[-1]
                if not _is_object(leaf, folder):
                    self._raise_not_found(name)
                return os.fdopen(os.open(leaf, _READ, dir_fd=folder), "rb")
            except _NOT_THERE:
                self._raise_not_found(name)

    def _remove_abandoned(self) -> None:
        oldest = time.time() - _ABANDONED_AFTER_SECONDS
        # A storage opened only to be read may forbid this, and another process may be faster.
        with suppress(OSError), ExitStack() as stack:
            folder = open_folders(stack, self._root, [TEMPORARY_FOLDER])[-1]
            for temporary in os.listdir(folder):  # noqa: PTH208  # pathlib knows no folder descriptors
                if os.stat(temporary, dir_fd=folder, follow_symlinks=False).st_mtime < oldest:
                    _remove_temporary(temporary, folder)

    def _raise_not_found(self, name: str) -> NoReturn:
        path = self._root / name
        raise ObjectNotFound(f"{path} does not exist.", uri=path.as_uri())

    def _raise_exists(self, name: str) -> NoReturn:
        path = self._root / name
        raise ObjectExists(f"{path} exists already; it was not touched.", uri=path.as_uri())


@dataclass(frozen=True)
class _StagedObject:
    """A whole, fsynced object that has no name yet."""

    folder: int
    temporary: str
    info: ObjectInfo


def _info(name: str, status: os.stat_result) -> ObjectInfo:
    modified = datetime.fromtimestamp(status.st_mtime, UTC)
    return ObjectInfo(name, status.st_size, f"{status.st_mtime_ns:x}-{status.st_ino:x}", modified)


def _is_object(leaf: str, folder: int) -> bool:
    return stat.S_ISREG(os.stat(leaf, dir_fd=folder, follow_symlinks=False).st_mode)


def _is_in_the_way(leaf: str, folder: int) -> bool:
    """Whether a folder, symbolic link or the like has the name; an object that is gone by now does not."""
    try:
        return not _is_object(leaf, folder)
    except FileNotFoundError:
        return False


def _entries(folder: int) -> list[str]:
    """The files, and the folders with a final ``/``, in the order of the full names below them."""
    with os.scandir(folder) as entries:
        return sorted(
            entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name
            for entry in entries
            if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
        )


def _write_all(file: int, view: memoryview) -> None:
    while view.nbytes:
        view = view[os.write(file, view) :]


def _remove_temporary(name: str, folder: int) -> None:
    """Remove a temporary file. One that stays does no harm, and goes as abandoned some day."""
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)
