"""State variables of Spark for the current key, read once and written once in each call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from typing_extensions import override

if TYPE_CHECKING:
    Entries = Iterable[tuple[bytes, bytes]]

_INDEX = 8
_UNREAD: Final = (1 << 62).to_bytes(_INDEX, "big")
"""Stands for all elements of a list that was not read: what is added comes behind them."""
_NEVER = b"\xff" * _INDEX
_ABSENT: Any = object()


class Variable(Protocol):
    """Bytes under what follows the key in a place."""

    def forget(self) -> None:
        """The key has changed."""

    def get(self, place: bytes) -> bytes | None:
        """What is at a place."""

    def entries(self, *, reverse: bool) -> Entries:
        """All entries, in order."""

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Apply changes."""


class ValueVariable(Variable):
    """One entry, behind which there is nothing."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._data: Any = _ABSENT

    @override
    def forget(self) -> None:
        self._data = _ABSENT

    @override
    def get(self, place: bytes) -> bytes | None:
        if self._data is _ABSENT:
            found = self._state.get()
            self._data = None if found is None else bytes(found[0])
        return self._data  # type: ignore[no-any-return]  # it is there or None

    @override
    def entries(self, *, reverse: bool) -> Entries:
        data = self.get(b"")
        return [] if data is None else [(b"", data)]

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """See ``Variable``; what is there already is not written again."""
        (data,) = changes.values()
        if data == self._data:
            return
        if data is None:
            self._state.clear()
        else:
            self._state.update((data,))
        self._data = data


class MapVariable(Variable):
    """An entry for each key of a map; only all of them can be had in order."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._known: dict[bytes, bytes | None] = {}
        self._whole = False

    @override
    def forget(self) -> None:
        if self._known or self._whole:
            self._known = {}
            self._whole = False

    @override
    def get(self, place: bytes) -> bytes | None:
        if place not in self._known and not self._whole:
            found = self._state.getValue((place,))
            self._known[place] = None if found is None else bytes(found[0])
        return self._known.get(place)

    @override
    def entries(self, *, reverse: bool) -> Entries:
        if not self._whole:
            self._known = {bytes(key[0]): bytes(value[0]) for key, value in self._state.iterator()}
            self._whole = True
        found = [(place, data) for place, data in self._known.items() if data is not None]
        return sorted(found, reverse=reverse)

    @override
    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        for place, data in changes.items():
            if data is not None:
                self._state.updateValue((place,), (data,))
            elif self._known.get(place, _ABSENT) is not None:
                self._state.removeKey((place,))
        self._known.update(changes)


class ListVariable(Variable):
    """Elements by their number; adding to a list that was not read does not read it."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._elements: list[bytes] | None = None

    @override
    def forget(self) -> None:
        self._elements = None

    @override
    def get(self, place: bytes) -> bytes | None:
        return dict(self.entries(reverse=False)).get(place)

    def entries(self, *, reverse: bool) -> Entries:
        """See ``Variable``; backwards is asked for to find the end, which need not be read."""
        if reverse and self._elements is None:
            return [(_UNREAD, _NEVER)]
        numbered = [(at.to_bytes(_INDEX, "big"), data) for at, data in enumerate(self._read())]
        return reversed(numbered) if reverse else numbered

    @override
    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        end = _UNREAD if self._elements is None else len(self._elements).to_bytes(_INDEX, "big")
        added = [(data,) for _, data in sorted(changes.items()) if data is not None]
        if added and min(changes) >= end:
            self._state.appendList(added)
        else:
            stored = dict(self.entries(reverse=False))
            left = {place: data for place, data in sorted((stored | dict(changes)).items()) if data is not None}
            if left:
                self._state.put([(data,) for data in left.values()])
            elif stored:
                self._state.clear()
        self._elements = None

    def _read(self) -> list[bytes]:
        if self._elements is None:
            self._elements = [bytes(one[0]) for one in self._state.get()]
        return self._elements
