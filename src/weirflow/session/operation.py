"""``Operation``: one piece of Spark work that a Session runs, with an id, a state, progress and a way to stop it."""

from __future__ import annotations

import contextlib
import copy
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Seconds, checked
from weirflow.errors import OperationCancelled, OperationTimeout, UnsupportedError, WeirflowError
from weirflow.types import OperationState

if TYPE_CHECKING:
    from weirflow.spark.jobs.assignments import TaskAssignment
    from weirflow.spark.jobs.control import JobControl

_CANCEL_AGAIN_SECONDS = 0.1
_ABANDONED_SECONDS = 2.0


@dataclass(frozen=True)
class Progress:
    """Tasks done and tasks known. Spark learns of later stages as it goes, so the total may grow or shrink."""

    done: int
    total: int


class Operation:
    """One piece of Spark work: a query, a read or a write.

    Attributes:
        id: unique; also the tag that Spark's own interfaces show.
        description: what it does, for people.
        error: why it ended without a result, or None.
    """

    def __init__(self, description: str, control: JobControl) -> None:
        self.id = f"weirflow-{uuid.uuid4()}"
        self.description = description
        self.error: BaseException | None = None
        self._control = control
        self._lock = threading.RLock()  # Ctrl-C may come while this thread holds it
        self._state = OperationState.RUNNING
        self._stopping = OperationState.CANCELLED
        self._started = time.monotonic()
        self._seconds: float | None = None
        self._last_progress = Progress(0, 0)
        self._ended = threading.Event()
        self._abandoned = False
        self._idle = False
        self._frame: Any = None  # the native frame whose rows it computes

    @property
    def state(self) -> OperationState:
        """The current state."""
        return self._state

    @property
    def seconds(self) -> float:
        """For how many seconds it has run, or ran."""
        return self._seconds if self._seconds is not None else time.monotonic() - self._started

    @property
    def note(self) -> str:
        """A note about its progress, in addition to its tasks."""
        return ""

    @property
    def progress(self) -> Progress:
        """Tasks done and known; after the end, the last known numbers."""
        if self._state in (OperationState.RUNNING, OperationState.CANCELLING):
            self._last_progress = Progress(*self._control.progress(self.id))
        return self._last_progress

    def cancel(self) -> None:
        """Ask the operation to stop. Returns at once; a caller that waits for the result gets ``OperationCancelled``.

        Does nothing if it has ended.
        """
        self._stop(OperationState.CANCELLED)

    @checked
    def wait(self, timeout: Seconds | None = None) -> bool:
        """Block until the operation has ended or ``timeout`` seconds have passed; returns whether it has ended."""
        return self._ended.wait(timeout)

    def assignments(self) -> Sequence[TaskAssignment]:
        """Which task ran on which executor, even after the end; ``UnsupportedError`` over Spark Connect.

        Their stages are numbered as in ``explain``; ``render_assignments`` prints them in one line.
        """
        return self._control.assignments(self.id, self._frame)

    def explain(self) -> str:
        """The stages of the plan as it runs, or ran, in the form of ``session.explain(query, "stages")``.

        Raises:
            UnsupportedError: it does not compute a DataFrame's rows, it has ended and you looked it up by its id, or
                Spark is behind Spark Connect.
        """
        if self._frame is None:
            raise UnsupportedError(
                f"No plan is known of {self.description!r}.",
                hint="submit, to_arrow, collect and the like have one, for as long as you hold their operation",
            )
        return self._control.explain(self.id, self._frame)

    def __repr__(self) -> str:
        done = self._last_progress
        return f"<Operation {self.id} {self.description!r} {self._state} {done.done}/{done.total} tasks>"

    def _stop(self, ending: OperationState) -> None:
        with self._lock:
            if self._state is not OperationState.RUNNING:
                return
            self._state = OperationState.CANCELLING
            self._stopping = ending
        self._stop_work()

    def _stop_work(self) -> None:
        self._cancel_while(lambda: not self._ended.wait(_CANCEL_AGAIN_SECONDS))

    def _abandon(self) -> None:
        """Stop the Spark work of an operation whose caller or reader has left.

        Spark does not tell when such work has ended, so it is asked for a while.
        """
        self._abandoned = True
        deadline = time.monotonic() + _ABANDONED_SECONDS

        def still_needed() -> bool:
            time.sleep(_CANCEL_AGAIN_SECONDS)
            return time.monotonic() < deadline

        self._cancel_while(still_needed)

    def _cancel_while(self, needed: Callable[[], bool]) -> None:
        """Spark cancels only the jobs that run at that moment, and a query may be between two: ask again and again.

        On a thread of its own, because this one may be inside a call to Spark.
        """

        def ask() -> None:
            asking = True
            while asking:
                # Spark may be gone, which ends the work just as well; or only this call failed.
                with contextlib.suppress(Exception):
                    self._control.cancel(self.id)
                asking = needed()

        threading.Thread(target=ask, name=f"cancel-{self.id}", daemon=True).start()

    def _finish(self, error: BaseException | None) -> None:
        with self._lock:
            self._seconds = time.monotonic() - self._started
            self.error = error
            if self._abandoned:
                self._state = OperationState.CANCELLED
            elif self._state is OperationState.CANCELLING and error is not None:
                self._state = self._stopping
            else:
                self._state = OperationState.FAILED if error is not None else OperationState.SUCCEEDED
        self._ended.set()

    def _without_frame(self) -> Operation:
        if self._frame is None:
            return self
        ended = copy.copy(self)
        ended._frame = None  # noqa: SLF001 - a copy of itself
        return ended

    def _ending_error(self) -> WeirflowError | None:
        """What to raise in place of Spark's own error when the operation was stopped."""
        if self._state is not OperationState.CANCELLING:
            return None
        if self._stopping is OperationState.TIMED_OUT:
            return OperationTimeout(
                f"{self.description!r} did not finish in time and was stopped after {self.seconds:.1f} s.",
                operation_id=self.id,
            )
        return OperationCancelled(f"{self.description!r} was cancelled.", operation_id=self.id)


class Submitted(Operation):
    """An operation that runs in the background."""

    def __init__(self, description: str, control: JobControl) -> None:
        super().__init__(description, control)
        self._result: Any = None

    @checked
    def result(self, timeout: Seconds | None = None) -> Any:
        """Wait for the result and return it, or raise what the operation raised.

        Raises ``TimeoutError`` when ``timeout`` seconds pass first; the operation goes on.
        """
        if not self.wait(timeout):
            raise TimeoutError(f"{self.id} still runs after {timeout} s")
        if self.error is not None:
            raise self.error
        return self._result
