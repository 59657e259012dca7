"""Starts streaming queries of Spark."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext

from weirflow.spark.errors import translated
from weirflow.spark.streaming_settings import own_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class NativeLaunch:
    """A streaming query as Spark is to start it.

    Attributes:
        frame: the native streaming frame.
        mode: Spark's word for the output mode.
        trigger: the keyword argument of PySpark's ``trigger``, and its value; None for its default.
        options: those of the sink, and the checkpoint's location.
        name: the query's name.
        format: the sink; None if a function takes the rows.
        partition_by: columns whose values become folders.
        table: the catalog table to write, in place of a path.
        batches: called with each batch.
        rows: called with each row, or an object with ``open``, ``process`` and ``close``.
        conf: settings of Spark that the query has for itself.
    """

    frame: Any
    mode: str
    trigger: tuple[str, Any] | None
    options: Mapping[str, str]
    name: str
    format: str | None = None
    partition_by: tuple[str, ...] = ()
    table: str | None = None
    batches: Callable[[Any, int], Any] | None = None
    rows: Any = None
    conf: Mapping[str, str] = field(default_factory=dict)


def start_native(launch: NativeLaunch) -> Any:
    """Start the query, and return PySpark's handle of it."""
    with translated(), own_settings(launch.frame.sparkSession, launch.conf):
        writer = launch.frame.writeStream.outputMode(launch.mode).options(**launch.options).queryName(launch.name)
        if launch.partition_by:
            writer = writer.partitionBy(*launch.partition_by)
        if launch.trigger is not None:
            writer = _triggered(writer, *launch.trigger)
        if launch.batches is not None:
            return writer.foreachBatch(launch.batches).start()
        if launch.rows is not None:
            return writer.foreach(launch.rows).start()
        writer = writer.format(launch.format)
        return writer.toTable(launch.table) if launch.table is not None else writer.start()


def has_real_time_mode(frame: Any) -> bool:
    """Whether this Spark can run the native frame's query in real-time mode."""
    writer = frame.writeStream
    if "realTime" in inspect.signature(writer.trigger).parameters:
        return True
    # Spark 4.1 has the trigger, and PySpark's own name for it is still to come.
    return hasattr(writer, "_jwrite") and "RealTime" in dir(_jvm_trigger(frame))


def _triggered(writer: Any, kind: str, value: Any) -> Any:
    if kind == "realTime" and "realTime" not in inspect.signature(writer.trigger).parameters:
        writer._jwrite.trigger(_jvm_trigger(writer._df).RealTime(value))  # noqa: SLF001 - see has_real_time_mode
        return writer
    return writer.trigger(**{kind: value})


def _jvm_trigger(frame: Any) -> Any:
    return frame.sparkSession.sparkContext._jvm.org.apache.spark.sql.streaming.Trigger  # noqa: SLF001 - the only way


def cancel_jobs(native: Any) -> None:
    """Cancel the running jobs of a query; does nothing over Spark Connect."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - the one of this process
    if context is not None:
        context.cancelJobGroup(str(native.runId))
