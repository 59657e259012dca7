"""The state and timers of a Spark query's current key, as process functions are given them.

Each slot is a state variable of Spark's own with one BINARY column, which holds the bytes that keyed state has
everywhere; the keys of maps are those of keyed state, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from weirflow.errors import StateError
from weirflow.spark.compat import state_serializer
from weirflow.spark.process.variables import ListVariable, MapVariable, ValueVariable, Variable
from weirflow.state.encoding.layout import BROADCAST, NOBODY, slot_bytes, slot_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

    from weirflow.state.backends.contract import Changes, StateSnapshot
    from weirflow.state.descriptors import Ttl

PLAIN: Final = "value"
"""The column of values."""
STAMPED: Final = "expiring"
"""The column of values that begin with the time at which they expire."""
_GROUP = 2
_PLAIN = frozenset({int, str, bytes, float, bool, type(None)})


class SparkHost:
    """What ``weirflow.process.hosted.function.Host`` asks for, of the handle of a stateful processor.

    Args:
        handle: PySpark's.
        removes_expired: whether the query goes by processing time, so that Spark can remove what has expired.
        backend: what the slots are seen through.
    """

    def __init__(
        self, handle: StatefulProcessorHandle, *, removes_expired: bool, backend: HandleBackend | None = None
    ) -> None:
        _send_plain_values_as_they_are(handle)
        self._handle = handle
        self._removes_expired = removes_expired
        self.backend = HandleBackend() if backend is None else backend
        self.begin = self.backend.begin
        self.register = handle.registerTimer
        self.delete = handle.deleteTimer

    def declare(self, slot: str, kind: str, ttl: Ttl | None) -> None:
        """See ``Host``."""
        by_clock = self._removes_expired and ttl is not None and ttl.time == "processing"
        lifetime = ttl.milliseconds if ttl is not None and by_clock else None
        column = f"{PLAIN if ttl is None else STAMPED} BINARY"
        made: Variable
        if kind == "list":
            made = ListVariable(self._handle.getListState(slot, column, lifetime))
        elif kind == "map":
            made = MapVariable(self._handle.getMapState(slot, "key BINARY", column, lifetime))
        else:
            made = ValueVariable(self._handle.getValueState(slot, column, lifetime))
        self.backend.add(slot, made)

    def timers(self) -> list[int]:
        """See ``Host``."""
        return list(self._handle.listTimers())


def _send_plain_values_as_they_are(handle: StatefulProcessorHandle) -> None:
    """Save PySpark its search for NumPy's and pandas' types in every key and value, where Python's own types show.

    It takes longer than all that is done here for a key. What is sent is the same.
    """
    client = state_serializer(handle)
    if client is None:
        return
    send_any, dumps = client._serialize_to_bytes, client.pickleSer.dumps  # noqa: SLF001 - there is no public way

    def send(schema: Any, data: Sequence[Any]) -> Any:
        values = tuple(data)
        return dumps(values) if all(type(one) in _PLAIN for one in values) else send_any(schema, data)

    client._serialize_to_bytes = send  # noqa: SLF001 - as above


class HandleBackend:
    """A ``StateBackend`` of one key: that which is current in Spark. What is read is kept until the key changes."""

    def __init__(self) -> None:
        self._variables: dict[bytes, Variable] = {}
        self._key = b""

    def add(self, slot: str, variable: Variable) -> None:
        """Have a slot in a variable."""
        self._variables[slot_bytes(slot)] = variable

    def begin(self, key: bytes) -> None:
        """Another key is current, which has these bytes."""
        self._key = key
        for variable in self._variables.values():
            variable.forget()

    def get(self, operator: str, key: bytes) -> bytes | None:
        """See ``StateReader``."""
        if operator == NOBODY:
            return None
        slot = slot_of(key)
        found = self._variables.get(slot)
        return None if found is None else found.get(key[_GROUP + len(slot) + len(self._key) :])

    def multi_get(self, operator: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """See ``StateBackend``."""
        return [self.get(operator, key) for key in keys]

    def scan(self, operator: str, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """See ``StateReader``; within the current key's entries of one slot."""
        slot = slot_of(start)
        found = self._variables.get(slot) if operator != NOBODY else None
        if found is None:
            return iter(())
        base = start[: _GROUP + len(slot) + len(self._key)]
        entries = ((base + place, data) for place, data in found.entries(reverse=reverse))
        return (entry for entry in entries if start <= entry[0] < end)

    def write(self, changes: Changes) -> None:
        """See ``StateBackend``. Spark's own catalogue of variables takes the place of ours.

        What another key's reads have found expired is left: it cannot be reached now, and is absent all the same.
        """
        by_slot: dict[bytes, dict[bytes, bytes | None]] = {}
        for operator, own in changes.items():
            for key, data in own.items():
                slot = slot_of(key)
                if operator != NOBODY and key < BROADCAST and key.startswith(self._key, _GROUP + len(slot)):
                    by_slot.setdefault(slot, {})[key[_GROUP + len(slot) + len(self._key) :]] = data
        for slot, entries in by_slot.items():
            self._variables[slot].write(entries)

    def operators(self) -> list[str]:
        """See ``StateReader``: it is not known here."""
        return []

    def snapshot(self) -> StateSnapshot:
        """Refused: Spark keeps the versions of its state."""
        raise StateError("A key's state in Spark has no snapshot of its own.", hint="read the query's checkpoint")

    def close(self) -> None:
        """See ``StateReader``: the handle is Spark's."""


def key_of(key: Any) -> Any:
    """A grouping key as functions get it: a plain value for one column, a tuple for several."""
    values = tuple(bytes(one) if isinstance(one, bytearray) else one for one in key)
    return values[0] if len(values) == 1 else values
