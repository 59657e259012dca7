"""``SessionStreams``: a Session as streaming queries know it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weirflow.types import Placement, Profile

if TYPE_CHECKING:
    from weirflow.config import Settings
    from weirflow.flows.feeds.stream import StreamFeed
    from weirflow.process.hosted.broadcast import HostedBroadcastFunction
    from weirflow.process.hosted.one_input import HostedProcessFunction
    from weirflow.process.hosted.two_inputs import HostedCoProcessFunction
    from weirflow.session.core import SessionCore
    from weirflow.session.operations import Operations
    from weirflow.session.profiles import Stores
    from weirflow.streaming.savepoints.named import RestoreNote
    from weirflow.streaming.sinks.flow import FlowSink


class SessionStreams:
    """What ``weirflow.streaming.host.StreamHost`` asks for, of a Session."""

    def __init__(self, session: SessionCore, stores: Stores) -> None:
        self._session = session
        self.settings: Settings = session.settings
        self.profile: Profile = stores.profile
        self.checkpoints: str = stores.checkpoints
        self.distributed = session.settings.placement is Placement.DISTRIBUTED
        self.connect = (session.settings.endpoint or "").startswith("sc://")
        self.runner: Operations = session.operations
        self.run = session.operations.run
        self.inside = session.operations.inside
        self.follow = session.operations.follow

    @property
    def spark(self) -> Any:
        """See ``StreamHost``."""
        return self._session.spark

    @property
    def spark_runs(self) -> bool:
        """See ``StreamHost``."""
        from weirflow.spark.launch.local import has_driver  # noqa: PLC0415 - imports pyspark

        return self.connect or has_driver()

    def hosted(self, function: Any, columns: Sequence[str], event_time: str | None) -> HostedProcessFunction:
        """See ``StreamHost``."""
        from weirflow.process.hosted.one_input import HostedProcessFunction  # noqa: PLC0415 - for those who process

        return HostedProcessFunction(function, columns, event_time)

    def broadcast_hosted(
        self, function: Any, columns: Sequence[str], event_time: str | None
    ) -> HostedBroadcastFunction:
        """See ``StreamHost``."""
        from weirflow.process.hosted.broadcast import HostedBroadcastFunction  # noqa: PLC0415 - for those who process

        return HostedBroadcastFunction(function, columns, event_time)

    def co_hosted(self, function: Any, event_time: tuple[str | None, str | None]) -> HostedCoProcessFunction:
        """See ``StreamHost``."""
        from weirflow.process.hosted.two_inputs import HostedCoProcessFunction  # noqa: PLC0415 - for those who process

        return HostedCoProcessFunction(function, event_time)

    def feed(self, sink: FlowSink, query_id: Callable[[], str], before: Callable[[], RestoreNote | None]) -> StreamFeed:
        """See ``StreamHost``."""
        from weirflow.flows.feeds.stream import StreamFeed  # noqa: PLC0415 - imports the kernel

        return StreamFeed(sink, query_id, before, self)

    def wrap(self, native: Any) -> Any:
        """See ``StreamHost``."""
        from weirflow.spark.frames.frame import DataFrame  # noqa: PLC0415 - imports pyspark

        return DataFrame(native, self.runner)
