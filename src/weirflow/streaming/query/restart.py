"""``RestartPolicy``: whether and when a failed streaming query is started again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from weirflow.arguments import AtLeast, AtMost, Positive, Seconds, checked
from weirflow.errors import (
    EndpointUnreachable,
    QueryError,
    StorageError,
    StreamConflict,
    UserCodeError,
    WeirflowError,
)


@checked
@dataclass(frozen=True)
class RestartPolicy:
    """Start a query again after a transient error; any other error ends it at once.

    A transient error may go away by itself: a task or a file that Spark lost, storage or an endpoint that did not
    answer, and in a user's function an ``OSError``, which includes ``ConnectionError`` and ``TimeoutError``. Bad data,
    wrong queries and other errors of functions would come back however often one tries.

    Attributes:
        attempts: how many restarts in a row are tried; a batch that succeeds begins a new count.
        delay: seconds before the first restart.
        factor: the factor by which each delay is longer than the one before.
        longest: the longest delay, in seconds.
        retry: further kinds of errors of the user's functions that are transient.
    """

    attempts: Positive = 3
    delay: Seconds = 1.0
    factor: Annotated[float, AtLeast(1), AtMost(1000)] = 2.0
    longest: Seconds = 60.0
    retry: tuple[type[BaseException], ...] = ()

    def delay_after(self, error: BaseException, failures: Positive) -> float | None:
        """Seconds to wait after this error, which is number ``failures`` in a row; None to give up."""
        if failures > self.attempts or not self.is_transient(error):
            return None
        return float(min(self.delay * self.factor ** (failures - 1), self.longest))

    def is_transient(self, error: BaseException) -> bool:
        """Whether the error may go away by itself."""
        cause = error.__cause__
        if isinstance(error, UserCodeError):
            return isinstance(cause, (OSError, StorageError, *self.retry))
        if isinstance(error, StreamConflict):
            return False
        if isinstance(error, StorageError | EndpointUnreachable):
            return True
        # Spark's own subclasses of QueryError say what is wrong with the query or the data; the bare one does not.
        return type(error) is QueryError or (not isinstance(error, WeirflowError) and isinstance(error, OSError))
