"""``KeyedStream``: a stream whose rows belong to keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.arguments import checked
from weirflow.errors import ColumnNotFound, ConfigError, did_you_mean
from weirflow.streaming.windows import WindowedStream, WindowKind, aggregates
from weirflow.types import OutputMode

if TYPE_CHECKING:
    from weirflow.state.descriptors import TimeKind
    from weirflow.streaming.connected import ConnectedStreams
    from weirflow.streaming.durations import Duration
    from weirflow.streaming.frame import StreamingDataFrame
    from weirflow.streaming.processed import ProcessedStream


@checked
class KeyedStream:
    """A stream by key; ``StreamingDataFrame.key_by`` makes it.

    Attributes:
        frame: the stream.
        keys: the columns that the key consists of.
    """

    def __init__(self, frame: StreamingDataFrame, keys: tuple[str, ...]) -> None:
        if not keys:
            raise ConfigError("A key needs at least one column.")
        for column in keys:
            if column not in frame.columns:
                raise ColumnNotFound(f"The stream has no column {column!r}.", hint=did_you_mean(column, frame.columns))
        self.frame = frame
        self.keys = keys

    def tumbling_window(self, size: Duration) -> WindowedStream:
        """See ``StreamingDataFrame.tumbling_window``."""
        return WindowedStream(self.frame, self.keys, WindowKind.TUMBLING, size)

    def sliding_window(self, size: Duration, slide: Duration) -> WindowedStream:
        """See ``StreamingDataFrame.sliding_window``."""
        return WindowedStream(self.frame, self.keys, WindowKind.SLIDING, size, slide)

    def session_window(self, gap: Duration) -> WindowedStream:
        """See ``StreamingDataFrame.session_window``."""
        return WindowedStream(self.frame, self.keys, WindowKind.SESSION, gap)

    def process(
        self,
        function: Any,
        *,
        broadcast: StreamingDataFrame | None = None,
        time: TimeKind | None = None,
        output_mode: OutputMode = OutputMode.APPEND,
    ) -> ProcessedStream:
        """Run a process function for each key, with state and timers; see ``weirflow.process.ProcessFunction``.

        Args:
            function: copied for each task of each batch.
            broadcast: a stream whose rows go to ``on_broadcast`` in every task, before the rows of their batch.
            time: by which time all its timers fire; by default event time if the stream has one.
            output_mode: that in which the result is written.

        Raises:
            ConfigError: the function cannot be used, or the stream has no event time and shall go by it, or what is
                broadcast has one, or is of another Session.
            UnsupportedError: the function or the key needs what Spark has not; the message says what.
            UserCodeError: ``open`` raised, which is called once to see what the function declares.
        """
        from weirflow.streaming.processed import processed  # noqa: PLC0415 - it makes streams, which make this

        return processed(self.frame, self.keys, function, broadcast=broadcast, time=time, output_mode=output_mode)

    def connect(self, other: KeyedStream) -> ConnectedStreams:
        """This stream as the left one and another as the right one, for a function of both.

        >>> orders.key_by("customer").connect(customers.key_by("id")).process(function)  # doctest: +SKIP

        Raises:
            ConfigError: the keys are of other types, or the streams of two Sessions.
        """
        from weirflow.streaming.connected import ConnectedStreams  # noqa: PLC0415 - it makes streams, which make this

        return ConnectedStreams(self, other)

    def agg(self, *expressions: Any) -> StreamingDataFrame:
        """Aggregate all rows of each key, without windows; see ``WindowedStream.agg`` for what is taken."""
        made = aggregates(expressions)
        grouped: StreamingDataFrame = self.frame.groupBy(*self.keys).agg(*made)
        return grouped
