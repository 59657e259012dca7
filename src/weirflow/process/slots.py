"""What ``open`` gets for each declared slot: state of the current key, whoever keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol


class ValueSlot(Protocol):
    """One value for each key. Returned values are copies: changing one does not change what is stored."""

    def get(self, default: Any = None) -> Any:
        """The current key's value, or the default."""

    def set(self, value: Any) -> None:
        """Give the current key a value; ``StateTypeError`` if it is not of the slot's type."""

    def clear(self) -> None:
        """Remove the current key's value."""


class ListSlot(Protocol):
    """A list for each key."""

    def get(self) -> list[Any]:
        """The current key's elements; an empty list if there are none."""

    def add(self, value: Any) -> None:
        """Put an element at the end; ``StateTypeError`` if it is not of the slot's type."""

    def extend(self, values: Iterable[Any]) -> None:
        """Put elements at the end."""

    def set(self, values: Iterable[Any]) -> None:
        """Replace the current key's elements."""

    def clear(self) -> None:
        """Remove the current key's elements."""


class BroadcastView(Protocol):
    """A map that is only read."""

    def get(self, entry: Any, default: Any = None) -> Any:
        """The value of an entry, or the default."""

    def __contains__(self, entry: Any) -> bool: ...

    def items(self, start: Any = None, end: Any = None) -> Iterator[tuple[Any, Any]]:
        """The entries in the order of their keys, from ``start`` on and before ``end``, as they are now."""

    def keys(self) -> Iterator[Any]:
        """The keys of all entries, in order."""

    def values(self) -> Iterator[Any]:
        """The values of all entries, in the order of their keys."""


class MapSlot(BroadcastView, Protocol):
    """A map for each key, in the order of its entries' keys."""

    def put(self, entry: Any, value: Any) -> None:
        """Give an entry a value; ``StateTypeError`` if its key or value is not of the slot's types."""

    def remove(self, entry: Any) -> None:
        """Remove an entry; if it does not exist, that is not an error."""

    def clear(self) -> None:
        """Remove all entries."""


class BroadcastSlot(MapSlot, Protocol):
    """A map without a key, the same on every instance.

    It may be changed in ``on_broadcast`` alone; elsewhere ``put``, ``remove`` and ``clear`` are a ``StateError``.
    """


class ReducingSlot(Protocol):
    """All values that were added for a key, reduced to one (``reducing``) or accumulated (``aggregating``)."""

    def get(self, default: Any = None) -> Any:
        """The result for the current key, or the default if nothing was added."""

    def add(self, value: Any) -> None:
        """Take in a value for the current key; ``StateTypeError`` if the slot cannot hold the outcome."""

    def clear(self) -> None:
        """Forget the current key's values."""
