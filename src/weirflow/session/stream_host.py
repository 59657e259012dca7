"""``SessionStreams``: a Session as streaming queries know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from weirflow.types import Placement, Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from weirflow.config import Settings
    from weirflow.process.hosted import HostedFunction
    from weirflow.session.core import SessionCore
    from weirflow.session.operations import Operations
    from weirflow.session.profiles import Stores
    from weirflow.session.stream_feed import StreamFeed
    from weirflow.streaming.savepoints import Predecessor
    from weirflow.streaming.sinks.flow import FlowSink

T = TypeVar("T")


class SessionStreams:
    """What ``weirflow.streaming.host.StreamHost`` asks for, of a Session."""

    def __init__(self, session: SessionCore, stores: Stores) -> None:
        self._session = session
        self.profile: Profile = stores.profile
        self.checkpoints: str = stores.checkpoints

    @property
    def spark(self) -> Any:
        """See ``StreamHost``."""
        return self._session.spark

    @property
    def spark_runs(self) -> bool:
        """See ``StreamHost``."""
        from weirflow.spark.local import has_driver  # noqa: PLC0415 - imports pyspark

        return self.connect or has_driver()

    @property
    def settings(self) -> Settings:
        """See ``StreamHost``."""
        return self._session.settings

    @property
    def runner(self) -> Operations:
        """See ``StreamHost``."""
        return self._session.operations

    @property
    def distributed(self) -> bool:
        """See ``StreamHost``."""
        return self._session.settings.placement is Placement.DISTRIBUTED

    @property
    def connect(self) -> bool:
        """See ``StreamHost``."""
        return (self._session.settings.endpoint or "").startswith("sc://")

    def run(self, description: str, call: Callable[[], T]) -> T:
        """See ``StreamHost``."""
        return self._session.operations.run(description, call)

    def hosted(self, function: Any, columns: Sequence[str], event_time: str | None) -> HostedFunction:
        """See ``StreamHost``."""
        from weirflow.process.hosted import HostedFunction  # noqa: PLC0415 - only those who process need it

        return HostedFunction(function, columns, event_time=event_time)

    def feed(self, sink: FlowSink, query_id: Callable[[], str], before: Callable[[], Predecessor | None]) -> StreamFeed:
        """See ``StreamHost``."""
        from weirflow.session.stream_feed import StreamFeed  # noqa: PLC0415 - imports the kernel

        return StreamFeed(sink, query_id, before, self)

    def wrap(self, native: Any) -> Any:
        """See ``StreamHost``."""
        from weirflow.spark.frame import DataFrame  # noqa: PLC0415 - imports pyspark

        return DataFrame(native, self._session.operations)

    def inside(self) -> AbstractContextManager[None]:
        """See ``StreamHost``."""
        return self._session.operations.inside()

    def follow(
        self, description: str, stop: Callable[[], None], note: Callable[[], str]
    ) -> Callable[[BaseException | None], None]:
        """See ``StreamHost``."""
        return self._session.operations.follow(description, stop, note)
