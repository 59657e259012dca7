"""``HostedOpenContext``: the ``OpenContext`` of a function whose state another engine keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from weirflow.errors import UnsupportedError
from weirflow.process.store_context import GuardedBroadcast, StoreOpenContext
from weirflow.state import BroadcastState

if TYPE_CHECKING:
    from weirflow.state import KeyedStateStore, StateDescriptor
    from weirflow.state.descriptors import Ttl

_Kind = TypeVar("_Kind")


class HostedOpenContext(StoreOpenContext):
    """Declares slots in a store, and tells the engine of each: its name, kind and time to live."""

    def __init__(self, store: KeyedStateStore, declare: Callable[[str, str, Ttl | None], None]) -> None:
        super().__init__(store)
        self._declare = declare

    @override
    def broadcast(self, descriptor: StateDescriptor) -> GuardedBroadcast:
        slot = super().broadcast(descriptor)
        if descriptor.ttl is not None and descriptor.ttl.refresh == "read":
            raise UnsupportedError(
                f"The broadcast state {descriptor.name!r} lives on when it is read, but only on_broadcast changes it.",
                hint='use Ttl(..., refresh="write")',
            )
        self._declare(descriptor.name, BroadcastState.kind, descriptor.ttl)
        return slot

    def _keyed(self, slot: _Kind, descriptor: StateDescriptor) -> _Kind:
        self._declare(descriptor.name, getattr(slot, "kind"), descriptor.ttl)  # noqa: B009 - every kind has it
        return super()._keyed(slot, descriptor)
