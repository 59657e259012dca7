"""``DataStreamWriter``: says where the rows of a stream go, and starts the query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self

from weirflow.arguments import Hint, Name, Uri, checked
from weirflow.errors import ConfigError
from weirflow.streaming.query.restart import RestartPolicy
from weirflow.streaming.query.spec import QuerySpec
from weirflow.streaming.sinks.flow import FeedTarget, FlowSink
from weirflow.streaming.sinks.foreach import Foreach, ForeachBatch
from weirflow.streaming.sinks.formats import sink_of
from weirflow.types import OutputMode, one_of

if TYPE_CHECKING:
    from weirflow.streaming.query.handle import StreamingQuery
    from weirflow.streaming.query.manager import StreamingQueryManager
    from weirflow.streaming.trigger import Trigger

_BY_METHOD = ("foreach", "foreach_batch", "flow")
_DEFAULT = "parquet"

OptionValue = str | int | float | bool | Path
"""What the value of an option may be."""


class RowWriter(Protocol):
    """What writes rows in Spark's workers; its ``open`` and ``close`` are called if it has them."""

    def process(self, row: Any) -> object:
        """Write a row."""


@checked
class DataStreamWriter:
    """Where the rows of a stream go. Every method changes the writer and returns it; ``start`` starts the query.

    Args:
        frame: the native streaming frame.
        late: where the rows go that come too late.
        manager: starts queries.
    """

    def __init__(self, frame: Any, late: tuple[str, ...], manager: StreamingQueryManager) -> None:
        self._manager = manager
        self._spec = QuerySpec(frame, sink_of(_DEFAULT), late)

    def output_mode(self, mode: OutputMode | str) -> Self:
        """Which rows are written after each batch; by default those that are final."""
        return self._told(mode=one_of(OutputMode, str(mode).casefold(), "No output mode is called"))

    def trigger(self, trigger: Annotated[Trigger, Hint("use Trigger.available_now() and the like")]) -> Self:
        """When the query looks for rows; by default as soon as the last batch is done."""
        return self._told(trigger=trigger)

    def format(self, name: Name) -> Self:
        """The kind of sink: ``memory``, ``console``, ``parquet``, ``kafka``, ``kafka-transactions``, ``delta``, ..."""
        chosen = name.casefold()
        if chosen in _BY_METHOD:
            raise ConfigError(f"format({chosen!r}) does not say enough.", hint=f"use {chosen}(...)")
        return self._told(sink=sink_of(chosen))

    def foreach_batch(self, function: Callable[[Any, int], object]) -> Self:
        """Call ``function(frame, number)`` with each batch; a batch that is repeated has the same number.

        In this process, with a ``DataFrame``; over Spark Connect in the server's Python, with PySpark's.
        """
        return self._told(sink=ForeachBatch(function=function))

    def foreach(self, function: Callable[[Any], object] | RowWriter) -> Self:
        """Call a function with each row, in Spark's workers; or an object's ``open``, ``process`` and ``close``."""
        return self._told(sink=Foreach(function=function))

    def flow(self, flow: FeedTarget, source: Name, name: Name | None = None, changes: Name | None = None) -> Self:
        """Tick a source of an incremental flow with each batch, exactly once; with a key, rows are upserts.

        If the flow is in shards, rows stay on the executors.

        Args:
            flow: the flow.
            source: one of its sources, with the stream's columns. A column ``_weight`` holds weights: -1 retracts.
            name: under which the flow remembers the stream's last batch; a query with another checkpoint is refused
                under this name. None has the flow tell queries apart by their ids, so that such a query starts over.
            changes: a column with the kind of each change (insert, delete, ...); see ``DeltaBatch.from_changes``.
        """
        flow.source(source)
        return self._told(sink=FlowSink(flow=flow, source=source, stream=name, changes=changes))

    def table(self, name: Name) -> Self:
        """Write to a table of a catalog instead of a path."""
        return self._told(table=name)

    def keys(self, *columns: Name) -> Self:
        """The columns that identify a row, by which ``OutputMode.UPDATE`` is merged into a Delta or Iceberg table."""
        return self._told(keys=columns)

    def option(self, name: Name, value: OptionValue) -> Self:
        """An option of the sink; ``checkpoint.location`` and ``checkpointLocation`` are the same."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return self._told(options={**self._spec.options, name: text})

    def options(self, **options: OptionValue) -> Self:
        """Several options."""
        for name, value in options.items():
            self.option(name, value)
        return self

    def partition_by(self, *columns: Name) -> Self:
        """Write files to folders by the values of these columns."""
        return self._told(partition_by=columns)

    def query_name(self, name: Name) -> Self:
        """What the query is called, unique among those that run."""
        return self._told(name=name)

    def restart(self, policy: RestartPolicy | None = None) -> Self:
        """Start the query again after transient errors; see ``RestartPolicy`` for which, when and how often."""
        return self._told(policy=policy or RestartPolicy())

    def from_savepoint(self, name: Name, at: Uri | None = None) -> Self:
        """Begin where a savepoint was made, with its state, as a query with an id of its own.

        A query whose checkpoint has begun with it already goes on from there. Sink, trigger, name and what keeps no
        state may be others; ``start`` refuses other sources, keys and aggregates with ``StateMismatch``.

        Args:
            name: the name of the savepoint.
            at: where it is; by default where the Session's profile keeps checkpoints.
        """
        return self._told(savepoint=(name, None if at is None else str(at)))

    def start(self, path: Uri | None = None) -> StreamingQuery:
        """Start the query. Combinations that cannot be right are refused here, and nothing is started.

        Args:
            path: the same as ``option("path", ...)``.

        Raises:
            StreamRefused: output mode, trigger, sink and query do not go together; the message says why.
            StateMismatch: the query cannot continue from the savepoint; the message names what is another.
            ConfigError: something is missing or contradicts itself.
        """
        if path is not None:
            self.option("path", path)
        return self._manager.start(self._spec)

    def _told(self, **more: Any) -> Self:
        self._spec = replace(self._spec, **more)
        return self
