"""A process function in a streaming query, through PySpark's ``transformWithState``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from weirflow.errors import UnsupportedError
from weirflow.spark.frames.arrow import spark_table
from weirflow.spark.process.broadcast import unpacked, with_broadcast
from weirflow.spark.process.copies import LaneHost
from weirflow.spark.process.lanes import LANE, STEER
from weirflow.spark.process.state import SparkHost, key_of

# What Spark hands back with a timer as it was given; the keys of other types come back as numbers.
_KEYS = frozenset({"string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "binary"})
_MODES = {None: "None", "event": "EventTime", "processing": "ProcessingTime"}


def process_stream(
    native: Any,
    keys: Sequence[str],
    hosted: Any,
    *,
    told_late: str | None = None,
    broadcast: Any = None,
    output_mode: str,
) -> Any:
    """The native streaming frame of all that a function puts out.

    Its columns are those of the output if that is the only one, else a STRUCT for each output, one of them not NULL.

    Args:
        native: the stream.
        keys: the columns of its key.
        hosted: a ``weirflow.process.hosted.function.HostedFunction``.
        told_late: the column of the event's time, if the function itself tells by it which rows are late.
        broadcast: a native stream for every task; the function then is a ``HostedBroadcastFunction``.
        output_mode: of the query.
    """
    types = dict(native.dtypes)
    for key in keys:
        if types[key] not in _KEYS:
            raise UnsupportedError(
                f"Spark has no timers for keys of type {types[key].upper()}, the type of {key!r}.",
                hint="cast the column to STRING or BIGINT first",
            )
    if told_late is not None:
        # Spark drops late rows by what it knows about this column.
        native = native.withColumn(told_late, sf.col(told_late).alias(told_late, metadata={"weirflow": "time"}))
    columns, *others = hosted.schemas()
    if others:
        columns = pa.schema([(f"o{at}", pa.struct(list(one))) for at, one in enumerate((columns, *others))])
    processor = FunctionProcessor(hosted)
    if broadcast is not None:
        processor = LaneProcessor(hosted, len(keys))
        native = with_broadcast(native, broadcast, keys)
        keys = (LANE, *keys, STEER)
    return native.groupBy(*keys).transformWithState(
        statefulProcessor=processor,
        outputStructType=from_arrow_schema(spark_table(columns.empty_table()).schema, prefer_timestamp_ntz=True),
        outputMode=output_mode,
        timeMode=_MODES[hosted.time],
    )


def one_output(native: Any, at: int, outputs: int) -> Any:
    """The rows of one of some outputs, out of what ``process_stream`` made."""
    if outputs == 1:
        return native
    return native.where(sf.col(f"o{at}").isNotNull()).select(f"o{at}.*")


class FunctionProcessor(StatefulProcessor):
    """Runs a function for Spark, which makes a copy of it for each task."""

    def __init__(self, hosted: Any) -> None:
        self._hosted = hosted

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark, in the driver and in each task."""
        self._hosted.open(SparkHost(handle, removes_expired=self._hosted.time == "processing"))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803 - Spark's
        """Called by Spark with the rows of a key in a batch."""
        return _tagged(self._hosted.rows(key_of(key), rows, *_times(timerValues)))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803 - Spark's
        """Called by Spark for each timer that is due."""
        return _tagged(self._hosted.due(key_of(key), *_times(timerValues)))

    def close(self) -> None:
        """Called by Spark at the end of a task."""
        self._hosted.close()


class LaneProcessor(FunctionProcessor):
    """Runs a function with a broadcast input on rows as ``with_broadcast`` makes them.

    Args:
        hosted: a ``weirflow.process.hosted.broadcast.HostedBroadcastFunction``.
        columns: how many columns the key has.
    """

    def __init__(self, hosted: Any, columns: int) -> None:
        super().__init__(hosted)
        self._columns = columns

    def init(self, handle: StatefulProcessorHandle) -> None:
        """See ``FunctionProcessor``."""
        host = LaneHost(handle, removes_expired=self._hosted.time == "processing", columns=self._columns)
        self._copies = host.copies
        self._hosted.open(host)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803 - Spark's
        """See ``FunctionProcessor``."""
        if key[0] >= 0:
            self._copies.at_key(key)
            return super().handleInputRows(key[1:-1], rows, timerValues)
        if self._copies.at_copy(key):
            told = unpacked(rows)
            self._hosted.told(told.rows, told.now, _times(timerValues)[1])
        self._copies.write()
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803 - Spark's
        """See ``FunctionProcessor``."""
        self._copies.at_key(key)
        return super().handleExpiredTimer(key[1:-1], timerValues, expiredTimerInfo)


class _Row(dict[str, Any]):
    """A row as Spark asks for it."""

    def asDict(self, recursive: bool) -> dict[str, Any]:  # noqa: ARG002, FBT001, N802 - Spark's
        return self


def _tagged(outputs: list[list[dict[str, Any]]]) -> Iterator[Any]:
    if len(outputs) == 1:
        return map(_Row, outputs[0])
    return (_Row({f"o{at}": row}) for at, rows in enumerate(outputs) for row in rows)


def _times(values: Any) -> tuple[int, int]:
    return values.getCurrentProcessingTimeInMs(), values.getCurrentWatermarkInMs()
