"""``KeyedStateStore``: the state of one operator, read and written for one key at a time, in atomic batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Name, Positive, checked, shown
from weirflow.errors import ConfigError, StateError
from weirflow.state.backends.ttl import TtlStateBackend
from weirflow.state.buffer import WriteBuffer
from weirflow.state.catalogue import SlotInfo, catalogue_key, decode_slot, encode_slot
from weirflow.state.current_key import CurrentKey
from weirflow.state.encoding.groups import DEFAULT_GROUPS, KeyGroupRange
from weirflow.state.encoding.layout import NOBODY
from weirflow.state.encoding.value_types import element_type, entry_types, type_name
from weirflow.state.kinds.aggregating import Aggregate, AggregatingState
from weirflow.state.kinds.broadcast import BroadcastState
from weirflow.state.kinds.list import ListState
from weirflow.state.kinds.map import MapState
from weirflow.state.kinds.reducing import ReducingState
from weirflow.state.kinds.slot import StateSlot
from weirflow.state.kinds.timer import TimerState
from weirflow.state.kinds.value import ValueState
from weirflow.state.migrations import MIGRATIONS, Migrations

if TYPE_CHECKING:
    from weirflow.state.backends.contract import StateBackend
    from weirflow.state.descriptors import StateDescriptor
    from weirflow.state.encoding.key_types import KeyCodec

_FOREVER = 2**63


class KeyedStateStore:
    """The state of one operator. Use it from one thread.

    Declare the slots, set the current key, read and write. Reads see writes at once; others see them when ``flush`` has
    written them all together.

    Args:
        backend: where the state is; it stays open when the store is no longer used.
        operator: the operator whose state this is; it may have one store at a time.
        groups: the number of key groups, which never changes.
        owned: the key groups that this instance of the operator has; all without it.
        migrations: the steps from older versions of values.

    Raises:
        ConfigError: the operator has no name, or a group is owned that does not exist.
    """

    @checked
    def __init__(
        self,
        backend: StateBackend,
        operator: Name,
        *,
        groups: Positive = DEFAULT_GROUPS,
        owned: KeyGroupRange | None = None,
        migrations: Migrations = MIGRATIONS,
    ) -> None:
        everything = KeyGroupRange(0, groups)
        self._owned = everything if owned is None else owned
        if operator == NOBODY or self._owned.end > groups:
            raise ConfigError(
                f"The operator {operator!r} cannot have the key groups {self._owned} of {groups}.",
                hint="give it a name, and groups that exist",
            )
        self._backend = backend
        self._operator = operator
        self._groups = groups
        self._migrations = migrations
        self._clock = backend if isinstance(backend, TtlStateBackend) else None
        self._buffer = WriteBuffer(backend, operator)
        self._key = CurrentKey(operator, groups, self._owned)
        self._keyed: dict[str, tuple[StateSlot, KeyCodec]] = {}
        self._declared: set[str] = set()

    # Slots

    @checked
    def value(self, descriptor: StateDescriptor) -> ValueState:
        """Declare a slot of one value for each key.

        Raises:
            ConfigError: it cannot be stored as declared, or is already declared.
            StateMismatch: it is stored in another form.
            MigrationMissing: it is stored in another version, and no steps lead to this one.
        """
        return ValueState(self._slot(descriptor, ValueState.kind, descriptor.value))

    @checked
    def list(self, descriptor: StateDescriptor) -> ListState:
        """Declare a slot of a list for each key, its value type a ``list[...]``; fails like ``value``."""
        return ListState(self._slot(descriptor, ListState.kind, element_type(descriptor.value, descriptor.name)))

    @checked
    def map(self, descriptor: StateDescriptor) -> MapState:
        """Declare a slot of a map for each key, its value type a ``dict[..., ...]``; fails like ``value``."""
        key, value = entry_types(descriptor.value, descriptor.name)
        return MapState(self._slot(descriptor, MapState.kind, value), key)

    @checked
    def reducing(self, descriptor: StateDescriptor, reduce: Callable[[Any, Any], Any]) -> ReducingState:
        """Declare a slot of values reduced by a function; fails like ``value``."""
        return ReducingState(self._slot(descriptor, ReducingState.kind, descriptor.value), reduce)

    @checked
    def aggregating(self, descriptor: StateDescriptor, aggregate: Aggregate) -> AggregatingState:
        """Declare a slot of values in an accumulator, whose type is the value type; fails like ``value``."""
        return AggregatingState(self._slot(descriptor, AggregatingState.kind, descriptor.value), aggregate)

    @checked
    def broadcast(self, descriptor: StateDescriptor) -> BroadcastState:
        """Declare a slot of a map without a key, its value type a ``dict[..., ...]``; fails like ``value``."""
        if descriptor.key is not None:
            raise ConfigError(
                f"The broadcast state {descriptor.name!r} must not have a key type.", hint="use the key None"
            )
        key, value = entry_types(descriptor.value, descriptor.name)
        return BroadcastState(self._slot(descriptor, BroadcastState.kind, value), key)

    @checked
    def timers(self, descriptor: StateDescriptor) -> TimerState:
        """Declare a slot of moments for each key, its value type None; fails like ``value``."""
        return TimerState(self._slot(descriptor, TimerState.kind, descriptor.value), self._owned)

    # Keys

    def set_key(self, key: Any, timestamp_ms: int | None = None) -> None:
        """Make a key the current one, for all slots.

        Args:
            key: of the declared type.
            timestamp_ms: the time of its event, from which the time to live of state by event time counts.

        Raises:
            StateTypeError: the key is not of the declared type, or is text that UTF-8 cannot hold.
            StateError: its key group is not owned here, or no slot is declared yet.

        Some of these errors are raised only when the key is first used.
        """
        # This is done for each row.
        if timestamp_ms is not None and (type(timestamp_ms) is not int or not -_FOREVER < timestamp_ms < _FOREVER):
            raise ConfigError(
                f"set_key(): timestamp_ms is {shown(timestamp_ms)}; it must be an int of 64 bits, or None."
            )
        self._key.set(key, timestamp_ms)

    def unset_key(self) -> None:
        """Unset the current key: using keyed state is then a ``StateError`` until ``set_key``."""
        self._key.unset()

    @checked
    def keys(self, slot: Name) -> Iterator[Any]:
        """All keys that have state in a slot, in no particular order.

        They are found while you iterate: keys that come or go meanwhile may or may not be among them.

        Raises:
            StateError: no keyed slot of that name is declared.
        """
        found = self._keyed.get(slot)
        if found is None:
            raise StateError(f"{self._operator!r} has no keyed slot {slot!r}.", hint="declare it first")
        return self._keys(*found)

    # Batches

    @contextmanager
    def batch(self) -> Iterator[None]:
        """A block whose writes are flushed together, or dropped if it raises, with all that was written before."""
        try:
            yield
        except BaseException:
            self.discard()
            raise
        self.flush()

    def flush(self) -> None:
        """Write all changes together; if that raises, the changes are kept for another attempt."""
        self._buffer.flush()

    def discard(self) -> None:
        """Forget all changes since the last flush."""
        self._buffer.discard()

    # Inner workings

    def _keys(self, slot: StateSlot, codec: KeyCodec) -> Iterator[Any]:
        for group in range(self._owned.first, self._owned.end):
            base = slot.place_in(group.to_bytes(2, "big"))
            last = None
            for place in slot.entry_places(base):
                # A list or map has many entries for a key.
                if last is None or not place.startswith(last):
                    key, behind = codec.decode_at(place, len(base))
                    last = place[:behind]
                    yield key

    def _slot(self, descriptor: StateDescriptor, kind: str, entry: Any) -> StateSlot:
        name, ttl = descriptor.name, descriptor.ttl
        if name in self._declared:
            raise ConfigError(f"The slot {name!r} of {self._operator!r} is already declared.")
        if ttl is not None and self._clock is None:
            raise ConfigError(
                f"The slot {name!r} has a time to live, but its backend does not keep time.",
                hint="wrap the backend: TtlStateBackend(backend)",
            )
        slot = StateSlot(
            descriptor,
            entry,
            self._key,
            self._buffer,
            groups=self._groups,
            migrations=self._migrations,
            clock=self._clock,
        )
        key = "None"
        if kind != BroadcastState.kind:
            codec = self._key.declare(descriptor)
            key = codec.name
            # Moments lie in the order of time, not of keys.
            if kind != TimerState.kind:
                self._keyed[name] = slot, codec
        expires = None if ttl is None else ttl.time
        self._record(SlotInfo(name, kind, key, type_name(descriptor.value), descriptor.version, self._groups, expires))
        if ttl is not None and self._clock is not None:
            self._clock.declare(self._operator, name, ttl.time)
        self._declared.add(name)
        return slot

    def _record(self, slot: SlotInfo) -> None:
        """Note in the catalogue what is declared, if what is stored allows it."""
        place = catalogue_key(slot.name)
        data = self._backend.get(self._operator, place)
        if data is not None:
            stored = decode_slot(data, self._operator)
            slot.require_same_form(stored, self._operator)
            self._migrations.path(slot.name, stored.version, slot.version)
        if data != encode_slot(slot):
            self._buffer.keep(place, encode_slot(slot))
