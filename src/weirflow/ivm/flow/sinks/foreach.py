"""A view's deltas for a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from typing_extensions import override

from weirflow.checkpoint.sealed import seal
from weirflow.errors import ObjectNotFound, SinkConflict
from weirflow.failpoints import failpoint
from weirflow.ivm.durability.sink_position import SinkPosition, decode_position, sink_file
from weirflow.ivm.flow.sinks.sink import Guarantee, SinkTarget

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.checkpoint import CheckpointStorage
    from weirflow.ivm.flow.sinks.sink import Deltas
    from weirflow.ivm.zset.delta import DeltaBatch


class ForeachTarget(SinkTarget):
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
        self._object = sink_file(name)
        self._storage = storage
        self._reached: SinkPosition | None = None
        self._known = storage is None
        self._owner = ""

    @override
    def describe(self) -> str:
        return f"the function {getattr(self._function, '__qualname__', repr(self._function))}"

    @override
    def open(self, owner: str, schema: pa.Schema) -> None:
        self._owner = owner

    @override
    def position(self) -> int | None:
        if not self._known:
            self._reached, self._known = self._read(), True
        if self._reached is None:
            return None
        if self._reached.owner != self._owner:
            raise SinkConflict(
                "The function was given the deltas of another definition of the view.",
                hint="give the sink another name=, or pass resync=True to begin with the view's current rows",
            )
        return self._reached.epoch

    @override
    def write(self, after: int, upto: int, deltas: Deltas) -> None:
        reached = self._reached.epoch if self._reached is not None else after
        for epoch, delta in deltas:
            if epoch > reached:
                self._function(epoch, delta)
                self._reached = SinkPosition(self._owner, epoch)
        self._remember(upto)

    @override
    def replace(self, epoch: int, rows: DeltaBatch) -> None:
        if len(rows):
            self._function(epoch, rows)
        self._remember(epoch)

    def _read(self) -> SinkPosition | None:
        assert self._storage is not None
        try:
            data = self._storage.get(self._object)
        except ObjectNotFound:
            return None
        return decode_position(data, f"{self._storage.uri}/{self._object}")

    def _remember(self, epoch: int) -> None:
        self._reached, self._known = SinkPosition(self._owner, epoch), True
        failpoint("sink.before_position")
        if self._storage is not None:
            self._storage.put(self._object, seal(self._reached))
