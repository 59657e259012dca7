"""``SortedKeys``: keys in order, for a dict that is written often and scanned now and then."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping

_LOAD = 1024
# From this share of new keys on, sorting all is faster than inserting them.
_MANY = 8


class SortedKeys:
    """The keys of a dict in chunks, each sorted and none much larger than the others.

    What comes or goes waits until the keys are asked for: most keys are written far more often than scanned. The dict
    decides which keys there are, so that an exception at any point leaves nothing but more to be looked at.

    Args:
        data: the dict.
    """

    def __init__(self, data: Mapping[bytes, object]) -> None:
        self._data = data
        self._chunks: list[list[bytes]] = []
        self._touched = set(data)

    def touch(self, keys: Iterable[bytes]) -> None:
        """Look at keys again, which are about to come or go, or just did."""
        self._touched.update(keys)

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

    def copy(self, data: Mapping[bytes, object]) -> SortedKeys:
        """The same keys for a copy of the dict, on their own from now on."""
        copy = SortedKeys({})
        copy._data = data
        copy._chunks = [chunk.copy() for chunk in self._chunks]
        copy._touched = self._touched.copy()
        copy._settle()
        return copy

    def _settle(self) -> None:
        touched = self._touched
        if not touched:
            return
        if len(touched) * _MANY > len(self._data):
            ordered = sorted(self._data)
            self._chunks = [ordered[at : at + _LOAD] for at in range(0, len(ordered), _LOAD)]
        else:
            for key in touched:
                self._look_at(key)
        touched.clear()

    def _look_at(self, key: bytes) -> None:
        at = self._chunk_of(key)
        chunk = self._chunks[at] if at < len(self._chunks) else []
        place = bisect_left(chunk, key)
        there = place < len(chunk) and chunk[place] == key
        if there == (key in self._data):
            return
        if there and len(chunk) == 1:
            del self._chunks[at]
        elif there:
            del chunk[place]
        else:
            self._insert(min(at, len(self._chunks) - 1), key)

    def _insert(self, at: int, key: bytes) -> None:
        chunk = self._chunks[at]
        insort(chunk, key)
        if len(chunk) > 2 * _LOAD:
            self._chunks[at : at + 1] = [chunk[:_LOAD], chunk[_LOAD:]]

    def _chunk_of(self, key: bytes) -> int:
        """The first chunk whose last key is not before this one."""
        return bisect_left(self._chunks, key, key=lambda chunk: chunk[-1])
