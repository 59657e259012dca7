"""``StreamingDataFrame``: a frame whose rows keep coming; every PySpark method unchanged."""

from __future__ import annotations

from typing import Any

from weirflow.arguments import Name, checked
from weirflow.errors import ColumnNotFound, ConfigError, did_you_mean
from weirflow.spark.frames.frame import DataFrame, Runner
from weirflow.streaming.durations import Duration, spark_interval
from weirflow.streaming.keyed import KeyedStream
from weirflow.streaming.windows import WindowedStream, WindowKind
from weirflow.streaming.writer import DataStreamWriter

_TIMES = ("timestamp", "timestamp_ntz")


@checked
class StreamingDataFrame(DataFrame):
    """A frame whose rows keep coming. PySpark's methods work as on any frame, and return streams.

    >>> stream.with_event_time("at", "10 minutes").tumbling_window(60_000).agg(["count(*) AS n"])  # doctest: +SKIP
    """

    def __init__(self, native: Any, runner: Runner, late: tuple[str, ...] = ()) -> None:
        super().__init__(native, runner)
        self._late = late

    def with_event_time(self, column: Name, watermark: Duration = 0) -> StreamingDataFrame:
        """Name the column with the rows' time, and say how long after a later row they may still come.

        Args:
            column: a column of type TIMESTAMP.
            watermark: how late a row may be, compared with the latest row seen: milliseconds, a ``timedelta``, or
                text such as ``"10 minutes"``. Rows that are later are dropped by windows and joins.
        """
        delay = spark_interval(watermark, "watermark", allow_zero=True)
        types = dict(self._runner.run("dtypes", lambda: self.spark.dtypes))
        if column not in types:
            raise ColumnNotFound(f"The stream has no column {column!r}.", hint=did_you_mean(column, types))
        if types[column] not in _TIMES:
            raise ConfigError(
                f"The event time {column!r} is of type {types[column]}.",
                hint="cast it to TIMESTAMP first; timestamp_millis() reads milliseconds",
            )
        return self._same(self._runner.run("withWatermark", lambda: self.spark.withWatermark(column, delay)))

    def key_by(self, *columns: Name) -> KeyedStream:
        """The stream by key: what follows is done for each key separately."""
        return KeyedStream(self, columns)

    def tumbling_window(self, size: Duration) -> WindowedStream:
        """Windows of the event time, one after the other, each ``size`` milliseconds long."""
        return WindowedStream(self, (), WindowKind.TUMBLING, size)

    def sliding_window(self, size: Duration, slide: Duration) -> WindowedStream:
        """Windows of ``size`` milliseconds, one beginning every ``slide`` milliseconds."""
        return WindowedStream(self, (), WindowKind.SLIDING, size, slide)

    def session_window(self, gap: Duration) -> WindowedStream:
        """Windows that end when no row came for ``gap`` milliseconds."""
        return WindowedStream(self, (), WindowKind.SESSION, gap)

    def write_stream(self) -> DataStreamWriter:
        """A writer, to say where the rows go and to start the query."""
        return DataStreamWriter(self.spark, self._late, self._runner.streams)

    def to_streaming(self) -> StreamingDataFrame:
        """This frame: it streams already."""
        return self

    def event_time(self) -> str:
        """The column that ``with_event_time`` named; ``ConfigError`` if none was, or it is no longer selected."""
        found = self.event_time_or_none()
        if found is None:
            raise ConfigError("The stream has no event time for windows.", hint="call with_event_time(...) first")
        return found

    def event_time_or_none(self) -> str | None:
        """As ``event_time``, None if there is none."""
        schema = self._runner.run("schema", lambda: self.spark.schema)
        timed = (field for field in schema.fields if "spark.watermarkDelayMs" in (field.metadata or {}))
        return next((str(field.name) for field in timed), None)

    def without(self, kept: Any, late: tuple[str, ...]) -> StreamingDataFrame:
        """The rows for which the column ``kept`` is true; the query's late rows go to ``late``. For windows."""
        return self._same(self._runner.run("late_rows", lambda: self.spark.where(kept)), late)

    def _derived(self, native: Any) -> DataFrame:
        return self._same(native)

    def _same(self, native: Any, late: tuple[str, ...] = ()) -> StreamingDataFrame:
        return StreamingDataFrame(native, self._runner, (*self._late, *late))
