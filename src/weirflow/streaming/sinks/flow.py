"""``FlowSink``: a source of an incremental flow, ticked by each batch exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import override

from weirflow.errors import ConfigError
from weirflow.streaming.query.batches import BatchGate
from weirflow.streaming.savepoints.named import restored_at
from weirflow.streaming.sinks.sink import StreamSink, require_local
from weirflow.types import Delivery, OutputMode

if TYPE_CHECKING:
    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.query.spec import QuerySpec


class FeedTarget(Protocol):
    """A flow, as far as streams and tables feed it; positions are those of ``weirflow.ivm.flow.position``."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def takes_frames(self) -> bool:
        """Whether rows may stay on the executors."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of its sources."""

    def register_source(self, name: str, schema: Any) -> None:
        """Declare a source."""

    def source(self, name: str) -> Any:
        """How a source was declared."""

    def position(self, stream: str) -> Any:
        """How far it has taken a stream in; None if it does not know the stream."""

    def epoch_of(self, token: str) -> int | None:
        """The epoch of the tick that had a token."""

    def feed(self, source: str, delta: Any, *, position: Any) -> Any:
        """Take in what is at a position."""


@dataclass(frozen=True, kw_only=True)
class FlowSink(StreamSink):
    """A source of a flow. The flow remembers the last batch of each stream in one step with its rows.

    Attributes:
        flow: the flow.
        source: the source's name.
        stream: the name under which the flow remembers the stream; None for the query's id.
        changes: the column with the kind of each change, if the stream has one.
    """

    name: str = "flow"
    flow: FeedTarget
    source: str
    stream: str | None = None
    changes: str | None = None
    delivery: Delivery = Delivery.EXACTLY_ONCE
    why: str = "the flow remembers the last batch in one step with its rows"
    own_checkpoint: bool = True

    @override
    def target(self, spec: QuerySpec) -> str:
        return f"the source {self.source} of the flow {self.flow.name}"

    @override
    def refusals(self, spec: QuerySpec) -> Iterator[tuple[str, str]]:
        yield from super().refusals(spec)
        if spec.mode is OutputMode.COMPLETE:
            yield (
                "A flow takes changes, so the whole result after each batch would be added again and again.",
                "use OutputMode.UPDATE and a source with a key, which is an upsert",
            )

    @override
    def check(self, spec: QuerySpec) -> None:
        super().check(spec)
        require_local(spec, "the flow")
        if spec.mode is OutputMode.UPDATE and not self.flow.source(self.source).key:
            raise ConfigError(
                f"The source {self.source!r} has no key, so updates would be added to the rows they replace.",
                hint="register the source with key=..., or use OutputMode.APPEND",
            )

    @override
    def taker(self, spec: QuerySpec, host: StreamHost, query_id: Callable[[], str]) -> BatchGate:
        checkpoint = spec.checkpoint
        take = host.feed(self, query_id, lambda: None if checkpoint is None else restored_at(checkpoint))
        return BatchGate(take, f"A tick of {self.source}")
