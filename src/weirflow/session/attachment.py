"""``Attachment``: a streaming query of Spark whose batches tick a flow, each exactly once."""

from __future__ import annotations

import shutil
import tempfile
import threading
from typing import TYPE_CHECKING, Any, Protocol, Self

from weirflow.arguments import Seconds, checked
from weirflow.errors import ConfigError, FlowError, StreamConflict, UnsupportedError
from weirflow.ivm.flow.position import Position
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.session.change_frames import weighted_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weirflow.ivm.flow.summary import StepSummary

AVAILABLE_NOW = "available now"


class Fed(Protocol):
    """A flow, as far as streams feed it."""

    name: str
    takes_frames: bool

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of its sources."""

    def register_source(self, name: str, schema: Any) -> None:
        """Declare a source."""

    def position(self, stream: str) -> Position | None:
        """How far it has taken a stream in."""

    def feed(self, source: str, delta: Any, *, position: Position) -> StepSummary:
        """Take in what is at a position."""


class Attachment:
    """A stream that feeds a source of a flow; ``flow.attach`` makes it. Stop it when done, best by ``with``.

    Args:
        flow: what is fed.
        source: the source that the batches go to.
        name: under which the flow remembers the stream's last batch.
        changes: the column with the kind of each change, if the stream has one.
        detach: called with an attachment that has stopped.
    """

    def __init__(
        self,
        flow: Fed,
        source: str,
        name: str,
        *,
        changes: str | None,
        detach: Callable[[Attachment], None],
    ) -> None:
        self.name = name
        self.source = source
        self._flow = flow
        self._changes = changes
        self._detach = detach
        self._query: Any = None
        self._started = threading.Event()
        self._busy = threading.Lock()
        self._batch_thread: int | None = None
        self._stopping = False
        self._error: BaseException | None = None
        self._temporary: str | None = None

    def start(self, stream: Any, *, checkpoint: str | Path | None, trigger: str | None) -> None:
        """Start the query. Called once, before anything else."""
        native = _streaming(stream)
        if checkpoint is None:
            checkpoint = self._temporary = tempfile.mkdtemp(prefix="weirflow-attach-")
        writer = native.writeStream.foreachBatch(self._take).queryName(f"{self._flow.name}/{self.name}")
        writer = writer.option("checkpointLocation", str(checkpoint))
        if trigger is not None:
            writer = writer.trigger(**_trigger(trigger))
        try:
            with _translated():
                self._query = writer.start()
        except BaseException:
            self._remove_temporary()
            raise
        finally:
            self._started.set()

    @property
    def active(self) -> bool:
        """Whether the query still runs."""
        return bool(self._query.isActive)

    @property
    def last_progress(self) -> Any:
        """What Spark says about the last batch; None before the first."""
        return self._query.lastProgress

    @property
    def exception(self) -> BaseException | None:
        """Why the query ended by itself; None while it runs, and when it was stopped or is done."""
        from weirflow.spark.errors import translate  # noqa: PLC0415 - imports pyspark

        if self._stopping:
            return self._error
        if self._query.isActive:
            return None
        found = self._error or self._query.exception()
        return None if found is None else translate(found) or found

    @checked
    def await_termination(self, timeout: Seconds | None = None) -> bool:
        """Wait until the query ends, or ``timeout`` seconds; says whether it has. Raises what ended it."""
        return bool(self._waited(lambda: self._query.awaitTermination(timeout) or timeout is None))

    def process_all_available(self) -> None:
        """Wait until all that the stream had when this was called has ticked the flow. Raises what ends the query."""
        self._waited(self._query.processAllAvailable)

    def stop(self) -> None:
        """End the query after the batch it is at. Another attachment of this name goes on from there.

        Raises:
            FlowError: it is called while a batch ticks, by a callback of that very tick.
        """
        if self._stopping:
            return
        if self._batch_thread == threading.get_ident():
            raise FlowError("A batch cannot stop its own stream.", hint="stop it, or close the flow, in another thread")
        failed = self.exception
        self._stopping = True
        self._error = failed
        self._query.stop()
        with self._busy:  # a batch that Spark has given up on may still be ticking
            self._detach(self)
        self._remove_temporary()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Attachment {self.name} of {self._flow.name}.{self.source}>"

    # Inner workings

    def _take(self, batch: Any, number: int) -> None:
        """Called by Spark with each batch, in a thread of its own; what it raises ends the query."""
        self._started.wait()
        with self._busy:
            if self._stopping:
                raise FlowError("The attachment is being stopped.")  # or Spark would take the batch for done
            self._batch_thread = threading.get_ident()
            try:
                self._feed(batch if self._flow.takes_frames else batch.toArrow(), number)
            except BaseException as error:
                if not self._stopping:
                    self._error = error
                raise
            finally:
                self._batch_thread = None

    def _feed(self, rows: Any, number: int) -> None:
        position = Position(self.name, self._query.id, str(number))
        last = self._flow.position(self.name)
        reached = -1 if last is None or last.origin != position.origin else int(last.at)
        if number not in (reached, reached + 1):
            raise StreamConflict(
                f"The stream {self.name!r} brings batch {number}, and batch {reached + 1} is the next for the flow.",
                hint="attach it under another name= and with another checkpoint, so that it begins anew",
            )
        self._flow.feed(self.source, self._delta(rows), position=position)

    def _delta(self, rows: Any) -> Any:
        if self._changes is None:
            return rows
        return (weighted_frame if self._flow.takes_frames else DeltaBatch.from_changes)(rows, op=self._changes)

    def _waited(self, wait: Callable[[], Any]) -> Any:
        try:
            with _translated():
                result = wait()
        except Exception:
            if self.exception is not None:
                raise self.exception from None
            raise
        if self.exception is not None:
            raise self.exception
        return result

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


def _streaming(stream: Any) -> Any:
    from weirflow.spark.frame import is_frame, unwrap  # noqa: PLC0415 - imports pyspark

    native = unwrap(stream)
    if not is_frame(native) or not native.isStreaming:
        raise ConfigError(
            "What is attached to a flow is a streaming frame.",
            hint="make one with session.spark.readStream; give rows that are there already to tick() or load()",
        )
    if not hasattr(native, "_jdf"):
        raise UnsupportedError(
            "Over Spark Connect a stream's batches are handled by the server's Python, where the flow is not.",
            hint="attach the stream in an embedded or single-node Session",
        )
    return native


def _trigger(trigger: str) -> dict[str, Any]:
    return {"availableNow": True} if trigger == AVAILABLE_NOW else {"processingTime": trigger}


def _translated() -> Any:
    from weirflow.spark.errors import translated  # noqa: PLC0415 - imports pyspark

    return translated()
