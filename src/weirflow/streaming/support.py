"""Which output mode, trigger, sink and query go together; the rest is refused before Spark is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weirflow.errors import StreamRefused
from weirflow.streaming.trigger import TriggerKind
from weirflow.types import OutputMode

if TYPE_CHECKING:
    from weirflow.spark.streaming.plan import QueryShape
    from weirflow.streaming.query.spec import QuerySpec
    from weirflow.streaming.sinks.sink import StreamSink

_MAP_LIKE = frozenset(
    {
        *("Project", "Filter", "SubqueryAlias", "View", "EventTimeWatermark", "StreamingRelation", "TypedFilter"),
        *("StreamingRelationV2", "SerializeFromObject", "DeserializeToObject", "MapElements", "MapPartitions"),
        *("ResolvedHint", "UnresolvedHint"),
    }
)
_CONTINUOUS_SOURCES = frozenset({"rate", "kafka"})
_REAL_TIME_SINKS = frozenset({"kafka", "console"})
_REAL_TIME_MS = 5000  # the shortest time between checkpoints that the mode has


def require_supported(spec: QuerySpec, shape: QueryShape) -> None:
    """Raise ``StreamRefused`` for the first reason why this cannot be right."""
    for message, hint in _refusals(spec, shape):
        raise StreamRefused(message, hint=hint)


def _refusals(spec: QuerySpec, shape: QueryShape) -> Iterator[tuple[str, str]]:
    yield from spec.sink.refusals(spec)
    yield from _of_query(spec.mode, shape)
    if spec.trigger.kind is TriggerKind.CONTINUOUS:
        yield from _of_continuous(spec.sink, shape)


def _of_query(mode: OutputMode, shape: QueryShape) -> Iterator[tuple[str, str]]:
    if mode is OutputMode.COMPLETE and not shape.aggregations:
        yield (
            "The complete result of a query that does not aggregate is every row it has ever read.",
            "aggregate, or use OutputMode.APPEND",
        )
    if mode is OutputMode.APPEND and shape.aggregations and not shape.final_groups:
        yield (
            "Groups without an event time are never final, so OutputMode.APPEND would write none of them.",
            "group by a window of with_event_time(...), or use OutputMode.UPDATE or COMPLETE",
        )
    if mode is not OutputMode.APPEND and shape.aggregations > 1:
        yield (
            f"Spark aggregates an aggregation only in append mode, not in {mode}.",
            "use OutputMode.APPEND, or write the first aggregation and read it as another stream",
        )
    if "Sort" in shape.operators and not (mode is OutputMode.COMPLETE and shape.aggregations):
        yield (
            "A stream has no end to sort up to; only the complete result of an aggregation can be sorted.",
            "sort where the result is read, or use OutputMode.COMPLETE",
        )
    if "Window" in shape.operators:
        yield (
            "Functions OVER a window of rows need all rows of a partition, which a stream never has.",
            "use tumbling_window, sliding_window or session_window",
        )
    if mode is OutputMode.UPDATE and shape.operators & {"GlobalLimit", "LocalLimit"}:
        yield (
            "Which rows a limit keeps cannot be updated.",
            "use OutputMode.APPEND, or limit where the result is read",
        )


def _of_continuous(sink: StreamSink, shape: QueryShape) -> Iterator[tuple[str, str]]:
    if not sink.continuous:
        yield (
            f"Rows reach {sink.name} in batches, and Trigger.continuous makes none.",
            "use Trigger.processing_time, or write to kafka, memory or console",
        )
    if others := sorted(set(shape.sources) - _CONTINUOUS_SOURCES):
        yield (
            f"The source {others[0]} is read in batches, and Trigger.continuous makes none.",
            "use Trigger.processing_time, or read from kafka",
        )
    if others := sorted(shape.operators - _MAP_LIKE):
        yield (
            f"Trigger.continuous runs queries that only select and filter; this one has {others[0]}.",
            "use Trigger.processing_time",
        )


def is_real_time(spec: QuerySpec, shape: QueryShape) -> bool:
    """Whether Spark's real-time mode takes the query: updates from Kafka, saved every five seconds or less often.

    What ``Trigger.continuous`` else runs is Spark's continuous trigger.
    """
    return (
        spec.mode is OutputMode.UPDATE
        and set(shape.sources) == {"kafka"}
        and spec.sink.name in _REAL_TIME_SINKS
        and spec.trigger.ms >= _REAL_TIME_MS
    )
