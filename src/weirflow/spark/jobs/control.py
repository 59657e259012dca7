"""Steering running Spark work: mark it, watch it, stop it, whether Spark is local or behind Connect."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from typing_extensions import override

from weirflow.errors import UnsupportedError
from weirflow.spark.errors import translated
from weirflow.spark.frames.explain import explain_stages
from weirflow.spark.jobs.assignments import TaskAssignment, task_assignments
from weirflow.spark.jobs.tagged import job_ids_for_tag, job_progress

if TYPE_CHECKING:
    from pyspark import SparkContext


class JobControl(Protocol):
    """What an operation needs from its Spark. A tag names the operation's jobs; it may cover many."""

    def begin(self, tag: str) -> None:
        """Mark all Spark work that this thread starts from now on."""

    def end(self, tag: str) -> None:
        """Stop marking. Called on the thread that called ``begin``."""

    def cancel(self, tag: str) -> None:
        """Stop the marked work that runs now; work that starts later is not touched. Any thread may call it."""

    def progress(self, tag: str) -> tuple[int, int]:
        """Tasks done and tasks known of the marked work. Any thread may call it."""

    def assignments(self, tag: str, frame: Any) -> Sequence[TaskAssignment]:
        """Which task ran on which executor, for which stage of ``frame``, if it is known. Also after ``end``."""

    def explain(self, tag: str, frame: Any) -> str:
        """The stages of the frame that was computed, as they ran so far."""


class DriverControl(JobControl):
    """Control through the driver beside this process."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    @override
    def begin(self, tag: str) -> None:
        # A task that waits (for a lock, a socket, a Python worker) only stops when it is interrupted. Said every time:
        # after Ctrl-C this thread speaks to another thread of the JVM, which has not heard it.
        self._context.setInterruptOnCancel(True)
        self._context.addJobTag(tag)

    @override
    def end(self, tag: str) -> None:
        self._context.removeJobTag(tag)

    @override
    def cancel(self, tag: str) -> None:
        self._context.cancelJobsWithTag(tag)

    @override
    def progress(self, tag: str) -> tuple[int, int]:
        return job_progress(self._context, job_ids_for_tag(self._context, tag))

    @override
    def assignments(self, tag: str, frame: Any) -> Sequence[TaskAssignment]:
        with translated():
            return task_assignments(self._context, job_ids_for_tag(self._context, tag), frame)

    @override
    def explain(self, tag: str, frame: Any) -> str:
        with translated():
            return explain_stages(frame)


class ConnectControl(JobControl):
    """Control through a Spark Connect client."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._current = threading.local()
        self._progress: dict[str, tuple[int, int]] = {}
        self._tags: dict[str, str] = {}  # by Spark's id of the query, while it runs
        session.registerProgressHandler(self._on_progress)

    @override
    def begin(self, tag: str) -> None:
        self._session.addTag(tag)
        self._current.tag, self._current.open = tag, True
        self._progress[tag] = (0, 0)

    @override
    def end(self, tag: str) -> None:
        self._session.removeTag(tag)
        self._current.open = False
        if tag not in self._tags.values():
            self._progress.pop(tag, None)

    @override
    def cancel(self, tag: str) -> None:
        self._session.interruptTag(tag)

    @override
    def progress(self, tag: str) -> tuple[int, int]:
        return self._progress.get(tag, (0, 0))

    @override
    def assignments(self, tag: str, frame: Any) -> NoReturn:
        raise UnsupportedError(
            f"Spark Connect does not say which plan {tag} ran, nor where its tasks ran.",
            hint="use an embedded, single-node or spark:// Session",
        )

    @override
    def explain(self, tag: str, frame: Any) -> str:
        self.assignments(tag, frame)

    def _on_progress(
        self, stages: Iterable[Any] | None, *, operation_id: str | None = None, done: bool = False, **_: Any
    ) -> None:
        """Called by the client on the thread that reads the result, as a rule the one that started the query.

        That is how the tag is known, also after ``end``: a result may be read on for long.
        """
        current = getattr(self._current, "tag", None)
        tag = self._tags.get(operation_id or "", current)
        if tag is None:
            return
        if stages is not None:
            known = list(stages)
            self._progress[tag] = (
                sum(stage.num_completed_tasks for stage in known),
                sum(stage.num_tasks for stage in known),
            )
        if not done and operation_id:
            self._tags[operation_id] = tag
        elif done:
            self._tags.pop(operation_id or "", None)
            if tag != current or not self._current.open:
                self._progress.pop(tag, None)
