"""Streaming queries of Spark: how they are started and cancelled, and why they ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark import SparkContext

from weirflow.errors import EndpointUnreachable, QueryError, SessionError, WeirflowError
from weirflow.spark.compat import real_time
from weirflow.spark.errors import translate, translated
from weirflow.spark.streaming.settings import own_settings


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
        writer = frame.writeStream
        if trigger is not None:
            kind, value = trigger
            writer = real_time(writer, value) if kind == "realTime" else writer.trigger(**{kind: value})
        return begin(writer)


def cancel_jobs(native: Any) -> None:
    """Cancel the running jobs of a query; does nothing over Spark Connect."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - the one of this process
    if context is not None:
        context.cancelJobGroup(str(native.runId))


def is_gone(session: Any) -> bool:
    """Whether a native session can run nothing any more: its JVM or server is gone, or its context was stopped.

    It starts no job, which could wait for executors for ever.
    """
    try:
        session.conf.get("spark.sql.shuffle.partitions")
        context = SparkContext._active_spark_context  # noqa: SLF001 - the one of this process
        return context is not None and bool(context._jsc.sc().isStopped())  # noqa: SLF001 - PySpark has no other way
    except Exception as error:
        known = translate(error)
        if known is None:
            raise
        return isinstance(known, SessionError | EndpointUnreachable)


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
