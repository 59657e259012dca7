"""``StateSlot``: one slot of an operator, bound to its backend; what all kinds of state are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from weirflow.errors import StateError
from weirflow.state.encoding.layout import slot_bytes, successor
from weirflow.state.encoding.values import STAMP, ValueCodec, expiry, stamp

if TYPE_CHECKING:
    from weirflow.state.backends.ttl import TtlStateBackend
    from weirflow.state.buffer import WriteBuffer
    from weirflow.state.current_key import CurrentKey
    from weirflow.state.descriptors import StateDescriptor
    from weirflow.state.migrations import Migrations

# Keys whose places are remembered.
_MOST_REMEMBERED = 100_000


def require_as_many(keys: Sequence[Any], values: Sequence[Any]) -> None:
    """Refuse keys without values, and values without keys; ``StateError``."""
    if len(keys) != len(values):
        raise StateError(f"{len(keys)} keys were given {len(values)} values.", hint="nothing was written")


class StateSlot:
    """Reads and writes the entries of a slot at their places.

    Args:
        descriptor: what was declared.
        entry: the type of one entry.
        key: the current key.
        buffer: where entries are.
        groups: the number of key groups.
        migrations: the steps from older versions.
        clock: tells when entries expire; needed if the slot has a time to live.
    """

    def __init__(
        self,
        descriptor: StateDescriptor,
        entry: Any,
        key: CurrentKey,
        buffer: WriteBuffer,
        *,
        groups: int,
        migrations: Migrations,
        clock: TtlStateBackend | None,
    ) -> None:
        self.descriptor = descriptor
        self.key = key
        self.buffer = buffer
        self._codec = ValueCodec(descriptor, entry, migrations)
        self._name = slot_bytes(descriptor.name)
        self._prefixes = [group.to_bytes(2, "big") + self._name for group in range(groups)]
        self._places: dict[Any, bytes] = {}
        self._ttl = descriptor.ttl
        self._clock = clock
        self._touch = descriptor.ttl is not None and descriptor.ttl.refresh == "read"

    def place(self) -> bytes:
        """Where the current key's entries are; fails like ``CurrentKey.located``."""
        key = self.key
        if not key.plain:
            group, data = key.located()
            return self._prefixes[group] + data
        found = self._places.get(key.value)
        return self._located(key.value) if found is None else found

    def places(self, keys: Sequence[Any]) -> list[bytes]:
        """Where the entries of each key are; fails like ``CurrentKey.locate``."""
        if set(map(type, keys)) == {self.key.exact}:
            known = list(map(self._places.get, keys))
            found = [place for place in known if place is not None]
            if len(found) == len(known):
                return found
            return [self._located(key) if place is None else place for key, place in zip(keys, known, strict=True)]
        located = map(self.key.locate, keys)
        return [self._prefixes[group] + data for group, data in located]

    def place_in(self, group: bytes) -> bytes:
        """Where the slot's entries in a group begin."""
        return group + self._name

    def read(self, place: bytes, default: Any = None) -> Any:
        """The value of an entry."""
        data = self.buffer.get(place)
        if data is None or (self._ttl is not None and self._expired(data)):
            return default
        value = self._codec.decode(data, self.key.value)
        if self._touch:
            self._refresh(place, data)
        return value

    def read_many(self, places: Sequence[bytes], keys: Sequence[Any]) -> list[Any]:
        """The values of many entries; None for one that is not there."""
        found = self.buffer.get_many(places)
        if self._ttl is None:
            return self._codec.decode_many(found, keys)
        live = [None if data is None or self._expired(data) else data for data in found]
        values = self._codec.decode_many(live, keys)
        if self._touch:
            for place, data in zip(places, live, strict=True):
                if data is not None:
                    self._refresh(place, data)
        return values

    def has(self, place: bytes) -> bool:
        """Whether there is an entry. This does not count as a read: its time to live goes on."""
        data = self.buffer.get(place)
        return data is not None and not (self._ttl is not None and self._expired(data))

    def write(self, place: bytes, value: Any) -> None:
        """Set the value of an entry."""
        self.buffer.changes[place] = self._codec.encode(value, self.key.value, self._stamp())

    def write_many(self, places: Sequence[bytes], keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Give many entries their values; none if one of them is of the wrong type."""
        require_as_many(keys, values)
        encoded = self._codec.encode_many(values, keys, self._stamp())
        self.buffer.changes.update(zip(places, encoded, strict=True))

    def remove(self, place: bytes) -> None:
        """Remove an entry."""
        self.buffer.changes[place] = None

    def entries(
        self, base: bytes, start: bytes | None = None, end: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, Any]]:
        """The entries whose places begin with ``base``, or those of them in ``[start, end)``, in order."""
        for place, data in self._found(base, start, end, reverse=reverse):
            value = self._codec.decode(data, self.key.value)
            if self._touch:
                self._refresh(place, data)
            yield place, value

    def entry_places(self, base: bytes, *, reverse: bool = False) -> Iterator[bytes]:
        """As ``entries``, without reading their values."""
        return (place for place, _ in self._found(base, None, None, reverse=reverse))

    def _found(
        self, base: bytes, start: bytes | None, end: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        found = self.buffer.scan(start or base, end or successor(base), reverse=reverse)
        return found if self._ttl is None else ((place, data) for place, data in found if not self._expired(data))

    def _located(self, key: Any) -> bytes:
        """The place of a plain key, which is remembered."""
        group, data = self.key.locate(key)
        if len(self._places) >= _MOST_REMEMBERED:
            self._places.clear()
        place = self._places[key] = self._prefixes[group] + data
        return place

    def _stamp(self) -> bytes:
        if self._ttl is None or self._clock is None:
            return b""
        return stamp(self._clock.expires_at(self._ttl, self.key.timestamp))

    def _expired(self, data: bytes) -> bool:
        return self._ttl is not None and self._clock is not None and self._clock.expired(data, self._ttl.time)

    def _refresh(self, place: bytes, data: bytes) -> None:
        # A late event does not shorten what it reads.
        self.buffer.changes[place] = max(data[:STAMP], self._stamp(), key=expiry) + data[STAMP:]
