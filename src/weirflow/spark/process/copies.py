"""The broadcast state of a Spark query: a copy in each lane, read once in a task and changed in every lane."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from weirflow.errors import StateError, UnsupportedError
from weirflow.spark.compat import key_switch
from weirflow.spark.process.lanes import copy_key, copy_lane
from weirflow.spark.process.state import PLAIN, STAMPED, HandleBackend, SparkHost
from weirflow.state.backends.sorted_keys import SortedKeys
from weirflow.state.encoding.layout import BROADCAST, CATALOGUE, NOBODY, slot_bytes, slot_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

    from weirflow.state.backends.contract import Changes
    from weirflow.state.descriptors import Ttl

BROADCAST_STATE: Final = "weirflow.broadcast"
"""How the names of state variables of copies begin. That of this name is the version: a hash of all changes so far."""
_VERSION_BYTES = 16
_LENGTH = 8
_MOST_REMEMBERED = 4

_Changes = dict[bytes, bytes | None]

# Contents by version, so that a worker reads again only what has changed.
_remembered: OrderedDict[tuple[bytes, ...], Contents] = OrderedDict()


class Contents:
    """The entries of all slots at their places, as they are for ever."""

    def __init__(self, entries: dict[bytes, bytes]) -> None:
        self._entries = entries
        self._ordered: SortedKeys | None = None
        self.get = entries.get

    def between(self, start: bytes, end: bytes, *, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        """The entries at the places ``[start, end)``, in order."""
        if self._ordered is None:
            self._ordered = SortedKeys(self._entries)
        places = self._ordered.between(start, end)
        return ((place, self._entries[place]) for place in (reversed(places) if reverse else places))

    def changed(self, changes: _Changes) -> Contents:
        """The entries after some changes."""
        after = {**self._entries, **changes}
        return Contents({place: data for place, data in after.items() if data is not None})


class Copies:
    """The broadcast state as a task sees it.

    Spark hands over the copies first, each with what is broadcast, then the keys. If it does otherwise, that is a
    ``StateError``, and nothing of the batch counts.

    Args:
        handle: PySpark's.
        columns: how many columns the key has.

    Attributes:
        stage: see ``BroadcastHost``.
    """

    def __init__(self, handle: StatefulProcessorHandle, columns: int) -> None:
        switch = key_switch(handle)
        if switch is None:
            raise UnsupportedError(
                "This version of PySpark cannot read a key's state while another key is current.",
                hint="leave out broadcast=, or run the function embedded",
            )
        self.stage = "after"
        self._switch = switch
        self._columns = columns
        self._states: dict[bytes, Any] = {}
        self._version_state = handle.getValueState(BROADCAST_STATE, "version BINARY")
        self._key: tuple[Any, ...] = ()
        self._lanes_told: set[int] = set()
        self._keys_have_come = False
        self._version = b""
        self._stored: Contents | None = None
        self._changes: _Changes = {}
        self._version_after = b""
        self._after: Contents | None = None

    def add(self, slot: str, state: Any) -> None:
        """Have a slot in a map variable of Spark's."""
        self._states[slot_bytes(slot)] = state

    def at_key(self, key: tuple[Any, ...]) -> None:
        """Spark has made a key the current one."""
        self._key = key
        self._keys_have_come = True
        if self._lanes_told and key[0] not in self._lanes_told:
            raise _misplaced(f"rows of lane {key[0]} came without what is broadcast")

    def at_copy(self, key: tuple[Any, ...]) -> bool:
        """Spark has made a lane's copy the current key; whether it is the first in this task."""
        lane = copy_lane(key[0])
        if self._keys_have_come:
            raise _misplaced(f"what is broadcast came to lane {lane} behind rows")
        first = not self._lanes_told
        self._key = key
        self._lanes_told.add(lane)
        if first:
            self._stored = self._read()
        elif self._stored_version() != self._version:
            raise _misplaced(f"the copy in lane {lane} is not that of other lanes")
        return first

    def change(self, changes: _Changes) -> None:
        """What ``on_broadcast`` has changed, for all lanes of this task."""
        stored = self._contents()
        self._changes = {place: data for place, data in changes.items() if stored.get(place) != data}
        if self._changes:
            self._version_after = _after(self._version, self._changes)
            self._after = stored.changed(self._changes)
            _remember(self._named(self._version_after), self._after)

    def write(self) -> None:
        """Change the copy that is the current key."""
        for place, data in self._changes.items():
            slot = slot_of(place)
            state, entry = self._states[slot], (place[len(BROADCAST + slot) :],)
            if data is None:
                state.removeKey(entry)
            else:
                state.updateValue(entry, (data,))
        if self._changes:
            self._version_state.update((self._version_after,))

    def seen(self) -> Contents:
        """The entries of all slots, as it is the turn of."""
        return self._after if self._after is not None and self.stage == "after" else self._contents()

    def _contents(self) -> Contents:
        if self._stored is None:
            self._switch(copy_key(self._key[0], self._columns))
            try:
                self._stored = self._read()
            finally:
                self._switch(self._key)
        return self._stored

    def _read(self) -> Contents:
        """What the copy holds that is the current key."""
        self._version = self._stored_version()
        name = self._named(self._version)
        found = _remembered.get(name)
        if found is None:
            found = Contents(
                {
                    BROADCAST + slot + bytes(entry[0]): bytes(data[0])
                    for slot, state in self._states.items()
                    for entry, data in state.iterator()
                }
            )
            _remember(name, found)
        return found

    def _stored_version(self) -> bytes:
        found = self._version_state.get()
        return b"" if found is None else bytes(found[0])

    def _named(self, version: bytes) -> tuple[bytes, ...]:
        return (version, *sorted(self._states))


