"""``RecentEntries``: what was read or written lately, so that a key in use is not searched for again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

_MOST_BYTES = 16 << 20
# What Python takes for an entry beside its bytes, about.
_OVERHEAD = 128


class RecentEntries:
    """Two generations of entries: what is used moves to the young one, and when that is full the old one is dropped.

    It has to be told of every write, and then never differs from what is stored; None stands for what is not there.
    """

    def __init__(self) -> None:
        self._young: dict[bytes, bytes | None] = {}
        self._old: dict[bytes, bytes | None] = {}
        self._size = 0

    def get_many(self, keys: Sequence[bytes], load: Callable[[bytes], bytes | None]) -> list[bytes | None]:
        """The entries of these keys; those that are not here are loaded."""
        young, old = self._young, self._old
        missing = [key for key in keys if key not in young]
        if not missing:
            return list(map(young.__getitem__, keys))
        fresh = {key: old[key] if key in old else load(key) for key in missing}
        young.update(fresh)
        found = list(map(young.__getitem__, keys))
        self._grown(fresh)
        return found

    def update(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Take on what was written."""
        self._young.update(changes)
        self._grown(changes)

    def _grown(self, by: Mapping[bytes, bytes | None]) -> None:
        self._size += len(by) * _OVERHEAD + sum([len(data) for data in by.values() if data is not None])
        if self._size > _MOST_BYTES:
            self._old, self._young, self._size = self._young, {}, 0
