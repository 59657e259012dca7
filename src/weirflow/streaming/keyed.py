"""``KeyedStream``: a stream whose rows belong to keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.errors import ColumnNotFound, ConfigError, did_you_mean
from weirflow.streaming.windows import WindowedStream, WindowKind, aggregates

if TYPE_CHECKING:
    from weirflow.streaming.durations import Duration
    from weirflow.streaming.frame import StreamingDataFrame


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

    def agg(self, *expressions: Any) -> StreamingDataFrame:
        """Aggregate all rows of each key, without windows; see ``WindowedStream.agg`` for what is taken."""
        made = aggregates(expressions)
        grouped: StreamingDataFrame = self.frame.groupBy(*self.keys).agg(*made)
        return grouped
