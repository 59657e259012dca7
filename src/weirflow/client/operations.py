"""``RemoteOperations``: what runs on a server, as far as its caller may see it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.arguments import Name, Seconds, checked
from weirflow.client.result import RemoteResult
from weirflow.errors import OperationUnknown, WeirflowError
from weirflow.types import OperationState
from weirflow.wire.calls import OfOperation, OperationForm
from weirflow.wire.errors import error_of
from weirflow.wire.messages import Result

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.client.connection import Connection

_WAIT_SECONDS = 5.0
_ENDED = (OperationState.SUCCEEDED, OperationState.FAILED, OperationState.CANCELLED, OperationState.TIMED_OUT)


@dataclass(frozen=True)
class RemoteProgress:
    """Tasks done and tasks known."""

    done: int
    total: int


class RemoteOperation:
    """One piece of work on a server, asked for anew whenever something is read of it.

    Attributes:
        id: unique.
        description: what it does, for people.
    """

    def __init__(self, connection: Connection, form: OperationForm) -> None:
        self.id = form.id
        self.description = form.description
        self._connection = connection
        self._form = form

    @property
    def state(self) -> OperationState:
        """The current state."""
        return OperationState(self._now().state)

    @property
    def seconds(self) -> float:
        """For how many seconds it has run, or ran."""
        return self._now().seconds

    @property
    def progress(self) -> RemoteProgress:
        """Tasks done and known."""
        now = self._now()
        return RemoteProgress(now.done, now.total)

    @property
    def note(self) -> str:
        """What there is to say about how far it is."""
        return self._now().note

    @property
    def error(self) -> WeirflowError | None:
        """Why it ended without a result, or None."""
        found = self._now().error
        return None if found is None else error_of(found)

    def cancel(self) -> None:
        """Ask it to stop; whoever waits for the result gets ``OperationCancelled``. Does nothing if it has ended."""
        self._connection.call("cancel", OfOperation(self.id))

    @checked
    def wait(self, timeout: Seconds | None = None) -> bool:
        """Block until it has ended or ``timeout`` seconds have passed; says whether it has ended."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _WAIT_SECONDS if until is None else min(until - time.monotonic(), _WAIT_SECONDS)
            if self._now(max(left, 0.0)).state in _ENDED:
                return True
            if until is not None and time.monotonic() >= until:
                return False

    @checked
    def result(self, timeout: Seconds | None = None) -> pa.Table:
        """The rows, when it has ended; raises what ended it, or ``TimeoutError`` if that takes longer."""
        return self._rows(timeout).to_arrow()

    def _rows(self, timeout: float | None) -> RemoteResult:
        if not self.wait(timeout):
            raise TimeoutError(f"The operation {self.id} has not ended within {timeout:g} s.")
        error = self.error
        if error is not None:
            raise error
        return RemoteResult(self._connection, Result(self.id), key=self.id, seconds=None, repeats=True)

    def __repr__(self) -> str:
        return f"<RemoteOperation {self.id} {self.description!r} {self._form.state}>"

    def _now(self, wait: float = 0.0) -> OperationForm:
        if self._form.state not in _ENDED:
            self._form = self._connection.call("operation", OfOperation(self.id, wait))
        return self._form


class RemoteOperations:
    """The operations of a server that the caller may see. Iterating gives those that run now."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __iter__(self) -> Iterator[RemoteOperation]:
        return iter([RemoteOperation(self._connection, one) for one in self._connection.call("operations")])

    def __len__(self) -> int:
        return len(self._connection.call("operations"))

    @checked
    def get(self, operation_id: Name) -> RemoteOperation:
        """The operation with this id; ``OperationUnknown`` if there is none."""
        return RemoteOperation(self._connection, self._connection.call("operation", OfOperation(operation_id)))

    @checked
    def cancel(self, operation_id: Name) -> None:
        """Stop the operation with this id; ``OperationUnknown`` if there is none."""
        if not self._connection.call("cancel", OfOperation(operation_id)):
            raise OperationUnknown(f"No operation has the id {operation_id!r}.", operation_id=operation_id)

    def cancel_all(self) -> None:
        """Stop everything that the caller runs."""
        for operation in self:
            operation.cancel()