class CopiesBackend(HandleBackend):
    """The state of the key that is current in Spark, and the broadcast state."""

    def __init__(self, copies: Copies) -> None:
        super().__init__()
        self._copies = copies

    @override
    def get(self, operator: str, key: bytes) -> bytes | None:
        return self._copies.seen().get(key) if _is_broadcast(operator, key) else super().get(operator, key)

    @override
    def scan(self, operator: str, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        if _is_broadcast(operator, start):
            return self._copies.seen().between(start, end, reverse=reverse)
        return super().scan(operator, start, end, reverse=reverse)

    @override
    def write(self, changes: Changes) -> None:
        super().write(changes)
        # What is not told but found expired by a key's reads is left: it is absent all the same.
        if self._copies.stage == "told":
            own = ((operator, key, data) for operator, entries in changes.items() for key, data in entries.items())
            self._copies.change({key: data for operator, key, data in own if _is_broadcast(operator, key)})


class LaneHost(SparkHost):
    """A ``SparkHost`` whose keys are in lanes, with broadcast state; what a ``BroadcastHost`` is.

    Args:
        handle: PySpark's.
        removes_expired: as for ``SparkHost``.
        columns: how many columns the key has.
    """

    def __init__(self, handle: StatefulProcessorHandle, *, removes_expired: bool, columns: int) -> None:
        self.copies = Copies(handle, columns)
        super().__init__(handle, removes_expired=removes_expired, backend=CopiesBackend(self.copies))

    @override
    def declare(self, slot: str, kind: str, ttl: Ttl | None) -> None:
        if kind != "broadcast":
            super().declare(slot, kind, ttl)
            return
        column = f"{PLAIN if ttl is None else STAMPED} BINARY"
        self.copies.add(slot, self._handle.getMapState(f"{BROADCAST_STATE}.{slot}", "key BINARY", column))

    def at_stage(self, stage: str) -> None:
        """See ``BroadcastHost``."""
        self.copies.stage = stage


def _is_broadcast(operator: str, key: bytes) -> bool:
    return operator != NOBODY and BROADCAST <= key < CATALOGUE


def _after(version: bytes, changes: _Changes) -> bytes:
    made = blake2b(version, digest_size=_VERSION_BYTES)
    for place, data in sorted(changes.items(), key=lambda change: change[0]):
        for part in (place, b"-" if data is None else b"+" + data):
            made.update(len(part).to_bytes(_LENGTH, "big") + part)
    return made.digest()


def _remember(name: tuple[bytes, ...], contents: Contents) -> None:
    _remembered[name] = contents
    _remembered.move_to_end(name)
    while len(_remembered) > _MOST_REMEMBERED:
        _remembered.popitem(last=False)


def _misplaced(what: str) -> StateError:
    return StateError(
        f"Spark has not brought keys and broadcast state together: {what}.",
        hint="nothing of the batch counts; run the query in the version of Spark that it ran in before",
    )
