"""``StateFiles``: the files of keyed state in a storage, named by what they hold, so that none is written twice."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from weirflow.checkpoint.keyed_state.manifest import EARLIER, FileRef
from weirflow.checkpoint.storage.local.errors import os_errors
from weirflow.errors import ObjectNotFound, StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.checkpoint.storage.contract import CheckpointStorage

_CHUNK = 1 << 20


class StateFiles:
    """Files below one folder of a storage.

    Args:
        storage: where they are.
        folder: their folder, with its final ``/``.
    """

    def __init__(self, storage: CheckpointStorage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._known: dict[tuple[str, int, int, int], FileRef] = {}
        self.written = 0
        """Bytes that were written here, and were not in the storage before."""

    @property
    def uri(self) -> str:
        """Where the storage is."""
        return self._storage.uri

    def save(self, data: bytes, suffix: str) -> FileRef:
        """Write bytes, unless they are there; returns where."""
        digest = hashlib.sha256(data).hexdigest()
        return self._put(FileRef(f"{self._folder}{digest}{suffix}", len(data), digest), data)

    def save_file(self, file: Path) -> FileRef:
        """Write a file that does not change any more, unless it is there; returns where."""
        status = file.stat()
        same = (file.name, status.st_ino, status.st_size, status.st_mtime_ns)
        known = self._known.get(same)
        if known is None:
            digest = hashlib.sha256()
            for chunk in _chunks(file):
                digest.update(chunk)
            known = FileRef(f"{self._folder}{digest.hexdigest()}{file.suffix}", status.st_size, digest.hexdigest())
        self._known[same] = self._put(known, _chunks(file))
        return known

    def load(self, ref: FileRef) -> bytes:
        """The bytes of a file.

        Raises:
            StorageError: it is missing, or its bytes are not those that were written.
        """
        return b"".join(self._verified(ref))

    def load_file(self, ref: FileRef, file: Path) -> None:
        """Copy a file to a path and sync it; fails like ``load``, and then leaves what should not be used."""
        with os_errors("write", file), file.open("wb") as target:
            for chunk in self._verified(ref):
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())

    def copy_to(self, other: StateFiles, ref: FileRef) -> FileRef:
        """Copy a file to another folder or storage; fails like ``load``, and then copies nothing."""
        target = FileRef(other._folder + ref.object.removeprefix(self._folder), ref.size, ref.sha256)
        return other._put(target, self._verified(ref))

    def collect(self, needed: Iterable[FileRef]) -> None:
        """Delete all files but these."""
        kept = {ref.object for ref in needed}
        for info in self._storage.list(self._folder):
            if info.name not in kept:
                self._storage.delete(info.name)

    def _put(self, ref: FileRef, data: bytes | Iterator[bytes]) -> FileRef:
        try:
            there = self._storage.head(ref.object).size == ref.size
        except ObjectNotFound:
            there = False
        if not there:
            self._storage.put(ref.object, data)
            self.written += ref.size
        return ref

    def _verified(self, ref: FileRef) -> Iterator[bytes]:
        digest, size = hashlib.sha256(), 0
        try:
            for chunk in self._storage.stream(ref.object):
                digest.update(chunk)
                size += len(chunk)
                yield chunk
        except ObjectNotFound as error:
            raise self._unusable(ref, "is missing") from error
        if size != ref.size or digest.hexdigest() != ref.sha256:
            raise self._unusable(ref, "is damaged: its bytes are not those that were written")

    def _unusable(self, ref: FileRef, why: str) -> StorageError:
        where = f"{self._storage.uri}/{ref.object}"
        return StorageError(f"The file {where} {why}.", uri=where, hint=EARLIER)


def _chunks(file: Path) -> Iterator[bytes]:
    with os_errors("read", file), file.open("rb") as opened:
        while chunk := opened.read(_CHUNK):
            yield chunk
