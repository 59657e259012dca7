"""``StreamSink``: what a kind of sink promises, what it refuses, and how a query writes to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, UnsupportedError
from weirflow.types import Delivery, OutputMode

if TYPE_CHECKING:
    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.query.spec import QuerySpec
    from weirflow.streaming.savepoints.named import QuerySavepoint

Taker = Callable[[Any, int], Any]
"""Takes a batch and its number."""


@dataclass(frozen=True)
class StreamSink:
    """Where the rows of a query go. This one is a format that Spark knows and we do not; other kinds are subclasses.

    Attributes:
        name: what ``format()`` takes.
        delivery: how often rows arrive when the query goes on from its checkpoint.
        why: how that comes.
        continuous: whether Spark writes to it without batches.
        own_checkpoint: whether Spark finds a folder for the checkpoint if none is given.
        has_folders: whether rows can be put into folders by the values of columns.
    """

    name: str
    delivery: Delivery = Delivery.UNKNOWN
    why: str = "it is not one of Spark's own sinks"
    continuous: bool = False
    own_checkpoint: bool = False
    has_folders: bool = False

    def promise(self, mode: OutputMode) -> tuple[Delivery, str]:  # noqa: ARG002 - others go by it
        """How often rows arrive in this mode, and why."""
        return self.delivery, self.why

    def target(self, spec: QuerySpec) -> str:
        """Where rows go, for people."""
        place = spec.table or spec.options.get("path") or spec.options.get("topic")
        return f"{self.name} {place}" if place else self.name

    def refusals(self, spec: QuerySpec) -> Iterator[tuple[str, str]]:
        """Why this query would lose or double rows here, each with what to do instead."""
        if spec.keys:
            yield (
                f"keys() is what updates are merged by; {spec.mode} to {self.name} merges nothing.",
                "leave it out, or use OutputMode.UPDATE and a delta or iceberg table",
            )

    def check(self, spec: QuerySpec) -> None:
        """Raise ``ConfigError`` if something is missing or contradicts itself."""
        if spec.partition_by and not self.has_folders:
            raise ConfigError(f"{self.name} has no folders to partition by.", hint="leave partition_by out")

    def prepare(self, spec: QuerySpec, savepoint: QuerySavepoint) -> None:
        """Make the target ready for a query that begins with a savepoint, or refuse it; called before each start."""

    def taker(self, spec: QuerySpec, host: StreamHost, query_id: Callable[[], str]) -> Taker | None:
        """What Spark is to give each batch to: a ``BatchGate``, or over Spark Connect a function that is sent there.

        None if Spark itself writes.

        Args:
            spec: the query, with its name and its checkpoint.
            host: where it runs.
            query_id: the query's id; waits until it is known.
        """

    def begin(self, writer: Any, spec: QuerySpec) -> Any:
        """Start PySpark's writer, for sinks without a ``taker``."""
        writer = writer.format(self.name)
        return writer.toTable(spec.table) if spec.table is not None else writer.start()

    def kept(self, spec: QuerySpec, host: StreamHost) -> tuple[Callable[[], Any], Callable[[], None] | None] | None:
        """What reads the rows that this process keeps, and what forgets them; None if it keeps none."""


def require_local(spec: QuerySpec, what: str) -> None:
    """Raise ``UnsupportedError`` if batches are handled by another process, which does not have this."""
    if not hasattr(spec.frame, "_jdf"):
        raise UnsupportedError(
            f"Over Spark Connect batches are handled by the server's Python, where {what} is not.",
            hint="start the query in an embedded or single-node Session",
        )
