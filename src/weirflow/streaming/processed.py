"""``ProcessedStream``: what a process function makes of a stream by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Name, checked
from weirflow.errors import ConfigError, did_you_mean
from weirflow.streaming.frame import StreamingDataFrame

if TYPE_CHECKING:
    from weirflow.streaming.writer import DataStreamWriter
    from weirflow.types import OutputMode

OUTPUT = "output"
"""The main output, among those of ``each_batch``."""


class ProcessedStream(StreamingDataFrame):
    """The rows that a function emits; its side outputs are streams beside.

    Each stream that is written is a query of its own, which runs the function with state of its own. ``each_batch``
    gives all outputs of one query.
    """

    def __init__(self, everything: Any, hosted: Any, base: StreamingDataFrame) -> None:
        from weirflow.spark.process.stream import one_output  # noqa: PLC0415 - imports pyspark

        super().__init__(one_output(everything, 0, 1 + len(hosted.tags)), base._runner, base._late)  # noqa: SLF001 - the same class
        self._everything = everything
        self._tags: list[str] = hosted.tags

    @checked
    def side(self, tag: Name) -> StreamingDataFrame:
        """The rows of a side output.

        Raises:
            ConfigError: the function declares no such output.
        """
        if tag not in self._tags:
            raise ConfigError(
                f"The function has no side output {tag!r}.",
                hint=did_you_mean(tag, self._tags) or "declare its columns in side_outputs",
            )
        from weirflow.spark.process.stream import one_output  # noqa: PLC0415 - imports pyspark

        return self._same(one_output(self._everything, 1 + self._tags.index(tag), 1 + len(self._tags)))

    @checked
    def each_batch(self, function: Callable[[Mapping[str, Any], int], object]) -> DataStreamWriter:
        """Write all outputs by one query: call ``function(outputs, number)`` with each batch.

        Args:
            function: given a frame for ``"output"`` and for each tag; a batch that is repeated has the same number.
        """
        names = [OUTPUT, *self._tags]

        def take(batch: Any, number: int) -> None:
            from weirflow.spark.process.stream import one_output  # noqa: PLC0415 - imports pyspark

            # Kept, so that the function runs once however often its outputs are read, and also if none is.
            kept = batch.persist()
            try:
                kept.count()
                function({name: one_output(kept, at, len(names)) for at, name in enumerate(names)}, number)
            finally:
                kept.unpersist()

        return self._same(self._everything).write_stream().foreach_batch(take)


def processed(
    base: StreamingDataFrame,
    keys: tuple[str, ...],
    function: Any,
    *,
    broadcast: StreamingDataFrame | None,
    time: str | None,
    output_mode: OutputMode,
) -> ProcessedStream:
    """Run a process function on a stream by key; see ``KeyedStream.process``."""
    event_time = base.event_time_or_none()
    streams = base._runner.streams  # noqa: SLF001 - the same package
    if broadcast is not None:
        _require_plain(broadcast, base)
        hosted = streams.broadcast_hosted(function, base.columns, event_time)
    else:
        hosted = streams.hosted(function, base.columns, event_time)
    hosted.time = time_of_timers(hosted, time, has_events=event_time is not None)
    told = event_time if hosted.judges_late and broadcast is None else None
    return run_on(base, keys, hosted, told_late=told, broadcast=broadcast, output_mode=output_mode)


def run_on(
    base: StreamingDataFrame,
    keys: tuple[str, ...],
    hosted: Any,
    *,
    told_late: str | None = None,
    broadcast: StreamingDataFrame | None = None,
    output_mode: OutputMode,
) -> ProcessedStream:
    """A stream of what a function puts out.

    Args:
        base: the rows that Spark hands to the function.
        keys: the columns of their key.
        hosted: the function.
        told_late: the column of the event time, if the function itself tells by it which rows are late, and these are
            the columns of its rows.
        broadcast: what is broadcast.
        output_mode: that in which the result is written.
    """
    from weirflow.spark.process.stream import process_stream  # noqa: PLC0415 - imports pyspark

    everything = base._runner.run(  # noqa: SLF001 - the same package
        "process",
        lambda: process_stream(
            base.spark,
            keys,
            hosted,
            told_late=told_late,
            broadcast=None if broadcast is None else broadcast.spark,
            output_mode=output_mode.value,
        ),
    )
    if broadcast is not None:
        base = base._same(base.spark, broadcast._late)  # noqa: SLF001 - the same package
    return ProcessedStream(everything, hosted, base)


def _require_plain(broadcast: StreamingDataFrame, base: StreamingDataFrame) -> None:
    """Refuse a stream that cannot be broadcast to another."""
    if broadcast._runner is not base._runner:  # noqa: SLF001 - the same package
        raise ConfigError("The two streams are of different Sessions.", hint="read both in one")
    if broadcast.event_time_or_none() is not None:
        raise ConfigError(
            "The broadcast stream has an event time, which would hold back the watermark of the rows.",
            hint="give it without with_event_time(...)",
        )


def time_of_timers(hosted: Any, chosen: str | None, *, has_events: bool) -> str | None:
    """By which time the query's timers fire: by events if they have one, else by the clock if there is a need."""
    lifetimes = hosted.lifetimes()
    if chosen not in (None, "event", "processing"):
        raise ConfigError(f"{chosen!r} is not a kind of time for timers.", hint="use 'event' or 'processing'")
    if chosen == "event" and not has_events:
        raise ConfigError(
            f"{hosted.name} uses event time, but its rows have none.",
            hint="call with_event_time(...) first",
        )
    if chosen is not None:
        return chosen
    if has_events:
        return "event"
    return "processing" if hosted.has_timers or "processing" in lifetimes else None
