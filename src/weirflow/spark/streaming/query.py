"""Streaming queries of Spark: how they are started and cancelled, and why they ended."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext

from weirflow.errors import QueryError, WeirflowError
from weirflow.spark.errors import translate, translated
from weirflow.spark.streaming.settings import own_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def start_native(
    frame: Any, trigger: tuple[str, Any] | None, conf: Mapping[str, str], begin: Callable[[Any], Any]
) -> Any:
    """Start a query, and return PySpark's handle of it.

    Args:
        frame: the native streaming frame.
        trigger: the keyword argument of PySpark's ``trigger``, and its value; None for its default.
        conf: settings of Spark that the query has for itself.
        begin: tells PySpark's writer all the rest, and starts it.
    """
    with translated(), own_settings(frame.sparkSession, conf):
        return begin(frame.writeStream if trigger is None else _triggered(frame.writeStream, *trigger))


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


def query_error(native: Any) -> WeirflowError | None:
    """The error that ended a query; None if it runs, was stopped or is done."""
    try:
        found = native.exception()
    except Exception as error:
        known = translate(error)
        if known is None:
            raise
        return known
    if found is None:
        return None
    known = translate(found) or QueryError(str(found))
    known.__cause__ = found
    return known
