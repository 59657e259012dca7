"""``WriteBuffer``: what a batch has changed so far, on top of what the backend has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from weirflow.state.backends.sorted_keys import SortedKeys

if TYPE_CHECKING:
    from weirflow.state.backends.contract import StateBackend


class WriteBuffer:
    """Changes of one operator that no one else sees until ``flush``; reads here see them at once.

    Attributes:
        changes: the changed keys; None for a removed one.
        discarded: how often changes were forgotten, so that others know when to forget theirs.
    """

    def __init__(self, backend: StateBackend, operator: str) -> None:
        self._backend = backend
        self._operator = operator
        self.changes: dict[bytes, bytes | None] = {}
        self.discarded = 0
        self._ordered: SortedKeys | None = None
        self._in_order = 0
        self._lasting: dict[bytes, bytes | None] = {}

    def get(self, key: bytes) -> bytes | None:
        """What is under a key."""
        if key in self.changes:
            return self.changes[key]
        return self._backend.get(self._operator, key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of many keys."""
        changes = self.changes
        if not changes:
            return self._backend.multi_get(self._operator, keys)
        unchanged = [key for key in keys if key not in changes]
        if len(unchanged) == len(keys):
            return self._backend.multi_get(self._operator, keys)
        found = dict(zip(unchanged, self._backend.multi_get(self._operator, unchanged), strict=True))
        return [changes[key] if key in changes else found[key] for key in keys]

    def scan(self, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """What is under the keys ``[start, end)``, in order, as it is now."""
        stored = self._backend.scan(self._operator, start, end, reverse=reverse)
        if not self.changes:
            return stored
        if self._ordered is None:
            self._ordered = SortedKeys(self.changes)
        elif self._in_order < len(self.changes):
            self._ordered.touch(islice(self.changes, self._in_order, None))
        self._in_order = len(self.changes)
        keys = self._ordered.between(start, end)
        if not keys:
            return stored
        if reverse:
            keys.reverse()
        return _merged(stored, [(key, self.changes[key]) for key in keys], reverse=reverse)

    def keep(self, key: bytes, data: bytes) -> None:
        """Write with the next flush whatever becomes of the batch."""
        self._lasting[key] = data

    def flush(self) -> None:
        """Write all changes at once; if that fails they are still here.

        An exception that comes when they are written leaves them here too: to write them again does no harm.
        """
        changes = self.changes | self._lasting if self._lasting else self.changes
        if changes:
            self._backend.write({self._operator: changes})
        self._lasting = {}
        self._begin()

    def discard(self) -> None:
        """Forget all changes."""
        self.discarded += 1
        self._begin()

    def _begin(self) -> None:
        # New ones, in one statement that no exception comes into: the keys in order are those of this very dict.
        self.changes, self._ordered, self._in_order = {}, None, 0


def _merged(
    stored: Iterator[tuple[bytes, bytes]], changed: Sequence[tuple[bytes, bytes | None]], *, reverse: bool
) -> Iterator[tuple[bytes, bytes]]:
    """Both in order; of equal keys the changed one, and none that was removed."""
    waiting = iter(changed)
    change = next(waiting, None)
    for key, data in stored:
        while change is not None and change[0] != key and (change[0] > key) is reverse:
            if change[1] is not None:
                yield change[0], change[1]
            change = next(waiting, None)
        if change is None or change[0] != key:
            yield key, data
    while change is not None:
        if change[1] is not None:
            yield change[0], change[1]
        change = next(waiting, None)
