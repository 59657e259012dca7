"""Statements: run for a caller, with their rows in the spool."""

from __future__ import annotations

import contextvars
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from weirflow.errors import OperationCancelled, OperationError, OperationUnknown, ResultTooLarge, SpoolFull
from weirflow.server.access.audit import statement_shape
from weirflow.server.access.caller import Caller, Right
from weirflow.server.flight.ordered import is_ordered
from weirflow.types import OperationState

if TYPE_CHECKING:
    from weirflow.flows.host import Params
    from weirflow.server.coordinator import Coordinator, Outcome
    from weirflow.server.flight.cancelling import Cancelling, Started
    from weirflow.server.results.manifest import Manifest
    from weirflow.server.results.parts import PartWriter
    from weirflow.server.results.spool import Spool
    from weirflow.session.operation import Operation, Submitted
    from weirflow.spark.frames.frame import DataFrame

_REMEMBERED = 10_000

T = TypeVar("T")


class Statements:
    """Runs statements. A statement that was submitted, or given a key, is known by it while the server remembers."""

    def __init__(self, coordinator: Coordinator, spool: Spool, cancelling: Cancelling) -> None:
        self._coordinator = coordinator
        self._spool = spool
        self._cancelling = cancelling
        self._lock = threading.Lock()
        self._by_key: OrderedDict[tuple[str, str], list[Operation]] = OrderedDict()
        self._submitted: OrderedDict[str, Submitted] = OrderedDict()
        self._keys: OrderedDict[str, str] = OrderedDict()
        self._inner: OrderedDict[str, None] = OrderedDict()

    def run(
        self,
        caller: Caller,
        sql: str,
        params: Params | None,
        is_left: Callable[[], bool],
        *,
        timeout: float | None = None,
        key: str | None = None,
    ) -> Manifest:
        """Run a statement and write its rows; ends early if ``is_left`` says that nobody waits for them."""
        with (
            self._coordinator.work(caller, Right.READ, "run SQL", detail=statement_shape(sql)),
            self._cancelling.watching(is_left) as watched,
            self._keyed(caller, key, watched) as started,
        ):
            outcome = self._coordinator.statement(caller, sql, params, timeout=timeout, started=started)
            return self._written(caller, outcome, sql, timeout, started)

    def _written(self, caller: Caller, outcome: Outcome, sql: str, timeout: float | None, started: Started) -> Manifest:
        rows = outcome.rows
        if outcome.frame is not None and not outcome.is_query:  # the few rows of a command that has happened
            rows = outcome.frame.to_arrow()
        if rows is not None:
            return self._spool.write_rows(caller.key, rows.schema, rows.to_batches())
        frame = outcome.frame
        assert frame is not None
        begun: list[Operation] = []

        def noted(operation: Operation) -> None:
            begun.append(operation)
            started(operation)

        def write() -> Manifest:
            return self._spool.write_frame(
                caller.key,
                frame,
                outcome.schema,
                self._spread,
                lambda: begun[0].cancel(),  # noqa: PLW0108 - it is told when the writing has begun
                is_ordered=is_ordered(sql),
            )

        try:
            return self._coordinator.run(caller, statement_shape(sql), write, timeout=timeout, started=noted)
        except OperationCancelled as error:
            if isinstance(error.__cause__, ResultTooLarge | SpoolFull):  # which is why it was cancelled
                raise error.__cause__ from None
            raise

    def _spread(self, frame: DataFrame, writer: PartWriter) -> list[bytes]:
        from weirflow.spark.jobs.partitions import over_partitions  # noqa: PLC0415 - imports pyspark

        return self._coordinator.session.operations.run("write a result", lambda: over_partitions(frame, writer))

    @contextmanager
    def _keyed(self, caller: Caller, key: str | None, watched: Started) -> Iterator[Started]:
        """Have what is started be found by the key that the client gave the statement."""
        if key is None:
            yield watched
            return

        def started(operation: Operation) -> None:
            watched(operation)
            with self._lock:
                self._by_key.setdefault((caller.key, key), []).append(operation)
                _remember(self._keys, operation.id, key)

        try:
            yield started
        finally:
            with self._lock:
                self._by_key.pop((caller.key, key), None)

    # In the background

    def submit(self, caller: Caller, sql: str, params: Params | None, *, timeout: float | None, key: str | None) -> str:
        """Begin a statement and return the id of its operation at once; ``result`` has its rows."""
        outer: list[Submitted] = []
        ready = threading.Event()

        def inner_started(operation: Operation) -> None:
            with self._lock:
                _remember(self._inner, operation.id, None)

        def run() -> Manifest:
            ready.wait()

            def is_left() -> bool:
                return outer[0].state is OperationState.CANCELLING

            with (
                self._coordinator.work(caller, Right.READ, "run SQL", detail=statement_shape(sql)),
                self._cancelling.watching(is_left) as watched,
            ):

                def started(operation: Operation) -> None:
                    inner_started(operation)
                    watched(operation)

                outcome = self._coordinator.statement(caller, sql, params, timeout=timeout, started=started)
                return self._written(caller, outcome, sql, timeout, started)

        with self._coordinator.work(caller, Right.READ, "submit SQL", detail=statement_shape(sql)):
            # In a context of its own: it is a request that goes on when this one has been answered.
            operation = self._coordinator.session.operations.submit(
                statement_shape(sql), lambda: contextvars.Context().run(run)
            )
            self._coordinator.own(caller, operation)
            with self._lock:
                _remember(self._submitted, operation.id, operation)
                if key is not None:
                    _remember(self._keys, operation.id, key)
            outer.append(operation)
            ready.set()
            return operation.id

    def result(self, caller: Caller, operation: str) -> Manifest:
        """The rows of a statement that was submitted; waits until it has ended, and raises what it raised."""
        with self._coordinator.work(caller, Right.READ, "fetch a result", detail=operation):
            submitted = self._submitted_by(caller, operation)
            return self._spool.result(
                caller.key, submitted.result(self._coordinator.limits.of(caller).statement_seconds).id
            )

    def _submitted_by(self, caller: Caller, wanted: str) -> Submitted:
        with self._lock:
            found = self._submitted.get(wanted)
            if found is None:
                found = next((one for id_, one in self._submitted.items() if self._keys.get(id_) == wanted), None)
        if found is None or not self._coordinator.owns(caller, found.id):
            raise _unknown(wanted)
        return found

    # Operations

    def operation(self, caller: Caller, wanted: str) -> Operation:
        """An operation of the caller's, by its id or its key."""
        with self._lock:
            keyed = self._by_key.get((caller.key, wanted))
            if keyed:
                return keyed[-1]
        try:
            return self._submitted_by(caller, wanted)
        except OperationUnknown:
            operation = self._coordinator.session.operations.get(wanted)
            if not self._coordinator.owns(caller, operation.id):
                raise _unknown(wanted) from None
            return operation

    def operations(self, caller: Caller) -> list[Operation]:
        """The operations that run and that the caller may see; parts of others are left out."""
        with self._lock:
            inner = set(self._inner)
        running = self._coordinator.session.operations
        return [one for one in running if one.id not in inner and self._coordinator.owns(caller, one.id)]

    def key_of(self, operation: Operation) -> str | None:
        """The key that a client gave the statement of an operation."""
        with self._lock:
            return self._keys.get(operation.id)

    def cancel(self, caller: Caller, wanted: str) -> bool:
        """Cancel an operation by its id or its key; whether it ran."""
        return self._coordinator.cancel(caller, self.operation(caller, wanted).id)


def _remember(known: OrderedDict[str, T], name: str, value: T) -> None:
    known[name] = value
    while len(known) > _REMEMBERED:
        known.popitem(last=False)


def _unknown(wanted: str) -> OperationError:
    return OperationUnknown(
        f"No operation of yours has the id {wanted!r}.", operation_id=wanted, hint="it ended long ago, or never began"
    )
