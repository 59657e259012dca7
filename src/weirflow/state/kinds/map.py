"""``MapState``: a map for each key, its entries stored one by one and in the order of their keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weirflow.arguments import shown
from weirflow.errors import StateTypeError
from weirflow.state.encoding.key_types import key_codec

if TYPE_CHECKING:
    from weirflow.state.kinds.slot import StateSlot


class MapState:
    """A map for each key. Reading or writing an entry touches no other entry; each expires separately.

    An entry is stored under its key and the bytes of the entry's own key, which sort like the keys themselves.
    """

    kind = "map"

    def __init__(self, slot: StateSlot, entry_key: Any) -> None:
        self._slot = slot
        self._codec = key_codec(entry_key)

    def get(self, entry: Any, default: Any = None) -> Any:
        """The value of an entry, or the default."""
        return self._slot.read(self._place(entry), default)

    def put(self, entry: Any, value: Any) -> None:
        """Set the value of an entry.

        Raises:
            StateTypeError: its key or value is not of the slot's types.
        """
        self._slot.write(self._place(entry), value)

    def remove(self, entry: Any) -> None:
        """Remove an entry; if it does not exist, that is not an error."""
        self._slot.remove(self._place(entry))

    def __contains__(self, entry: Any) -> bool:
        return self._slot.has(self._place(entry))

    def items(self, start: Any = None, end: Any = None) -> Iterator[tuple[Any, Any]]:
        """The entries in the order of their keys: from ``start``, and before ``end``, if these are given.

        These are the entries of the current key's map at the time of the call, even if the key or the map changes while
        you read them.
        """
        base = self._base()
        first = None if start is None else self._place(start)
        last = None if end is None else self._place(end)
        return self._decoded(base, first, last)

    def keys(self) -> Iterator[Any]:
        """The keys of all entries, in order."""
        base = self._base()
        return (self._codec.decode_at(place, len(base))[0] for place in list(self._slot.entry_places(base)))

    def values(self) -> Iterator[Any]:
        """The values of all entries, in the order of their keys."""
        return (value for _, value in self.items())

    def clear(self) -> None:
        """Remove all entries."""
        for place in list(self._slot.entry_places(self._base())):
            self._slot.remove(place)

    def _decoded(self, base: bytes, first: bytes | None, last: bytes | None) -> Iterator[tuple[Any, Any]]:
        found = list(self._slot.entries(base, first, last))
        return ((self._codec.decode_at(place, len(base))[0], value) for place, value in found)

    def _base(self) -> bytes:
        return self._slot.place()

    def _place(self, entry: Any) -> bytes:
        try:
            return self._base() + self._codec.encode(entry)
        except (TypeError, ValueError) as error:
            raise StateTypeError(
                f"The entries of {self._slot.descriptor.name!r} have keys of type {self._codec.name}, and "
                f"{shown(entry)} is not one: {error}.",
                slot=self._slot.descriptor.name,
                key=shown(entry),
            ) from error
