"""The progress bar of long operations, in terminals and notebooks; silent elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, Protocol

from typing_extensions import override

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

_SHOW_AFTER_SECONDS = 1.0
_REFRESH_SECONDS = 0.2


class TaskCount(Protocol):
    """How many tasks are done and known."""

    @property
    def done(self) -> int: ...  # noqa: D102 - the class says it

    @property
    def total(self) -> int: ...  # noqa: D102 - the class says it


class WatchedOperation(Protocol):
    """What the display needs to know of an operation."""

    id: str
    description: str

    @property
    def seconds(self) -> float: ...  # noqa: D102 - as long as it has run

    @property
    def progress(self) -> TaskCount: ...  # noqa: D102 - may ask Spark

    @property
    def note(self) -> str: ...  # noqa: D102 - what else there is to say; may ask Spark


class ProgressDisplay(Protocol):
    """Told when operations begin and end; must never fail them or slow them down."""

    def begin(self, operation: WatchedOperation) -> None:
        """An operation has begun."""

    def end(self, operation: WatchedOperation) -> None:
        """It has ended."""

    def close(self) -> None:
        """The Session ends; leave no thread and no output behind."""


class SilentDisplay:
    """Shows nothing."""

    def begin(self, operation: WatchedOperation) -> None:
        """Nothing to show."""

    def end(self, operation: WatchedOperation) -> None:
        """Nothing to show."""

    def close(self) -> None:
        """Nothing to end."""


class BarDisplay(ProgressDisplay):
    """One bar for each operation that runs longer than a second, drawn by a thread of its own."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._changed = threading.Condition()
        self._running: dict[str, WatchedOperation] = {}
        self._drawn: set[str] = set()
        self._thread: threading.Thread | None = None
        self._closed = False

    @override
    def begin(self, operation: WatchedOperation) -> None:
        with self._changed:
            self._running[operation.id] = operation
            if self._thread is None:
                self._thread = threading.Thread(target=self._draw_forever, name="weirflow-progress", daemon=True)
                self._thread.start()
            self._changed.notify()

    @override
    def end(self, operation: WatchedOperation) -> None:
        with self._changed:
            self._running.pop(operation.id, None)
            # What the caller prints next must not be wiped out with the bar.
            self._changed.notify_all()
            self._changed.wait_for(lambda: operation.id not in self._drawn, timeout=1.0)

    @override
    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _draw_forever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._running)
                if self._closed:
                    return
                self._changed.wait_for(lambda: self._closed, timeout=_REFRESH_SECONDS)
            if self._long_running():
                self._draw_until_idle()

    def _long_running(self) -> list[WatchedOperation]:
        with self._changed:
            running = list(self._running.values())
        return [operation for operation in running if operation.seconds >= _SHOW_AFTER_SECONDS]

    def _draw_until_idle(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415 - heavy, rarely needed

        # Descriptions are SQL, in which brackets are not markup.
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
        )
        try:
            with Progress(*columns, console=self._console, transient=True) as bars:
                self._draw(bars)
        finally:
            self._note_drawn(())

    def _draw(self, bars: Progress) -> None:
        """Keep one bar for each long operation until none is left."""
        shown: dict[str, TaskID] = {}
        while operations := self._long_running():
            for operation in operations:
                if operation.id not in shown:
                    shown[operation.id] = bars.add_task(operation.description, total=None, status="")
                done, total = self._count(operation)
                said = f"{done}/{total} tasks" if total else self._note(operation)
                status = f"{said}, {operation.seconds:.0f} s" if said else f"{operation.seconds:.0f} s"
                bars.update(shown[operation.id], completed=done, total=total or None, status=status)
            for gone in shown.keys() - {operation.id for operation in operations}:
                bars.remove_task(shown.pop(gone))
            self._note_drawn(shown)
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._drawn - self._running.keys(), _REFRESH_SECONDS)
                if self._closed:
                    return

    def _note_drawn(self, operation_ids: Iterable[str]) -> None:
        with self._changed:
            self._drawn = set(operation_ids)
            self._changed.notify_all()

    @staticmethod
    def _note(operation: WatchedOperation) -> str:
        try:
            return operation.note
        except Exception:  # noqa: BLE001 - as below
            return ""

    @staticmethod
    def _count(operation: WatchedOperation) -> tuple[int, int]:
        try:
            progress = operation.progress
        except Exception:  # noqa: BLE001 - Spark may be closing; a bar must not fail anything
            return 0, 0
        return progress.done, progress.total


def make_display(mode: Literal["auto", "on", "off"]) -> ProgressDisplay:
    """The display for a Session: ``auto`` draws on a terminal's stderr and in notebooks."""
    if mode == "off":
        return SilentDisplay()
    from rich.console import Console  # noqa: PLC0415 - heavy, and silent Sessions do without

    console = Console(stderr=True)
    if mode == "on" or console.is_terminal or console.is_jupyter:
        return BarDisplay(console)
    return SilentDisplay()
