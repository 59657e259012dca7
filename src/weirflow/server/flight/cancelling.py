"""``Cancelling``: stops the work of calls that nobody waits for any more."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirflow.session.operation import Operation

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.1

Started = Callable[["Operation"], None]
"""Told the operation that a call has begun, before it waits for it."""


class Cancelling:
    """Looks after the operations of calls: Flight does not say when a client leaves, it has to be asked."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._watched: dict[Operation, Callable[[], bool]] = {}
        self._closed = False
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, is_left: Callable[[], bool]) -> Iterator[Started]:
        """In the block, cancel each operation that is told, from the moment on at which ``is_left`` says so."""
        begun: list[Operation] = []

        def started(operation: Operation) -> None:
            with self._lock:
                begun.append(operation)
                self._watched[operation] = is_left
                if self._thread is None:
                    self._thread = threading.Thread(target=self._look, name="weirflow-cancelling", daemon=True)
                    self._thread.start()
                self._lock.notify_all()

        try:
            yield started
        finally:
            with self._lock:
                for operation in begun:
                    self._watched.pop(operation, None)

    def close(self) -> None:
        """End the thread. May be repeated."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _look(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._closed or self._watched)
                if self._closed:
                    return
                self._lock.wait_for(lambda: self._closed, _LOOK_SECONDS)
                watched = list(self._watched.items())
            for operation, is_left in watched:
                try:
                    if is_left():
                        operation.cancel()
                        with self._lock:
                            self._watched.pop(operation, None)
                except Exception:  # noqa: BLE001 - whatever it is, the others are to be looked after
                    _log.warning("it is not known whether %s is still waited for", operation.id, exc_info=True)
