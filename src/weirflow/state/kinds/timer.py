"""``TimerState``: for each key a set of moments, which are found by their time over all keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from weirflow.arguments import AnySize, checked
from weirflow.state.encoding.key_types import key_codec
from weirflow.state.encoding.keys import decode_key_at, encode_key

if TYPE_CHECKING:
    from weirflow.state.encoding.groups import KeyGroupRange
    from weirflow.state.kinds.slot import StateSlot

_GROUP = 2


_Moment = Annotated[int, AnySize()]


class TimerState:
    """Moments in time for each key; within a key group they are ordered by time, then by key.

    A moment is stored under group, slot, its time (encoded as a key), and its key.
    """

    kind = "timers"

    def __init__(self, slot: StateSlot, owned: KeyGroupRange) -> None:
        self._slot = slot
        self._codec = key_codec(slot.descriptor.key)
        self._owned = owned
        self._head = len(slot.place_in(bytes(_GROUP)))

    @checked
    def add(self, at: _Moment) -> bytes | None:
        """Add a moment, however far, to the current key; returns the key's bytes, or None if the moment existed."""
        place = self._place(at)
        if self._slot.has(place):
            return None
        self._slot.write(place, None)
        return self._slot.place()[self._head :]

    @checked
    def remove(self, at: _Moment) -> bool:
        """Remove a moment of the current key; returns whether it existed."""
        place = self._place(at)
        if not self._slot.has(place):
            return False
        self._slot.remove(place)
        return True

    def first(self) -> int | None:
        """The earliest moment of all keys, or None."""
        firsts = (next(self._scan(group), None) for group in self._groups())
        return min((found[0] for found in firsts if found is not None), default=None)

    @checked
    def until(self, end: _Moment) -> list[tuple[int, bytes]]:
        """All moments that are not after a time, with their keys' bytes, in no particular order."""
        behind = encode_key(end + 1)
        return [found for group in self._groups() for found in self._scan(group, behind)]

    @checked
    def key(self, data: bytes) -> Any:
        """The key that these bytes encode."""
        return self._codec.decode_at(data, 0)[0]

    def _place(self, at: int) -> bytes:
        key = self._slot.place()
        return key[: self._head] + encode_key(at) + key[self._head :]

    def _groups(self) -> Iterator[bytes]:
        return (group.to_bytes(_GROUP, "big") for group in range(self._owned.first, self._owned.end))

    def _scan(self, group: bytes, end: bytes | None = None) -> Iterator[tuple[int, bytes]]:
        base = self._slot.place_in(group)
        last = None if end is None else base + end
        for place, _ in self._slot.entries(base, base, last):
            at, behind = decode_key_at(place, self._head)
            assert isinstance(at, int), "moments are written by add alone"
            yield at, place[behind:]
