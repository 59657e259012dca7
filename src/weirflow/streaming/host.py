"""What streaming queries need of the Session they run in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from weirflow.config import Settings
    from weirflow.streaming.savepoints.named import RestoreNote
    from weirflow.streaming.sinks.flow import FlowSink
    from weirflow.types import Profile

T = TypeVar("T")


class StreamHost(Protocol):
    """The Session, as far as streaming queries know it."""

    @property
    def spark(self) -> Any:
        """The native session."""

    @property
    def spark_runs(self) -> bool:
        """Whether there is a Spark that may have queries: a server, or one that was started."""

    @property
    def settings(self) -> Settings:
        """The settings, secrets included."""

    @property
    def connect(self) -> bool:
        """Whether Spark is behind Spark Connect, so that functions run in the server's Python."""

    @property
    def distributed(self) -> bool:
        """Whether a folder of this machine cannot hold checkpoints."""

    @property
    def profile(self) -> Profile:
        """The durability profile."""

    @property
    def checkpoints(self) -> str:
        """Where the profile keeps checkpoints."""

    @property
    def runner(self) -> Any:
        """Runs the Spark work of frames."""

    def run(self, description: str, call: Callable[[], T]) -> T:
        """Run Spark work as an operation, errors translated."""

    def hosted(self, function: Any, columns: Sequence[str], event_time: str | None) -> Any:
        """A process function as a ``weirflow.process.hosted.function.HostedFunction``."""

    def broadcast_hosted(self, function: Any, columns: Sequence[str], event_time: str | None) -> Any:
        """As ``hosted``, for a function with a broadcast input."""

    def co_hosted(self, function: Any, event_time: tuple[str | None, str | None]) -> Any:
        """A function of two inputs as the same, given the columns of their event times."""

    def feed(
        self, sink: FlowSink, query_id: Callable[[], str], before: Callable[[], RestoreNote | None]
    ) -> Callable[[Any, int], object]:
        """What takes the batches of a query into a flow; ``before`` reads what its checkpoint was restored from."""

    def wrap(self, native: Any) -> Any:
        """A native frame as ours."""

    def inside(self) -> AbstractContextManager[None]:
        """Have the Spark work of the block be that of a query, which is listed already."""

    def follow(
        self, description: str, own_id: str, stop: Callable[[], None], note: Callable[[], str]
    ) -> Callable[[BaseException | None], None]:
        """List a query among the operations by its own id, until what is returned is called with its error or None."""
