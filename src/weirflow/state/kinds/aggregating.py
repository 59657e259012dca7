"""``AggregatingState``: one accumulator for each key, which takes in values and has a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.arguments import checked

if TYPE_CHECKING:
    from weirflow.state.kinds.slot import StateSlot


@checked
@dataclass(frozen=True)
class Aggregate:
    """How values are accumulated.

    Attributes:
        create: returns an empty accumulator.
        add: returns the accumulator with another value; it may change the one that it receives.
        result: of an accumulator.
    """

    create: Callable[[], Any]
    add: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]


class AggregatingState:
    """All values that were added for a key, in an accumulator; the accumulator is what is stored."""

    kind = "aggregating"

    def __init__(self, slot: StateSlot, aggregate: Aggregate) -> None:
        self._slot = slot
        self._aggregate = aggregate

    def get(self, default: Any = None) -> Any:
        """The result for the current key's values, or the default if there are none."""
        found = self._slot.read(self._slot.place(), _ABSENT)
        return default if found is _ABSENT else self._aggregate.result(found)

    def add(self, value: Any) -> None:
        """Add a value for the current key.

        Raises:
            StateTypeError: the accumulator no longer has the slot's type.
        """
        place = self._slot.place()
        found = self._slot.read(place, _ABSENT)
        accumulator = self._aggregate.create() if found is _ABSENT else found
        self._slot.write(place, self._aggregate.add(accumulator, value))

    def clear(self) -> None:
        """Forget the current key's values."""
        self._slot.remove(self._slot.place())


_ABSENT = object()
