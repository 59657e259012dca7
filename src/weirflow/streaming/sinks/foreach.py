"""``Foreach`` and ``ForeachBatch``: functions of the user's that take rows or batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from weirflow.streaming.query.batches import BatchGate
from weirflow.streaming.sinks.sink import StreamSink, Taker
from weirflow.types import Delivery

if TYPE_CHECKING:
    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.query.spec import QuerySpec


@dataclass(frozen=True, kw_only=True)
class Foreach(StreamSink):
    """A function that is called with each row, or an object with ``open``, ``process`` and ``close``."""

    name: str = "foreach"
    function: Any
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    why: str = "a repeated batch is given again"
    own_checkpoint: bool = True

    @override
    def begin(self, writer: Any, spec: QuerySpec) -> Any:
        return writer.foreach(self.function).start()


@dataclass(frozen=True, kw_only=True)
class ForeachBatch(StreamSink):
    """A function that is called with each batch and its number."""

    name: str = "foreach_batch"
    function: Callable[[Any, int], object]
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    why: str = "a repeated batch comes with the same number"
    own_checkpoint: bool = True

    @override
    def taker(self, spec: QuerySpec, host: StreamHost, query_id: Callable[[], str]) -> Taker:
        function = self.function
        if host.connect:
            return function

        def take(native: Any, number: int) -> None:
            with host.inside():
                function(host.wrap(native), number)

        return BatchGate(take, "The function of foreach_batch")
