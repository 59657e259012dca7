"""``LogScan``: the files of a log read one by one, each as far as it is whole, without changing anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.errors import StorageError
from weirflow.ivm.durability.log_format import (
    HEADER_SIZE,
    TAIL,
    decode_header,
    decode_record,
    decode_tail,
    first_record,
    log_paths,
)
from weirflow.ivm.durability.records import ForceDiff, ReplaceView, Tick, decode_entry

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class ScannedFile:
    """A file of records.

    Attributes:
        path: the file.
        first: the number of its first record, by its name.
        ends: where each of its whole records ends, up to the first that is not.
        epochs: the flow's epoch after those records that have changed it, by their numbers.
        trouble: what is damaged; None if nothing is.
        torn: whether it ends in a record that is not whole and was never synced.
        unread: why a whole record says nothing to this version; None if all do.
    """

    path: Path
    first: int
    ends: tuple[int, ...] = ()
    epochs: tuple[tuple[int, int], ...] = ()
    trouble: str | None = None
    torn: bool = False
    unread: str | None = None

    @property
    def last(self) -> int:
        """The number of its last whole record, or the one before its first."""
        return self.first + len(self.ends) - 1

    def end_of(self, record: int) -> int:
        """Where a whole record ends."""
        return self.ends[record - self.first] if record >= self.first else HEADER_SIZE


@dataclass(frozen=True)
class LogScan:
    """All of a log.

    Attributes:
        files: in the order of their records.
        tail: the last record that was synced, as the tail says; None without one that is whole.
        tail_trouble: what is wrong with the tail; None if nothing is.
    """

    files: tuple[ScannedFile, ...]
    tail: int | None
    tail_trouble: str | None

    @property
    def synced(self) -> int:
        """The last record that is known to have been on the disk: a file was synced before the next one was begun."""
        return max(self.tail or 0, self.files[-1].first - 1 if self.files else 0)

    def reach(self, record: int) -> int:
        """The last record of those that follow this one without a gap, itself if there are none."""
        for file in self.files:
            if file.first <= record + 1 <= file.last:
                record = file.last
        return record

    def epoch(self, record: int, through: int, epoch: int) -> int:
        """The epoch after the record ``through`` of a flow that is at ``epoch`` after another record."""
        found = [after for file in self.files for number, after in file.epochs if record < number <= through]
        return max([epoch, *found])

    def missing(self, after: int) -> Iterator[tuple[int, int]]:
        """The first and last number of records behind ``after`` that were synced and that no file has."""
        reached, explained = after, False
        for file in self.files:
            if file.first > reached + 1 and not explained:
                yield reached + 1, file.first - 1
            explained = file.trouble is not None
            reached = max(reached, file.last)
        if reached < self.synced and not explained:
            yield reached + 1, self.synced


def scan_log(folder: Path, identity: bytes, saved: int) -> LogScan:
    """Read a log as far as it is whole. Neither damage nor torn ends are errors.

    Args:
        folder: where it is.
        identity: of the flow.
        saved: the last record that a checkpoint has, which the log once had.
    """
    paths = log_paths(folder)
    later = saved > 0 or any(first_record(path) > 1 for path in paths)
    tail, tail_trouble = _scan_tail(folder / TAIL, identity, later=later)
    synced = max(tail or 0, first_record(paths[-1]) - 1 if paths else 0)
    return LogScan(tuple(_scan_file(path, identity, synced) for path in paths), tail, tail_trouble)


def log_identities(folder: Path) -> Iterator[bytes]:
    """The flows that the files and the tail of a log belong to, as far as they say so."""
    for path in log_paths(folder):
        with path.open("rb") as file:
            header = decode_header(file.read(HEADER_SIZE))
        if header is not None:
            yield header[0]
    if (folder / TAIL).exists():
        tail = decode_tail((folder / TAIL).read_bytes())
        if tail is not None:
            yield tail[0]


def _scan_tail(path: Path, identity: bytes, *, later: bool) -> tuple[int | None, str | None]:
    data = path.read_bytes() if path.exists() else b""
    if not any(data):
        return (None, "it is missing or empty") if later else (0, None)
    tail = decode_tail(data)
    if tail is None:
        return None, "it is not whole"
    return (tail[1], None) if tail[0] == identity else (None, "it belongs to another flow")


def _scan_file(path: Path, identity: bytes, synced: int) -> ScannedFile:
    data, first = path.read_bytes(), first_record(path)
    header = decode_header(data)
    trouble = None
    if header is None:
        if first > synced and (len(data) < HEADER_SIZE or not any(data[:HEADER_SIZE])):
            return ScannedFile(path, first, torn=True)
        trouble = "its header is wrong" if len(data) >= HEADER_SIZE else "it is cut off"
    elif header != (identity, first):
        return ScannedFile(path, first, trouble="it belongs to another flow or another place")
    ends: list[int] = []
    epochs: list[tuple[int, int]] = []
    at = HEADER_SIZE
    while at < len(data):
        number, payload, stop = decode_record(data, at)
        if payload is None or number != first + len(ends):
            wrong = first + len(ends)
            if wrong > synced:
                return ScannedFile(path, first, tuple(ends), tuple(epochs), trouble, torn=True)
            return ScannedFile(path, first, tuple(ends), tuple(epochs), trouble or f"record {wrong} is wrong")
        try:
            entry = decode_entry(payload, number, str(path.parent))
        except StorageError as error:
            return ScannedFile(path, first, tuple(ends), tuple(epochs), trouble, unread=error.message)
        if isinstance(entry, Tick | ReplaceView | ForceDiff):
            epochs.append((number, entry.epoch))
        ends.append(stop)
        at = stop
    return ScannedFile(path, first, tuple(ends), tuple(epochs), trouble)
