"""``Place``: where a spool is, a folder of this machine or an object store, as the server and executors reach it."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from typing_extensions import override

from weirflow.checkpoint import CheckpointStorage, open_checkpoint_storage
from weirflow.errors import ObjectNotFound, StorageError

_CHUNK = 4 << 20


@dataclass(frozen=True)
class Found:
    """A file that is there.

    Attributes:
        name: below the place.
        size: in bytes.
        modified: when it was written, by the clock of the place.
    """

    name: str
    size: int
    modified: datetime


@dataclass(frozen=True)
class Place:
    """Files by name. None is ever replaced, and none is read before all of it is written.

    What is here may be computed again, so nothing waits for a disk to keep it.

    Attributes:
        uri: an absolute path, or the URI of an object store, whose credentials are in the environment.
    """

    uri: str

    @property
    def folder(self) -> Path | None:
        """The folder; None of an object store."""
        return None if "://" in self.uri else Path(self.uri)

    def write(self, name: str, chunks: Iterable[memoryview | bytes]) -> None:
        """Write a file whose name nobody else has.

        Raises:
            StorageError: it cannot be written, because the disk is full for one.
        """
        if self.folder is None:
            _storage(self.uri).put(name, chunks)
            return
        file = self.folder / name
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _opened(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as target:
                for chunk in chunks:
                    target.write(chunk)
        except OSError as error:
            raise self._failed("written", name, error) from error

    def read(self, name: str) -> bytes:
        """All of a small file; ``ObjectNotFound`` if there is none."""
        if self.folder is None:
            return _storage(self.uri).get(name)
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            raise ObjectNotFound(f"There is no {name!r}.", uri=self.uri) from None
        except OSError as error:
            raise self._failed("read", name, error) from error

    def chunks(self, name: str) -> Iterator[bytes]:
        """All of a file in order, a few megabytes at a time; ``ObjectNotFound`` if there is none."""
        if self.folder is None:
            yield from _storage(self.uri).stream(name, _CHUNK)
            return
        try:
            with _opened(self.folder / name, os.O_RDONLY) as source:
                while chunk := source.read(_CHUNK):
                    yield chunk
        except FileNotFoundError:
            raise ObjectNotFound(f"There is no {name!r}.", uri=self.uri) from None
        except OSError as error:
            raise self._failed("read", name, error) from error

    def batches(self, name: str) -> pa.RecordBatchReader:
        """The batches of a file in Arrow's streaming format, read as they are asked for."""
        if self.folder is None:
            return pa.ipc.open_stream(pa.PythonFile(_Chunked(self.chunks(name)), mode="r"))
        try:
            # Not mapped: pages that are would count as this process's memory for as long as somebody reads.
            return pa.ipc.open_stream(pa.OSFile(str(self.folder / name)))
        except FileNotFoundError:
            raise ObjectNotFound(f"There is no {name!r}.", uri=self.uri) from None
        except (OSError, pa.ArrowInvalid) as error:
            raise self._failed("read", name, error) from error

    def list(self, folder: str = "") -> Iterator[Found]:
        """The files of a folder, or all."""
        if self.folder is None:
            for info in _storage(self.uri).list(f"{folder}/" if folder else ""):
                yield Found(info.name, info.size, info.modified or datetime.now(UTC))
            return
        for parent, _, files in os.walk(self.folder / folder):
            for file in files:
                path = Path(parent, file)
                try:
                    known = path.stat()
                except FileNotFoundError:  # somebody has removed it meanwhile
                    continue
                modified = datetime.fromtimestamp(known.st_mtime, UTC)
                yield Found(path.relative_to(self.folder).as_posix(), known.st_size, modified)

    def remove(self, folder: str) -> None:
        """Remove a folder with all its files, if there is one."""
        if self.folder is not None:
            shutil.rmtree(self.folder / folder, ignore_errors=True)
            return
        for found in list(self.list(folder)):
            _storage(self.uri).delete(found.name)

    def _failed(self, what: str, name: str, error: Exception) -> StorageError:
        return StorageError(f"The file {name!r} of the spool could not be {what}: {error}.", uri=self.uri)


class _Chunked(io.RawIOBase):
    """Chunks of bytes as a file that is read once, from its beginning."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)

    @override
    def read(self, size: int = -1) -> bytes:
        """As many bytes as are asked for, unless the file ends before: Arrow does not ask again."""
        parts = bytearray(0)
        while size < 0 or len(parts) < size:
            if not self._rest:
                self._rest = memoryview(next(self._chunks, b""))
                if not self._rest:
                    break
            taken = self._rest if size < 0 else self._rest[: size - len(parts)]
            parts += taken
            self._rest = self._rest[len(taken) :]
        return bytes(parts)


def _opened(file: Path, flags: int) -> Any:
    return os.fdopen(os.open(file, flags | os.O_CLOEXEC, 0o600), "rb" if flags == os.O_RDONLY else "wb", buffering=0)


@lru_cache(maxsize=8)
def _storage(uri: str) -> CheckpointStorage:
    return open_checkpoint_storage(uri)
