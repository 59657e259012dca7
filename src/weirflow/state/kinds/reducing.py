"""``ReducingState``: one value for each key, which takes in others by a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weirflow.arguments import checked
from weirflow.state.kinds.slot import StateSlot, require_as_many


class ReducingState:
    """All values that were added for a key, reduced to one of the same type."""

    kind = "reducing"

    def __init__(self, slot: StateSlot, reduce: Callable[[Any, Any], Any]) -> None:
        self._slot = slot
        self._reduce = reduce

    def get(self, default: Any = None) -> Any:
        """The result of reducing the current key's values, or the default if there are none."""
        return self._slot.read(self._slot.place(), default)

    def add(self, value: Any) -> None:
        """Add a value for the current key.

        Raises:
            StateTypeError: it, or the reduced value, is not of the slot's type.
        """
        place = self._slot.place()
        old = self._slot.read(place)
        self._slot.write(place, value if old is None else self._reduce(old, value))

    @checked
    def add_many(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Add a value for each of many keys, in this order; faster than one by one. Adds all or none."""
        require_as_many(keys, values)
        slot, reduce = self._slot, self._reduce
        places = slot.places(keys)
        distinct = dict(zip(places, keys, strict=True))
        if len(distinct) == len(places):
            olds = slot.read_many(places, keys)
            news = [value if old is None else reduce(old, value) for old, value in zip(olds, values, strict=True)]
            slot.write_many(places, keys, news)
            return
        of = list(distinct.values())
        reduced = dict(zip(distinct, slot.read_many(list(distinct), of), strict=True))
        for place, value in zip(places, values, strict=True):
            old = reduced[place]
            reduced[place] = value if old is None else reduce(old, value)
        slot.write_many(list(reduced), of, list(reduced.values()))

    def clear(self) -> None:
        """Forget the current key's values."""
        self._slot.remove(self._slot.place())
