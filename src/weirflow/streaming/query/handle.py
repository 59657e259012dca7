"""``StreamingQuery``: the handle of a streaming query."""

from __future__ import annotations

import threading
import weakref
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Name, Seconds, Uri, checked
from weirflow.errors import ConfigError, UnsupportedError, WeirflowError
from weirflow.streaming.query.run import STOP_SECONDS, QueryRun
from weirflow.streaming.query.shown import as_html, as_text
from weirflow.types import Delivery, OutputMode, QueryState

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.streaming.query.progress import QueryProgress
    from weirflow.streaming.savepoints.named import QuerySavepoint
    from weirflow.streaming.savepoints.saver import QuerySaver


@dataclass(frozen=True)
class QueryInfo:
    """What a query is: where its rows go, how often they arrive, where its progress is kept.

    Of a query that another client has started not much is known.
    """

    name: str
    query_id: str
    output_mode: OutputMode | None = None
    trigger: str = "not known"
    sink: str = "not known: another client has started it"
    delivery: Delivery = Delivery.UNKNOWN
    because: str = "not known here"
    checkpoint: str = "not known"
    restarts: str = "none"

    def __str__(self) -> str:
        lines = [
            ("query", f"{self.name} ({self.query_id})"),
            ("output mode", self.output_mode or "not known"),
            ("trigger", self.trigger),
            ("sink", self.sink),
            ("delivery", f"{self.delivery}: {self.because}"),
            ("checkpoint", self.checkpoint),
            ("restarts", self.restarts),
        ]
        return "\n".join(f"{name:<12} {value}" for name, value in lines)


@dataclass(frozen=True)
class QueryStatus:
    """Where in its life a query is, and in words what it does."""

    state: QueryState
    message: str


class StreamingQuery(AbstractContextManager["StreamingQuery"]):
    """A running query. Stop it when you are done, best with ``with``; dropping the handle stops the query, too.

    Args:
        run: the query itself.
        info: what it is.
        rows: reads what a memory sink holds; None for other sinks.
        forget: called after the end of a query whose handle was dropped.
        owned: whether the query is stopped when the handle is dropped.
        saver: makes savepoints of it; None if the query's plan is not known.
    """

    def __init__(
        self,
        run: QueryRun,
        info: QueryInfo,
        rows: Any = None,
        forget: Any = None,
        *,
        owned: bool = True,
        saver: QuerySaver | None = None,
    ) -> None:
        self._run = run
        self._info = info
        self._rows = rows
        self._saver = saver
        if owned:
            finalizer = weakref.finalize(self, _abandon, run, forget)
            finalizer.atexit = False  # the Session is closed then

    @property
    def id(self) -> str:
        """Unique, and the same whenever the query continues from its checkpoint."""
        return self._run.id

    @property
    def run_id(self) -> str:
        """Unique for each start."""
        return self._run.run_id

    @property
    def name(self) -> str:
        """Its name: ``query_name``, or a generated one."""
        return self._info.name

    @property
    def active(self) -> bool:
        """Whether it runs, or is about to be started again."""
        return not self._run.done

    @property
    def spark(self) -> Any:
        """PySpark's own handle, for the current start."""
        return self._run.native

    def status(self) -> QueryStatus:
        """The current state."""
        return QueryStatus(*self._run.state())

    def describe(self) -> QueryInfo:
        """What it writes, how often rows arrive, and where its progress is kept."""
        return self._info

    def last_progress(self) -> QueryProgress | None:
        """What its last batch did; None before the first, and with ``Trigger.continuous``, which has no batches."""
        return self._run.last()

    @property
    def recent_progress(self) -> list[QueryProgress]:
        """The last hundred batches, oldest first, including those before a restart."""
        return self._run.recent()

    @property
    def restarts(self) -> int:
        """How often its restart policy has started it again."""
        return self._run.restarts

    @property
    def exception(self) -> WeirflowError | None:
        """The error that ended it, or for which it restarts; ``__cause__`` is the original. None if all is well."""
        return self._run.error

    @checked
    def await_termination(self, timeout: Seconds | None = None) -> bool:
        """Wait until it has ended, at most ``timeout`` seconds; returns whether it has. Raises what ended it."""
        ended = self._run.wait(timeout)
        if ended and self._run.error is not None:
            raise self._run.error
        return ended

    @checked
    def await_termination_timeout(self, timeout: Seconds) -> bool:
        """``await_termination`` with a required timeout."""
        return self.await_termination(timeout)

    def process_all_available(self) -> None:
        """Wait until all rows that the sources have now are written. Raises the error if the query ends with one."""
        from weirflow.spark.errors import translated  # noqa: PLC0415 - imports pyspark

        try:
            with translated():
                self._run.native.processAllAvailable()
        except Exception:
            if self._run.wait(STOP_SECONDS) and self._run.error is not None:
                raise self._run.error from None
            raise

    @checked
    def stop(self, within: Seconds = STOP_SECONDS) -> None:
        """End it after the current batch, for which it waits at most ``within`` seconds.

        A batch that takes longer is cut short, and comes again when the query continues from its checkpoint. Returns
        when the query has ended. If the query's own ``foreach_batch`` calls it, it returns at once, and the query ends
        after that batch. If an error had ended the query before, that stays in ``exception``.
        """
        self._run.stop(within)

    @checked
    def savepoint(self, name: Name, to: Uri | None = None) -> QuerySavepoint:
        """Save state and positions of the last committed batch under a name. The query keeps running.

        Args:
            name: the name of the savepoint.
            to: a folder or storage URI; by default where the Session's profile keeps checkpoints.

        Raises:
            ObjectExists: there is a savepoint of that name; it is untouched.
            StreamRefused: nothing is committed yet, or the query has no batches.
            StorageError: the storage failed, or the query deletes files before they are copied; there is no savepoint.
        """
        if self._saver is None:
            raise UnsupportedError(
                f"The query {self.name!r} can only be saved where it was started.", hint="save it there"
            )
        return self._saver.save(name, None if to is None else str(to), query=self.name, query_id=self.id)

    def memory_batches(self) -> list[pa.RecordBatch]:
        """What the memory sink holds now, as one or more record batches, even after the query has ended."""
        if self._rows is None:
            raise ConfigError(
                f"The query {self.name!r} writes to {self._info.sink}, not to memory.",
                hint='read what it wrote there, or use format("memory")',
            )
        table = self._rows()
        from pyarrow import RecordBatch  # noqa: PLC0415 - a handle need not import it

        return table.to_batches() or [RecordBatch.from_pylist([], table.schema)]

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<StreamingQuery {self.name} {self._run.state()[0]}>"

    def __str__(self) -> str:
        return as_text(self.name, *self._run.state(), self._run.last())

    def _repr_html_(self) -> str:
        """The query and its last batches as an HTML table, for notebooks."""
        return as_html(self.name, self._run.state()[0], self.recent_progress)


def _abandon(run: QueryRun, forget: Any) -> None:
    """Stop a query that nobody has a handle of; in a thread, because a finalizer may run inside anything."""

    def end() -> None:
        run.stop()
        if forget is not None:
            forget()

    threading.Thread(target=end, name=f"weirflow-drop-{run.id}", daemon=True).start()
