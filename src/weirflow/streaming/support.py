"""Which output mode, trigger, sink and query go together; the rest is refused before Spark is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.errors import StreamRefused
from weirflow.streaming.sinks import FILES, FLOW, UPSERTED
from weirflow.streaming.trigger import TriggerKind
from weirflow.types import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirflow.spark.streaming_plan import QueryShape
    from weirflow.streaming.sinks import Sink
    from weirflow.streaming.trigger import Trigger

_MAP_LIKE = frozenset(
    {
        "Project",
        "Filter",
        "SubqueryAlias",
        "View",
        "EventTimeWatermark",
        "StreamingRelation",
        "StreamingRelationV2",
        "SerializeFromObject",
        "DeserializeToObject",
        "MapElements",
        "MapPartitions",
        "TypedFilter",
        "ResolvedHint",
        "UnresolvedHint",
    }
)
_CONTINUOUS_SOURCES = frozenset({"rate", "kafka"})
_REAL_TIME_SINKS = frozenset({"kafka", "console"})
_REAL_TIME_MS = 5000  # the shortest time between checkpoints that the mode has


@dataclass(frozen=True)
class Asked:
    """What a writer asks for.

    Attributes:
        mode: the output mode.
        trigger: when it runs.
        sink: where rows go.
        shape: what the query is made of.
        keys: the columns that updates are merged by.
        restarts: whether it is to be started again after an error.
    """

    mode: OutputMode
    trigger: Trigger
    sink: Sink
    shape: QueryShape
    keys: tuple[str, ...] = ()
    restarts: bool = False


def require_supported(asked: Asked) -> None:
    """Raise ``StreamRefused`` for the first reason why this cannot be right."""
    for message, hint in _refusals(asked):
        raise StreamRefused(message, hint=hint)


def _refusals(asked: Asked) -> Iterator[tuple[str, str]]:
    yield from _of_sink(asked)
    yield from _of_query(asked)
    if asked.trigger.kind is TriggerKind.CONTINUOUS:
        yield from _of_continuous(asked)


def _of_sink(asked: Asked) -> Iterator[tuple[str, str]]:
    mode, name = asked.mode, asked.sink.name
    if name in FILES and mode is OutputMode.UPDATE:
        yield (
            f"Files are only ever added, so a {name} folder cannot take updates of rows it has.",
            "use OutputMode.APPEND with a watermark, or a delta or iceberg table with keys()",
        )
    if name in FILES and mode is OutputMode.COMPLETE:
        yield (
            f"Files are only ever added, so a {name} folder cannot be written anew after each batch.",
            "use OutputMode.APPEND with a watermark, or a delta or iceberg table",
        )
    if name in UPSERTED and mode is OutputMode.UPDATE and not asked.keys:
        yield (
            f"An update of a {name} table is merged by its key, and none is given.",
            "name the columns that identify a row with keys(...)",
        )
    if asked.keys and not (name in UPSERTED and mode is OutputMode.UPDATE):
        yield (
            f"keys() is what updates are merged by; {mode} to {name} merges nothing.",
            "leave it out, or use OutputMode.UPDATE and a delta or iceberg table",
        )
    if name == FLOW and mode is OutputMode.COMPLETE:
        yield (
            "A flow takes changes, so the whole result after each batch would be added again and again.",
            "use OutputMode.UPDATE and a source with a key, which is an upsert",
        )
    if name == "memory" and asked.restarts and mode is not OutputMode.COMPLETE:
        yield (
            "What a memory sink holds is not in the checkpoint, so a query that is started again would lack rows.",
            "leave restart() out, or write somewhere else",
        )


def _of_query(asked: Asked) -> Iterator[tuple[str, str]]:
    mode, shape = asked.mode, asked.shape
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


def _of_continuous(asked: Asked) -> Iterator[tuple[str, str]]:
    if not asked.sink.continuous:
        yield (
            f"Rows reach {asked.sink.name} in batches, which Trigger.continuous does not make.",
            "use Trigger.processing_time, or write to kafka, memory or console",
        )
    if others := sorted(set(asked.shape.sources) - _CONTINUOUS_SOURCES):
        yield (
            f"The source {others[0]} is read in batches, which Trigger.continuous does not make.",
            "use Trigger.processing_time, or read from kafka",
        )
    if others := sorted(asked.shape.operators - _MAP_LIKE):
        yield (
            f"Trigger.continuous runs queries that only select and filter; this one has {others[0]}.",
            "use Trigger.processing_time",
        )


def is_real_time(asked: Asked) -> bool:
    """Whether Spark's real-time mode takes the query: updates from Kafka, saved every five seconds or less often.

    What ``Trigger.continuous`` else runs is Spark's continuous trigger.
    """
    return (
        asked.mode is OutputMode.UPDATE
        and set(asked.shape.sources) == {"kafka"}
        and asked.sink.name in _REAL_TIME_SINKS
        and asked.trigger.ms >= _REAL_TIME_MS
    )
