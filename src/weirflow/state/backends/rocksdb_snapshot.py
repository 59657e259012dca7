"""``RocksDbSnapshot``: a database as it was at one moment."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from threading import Lock
from typing import Any
from weakref import WeakSet

from typing_extensions import override

from weirflow.errors import StateError
from weirflow.forks import never_finalize
from weirflow.state.backends.contract import StateReader
from weirflow.state.encoding.layout import END, NOBODY

# Entries that are read at a time.
_CHUNK = 256


class RocksDbSnapshot(StateReader):
    """A ``RocksDbStateBackend`` as it was when this was made; see ``StateReader``. Any thread may read it.

    A cursor of RocksDB shows what was there when it was made, wherever it is moved; what rocksdict calls a snapshot
    shows later entries when it is scanned.

    Args:
        cursors: one for each operator, of the same moment.
        failed: makes an error of what RocksDB raises.
    """

    def __init__(self, cursors: dict[str, Any], failed: Callable[[str, Exception], StateError]) -> None:
        self._cursors = cursors
        self._failed = failed
        self._lock = Lock()
        self._live: WeakSet[Generator[tuple[bytes, bytes]]] = WeakSet()
        self._closed = False

    @override
    def get(self, operator: str, key: bytes) -> bytes | None:
        return next((value for _, value in self.scan(operator, key, key + b"\0")), None)

    @override
    def scan(self, operator: str, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        if self._closed:
            raise StateError("The snapshot is closed.")
        cursor = self._cursors.get(operator)
        if cursor is None:
            return iter(())
        scan = self._scan(cursor, start, end, reverse=reverse)
        self._live.add(scan)
        return scan

    @override
    def operators(self) -> list[str]:
        found = [operator for operator in self._cursors if operator != NOBODY]
        return sorted(operator for operator in found if next(self.scan(operator, b"", END), None) is not None)

    @override
    def close(self) -> None:
        for scan in list(self._live):
            scan.close()
        self._cursors = {}
        self._closed = True

    def left_behind(self) -> None:
        """In a forked child: the cursors are the parent's."""
        never_finalize(self._cursors)
        self._cursors, self._closed = {}, True

    def _scan(self, cursor: Any, start: bytes, end: bytes, *, reverse: bool) -> Generator[tuple[bytes, bytes]]:
        while True:
            try:
                with self._lock:
                    chunk = _read_back(cursor, start, end) if reverse else _read_on(cursor, start, end)
            except Exception as error:
                raise self._failed("read", error) from error
            yield from chunk
            if len(chunk) < _CHUNK:
                return
            start, end = (start, chunk[-1][0]) if reverse else (chunk[-1][0] + b"\0", end)


def _read_on(cursor: Any, start: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
    """The first entries of ``[start, end)``."""
    chunk: list[tuple[bytes, bytes]] = []
    cursor.seek(start)
    while len(chunk) < _CHUNK and cursor.valid() and (key := cursor.key()) < end:
        chunk.append((key, cursor.value()))
        cursor.next()
    return chunk


def _read_back(cursor: Any, start: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
    """The last entries of ``[start, end)``, the last one first."""
    chunk: list[tuple[bytes, bytes]] = []
    cursor.seek_for_prev(end)
    if cursor.valid() and cursor.key() == end:
        cursor.prev()
    while len(chunk) < _CHUNK and cursor.valid() and (key := cursor.key()) >= start:
        chunk.append((key, cursor.value()))
        cursor.prev()
    return chunk
