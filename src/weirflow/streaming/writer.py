"""``DataStreamWriter``: says where the rows of a stream go, and starts the query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self

from weirflow.arguments import Hint, Name, Uri, checked
from weirflow.errors import ConfigError
from weirflow.streaming.launch import Launch
from weirflow.streaming.restart import RestartPolicy
from weirflow.streaming.sinks import FLOW, FOREACH, FOREACH_BATCH
from weirflow.types import OutputMode, one_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirflow.streaming.manager import StreamingQueryManager
    from weirflow.streaming.query import StreamingQuery
    from weirflow.streaming.trigger import Trigger

_BY_METHOD = {FOREACH: "foreach(...)", FOREACH_BATCH: "foreach_batch(...)", FLOW: "flow(...)"}


OptionValue = str | int | float | bool | Path
"""What the value of an option may be."""


class RowWriter(Protocol):
    """What writes rows in Spark's workers; its ``open`` and ``close`` are called if it has them."""

    def process(self, row: Any) -> object:
        """Write a row."""


class Fed(Protocol):
    """A flow that a stream can tick."""

    def source(self, name: str) -> Any:
        """How a source was declared."""

    def feed(self, source: str, delta: Any, *, position: Any) -> Any:
        """Tick a source with a batch."""


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
        self._launch = Launch(frame, late)

    def output_mode(self, mode: OutputMode | str) -> Self:
        """Which rows are written after each batch; by default those that are final."""
        self._launch.mode = one_of(OutputMode, str(mode).casefold(), "No output mode is called")
        return self

    def trigger(self, trigger: Annotated[Trigger, Hint("use Trigger.available_now() and the like")]) -> Self:
        """When the query looks for rows; by default as soon as the last batch is done."""
        self._launch.trigger = trigger
        return self

    def format(self, name: Name) -> Self:
        """The kind of sink: ``memory``, ``console``, ``parquet``, ``kafka``, ``kafka-transactions``, ``delta``, ..."""
        chosen = name.casefold()
        if chosen in _BY_METHOD:
            raise ConfigError(f"The sink {chosen} needs to know more.", hint=f"use {_BY_METHOD[chosen]}")
        return self._into(chosen)

    def foreach_batch(self, function: Callable[[Any, int], object]) -> Self:
        """Call ``function(frame, number)`` with each batch; a batch that is repeated has the same number.

        In this process, with a ``DataFrame``; over Spark Connect in the server's Python, with PySpark's.
        """
        return self._into(FOREACH_BATCH, function)

    def foreach(self, function: Callable[[Any], object] | RowWriter) -> Self:
        """Call a function with each row, in Spark's workers; or an object's ``open``, ``process`` and ``close``."""
        return self._into(FOREACH, function)

    def flow(self, flow: Fed, source: Name) -> Self:
        """Tick a source of an incremental flow with each batch; with a key, rows are upserts."""
        flow.source(source)
        self._into(FLOW)
        self._launch.flow = (flow, source)
        return self

    def table(self, name: Name) -> Self:
        """Write to a table of a catalog instead of a path."""
        self._launch.table = name
        return self

    def keys(self, *columns: Name) -> Self:
        """The columns that identify a row, by which ``OutputMode.UPDATE`` is merged into a Delta or Iceberg table."""
        self._launch.keys = columns
        return self

    def option(self, name: Name, value: OptionValue) -> Self:
        """An option of the sink; ``checkpoint.location`` and ``checkpointLocation`` are the same."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        self._launch.options[name] = text
        return self

    def options(self, **options: OptionValue) -> Self:
        """Several options."""
        for name, value in options.items():
            self.option(name, value)
        return self

    def partition_by(self, *columns: Name) -> Self:
        """Write files to folders by the values of these columns."""
        self._launch.partition_by = columns
        return self

    def query_name(self, name: Name) -> Self:
        """What the query is called, unique among those that run."""
        self._launch.name = name
        return self

    def restart(self, policy: RestartPolicy | None = None) -> Self:
        """Start the query again after transient errors; see ``RestartPolicy`` for which, when and how often."""
        self._launch.policy = policy or RestartPolicy()
        return self

    def from_savepoint(self, name: Name, at: Uri | None = None) -> Self:
        """Begin where a savepoint was made, with its state, as a query with an id of its own.

        A query whose checkpoint has begun with it already goes on from there. Sink, trigger, name and what keeps no
        state may be others; ``start`` refuses other sources, keys and aggregates with ``StateMismatch``.

        Args:
            name: what the savepoint is called.
            at: where it is; by default where the Session's profile keeps checkpoints.
        """
        self._launch.savepoint = (name, None if at is None else str(at))
        return self

    def start(self, path: Uri | None = None) -> StreamingQuery:
        """Start the query. Combinations that cannot be right are refused here, and nothing is started.

        Args:
            path: the same as ``option("path", ...)``.

        Raises:
            StreamRefused: output mode, trigger, sink and query do not go together; the message says why.
            StateMismatch: the query cannot go on from the savepoint; the message names what is another.
            ConfigError: something is missing or contradicts itself.
        """
        if path is not None:
            self.option("path", path)
        return self._manager.start(self._launch)

    def _into(self, sink: str, function: Any = None) -> Self:
        self._launch.format = sink
        self._launch.function = function
        self._launch.flow = None
        return self
