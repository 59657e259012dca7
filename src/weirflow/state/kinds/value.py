"""``ValueState``: one value for each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weirflow.arguments import checked

if TYPE_CHECKING:
    from weirflow.state.kinds.slot import StateSlot


class ValueState:
    """One value for each key. Returned values are copies: changing one does not change what is stored."""

    kind = "value"

    def __init__(self, slot: StateSlot) -> None:
        self._slot = slot

    def get(self, default: Any = None) -> Any:
        """The current key's value, or the default."""
        return self._slot.read(self._slot.place(), default)

    def set(self, value: Any) -> None:
        """Set the current key's value.

        Raises:
            StateTypeError: it is not of the slot's type.
        """
        self._slot.write(self._slot.place(), value)

    def clear(self) -> None:
        """Remove the current key's value."""
        self._slot.remove(self._slot.place())

    @checked
    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """The values of many keys, None where there is none; faster than one by one."""
        return self._slot.read_many(self._slot.places(keys), keys)

    @checked
    def set_many(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Set the values of many keys, or of none if one value has the wrong type."""
        self._slot.write_many(self._slot.places(keys), keys, values)
