"""The write-ahead log of a flow: every committed change, appended to files before the tick returns.

``log/<first>.log`` holds the records from one checkpoint to the next, ``log/tail`` how far they reach. A record is
written before the tail says so: what lies behind the tail may be torn and is cut off, what the tail covers must be
there. So a crash is never taken for damage, nor damage for a crash.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from weirflow.checkpoint.local_errors import os_errors
from weirflow.errors import ConfigError, StorageError
from weirflow.failpoints import failpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAGIC = b"WFLOG01\n"
_HEADER = struct.Struct("<8s16sQI")
_RECORD = struct.Struct("<QQI")
_TAIL = struct.Struct("<16sQI")
_SUFFIX = ".log"


@dataclass(frozen=True)
class Record:
    """A change in the log: its number, counted from 1 without gaps, and its content."""

    number: int
    payload: bytes


class Log:
    """Appends records and reads them back.

    Args:
        folder: where the files are; made if need be.
        identity: 16 bytes that tell this flow's log from any other.
        sync_every: fsync once in this many records; 1 for each, 0 to leave it to the system. A killed process loses
            nothing either way, a power failure what was not synced.
    """

    def __init__(self, folder: Path, identity: bytes, *, sync_every: int = 1) -> None:
        if sync_every < 0:
            raise ConfigError("fsync is a number of ticks: 1 for each, 0 for never.")
        self._folder = folder
        self._identity = identity
        self._sync_every = sync_every
        self._unsynced = 0
        self._file: int | None = None
        self._tail: int | None = None
        self.last = 0
        """The number of the last record."""

    @property
    def first(self) -> int:
        """The number of the first record that is still there, or would be."""
        paths = self._paths()
        return _first(paths[0]) if paths else self.last + 1

    def read(self, after: int) -> Iterator[Record]:
        """The records behind number ``after``, in order; then the log is ready to be appended to.

        Cuts off a record that was never finished.

        Raises:
            StorageError: a file is damaged, missing or of another flow; the message names it.
        """
        reached = self._read_tail()
        last, path = after, None
        written, end = 0, _HEADER.size
        for path in self._needed(after):
            written, end = _first(path) - 1, _HEADER.size
            for number, payload, stop in self._records(path, last, reached):
                written, end = number, stop
                if number > last:
                    last = number
                    yield Record(number, payload)
        if last < reached:
            raise self._damaged(path or self._folder, f"it ends at record {last}, {reached} were written")
        self.last = last
        if path is not None and written == last:
            self._open(path, end)

    def append(self, payload: bytes) -> int:
        """Add a record; returns its number when it is written, and synced if it is its turn."""
        failpoint("log.before_append")
        number = self.last + 1
        if self._file is None:
            with os_errors("write", self._folder):
                self._create(number)
        assert self._file is not None
        assert self._tail is not None
        record = _RECORD.pack(number, len(payload), _checksum(number, payload)) + payload
        end = os.fstat(self._file).st_size
        try:
            half = len(record) // 2
            _write(self._file, record[:half])
            failpoint("log.half_appended")
            _write(self._file, record[half:])
            self._unsynced += 1
            if self._sync_every and self._unsynced >= self._sync_every:
                self.sync()
            failpoint("log.before_tail")
            self._write_tail(number)
        except OSError as error:
            # The record never was: the next one takes its place.
            os.ftruncate(self._file, end)
            raise StorageError(
                f"The log in {self._folder} cannot be written: {error.strerror}.",
                uri=str(self._folder),
                hint="make room on the disk, then retry() the tick",
            ) from error
        self.last = number
        return number

    def sync(self) -> None:
        """Make all records survive a power failure."""
        if self._file is not None and self._unsynced:
            failpoint("log.before_sync")
            os.fdatasync(self._file)
            self._unsynced = 0

    def rotate(self) -> None:
        """Begin another file with the next record, so that ``drop`` can remove this one some day."""
        failpoint("log.before_rotate")
        if self._file is not None:
            self.sync()
            os.close(self._file)
            self._file = None

    def drop(self, through: int) -> None:
        """Remove files that hold only records up to number ``through``."""
        paths = self._paths()
        for path, following in pairwise(paths):
            if _first(following) <= through + 1:
                failpoint("collect.before_log_delete")
                path.unlink()

    @property
    def nbytes(self) -> int:
        """Bytes of the log's files."""
        return sum(path.stat().st_size for path in self._paths())

    def close(self) -> None:
        """Sync and close."""
        self.rotate()
        if self._tail is not None:
            os.close(self._tail)
            self._tail = None

    # Files

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob(f"*{_SUFFIX}")) if self._folder.is_dir() else []

    def _needed(self, after: int) -> list[Path]:
        """The files that may hold records behind ``after``."""
        paths = self._paths()
        older = [path for path in paths if _first(path) <= after + 1]
        return [*older[-1:], *paths[len(older) :]]

    def _create(self, number: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        failpoint("log.before_create")
        path = self._folder / f"{number:020d}{_SUFFIX}"
        header = _HEADER.pack(_MAGIC, self._identity, number, 0)
        header = header[:-4] + struct.pack("<I", zlib.crc32(header[:-4]))
        # A file that a crash left half made holds no finished record.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o666)
        _write(self._file, header)
        if self._tail is None:
            self._open_tail(number - 1)
        if self._sync_every:
            os.fdatasync(self._file)
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(folder)
            os.close(folder)

    def _open(self, path: Path, end: int) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        if os.fstat(self._file).st_size > end:
            failpoint("log.before_truncate")
            os.ftruncate(self._file, end)
        self._open_tail(self.last)

    def _records(self, path: Path, last: int, reached: int) -> Iterator[tuple[int, bytes, int]]:
        """The finished records of a file, each with where it ends."""
        data = path.read_bytes()
        if len(data) < _HEADER.size:
            if _first(path) <= reached:
                raise self._damaged(path, "it is cut off")
            return
        magic, identity, first, checksum = _HEADER.unpack_from(data)
        if magic != _MAGIC or checksum != zlib.crc32(data[: _HEADER.size - 4]):
            raise self._damaged(path, "its header is wrong")
        if identity != self._identity or first != _first(path):
            raise self._damaged(path, "it belongs to another flow or another place")
        if first > last + 1:
            raise self._damaged(path, f"the records from {last + 1} to {first - 1} before it are missing")
        at, expected = _HEADER.size, first
        while at < len(data):
            number, payload, stop = _parse(data, at)
            if payload is None or number != expected:
                if expected <= reached:
                    raise self._damaged(path, f"record {expected} is wrong")
                return
            yield number, payload, stop
            at, expected = stop, expected + 1

    def _read_tail(self) -> int:
        path = self._folder / "tail"
        data = path.read_bytes() if path.exists() else b""
        if not data:
            # A crash right after the first file was made leaves it without a tail, and without records.
            if any(item.stat().st_size > _HEADER.size for item in self._paths()):
                raise self._damaged(path, "it is missing or empty")
            return 0
        if len(data) != _TAIL.size or zlib.crc32(data[:-4]) != _TAIL.unpack(data)[2]:
            raise self._damaged(path, "it is not whole")
        identity, number, _ = _TAIL.unpack(data)
        if identity != self._identity:
            raise self._damaged(path, "it belongs to another flow")
        return int(number)

    def _open_tail(self, number: int) -> None:
        self._tail = os.open(self._folder / "tail", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._write_tail(number)

    def _write_tail(self, number: int) -> None:
        assert self._tail is not None
        body = _TAIL.pack(self._identity, number, 0)[:-4]
        os.pwrite(self._tail, body + struct.pack("<I", zlib.crc32(body)), 0)

    def _damaged(self, path: Path, what: str) -> StorageError:
        return StorageError(
            f"The log file {path} is damaged: {what}.",
            uri=str(path),
            hint="restore the file from a copy, or restore the flow from a checkpoint without its log",
        )


def _first(path: Path) -> int:
    return int(path.name.removesuffix(_SUFFIX))


def _checksum(number: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(number.to_bytes(8, "little")))


def _parse(data: bytes, at: int) -> tuple[int, bytes | None, int]:
    """The record at a place: its number, its payload (None if it is not whole), and where it ends."""
    if at + _RECORD.size > len(data):
        return 0, None, len(data)
    number, length, checksum = _RECORD.unpack_from(data, at)
    begin = at + _RECORD.size
    payload = data[begin : begin + length]
    if len(payload) < length or _checksum(number, payload) != checksum:
        return number, None, len(data)
    return number, payload, begin + length


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
