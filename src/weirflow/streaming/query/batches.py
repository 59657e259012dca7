"""``BatchGate``: stands between Spark and the function that is given each batch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from weirflow.errors import FlowError, UserCodeError, WeirflowError


class BatchGate:
    """Calls a function with each batch, keeps what it raises, and can be closed between two batches.

    Args:
        take: called with the native frame of the batch and its number, in a thread of Spark's.
        described: what the function is, for errors.
        release: lets go of what the function holds; called when the query has ended.
    """

    def __init__(
        self, take: Callable[[Any, int], object], described: str, release: Callable[[], None] | None = None
    ) -> None:
        self._take = take
        self._described = described
        self._release = release
        self._busy = threading.Lock()
        self._closed = False
        self._thread: int | None = None
        self._error: BaseException | None = None

    def __call__(self, frame: Any, number: int) -> None:
        """Called by Spark; what it raises ends the query."""
        with self._busy:
            if self._closed:
                raise FlowError("The query is being stopped.")  # or Spark would take the batch for done
            self._thread = threading.get_ident()
            self._error = None
            try:
                self._take(frame, number)
            except BaseException as error:
                self._error = error
                raise
            finally:
                self._thread = None

    @property
    def entered(self) -> bool:
        """Whether this very thread is inside the function."""
        return self._thread == threading.get_ident()

    @property
    def error(self) -> WeirflowError | None:
        """What the function raised last, typed; its cause is the error itself."""
        if self._error is None:
            return None
        if isinstance(self._error, WeirflowError):
            return self._error
        text = f"{type(self._error).__name__}: {self._error}" if str(self._error) else type(self._error).__name__
        typed = UserCodeError(f"{self._described} raised {text}")
        typed.__cause__ = self._error
        return typed

    def close(self, timeout: float) -> None:
        """Let no further batch in, and wait for the one inside for ``timeout`` seconds at most."""
        self._closed = True
        if self._busy.acquire(timeout=timeout):
            self._busy.release()

    def release(self) -> None:
        """Let go of what the function holds; the query has ended."""
        if self._release is not None:
            self._release()
