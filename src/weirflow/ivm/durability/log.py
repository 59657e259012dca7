"""The write-ahead log of a flow: every committed change, appended to files before the tick returns.

``log/<first>.log`` holds the records from one checkpoint to the next, ``log/tail`` how far they are known to be on the
disk. What the tail covers must be there: if it is not, the file is damaged. What lies behind it was never synced: a
record that is not whole there was torn by a crash or a power failure, and is cut off with all behind it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from weirflow.checkpoint.storage.local.errors import os_errors
from weirflow.errors import StorageError
from weirflow.failpoints import failpoint, is_watched
from weirflow.ivm.durability.log_format import (
    HEADER_SIZE,
    TAIL,
    TAIL_SIZE,
    decode_header,
    decode_record,
    decode_tail,
    encode_header,
    encode_record,
    encode_tail,
    first_record,
    log_name,
    log_paths,
)
from weirflow.ivm.durability.remedy import remedy

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Record:
    """A change in the log: its number, counted from 1 without gaps, and its content."""

    number: int
    payload: bytes


@dataclass(frozen=True)
class _Place:
    """Where reading has come to.

    Attributes:
        path: the file; None before the first one.
        last: the number of the last whole record in it, or the one before its first.
        end: where that record ends; 0 in a file without a header.
        synced: the last record that is known to be on the disk.
        synced_end: where that record ends, 0 if it is in an earlier file.
    """

    path: Path | None = None
    last: int = 0
    end: int = 0
    synced: int = 0
    synced_end: int = 0


@dataclass(frozen=True)
class LogMark:
    """Where a log ended; ``Log.rewind`` takes away what was appended since.

    Attributes:
        last: the number of the last record.
        file: the file that was appended to, None if the next record begins one.
        end: how long that file was.
    """

    last: int
    file: int | None
    end: int


class Log:
    """Appends records and reads them back.

    Once a sync has failed nobody can tell what is on the disk: from then on nothing can be appended, until the log is
    opened anew.

    Args:
        folder: where the files are; made if need be.
        identity: 16 bytes that tell this flow's log from any other.
        sync_every: fsync once in this many records; 1 for each, 0 to leave it to the system. A killed process loses
            nothing either way, a power failure what was not synced.
    """

    def __init__(self, folder: Path, identity: bytes, *, sync_every: int = 1) -> None:
        self._folder = folder
        self._identity = identity
        self._sync_every = sync_every
        self._unsynced = 0
        self._synced = 0
        self._file: int | None = None
        self._end = 0
        self._is_listed = True
        self._tail: int | None = None
        self._failure: OSError | None = None
        self.last = 0
        """The number of the last record."""

    @property
    def first(self) -> int:
        """The number of the first record that is still there, or would be."""
        paths = self._paths()
        return first_record(paths[0]) if paths else self.last + 1

    def read(self, after: int) -> Iterator[Record]:
        """The records behind number ``after``, in order; then the log is ready to be appended to.

        Cuts off what was torn before it was synced.

        Raises:
            StorageError: a file is damaged, missing or of another flow; the message names it.
        """
        self.last = after
        place = _Place()
        for record, reached in self._placed(after):
            place = reached
            if record is not None:
                self.last = record.number
                yield record
        if place.end and place.last == self.last:
            self._open(place)

    def records(self, after: int) -> Iterator[Record]:
        """The records behind number ``after``, in order, for a reader: nothing is cut off, nothing can be appended.

        Raises:
            StorageError: as ``read``.
        """
        return (record for record, _ in self._placed(after) if record is not None)

    def append(self, payload: bytes, *, sync: bool = False) -> int:
        """Add a record; returns its number when it is written, and synced if it is its turn or ``sync`` asks for it.

        What raises may have left a part of it: ``rewind`` takes that away.
        """
        failpoint("log.before_append")
        self.require_writable()
        number = self.last + 1
        record = encode_record(number, payload)
        try:
            if self._file is None:
                self._create(number)
            assert self._file is not None
            if is_watched():
                _write(self._file, record[: len(record) // 2])
                failpoint("log.half_appended")
                _write(self._file, record[len(record) // 2 :])
            else:
                _write(self._file, record)
        except OSError as error:
            raise StorageError(
                f"The log in {self._folder} cannot be written: {error.strerror}.",
                uri=str(self._folder),
                hint="make room on the disk, then retry() the tick",
            ) from error
        self._end += len(record)
        self._unsynced += 1
        self.last = number
        if sync or (self._sync_every and self._unsynced >= self._sync_every):
            self.sync()
        return number

    def require_writable(self) -> None:
        """``StorageError`` once a sync has failed."""
        if self._failure is not None:
            raise StorageError(
                f"The log in {self._folder} could not be synced to the disk: {self._failure.strerror}. "
                "What is on the disk is not known.",
                uri=str(self._folder),
                hint="repair the disk, close the flow and open it again: it continues after the last whole tick",
            )

    def sync(self) -> None:
        """Make all records survive a power failure; ``StorageError`` if that fails, and ever after."""
        if self._file is None or not self._unsynced:
            return
        self.require_writable()
        failpoint("log.before_sync")
        try:
            os.fdatasync(self._file)
            if not self._is_listed:
                self._sync_folders()
                self._is_listed = True
            failpoint("log.before_tail")
            self._synced = self.last
            self._write_tail(self.last)
        except OSError as error:
            self._failure = error
            self.require_writable()
        self._unsynced = 0

    def mark(self) -> LogMark:
        """Where the log ends now."""
        return LogMark(self.last, self._file, self._end)

    def rewind(self, mark: LogMark) -> None:
        """Take away what was appended after a mark, also a part of a record. May be repeated; does not fail.

        If the disk refuses, what is on it is not known, as after a sync that failed.
        """
        if self._file is not None:
            end = mark.end if self._file == mark.file else HEADER_SIZE
            try:
                if os.fstat(self._file).st_size > end:
                    self._cut(self._file, end, mark.last)
            except OSError as error:
                self._failure = self._failure or error
            self._end = end
        self.last = mark.last

    def _cut(self, file: int, end: int, last: int) -> None:
        """Take away what lies behind ``end``. The tail may cover less than what is there, never more: it goes first."""
        if self._failure is None and self._tail is not None:
            self._write_tail(min(self._synced, last))
            os.fdatasync(self._tail)
        os.ftruncate(file, end)
        os.fdatasync(file)
        self._unsynced = 0
        self._synced = min(self._synced, last)

    def rotate(self) -> None:
        """Begin another file with the next record, so that ``drop`` can remove this one some day."""
        failpoint("log.before_rotate")
        self.sync()
        self._let_go()

    def drop(self, through: int) -> None:
        """Remove files that hold only records up to number ``through``."""
        paths = self._paths()
        for path, following in pairwise(paths):
            if first_record(following) <= through + 1:
                failpoint("collect.before_log_delete")
                path.unlink(missing_ok=True)

    @property
    def nbytes(self) -> int:
        """Bytes of the log's files."""
        return sum(path.stat().st_size for path in self._paths())

    def close(self) -> None:
        """Sync and close; a sync that fails is an error, but all is closed."""
        try:
            if self._failure is None:
                self.sync()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files and leave them as they are."""
        self._let_go()
        if self._tail is not None:
            tail, self._tail = self._tail, None
            os.close(tail)

    # Files

    def _let_go(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            self._unsynced = 0
            os.close(file)

    def _paths(self) -> list[Path]:
        return log_paths(self._folder)

    def _needed(self, after: int) -> list[Path]:
        """The files that may hold records behind ``after``."""
        paths = self._paths()
        older = [path for path in paths if first_record(path) <= after + 1]
        return [*older[-1:], *paths[len(older) :]]

    def _create(self, number: int) -> None:
        """Begin a file. It is the log's only when its header is written; one that a crash left half made holds nothing.

        Raises:
            OSError: it cannot be made; nothing has changed.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        failpoint("log.before_create")
        path = self._folder / log_name(number)
        if self._tail is None:
            self._open_tail(number - 1)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            _write(file, encode_header(self._identity, number))
        except BaseException:
            os.close(file)
            raise
        self._is_listed = False
        self._end = HEADER_SIZE
        self._unsynced = 0
        self._file = file

    def _open(self, place: _Place) -> None:
        """Go on behind the last whole record; what was not synced before is now."""
        path = place.path
        assert path is not None
        with os_errors("open", path):
            data = path.read_bytes()
            if self._tail is None:
                self._open_tail(min(place.synced, self.last))
            if len(data) > place.end or self.last > place.synced:
                _rewrite(path, data[: place.end], place.synced_end)
                self._sync_folders()
                self._write_tail(self.last)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._is_listed = True
        self._end = place.end
        self._unsynced = 0
        self._synced = self.last

    def _placed(self, after: int) -> Iterator[tuple[Record | None, _Place]]:
        """The records behind number ``after``, each with its place; None where a place holds no such record."""
        synced = self._read_tail(after)
        last, place = after, _Place()
        for path in self._needed(after):
            data = path.read_bytes()
            has_header = self._has_header(path, data, last, synced)
            place = _Place(path, first_record(path) - 1, HEADER_SIZE if has_header else 0, synced)
            for number, payload, stop in self._records(path, data, synced) if has_header else ():
                place = _Place(path, number, stop, synced, stop if number <= synced else place.synced_end)
                if number > last:
                    last = number
                    yield Record(number, payload), place
            yield None, place
        if last < synced:
            raise self._damaged(place.path or self._folder, f"it ends at record {last}, {synced} were synced")

    def _records(self, path: Path, data: bytes, synced: int) -> Iterator[tuple[int, bytes, int]]:
        """The whole records of a file, each with where it ends."""
        at, expected = HEADER_SIZE, first_record(path)
        while at < len(data):
            number, payload, stop = decode_record(data, at)
            if payload is None or number != expected:
                if expected <= synced:
                    raise self._damaged(path, f"record {expected} is wrong")
                _log.warning("%s ends in a record that was not synced and is not whole: its tick never happened", path)
                return
            yield number, payload, stop
            at, expected = stop, expected + 1

    def _has_header(self, path: Path, data: bytes, last: int, synced: int) -> bool:
        """Whether the file has a header; without one, nothing of it was ever synced."""
        if len(data) < HEADER_SIZE:
            if first_record(path) <= synced:
                raise self._damaged(path, "it is cut off")
            return False
        header = decode_header(data)
        if header is None:
            if not any(data[:HEADER_SIZE]) and first_record(path) > synced:
                return False  # a file's length may reach the disk before its content
            raise self._damaged(path, "its header is wrong")
        first = header[1]
        if header != (self._identity, first_record(path)):
            raise self._damaged(path, "it belongs to another flow or another place")
        if first > last + 1:
            raise self._damaged(path, f"the records from {last + 1} to {first - 1} before it are missing")
        return True

    def _read_tail(self, after: int) -> int:
        """The last record known to be on the disk; 0 if none is. A checkpoint has the records up to ``after``."""
        path = self._folder / TAIL
        data = path.read_bytes() if path.exists() else b""
        if not any(data):
            # A crash right after the tail was made leaves nothing in it, and no record that was synced. A file that
            # was begun later than with the first record had a tail before it, and so had a checkpoint.
            if after or any(first_record(item) > 1 for item in self._paths()):
                raise self._damaged(path, "it is missing or empty")
            return 0
        tail = decode_tail(data)
        if tail is None:
            raise self._damaged(path, "it is not whole")
        identity, number = tail
        if identity != self._identity:
            raise self._damaged(path, "it belongs to another flow")
        return number

    def _open_tail(self, number: int) -> None:
        tail = os.open(self._folder / TAIL, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._write_tail(number, tail)
            os.ftruncate(tail, TAIL_SIZE)
            os.fdatasync(tail)
        except BaseException:
            os.close(tail)
            raise
        self._tail = tail

    def _write_tail(self, number: int, tail: int | None = None) -> None:
        tail = self._tail if tail is None else tail
        assert tail is not None
        os.pwrite(tail, encode_tail(self._identity, number), 0)

    def _sync_folders(self) -> None:
        """Make the names of the files, and of their folder, survive a power failure."""
        for one in (self._folder, self._folder.parent):
            sync_folder(one)

    def _damaged(self, path: Path, what: str) -> StorageError:
        return StorageError(
            f"The log file {path} is damaged: {what}.",
            uri=str(path),
            hint=remedy(self._folder.parent),
        )


def sync_folder(folder: Path) -> None:
    """Make the names of the files in a folder survive a power failure."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _rewrite(path: Path, data: bytes, start: int) -> None:
    """Cut a file to ``data`` and put it on the disk, from ``start`` on.

    It is written once more, though it is there: after a sync that failed the system may take it for synced.
    """
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        failpoint("log.before_truncate")
        os.ftruncate(file, len(data))
        os.lseek(file, start, os.SEEK_SET)
        _write(file, data[start:])
        os.fdatasync(file)
    finally:
        os.close(file)
