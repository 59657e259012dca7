"""``ListState``: a list for each key, its elements stored one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from weirflow.arguments import checked

if TYPE_CHECKING:
    from weirflow.state.kinds.slot import StateSlot

_INDEX = 8
# Lists whose ends are remembered.
_MOST_REMEMBERED = 100_000


class ListState:
    """A list for each key. Adding to it does not read it. Each element expires separately.

    An element is stored under its key and its number, 8 bytes big-endian.
    """

    kind = "list"

    def __init__(self, slot: StateSlot) -> None:
        self._slot = slot
        self._next: dict[bytes, int] = {}
        self._discarded = 0

    def get(self) -> list[Any]:
        """The current key's elements; an empty list if there are none."""
        return [value for _, value in self._slot.entries(self._slot.place())]

    def add(self, value: Any) -> None:
        """Append an element.

        Raises:
            StateTypeError: it is not of the slot's type.
        """
        self.extend((value,))

    @checked
    def extend(self, values: Iterable[Any]) -> None:
        """Append elements; if one has the wrong type, those before it have been appended."""
        base = self._slot.place()
        at = self._end(base)
        for value in values:
            self._slot.write(base + at.to_bytes(_INDEX, "big"), value)
            at += 1
            self._next[base] = at

    @checked
    def set(self, values: Iterable[Any]) -> None:
        """Replace the current key's elements."""
        wanted = list(values)
        self.clear()
        self.extend(wanted)

    def clear(self) -> None:
        """Remove the current key's elements."""
        base = self._slot.place()
        for place in list(self._slot.entry_places(base)):
            self._slot.remove(place)
        self._next.pop(base, None)

    def _end(self, base: bytes) -> int:
        """The number of the next element; looked up once, and remembered while nothing is taken back."""
        if self._discarded != self._slot.buffer.discarded or len(self._next) > _MOST_REMEMBERED:
            self._discarded = self._slot.buffer.discarded
            self._next.clear()
        found = self._next.get(base)
        if found is None:
            last = next(self._slot.entry_places(base, reverse=True), None)
            found = 0 if last is None else int.from_bytes(last[-_INDEX:], "big") + 1
        return found
