"""``WindowedStream``: a stream cut into windows of its event time."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from weirflow.arguments import Sql, Uri, checked, require, shown
from weirflow.errors import ConfigError
from weirflow.streaming.durations import Duration, interval_ms, spark_interval

if TYPE_CHECKING:
    from weirflow.streaming.frame import StreamingDataFrame

_ONE_KEY = "_weirflow_one_key"


class WindowKind(StrEnum):
    """How windows lie in time."""

    TUMBLING = "tumbling"
    SLIDING = "sliding"
    SESSION = "session"


@checked
class WindowedStream:
    """A stream cut into windows; ``agg`` makes it a stream again, with one row for each window and key.

    Args:
        frame: the stream, which has an event time.
        keys: columns to group by, beside the window.
        kind: how windows lie in time.
        size: how long they are, or the gap that ends a session.
        slide: how far apart they begin, if they slide.
        late: where rows go that come too late.
    """

    def __init__(
        self,
        frame: StreamingDataFrame,
        keys: tuple[str, ...],
        kind: WindowKind,
        size: Duration,
        slide: Duration | None = None,
        *,
        late: tuple[str, ...] = (),
    ) -> None:
        self._frame = frame
        self._keys = keys
        self._kind = kind
        self._size = spark_interval(size, "gap" if kind is WindowKind.SESSION else "size of windows")
        self._slide = None if slide is None else spark_interval(slide, "slide of windows")
        self._column = frame.event_time()
        self._late = late

    def late_rows(self, path: Uri) -> WindowedStream:
        """Write the rows that come too late for their windows as Parquet files under ``path``.

        They are just the rows that Spark would drop, each with all its columns, and each batch's exactly once. All rows
        pass a Python worker for it, which costs throughput.

        Args:
            path: a folder or storage URI that driver and workers reach, of this query alone.
        """
        return WindowedStream(self._frame, self._keys, self._kind, self._size, self._slide, late=(str(path),))

    def agg(self, *expressions: Any) -> StreamingDataFrame:
        """Aggregate the rows of each window and key.

        The result has the column ``window`` (for sessions ``session_window``) with ``start`` and ``end``, the keys, and
        the aggregates.

        Args:
            expressions: PySpark columns, SQL such as ``"count(*) AS n"``, or lists of them.
        """
        made = aggregates(expressions)
        frame = self._without_late()
        if self._kind is WindowKind.SESSION and not self._keys:
            from weirflow.spark.streaming.columns import one_key  # noqa: PLC0415 - imports pyspark

            grouped = frame.groupBy(self._window(), one_key(self._column).alias(_ONE_KEY)).agg(*made).drop(_ONE_KEY)
        else:
            grouped = frame.groupBy(self._window(), *self._keys).agg(*made)
        return cast("StreamingDataFrame", grouped)

    def _window(self) -> Any:
        from weirflow.spark.streaming.columns import session_window, time_window  # noqa: PLC0415 - imports pyspark

        if self._kind is WindowKind.SESSION:
            return session_window(self._column, self._size)
        return time_window(self._column, self._size, self._slide)

    def _without_late(self) -> StreamingDataFrame:
        if not self._late:
            return self._frame
        from weirflow.spark.streaming.columns import last_end_micros  # noqa: PLC0415 - imports pyspark
        from weirflow.spark.streaming.late import on_time  # noqa: PLC0415

        kind = dict(self._frame.dtypes)[self._column]
        if kind != "timestamp":
            raise ConfigError(
                f"Late rows are found by a TIMESTAMP, but {self._column!r} is {kind}.", hint="cast it first"
            )
        size = interval_ms(self._size)
        slide = None if self._kind is WindowKind.SESSION else interval_ms(self._slide or self._size)
        return self._frame.without(on_time(last_end_micros(self._column, size, slide), self._late[0]), self._late)


def aggregates(expressions: tuple[Any, ...]) -> list[Any]:
    """Columns of what ``agg`` was given: columns, SQL text, or lists of them."""
    from weirflow.spark.streaming.columns import sql_column  # noqa: PLC0415 - imports pyspark

    flat: list[Any] = []
    for one in expressions:
        flat.extend(one if isinstance(one, list | tuple) else [one])
    if not flat:
        raise ConfigError("There is nothing to aggregate.", hint='give aggregates, such as agg(["count(*) AS n"])')
    return [sql_column(_aggregate(one)) if isinstance(one, str) else _aggregate(one) for one in flat]


def _aggregate(one: Any) -> Any:
    """What was given, if it is a column or SQL text."""
    from weirflow.spark.streaming.columns import is_column  # noqa: PLC0415 - imports pyspark

    try:
        if is_column(one):
            return one
        return require(Sql, one)
    except ValueError as error:
        raise ConfigError(
            f"agg(): an aggregate is {shown(one)}; {error}.", hint='give columns, or SQL such as "count(*) AS n"'
        ) from None
