"""``StoreOpenContext``: the ``OpenContext`` over a store of keyed state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from weirflow.errors import StateError
from weirflow.process.context import OpenContext
from weirflow.state.encoding.key_types import KeyCodec, key_codec

if TYPE_CHECKING:
    from weirflow.state import (
        Aggregate,
        AggregatingState,
        BroadcastState,
        KeyedStateStore,
        ListState,
        MapState,
        ReducingState,
        StateDescriptor,
        ValueState,
    )

_Kind = TypeVar("_Kind")


class StoreOpenContext(OpenContext):
    """Declares slots in a store; see ``OpenContext``.

    Attributes:
        key: the type of the keys, once a keyed slot is declared.
        codec: what handles keys of that type, or None.
        broadcasts: the slots of broadcast state.
    """

    def __init__(self, store: KeyedStateStore) -> None:
        self._store = store
        self.key: Any = None
        self.codec: KeyCodec | None = None
        self.broadcasts: list[GuardedBroadcast] = []

    @override
    def value(self, descriptor: StateDescriptor) -> ValueState:
        return self._keyed(self._store.value(descriptor), descriptor)

    @override
    def list(self, descriptor: StateDescriptor) -> ListState:
        return self._keyed(self._store.list(descriptor), descriptor)

    @override
    def map(self, descriptor: StateDescriptor) -> MapState:
        return self._keyed(self._store.map(descriptor), descriptor)

    @override
    def reducing(self, descriptor: StateDescriptor, reduce: Callable[[Any, Any], Any]) -> ReducingState:
        return self._keyed(self._store.reducing(descriptor, reduce), descriptor)

    @override
    def aggregating(self, descriptor: StateDescriptor, aggregate: Aggregate) -> AggregatingState:
        return self._keyed(self._store.aggregating(descriptor, aggregate), descriptor)

    @override
    def broadcast(self, descriptor: StateDescriptor) -> GuardedBroadcast:
        slot = GuardedBroadcast(self._store.broadcast(descriptor), descriptor.name)
        self.broadcasts.append(slot)
        return slot

    def _keyed(self, slot: _Kind, descriptor: StateDescriptor) -> _Kind:
        if self.codec is None:
            self.key = descriptor.key
            self.codec = key_codec(descriptor.key)
        return slot


class GuardedBroadcast:
    """Broadcast state that can be changed while it is ``writable``; see ``BroadcastSlot``."""

    def __init__(self, state: BroadcastState, name: str) -> None:
        self._state = state
        self._name = name
        self.writable = False
        self.get = state.get
        self.items = state.items
        self.keys = state.keys
        self.values = state.values

    def __contains__(self, entry: Any) -> bool:
        return entry in self._state

    def put(self, entry: Any, value: Any) -> None:
        """Set the value of an entry."""
        self._writable().put(entry, value)

    def remove(self, entry: Any) -> None:
        """Remove an entry."""
        self._writable().remove(entry)

    def clear(self) -> None:
        """Remove all entries."""
        self._writable().clear()

    def _writable(self) -> BroadcastState:
        if not self.writable:
            raise StateError(
                f"The broadcast state {self._name!r} cannot be changed for a key: it is the same on every instance.",
                hint="change it in on_broadcast",
            )
        return self._state
