"""A view's deltas for a function of the user's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from weirflow.checkpoint.sealed import FORMAT, seal, unseal_or_plain
from weirflow.errors import ObjectNotFound, SinkConflict
from weirflow.failpoints import failpoint
from weirflow.ivm.flow.sink import Guarantee

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from weirflow.checkpoint import CheckpointStorage
    from weirflow.ivm.flow.sink import Deltas
    from weirflow.ivm.zset.delta import DeltaBatch


SINKS = "sinks/"
_HINT = "pass resync=True: the function is called with the view's rows of now, and goes on from there"


class Reached(msgspec.Struct, frozen=True):
    """How far a function is, and with the deltas of what."""

    owner: str
    epoch: int
    format: int = FORMAT


def decode_reached(data: bytes, where: str) -> Reached:
    """How far a function is, by its file; ``StorageError`` if that is damaged."""
    return unseal_or_plain(data, Reached, where, _HINT)


class ForeachTarget:
    """Calls a function with ``(epoch, delta)``; after a crash, and after it raised, with the last deltas again.

    Args:
        function: what is called.
        name: the sink's.
        storage: where to remember how far it is; None forgets it with the process.
    """

    guarantee = Guarantee.AT_LEAST_ONCE

    def __init__(
        self, function: Callable[[int, DeltaBatch], object], name: str, storage: CheckpointStorage | None
    ) -> None:
        self._function = function
        self._object = f"{SINKS}{name}.json"
        self._storage = storage
        self._reached: Reached | None = None
        self._known = storage is None
        self._owner = ""

    def describe(self) -> str:
        """See ``Target``."""
        return f"the function {getattr(self._function, '__qualname__', repr(self._function))}"

    def open(self, owner: str, schema: pa.Schema) -> None:  # noqa: ARG002 - a function takes any columns
        """See ``Target``."""
        self._owner = owner

    def position(self) -> int | None:
        """See ``Target``."""
        if not self._known:
            self._reached, self._known = self._read(), True
        if self._reached is None:
            return None
        if self._reached.owner != self._owner:
            raise SinkConflict(
                "The function was given the deltas of another definition of the view.",
                hint="give the sink another name=, or pass resync=True to begin with the view's rows of now",
            )
        return self._reached.epoch

    def write(self, after: int, upto: int, deltas: Deltas) -> None:
        """See ``Target``."""
        reached = self._reached.epoch if self._reached is not None else after
        for epoch, delta in deltas:
            if epoch > reached:
                self._function(epoch, delta)
                self._reached = Reached(self._owner, epoch)
        self._remember(upto)

    def replace(self, epoch: int, rows: DeltaBatch) -> None:
        """See ``Target``."""
        if len(rows):
            self._function(epoch, rows)
        self._remember(epoch)

    def _read(self) -> Reached | None:
        assert self._storage is not None
        try:
            data = self._storage.get(self._object)
        except ObjectNotFound:
            return None
        return decode_reached(data, f"{self._storage.uri}/{self._object}")

    def _remember(self, epoch: int) -> None:
        self._reached, self._known = Reached(self._owner, epoch), True
        failpoint("sink.before_position")
        if self._storage is not None:
            self._storage.put(self._object, seal(self._reached))
