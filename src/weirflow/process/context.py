"""What a process function is given: to declare state in ``open``, and to act in its callbacks.

Times are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from weirflow.process.slots import BroadcastSlot, ListSlot, MapSlot, ReducingSlot, ValueSlot
    from weirflow.state import Aggregate, StateDescriptor
    from weirflow.state.descriptors import TimeKind

END_OF_TIME: Final = (1 << 63) - 1
"""The watermark when a bounded input has ended: no event comes any more."""


class OpenContext(Protocol):
    """Declares the slots of a function. Each name is declared once, and all keyed slots have the same type of key.

    Every method fails with ``ConfigError`` if the slot cannot be stored as declared, ``StateMismatch`` if it is stored
    in another form, and ``MigrationMissing`` if it is stored in another version and no steps lead to this one.
    """

    def value(self, descriptor: StateDescriptor) -> ValueSlot:
        """A slot of one value for each key."""

    def list(self, descriptor: StateDescriptor) -> ListSlot:
        """A slot of a list for each key; the value type is a ``list[...]``."""

    def map(self, descriptor: StateDescriptor) -> MapSlot:
        """A slot of a map for each key; the value type is a ``dict[..., ...]``."""

    def reducing(self, descriptor: StateDescriptor, reduce: Callable[[Any, Any], Any]) -> ReducingSlot:
        """A slot of values reduced by a function."""

    def aggregating(self, descriptor: StateDescriptor, aggregate: Aggregate) -> ReducingSlot:
        """A slot of values in an accumulator, whose type is the value type."""

    def broadcast(self, descriptor: StateDescriptor) -> BroadcastSlot:
        """A slot of a map without a key (key type None), the same on every instance."""


class Timers(Protocol):
    """The current key's timers: a set of moments for each kind of time.

    Timers are state: they are written with the state that their callback changes, and restored with it. A timer fires
    once, when the watermark (``"event"``) or the clock (``"processing"``) has reached its time. If that time is already
    past, it fires with the batch that registers it.
    """

    def register(self, at: int, kind: TimeKind = "event") -> None:
        """Call ``on_timer`` at a time: only once, however often the timer is registered before it fires.

        In ``on_timer``, a timer whose time is not later than the one that fires waits for the next batch.
        """

    def delete(self, at: int, kind: TimeKind = "event") -> None:
        """Remove a timer; if it does not exist, that is not an error."""


class BroadcastContext(Protocol):
    """The times that ``on_broadcast`` can read."""

    @property
    def watermark(self) -> int | None:
        """The watermark before this batch; in ``on_timer``, after it. None before the first event.

        ``END_OF_TIME`` when a bounded input has ended.
        """

    @property
    def now(self) -> int:
        """Processing time: the clock when the batch began. It never goes back, not even after a restore."""


class ElementContext(BroadcastContext, Protocol):
    """What a callback for a key may do."""

    @property
    def timestamp(self) -> int | None:
        """The event time of the row, or of the event-time timer that fires; None if there is none."""

    @property
    def timers(self) -> Timers:
        """The current key's timers."""

    def emit(self, row: Mapping[str, Any]) -> None:
        """Emit a row. A column that is left out is NULL.

        Raises:
            UserCodeError: the row has a column that the output does not have. Values that do not fit a column's type
                are found at the end of the batch.
        """

    def side(self, tag: str, row: Mapping[str, Any]) -> None:
        """Emit a row to a side output; fails like ``emit``, and with ``UserCodeError`` if the tag is not declared."""
