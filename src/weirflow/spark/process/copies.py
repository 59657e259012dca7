"""The broadcast state of a Spark query: a copy in each lane, read once in a task and changed in every lane."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from typing_extensions import override

from weirflow.errors import StateError, UnsupportedError
from weirflow.spark.compat import key_switch
from weirflow.spark.process.lanes import copy_key, copy_lane
from weirflow.spark.process.state import HandleBackend, SparkHost
from weirflow.state.backends.sorted_keys import SortedKeys
from weirflow.state.encoding.layout import BROADCAST, CATALOGUE, NOBODY

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

    from weirflow.state.backends.contract import Changes
    from weirflow.state.descriptors import Ttl

BROADCAST_STATE: Final = "weirflow.broadcast"
"""How the names of a copy's state variables begin."""
_VERSION_BYTES = 16
_SIZE_BYTES = 8
_MOST_IN_CHUNK = 1 << 20
_LEAST_REWRITTEN = 1 << 16
_MOST_REMEMBERED = 4

_Changes = dict[bytes, bytes | None]
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[tuple[bytes, bytes | None]])

# Contents by version, so that a worker reads again only what has changed.
_remembered: OrderedDict[bytes, Contents] = OrderedDict()


class Contents:
    """The entries of all slots at their places, as they are for ever.

    Attributes:
        size: about as many bytes as it takes to store them.
    """

    def __init__(self, entries: dict[bytes, bytes]) -> None:
        self.entries = entries
        self.size = sum(map(len, entries)) + sum(map(len, entries.values()))
        self._ordered: SortedKeys | None = None

    def between(self, start: bytes, end: bytes, *, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        """The entries at the places ``[start, end)``, in order."""
        if self._ordered is None:
            self._ordered = SortedKeys(self.entries)
        places = self._ordered.between(start, end)
        return ((place, self.entries[place]) for place in (reversed(places) if reverse else places))

    def changed(self, changes: _Changes) -> Contents:
        """The entries after some changes."""
        after = {**self.entries, **changes}
        return Contents({place: data for place, data in after.items() if data is not None})


class Version(NamedTuple):
    """What a copy says of itself.

    Attributes:
        digest: a hash of all changes so far, in their order.
        size: how many bytes it is stored in.
    """

    digest: bytes = b""
    size: int = 0

    def stored(self) -> bytes:
        """As bytes."""
        return self.digest + self.size.to_bytes(_SIZE_BYTES, "big")

    @classmethod
    def read(cls, data: bytes) -> Version:
        """Out of bytes."""
        return cls(data[:_VERSION_BYTES], int.from_bytes(data[_VERSION_BYTES:], "big"))


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
                "This PySpark cannot read a key's state while another key is current.",
                hint="leave out broadcast=, or run the function embedded",
            )
        self.stage = "after"
        self._switch = switch
        self._columns = columns
        # A copy is the list of its changes, some of which may be made one.
        self._version_state = handle.getValueState(f"{BROADCAST_STATE}.version", "version BINARY")
        self._changes_state = handle.getListState(f"{BROADCAST_STATE}.changes", "changes BINARY")
        self._key: tuple[Any, ...] = ()
        self._lanes_told: set[int] = set()
        self._keys_have_come = False
        self._version = Version()
        self._stored: Contents | None = None
        self._after: Contents | None = None
        self._version_after = Version()
        self._chunks: list[tuple[bytes]] = []
        self._anew = False

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
        real = {place: data for place, data in changes.items() if stored.entries.get(place) != data}
        if not real:
            return
        after = stored.changed(real)
        chunks = _chunks(real)
        digest = blake2b(b"".join((self._version.digest, *chunks)), digest_size=_VERSION_BYTES).digest()
        size = self._version.size + sum(map(len, chunks))
        self._anew = size > max(_LEAST_REWRITTEN, 2 * after.size)
        if self._anew:
            chunks = _chunks(after.entries)
            size = sum(map(len, chunks))
        self._chunks = [(chunk,) for chunk in chunks]
        self._version_after, self._after = Version(digest, size), after
        _remember(digest, after)

    def write(self) -> None:
        """Change the copy that is the current key."""
        if self._after is None:
            return
        if not self._anew:
            self._changes_state.appendList(self._chunks)
        elif self._chunks:
            self._changes_state.put(self._chunks)
        else:
            self._changes_state.clear()
        self._version_state.update((self._version_after.stored(),))

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
        found = _remembered.get(self._version.digest)
        if found is None:
            entries: dict[bytes, bytes] = {}
            for (chunk,) in self._changes_state.get():
                for place, data in _decoder.decode(bytes(chunk)):
                    if data is None:
                        entries.pop(place, None)
                    else:
                        entries[place] = data
            found = Contents(entries)
        _remember(self._version.digest, found)
        return found

    def _stored_version(self) -> Version:
        found = self._version_state.get()
        return Version() if found is None else Version.read(bytes(found[0]))


class CopiesBackend(HandleBackend):
    """The state of the key that is current in Spark, and the broadcast state."""

    def __init__(self, copies: Copies) -> None:
        super().__init__()
        self._copies = copies

    @override
    def get(self, operator: str, key: bytes) -> bytes | None:
        return self._copies.seen().entries.get(key) if _is_broadcast(operator, key) else super().get(operator, key)

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
        # Copies hold whatever slots there are.
        if kind != "broadcast":
            super().declare(slot, kind, ttl)

    def at_stage(self, stage: str) -> None:
        """See ``BroadcastHost``."""
        self.copies.stage = stage


def _is_broadcast(operator: str, key: bytes) -> bool:
    return operator != NOBODY and BROADCAST <= key < CATALOGUE


def _chunks(changes: Mapping[bytes, bytes | None]) -> list[bytes]:
    """Changes as bytes, the same for the same changes."""
    chunks, chunk, size = [], [], 0
    for place, data in sorted(changes.items(), key=lambda change: change[0]):
        chunk.append((place, data))
        size += len(place) + len(data or b"")
        if size > _MOST_IN_CHUNK:
            chunks.append(_encoder.encode(chunk))
            chunk, size = [], 0
    return [*chunks, _encoder.encode(chunk)] if chunk else chunks


def _remember(digest: bytes, contents: Contents) -> None:
    _remembered[digest] = contents
    _remembered.move_to_end(digest)
    while len(_remembered) > _MOST_REMEMBERED:
        _remembered.popitem(last=False)


def _misplaced(what: str) -> StateError:
    return StateError(
        f"Spark has not brought keys and broadcast state together: {what}.",
        hint="nothing of the batch counts; run the query with the Spark that it ran with before",
    )
