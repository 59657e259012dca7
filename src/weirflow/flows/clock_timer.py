"""``ClockTimer``: lets time pass in a flow of a Session, by itself."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from weirflow.errors import WeirflowError
from weirflow.ivm.flow.clock import system_time
from weirflow.ivm.kernel.deadline import Deadline
from weirflow.types import ClockKind

if TYPE_CHECKING:
    from weirflow.ivm.flow.backend import FlowBackend

_log = logging.getLogger(__name__)


class ClockTimer:
    """Advances the clock of a flow whose views follow the system's, when rows are due. No thread while no view does.

    What fails is logged and tried again; it is not left pending.

    Args:
        backend: runs the flow.
        every: the seconds between two looks.
    """

    def __init__(self, backend: FlowBackend, every: float) -> None:
        self._backend = backend
        self._every = every
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is a thread."""
        return self._thread is not None

    def look(self) -> None:
        """Start if a view follows the system's clock; called whenever that may have become so."""
        with self._lock:
            if self._thread is None and not self._stopped.is_set() and self._is_needed():
                name = f"weirflow-clock-{self._backend.name}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread, if there is one, and wait until it has; not to be called by it."""
        self._stopped.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _is_needed(self) -> bool:
        return self._backend.clock_kind is ClockKind.SYSTEM and self._backend.follows_clock

    def _run(self) -> None:
        while not self._stopped.wait(self._every):
            with self._lock:
                if self._backend.closed or not self._is_needed():
                    self._thread = None
                    return
            try:
                self._advance()
            except WeirflowError as error:
                if not self._backend.closed:
                    _log.warning("the clock of the flow %s stands still: %s", self._backend.name, error.message)

    def _advance(self) -> None:
        if not self._backend.pending and self._backend.is_due(system_time()):
            self._backend.advance(None, Deadline(None), keep=False)
