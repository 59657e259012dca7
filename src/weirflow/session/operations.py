"""Operations: every piece of Spark work a Session runs, listed by id."""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from weirflow.arguments import Name, Seconds, checked
from weirflow.errors import OperationCancelled, OperationTimeout, OperationUnknown, UnsupportedError
from weirflow.ivm.kernel.deadline import check, remaining
from weirflow.session.followed import Followed
from weirflow.session.operation import Operation, Submitted
from weirflow.types import OperationState

if TYPE_CHECKING:
    from weirflow.observability.progress import ProgressDisplay
    from weirflow.spark.jobs.control import JobControl
    from weirflow.streaming.query.manager import StreamingQueryManager

T = TypeVar("T")

_REMEMBERED = 1000


class Operations:
    """The operations of one Session. Iterating gives those that run now, oldest first."""

    def __init__(
        self,
        control: Callable[[], JobControl],
        translated: Callable[[], contextlib.AbstractContextManager[None]],
        display: ProgressDisplay,
        streams: Callable[[], StreamingQueryManager] | None = None,
    ) -> None:
        self._control = control
        self._translated = translated
        self._display = display
        self._streams = streams
        self._running: dict[str, Operation] = {}
        self._ended: deque[Operation] = deque(maxlen=_REMEMBERED)
        # What somebody still has, with its frame, which would keep Spark's data alive if it were kept here.
        self._held: weakref.WeakValueDictionary[str, Operation] = weakref.WeakValueDictionary()
        self._thread = threading.local()  # has `inside`: the operations this thread is a part of, None for unknown ones

    def __iter__(self) -> Iterator[Operation]:
        return iter(list(self._running.values()))

    def __len__(self) -> int:
        return len(self._running)

    @property
    def streams(self) -> StreamingQueryManager:
        """What starts streaming queries."""
        if self._streams is None:
            raise UnsupportedError("These operations belong to no Session, but streaming queries need one.")
        return self._streams()

    @checked
    def get(self, operation_id: Name) -> Operation:
        """The running or recently ended operation with this id; ``OperationUnknown`` if there is none.

        A streaming query that runs is found by its own id, too.
        """
        operation = self._running.get(operation_id) or self._held.get(operation_id)
        if operation is None:
            operation = next((one for one in self if isinstance(one, Followed) and one.own_id == operation_id), None)
        if operation is None:
            operation = next((ended for ended in list(self._ended) if ended.id == operation_id), None)
        if operation is None:
            raise OperationUnknown(
                f"No operation has the id {operation_id!r}.",
                operation_id=operation_id,
                hint="it never ran in this Session, or ended long ago",
            )
        return operation

    @checked
    def cancel(self, operation_id: Name) -> None:
        """Stop the operation with this id; see ``Operation.cancel``."""
        self.get(operation_id).cancel()

    def cancel_all(self) -> None:
        """Stop everything that runs."""
        for operation in self:
            operation.cancel()

    @checked
    def stop_all(self, timeout: Seconds) -> None:
        """Stop everything that runs, and wait until it has ended or ``timeout`` seconds have passed.

        Iterators that nobody reads this moment are stopped but not waited for: their reader may never come back.
        """
        self.cancel_all()
        deadline = time.monotonic() + timeout
        for operation in self:
            if not operation._idle:  # noqa: SLF001 - the registry steers its own objects
                operation.wait(max(deadline - time.monotonic(), 0.0))

    def run(self, description: str, call: Callable[[], T], frame: Any = None) -> T:
        """Run ``call``, which may compute ``frame``, as an operation on this thread or a part of the one around it."""
        operation = self._new(description, frame)
        if operation is None:
            with self._translated():
                return call()
        with self._tracked(operation), _stopped_by_interrupt(operation), self._marked(operation):
            return call()

    def drain(self, description: str, items: Callable[[], Iterator[T]], frame: Any = None) -> Iterator[T]:
        """Run an iterator as an operation that lasts until it is read to its end, closed or dropped; see ``run``."""
        operation = self._new(description, frame)
        if operation is None:
            with self._translated():
                yield from items()
            return
        with self._tracked(operation):
            # The first item starts the Spark work, which keeps its mark; between items the thread is the reader's.
            with _stopped_by_interrupt(operation), self._marked(operation):
                iterator = items()
                first = list(itertools.islice(iterator, 1))
            for item in itertools.chain(first, iterator):
                self._raise_if_stopped(operation)
                operation._idle = True  # noqa: SLF001 - the registry steers its own objects
                yield item
                operation._idle = False  # noqa: SLF001 - as above
                self._raise_if_stopped(operation)

    def follow(
        self, description: str, own_id: str, stop: Callable[[], None], note: Callable[[], str]
    ) -> Callable[[BaseException | None], None]:
        """List work that runs by itself, a streaming query, until what is returned is called with its error or None.

        Args:
            description: what it does, for people.
            own_id: what it is known by elsewhere, and found by here, too.
            stop: ends the work; called in a thread of its own when the operation is cancelled.
            note: says in a few words how far it is; nothing as long as there is nothing to say.
        """
        operation = Followed(description, own_id, self._control(), stop, note)
        self._running[operation.id] = operation
        self._display.begin(operation)
        return lambda error: self._end(operation, error)

    @contextlib.contextmanager
    def inside(self, operation: Operation | None = None) -> Iterator[None]:
        """Have what this thread runs in the block be a part of an operation that is listed already."""
        before = getattr(self._thread, "inside", ())
        self._thread.inside = (*before, operation)
        try:
            yield
        finally:
            self._thread.inside = before

    def submit(self, description: str, call: Callable[[], Any]) -> Submitted:
        """Run ``call`` as an operation on a thread of its own and return at once."""
        operation = Submitted(description, self._control())
        self._running[operation.id] = operation  # visible, and cancellable, before its thread starts

        def work() -> None:
            # The error is kept in the operation, for whoever asks for the result.
            with contextlib.suppress(BaseException), self._tracked(operation), self._marked(operation):
                operation._result = call()  # noqa: SLF001 - the registry fills its own objects

        threading.Thread(target=work, name=operation.id, daemon=True).start()
        return operation

    @checked
    def run_with_timeout(
        self,
        description: str,
        call: Callable[[], T],
        seconds: Seconds | None,
        *,
        started: Callable[[Operation], None] | None = None,
    ) -> T:
        """Run ``call`` and stop it at the deadline with ``OperationTimeout``; without ``seconds`` there is none.

        The caller is free at most two seconds after the deadline, even if Spark is slow to stop; the operation
        stays listed until it really has. ``started`` is given the operation before the wait for it begins.
        """
        results: list[T] = []  # not the operation's, which is remembered for long
        operation = self.submit(description, lambda: results.append(call()))
        if started is not None:
            started(operation)
        try:
            in_time = operation.wait(seconds)
        except BaseException:  # Ctrl-C: nobody waits for the result any more
            operation.cancel()
            raise
        if not in_time and seconds is not None:
            operation._stop(OperationState.TIMED_OUT)  # noqa: SLF001 - the registry steers its own objects
            if not operation.wait(2.0):
                raise operation._ending_error() or OperationTimeout(  # noqa: SLF001 - as above
                    f"{description!r} did not finish within {seconds:.1f} s.", operation_id=operation.id
                )
        operation.result()
        return results[0]

    def run_for_tick(self, description: str, call: Callable[[], T]) -> T:
        """As ``run``, for work of a tick: if the tick has a deadline, stopped then, with ``TickTimeout``."""
        check()
        seconds = remaining()
        if seconds is None:
            return self.run(description, call)
        try:
            return self.run_with_timeout(description, call, seconds)
        except OperationTimeout:
            check()
            raise

    @contextlib.contextmanager
    def _tracked(self, operation: Operation) -> Iterator[None]:
        """List the operation while the block runs, and settle how it ended."""
        self._running[operation.id] = operation
        self._display.begin(operation)
        error: BaseException | None = None
        try:
            self._raise_if_stopped(operation)
            with self._translated():
                yield
        except GeneratorExit:  # the reader of an iterator has had enough, which is no failure
            operation._abandon()  # noqa: SLF001 - the registry steers its own objects
            raise
        except (OperationCancelled, OperationTimeout) as stopped:
            error = stopped
            raise
        except Exception as raised:
            error = operation._ending_error() or raised  # noqa: SLF001 - as above
            if error is raised:
                raise
            raise error from raised
        except BaseException as interrupted:  # Ctrl-C ended the wait, not the work
            error = interrupted
            operation._abandon()  # noqa: SLF001 - as above
            raise
        finally:
            self._end(operation, error)

    def _new(self, description: str, frame: Any) -> Operation | None:
        """An operation about ``frame``; None inside another one, which is about this frame from now on."""
        outer = getattr(self._thread, "inside", ())
        operation = outer[-1] if outer else Operation(description, self._control())
        if frame is not None and operation is not None:
            operation._frame = frame  # noqa: SLF001 - the registry steers its own objects
        return None if outer else operation

    def _end(self, operation: Operation, error: BaseException | None) -> None:
        """Whoever waits for the end finds the operation listed no more."""
        try:
            self._display.end(operation)
        finally:
            self._held[operation.id] = operation
            self._running.pop(operation.id, None)
            operation._finish(error)  # noqa: SLF001 - the registry steers its own objects
        self._ended.append(operation._without_frame())  # noqa: SLF001 - as above

    @staticmethod
    def _raise_if_stopped(operation: Operation) -> None:
        if error := operation._ending_error():  # noqa: SLF001 - the registry steers its own objects
            raise error

    @contextlib.contextmanager
    def _marked(self, operation: Operation) -> Iterator[None]:
        """Mark the Spark work that this thread starts in the block as the operation's."""
        control = operation._control  # noqa: SLF001 - the registry steers its own objects
        control.begin(operation.id)
        try:
            with self.inside(operation):
                yield
        finally:
            control.end(operation.id)


@contextlib.contextmanager
def _stopped_by_interrupt(operation: Operation) -> Iterator[None]:
    """Have Ctrl-C stop the operation's Spark work at once, besides what it does anyway.

    Waiting for the KeyboardInterrupt to arrive here would not do: on its way PySpark waits for the work to end.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    interrupts: list[BaseException] = []

    def stop(number: int, frame: FrameType | None) -> None:
        operation.cancel()
        try:
            before(number, frame)
        except BaseException as interrupt:
            interrupts.append(interrupt)
            raise

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    except Exception as error:
        if interrupts:  # PySpark, on the way, found its work cancelled and raised that instead
            raise interrupts[0] from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)
