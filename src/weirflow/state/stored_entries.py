"""Entries of stored state, read without the program that wrote them: from a backend, a checkpoint, or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from weirflow.arguments import shown
from weirflow.errors import StateDamaged, StateError, did_you_mean
from weirflow.state.catalogue import SlotInfo, read_slots
from weirflow.state.encoding.groups import group_of
from weirflow.state.encoding.key_types import key_codec
from weirflow.state.encoding.keys import decode_key, decode_key_at, encode_key
from weirflow.state.encoding.layout import slot_bytes, successor
from weirflow.state.encoding.value_types import element_type, entry_types
from weirflow.state.encoding.values import STAMP, ValueCodec, read_varint
from weirflow.state.migrations import MIGRATIONS

if TYPE_CHECKING:
    from weirflow.state.backends.contract import StateReader
    from weirflow.state.descriptors import StateDescriptor

_LISTS, _MAPS, _NO_KEYS = "list", "map", ("broadcast", "timers")


class StoredEntry(NamedTuple):
    """An entry of a slot.

    Attributes:
        key: whose it is.
        entry: its key in a map, its place in a list, None for others.
        value: what is held.
    """

    key: Any
    entry: Any
    value: Any


class SlotReader:
    """Reads the values of a slot: as plain Python values by its name, as declared types by its descriptor.

    Args:
        slot: its name or descriptor.
        kind: as it is stored.
        stamped: whether values begin with the time at which they expire.
    """

    def __init__(self, slot: str | StateDescriptor, kind: str, *, stamped: bool) -> None:
        self.kind = kind
        self._stamped = stamped
        self._codec: ValueCodec | None = None
        if not isinstance(slot, str):
            declared = slot.value
            if kind == _LISTS:
                declared = element_type(slot.value, slot.name)
            elif kind == _MAPS:
                declared = entry_types(slot.value, slot.name)[1]
            self._codec = ValueCodec(slot, declared, MIGRATIONS)

    def value(self, data: bytes, key: object) -> Any:
        """The value in stored bytes; ``StateDamaged`` if there is none."""
        if self._codec is not None:
            return self._codec.decode(data, key)
        try:
            _, body = read_varint(data, STAMP if self._stamped else 0)
            return msgspec.msgpack.decode(data[body:])
        except (IndexError, msgspec.MsgspecError) as error:
            raise StateDamaged(f"A value of the key {shown(key)} cannot be read: {error}.") from error

    def entry(self, behind: bytes) -> Any:
        """What the bytes behind the key in a place say."""
        if self.kind == _LISTS:
            return int.from_bytes(behind, "big")
        return decode_key(behind) if self.kind == _MAPS else None


def gathered(kind: str, entries: Iterable[StoredEntry]) -> Any:
    """The entries of one key together: a list, a dict, or the value; None if there is nothing."""
    found = list(entries)
    if kind == _LISTS:
        return [one.value for one in found]
    if kind == _MAPS:
        return {one.entry: one.value for one in found}
    return found[0].value if found else None


def slot_name(slot: str | StateDescriptor) -> str:
    """A slot's name."""
    return slot if isinstance(slot, str) else slot.name


def find_slot(slots: Mapping[str, SlotInfo], slot: str, operator: str) -> SlotInfo:
    """A keyed slot by name; ``StateError`` if there is none."""
    keyed = {name: info for name, info in slots.items() if info.kind not in _NO_KEYS}
    if slot not in keyed:
        names = ", ".join(sorted(keyed)) or "none"
        raise StateError(
            f"{operator!r} has no keyed slot {slot!r}.", hint=did_you_mean(slot, keyed) or f"its slots are: {names}"
        )
    return keyed[slot]


def key_bytes(key: Any, info: SlotInfo, slot: str | StateDescriptor) -> bytes:
    """The bytes of a key; ``StateError`` if it cannot be one of the slot."""
    try:
        if not isinstance(slot, str):
            return key_codec(slot.key).encode(key)
        return encode_key(float(key) if info.key == "float" and type(key) is int else key)
    except (TypeError, ValueError) as error:
        raise StateError(f"{shown(key)} is not a key of {info.name!r}, whose keys are {info.key}: {error}.") from error


def read_entries(
    state: StateReader, operator: str, slot: str | StateDescriptor, key: bytes | None = None
) -> Iterator[StoredEntry]:
    """The entries of a slot, of one key or of all, in the order in which they are stored."""
    info = find_slot(read_slots(state, operator), slot_name(slot), operator)
    reader = SlotReader(slot, info.kind, stamped=info.expires is not None)
    lift: Callable[[bytes, int], tuple[Any, int]]
    lift = decode_key_at if isinstance(slot, str) else key_codec(slot.key).decode_at
    name = slot_bytes(info.name)
    groups = range(info.groups) if key is None else [group_of(key, info.groups)]
    for group in groups:
        base = group.to_bytes(2, "big") + name
        start = base + (key or b"")
        for place, data in state.scan(operator, start, successor(start)):
            owner, behind = lift(place, len(base))
            yield StoredEntry(owner, reader.entry(place[behind:]), reader.value(data, owner))
