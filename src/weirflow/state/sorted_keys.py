"""``SortedKeys``: keys in order, for a dict that is written often and scanned now and then."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOAD = 1024
# From this share of new keys on, sorting all is faster than inserting them.
_MANY = 8


class SortedKeys:
    """Keys in chunks, each sorted and none much larger than the others.

    What is added or removed waits until the keys are asked for: most keys are written far more often than scanned.
    """

    def __init__(self) -> None:
        self._chunks: list[list[bytes]] = []
        self._count = 0
        self._added: set[bytes] = set()
        self._removed: set[bytes] = set()

    def add(self, keys: Iterable[bytes]) -> None:
        """Take on keys that are not there."""
        for key in keys:
            if key in self._removed:
                self._removed.discard(key)
            else:
                self._added.add(key)

    def remove(self, key: bytes) -> None:
        """Let go of a key that is there."""
        if key in self._added:
            self._added.discard(key)
        else:
            self._removed.add(key)

    def first(self, start: bytes, end: bytes) -> list[bytes]:
        """Some of the keys ``[start, end)``, the first ones in order; none if there are none."""
        self._settle()
        at = self._chunk_of(start)
        if at == len(self._chunks):
            return []
        chunk = self._chunks[at]
        return chunk[bisect_left(chunk, start) : bisect_left(chunk, end)]

    def last(self, start: bytes, end: bytes) -> list[bytes]:
        """Some of the keys ``[start, end)``, the last ones in order; none if there are none."""
        self._settle()
        at = self._chunk_of(end)
        # The keys before the end are in the chunk that reaches it, or else in the one before.
        if at == len(self._chunks) or self._chunks[at][0] >= end:
            at -= 1
        if at < 0:
            return []
        chunk = self._chunks[at]
        return chunk[bisect_left(chunk, start) : bisect_left(chunk, end)]

    def between(self, start: bytes, end: bytes) -> list[bytes]:
        """The keys ``[start, end)`` in order."""
        found: list[bytes] = []
        while some := self.first(start, end):
            found += some
            start = some[-1] + b"\0"
        return found

    def copy(self) -> SortedKeys:
        """The same keys, on their own from now on."""
        self._settle()
        copy = SortedKeys()
        copy._chunks = [chunk.copy() for chunk in self._chunks]
        copy._count = self._count
        return copy

    def _settle(self) -> None:
        changed = len(self._added) + len(self._removed)
        if changed * _MANY > self._count:
            if changed:
                left = [key for chunk in self._chunks for key in chunk if key not in self._removed]
                ordered = sorted([*left, *self._added])
                self._chunks = [ordered[at : at + _LOAD] for at in range(0, len(ordered), _LOAD)]
        else:
            for key in self._added:
                self._insert(key)
            for key in self._removed:
                self._delete(key)
        self._count += len(self._added) - len(self._removed)
        self._added.clear()
        self._removed.clear()

    def _insert(self, key: bytes) -> None:
        at = min(self._chunk_of(key), len(self._chunks) - 1)
        chunk = self._chunks[at]
        insort(chunk, key)
        if len(chunk) > 2 * _LOAD:
            self._chunks[at : at + 1] = [chunk[:_LOAD], chunk[_LOAD:]]

    def _delete(self, key: bytes) -> None:
        at = self._chunk_of(key)
        chunk = self._chunks[at]
        del chunk[bisect_left(chunk, key)]
        if not chunk:
            del self._chunks[at]

    def _chunk_of(self, key: bytes) -> int:
        """The first chunk whose last key is not before this one."""
        return bisect_left(self._chunks, key, key=lambda chunk: chunk[-1])
