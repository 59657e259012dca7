"""``FunctionRunner``: runs a function batch by batch, in this process; what runners of one and of two inputs share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from weirflow.arguments import checked, shown
from weirflow.errors import ConfigError, StateError, StateTypeError
from weirflow.process.context import END_OF_TIME
from weirflow.process.firing import fire
from weirflow.process.instance import Instance, Moment
from weirflow.process.intake import Intake, Rows, read_rows
from weirflow.process.outputs import FunctionOutputs
from weirflow.process.progress import RunProgress, common_progress
from weirflow.process.timers import as_time
from weirflow.process.user_code import UserCode
from weirflow.state import InMemoryStateBackend, KeyGroupRange, StateBackend, group_ranges, open_state_backend
from weirflow.state.encoding.groups import DEFAULT_GROUPS, group_of, range_of
from weirflow.state.encoding.keys import encode_key

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
    from weirflow.checkpoint.keyed_state.manifest import StateManifest
    from weirflow.process.function import KeyedFunction, Row

BackendFor: TypeAlias = StateBackend | Callable[[KeyGroupRange], StateBackend] | str | Path
"""A backend; what gives one for each range of key groups, such as ``KeyedStateCheckpoints.restore``; or a URI or path
that ``open_state_backend`` opens for each of them."""

Element: TypeAlias = "tuple[Instance, Any, int | None, Row]"
"""Where a row is run, its key, its time, and the row."""


@dataclass(frozen=True)
class ProcessResult:
    """The output of one batch.

    Attributes:
        rows: the output.
        sides: the side outputs, by tag.
        late: the number of rows that were late.
        watermark: after the batch, or None.
    """

    rows: pa.Table
    sides: Mapping[str, pa.Table] = field(default_factory=dict)
    late: int = 0
    watermark: int | None = None


@checked
class FunctionRunner(ABC):
    """What the runners of one and of two inputs have in common; for one thread.

    A batch is done when the call returns: its state is in the backends. If the call raises, state, timers, watermark
    and clock are what they were before; unless an exception came while the batch was being written. Then every call is
    a ``StateError`` until ``resume`` has finished the batch.
    """

    def __init__(
        self,
        function: KeyedFunction,
        intakes: Sequence[Intake],
        *,
        operator: str,
        parallelism: int,
        backend: BackendFor | None,
        clock: Callable[[], int],
    ) -> None:
        self._intakes = intakes
        self._operator = operator
        self._clock = clock
        self._user_code = UserCode(type(function).__name__)
        self._outputs = FunctionOutputs(function)
        self._moment = Moment()
        self._opened: list[StateBackend] = []
        self._instances: list[Instance] = []
        try:
            for groups in group_ranges(parallelism):
                made = _backend(backend, groups, parallelism)
                if isinstance(backend, str | Path):
                    self._opened.append(made)
                self._instances.append(
                    Instance(
                        function,
                        made,
                        groups,
                        operator=operator,
                        moment=self._moment,
                        outputs=self._outputs,
                        user_code=self._user_code,
                    )
                )
            stored = [instance.resume(len(intakes)) for instance in self._instances]
            self._progress = common_progress(stored, operator)
        except BaseException:
            self._close_opened()
            raise
        self._unfinished: tuple[RunProgress, ProcessResult] | None = None
        self._clean = True
        self._closed = False

    @property
    def epoch(self) -> int:
        """The number of batches that are done, including those before a restore."""
        return self._progress.epoch

    @property
    def watermark(self) -> int | None:
        """The watermark, in milliseconds, or None."""
        return self._progress.watermark

    @property
    def now(self) -> int:
        """The processing time of the last batch."""
        return self._progress.clock

    @property
    def backends(self) -> dict[KeyGroupRange, StateBackend]:
        """The backends with the state, for ``KeyedStateCheckpoints`` or ``Savepoints`` to save between two batches."""
        return {instance.groups: instance.backend for instance in self._instances}

    def snapshot(self, checkpoints: KeyedStateCheckpoints) -> StateManifest:
        """Save state, timers, watermark and clock as the checkpoint of this epoch; fails like ``save`` of checkpoints.

        A runner whose ``backend`` is ``checkpoints.restore`` continues from it, with any parallelism.
        """
        self._require_whole()
        return checkpoints.save(self.backends, epoch=self.epoch)

    def advance(self, watermark: int | None = None) -> ProcessResult:
        """Run a batch without rows: fire the timers that are due by the clock, or by the watermark if one is given.

        Raises:
            ConfigError: the watermark is not a time.
            UserCodeError: the function raised, or emitted what it has not declared.
            StateError: state could not be read or written.
        """
        reached = None if watermark is None else as_time(watermark)
        return self._batch([()] * len(self._intakes), watermark=reached)

    def finish(self) -> ProcessResult:
        """Say that no more events will come: every timer by event time fires. Rows that still come are late."""
        return self.advance(END_OF_TIME)

    def resume(self) -> ProcessResult | None:
        """Finish a batch that was interrupted by an exception while it was being written.

        Returns the batch's output, or None if there is no such batch; then everything is as the last successful call
        left it.

        Raises:
            StateError: state could not be written; call it again.
        """
        if self._unfinished is None:
            return None
        return self._finish(begun=True)

    def close(self) -> None:
        """Close the functions, and the backends that were opened by a URI. No batch can be run after that.

        Backends that you passed in stay open.
        """
        self._closed = True
        try:
            with self._user_code("close"):
                for instance in self._instances:
                    instance.function.close()
        finally:
            self._close_opened()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # A batch

    def _batch(self, inputs: Sequence[Rows], broadcast: Rows = (), watermark: int | None = None) -> ProcessResult:
        self._require_whole()
        if self._closed:
            raise StateError(f"The runner of {self._operator!r} is closed.", hint="make a new runner with its backends")
        read = [read_rows(rows) for rows in inputs]
        told = read_rows(broadcast)
        before = self._progress
        if not self._clean:
            self._discard()
        self._clean = False
        self._moment.watermark = before.watermark
        self._moment.now = max(_read(self._clock), before.clock)
        try:
            after = self._callbacks(read, told, watermark)
            rows, sides = self._outputs.tables()
            result = ProcessResult(rows, sides, self._outputs.late, after.watermark)
        except BaseException:
            self._discard()
            raise
        self._unfinished = (after, result)
        return self._finish(begun=False)

    def _callbacks(
        self, inputs: Sequence[Sequence[Row]], broadcast: Sequence[Row], watermark: int | None
    ) -> RunProgress:
        if broadcast:
            self._broadcast(broadcast)
        progress = replace(self._progress, epoch=self.epoch + 1, clock=self._moment.now)
        latest = list(progress.latest)
        for at in reversed(range(len(inputs))):
            elements = self._elements(self._intakes[at], inputs[at])
            self._feed(at, elements)
            latest[at] = max((one for one in (latest[at], *(e[2] for e in elements)) if one is not None), default=None)
        progress = progress.with_events(latest, [intake.delay for intake in self._intakes]).with_watermark(watermark)
        self._moment.watermark = progress.watermark
        with self._user_code("on_timer"):
            if progress.watermark is not None:
                fire(self._instances, "event", progress.watermark)
            fire(self._instances, "processing", self._moment.now)
        return progress

    def _elements(self, intake: Intake, rows: Sequence[Row]) -> list[Element]:
        """The rows that are not late, with their instances, keys and times."""
        watermark = self._moment.watermark
        elements = []
        for row in rows:
            time = intake.time(row)
            if time is not None and watermark is not None and time <= watermark:
                self._outputs.too_late(row)
            else:
                key = intake.key(row)
                elements.append((self._instance_of(key), key, time, row))
        return elements

    def _instance_of(self, key: Any) -> Instance:
        count = len(self._instances)
        if count == 1:
            return self._instances[0]
        codec = self._instances[0].codec
        try:
            data = encode_key(key) if codec is None else codec.encode(key)
        except (TypeError, ValueError) as error:
            raise StateTypeError(
                f"{key!r} cannot be a key of {self._operator!r}: {error}.", slot="", key=repr(key)
            ) from error
        return self._instances[range_of(group_of(data, DEFAULT_GROUPS), count)]

    @abstractmethod
    def _feed(self, at: int, elements: Sequence[Element]) -> None:
        """Run the callbacks for rows of an input."""

    def _broadcast(self, rows: Sequence[Row]) -> None:
        with self._user_code("on_broadcast"):
            for instance in self._instances:
                instance.broadcast(rows)

    def _one_by_one(self, callback: str, elements: Sequence[Element]) -> None:
        callbacks = {id(instance): getattr(instance.function, callback) for instance in self._instances}
        with self._user_code(callback) as user_code:
            for instance, key, time, row in elements:
                user_code.key = key
                instance.element(callbacks[id(instance)], key, time, row)

    def _finish(self, *, begun: bool) -> ProcessResult:
        """Write the batch. To write what some instances have written already does no harm.

        A ``StateError`` says that a backend has written nothing: if it is the first one, all is as it was before.
        """
        assert self._unfinished is not None, "there is one"
        after, result = self._unfinished
        for instance in self._instances:
            try:
                instance.flush(after)
            except StateError:
                if not begun:
                    self._unfinished = None
                    self._discard()
                raise
            begun = True
        self._outputs.clear()
        # In one statement, which no exception comes into.
        self._progress, self._unfinished, self._clean = after, None, True
        return result

    def _close_opened(self) -> None:
        opened, self._opened = self._opened, []
        for backend in opened:
            backend.close()

    def _discard(self) -> None:
        for instance in self._instances:
            instance.discard()
        self._outputs.clear()
        self._clean = True

    def _require_whole(self) -> None:
        if self._unfinished is not None:
            raise StateError(
                f"A batch of {self._operator!r} was not written by all of its instances.",
                hint="call resume(), which finishes it and returns its output",
            )


def _read(clock: Callable[[], int]) -> int:
    now = clock()
    if type(now) is not int:
        raise ConfigError(f"clock returned {shown(now)}.", hint="a clock returns milliseconds since 1970, an int")
    return now


def _backend(backend: BackendFor | None, groups: KeyGroupRange, parallelism: int) -> StateBackend:
    if backend is None:
        return InMemoryStateBackend()
    if isinstance(backend, str | Path):
        return open_state_backend(backend, groups)
    if callable(backend):
        made = backend(groups)
        if not callable(getattr(type(made), "multi_get", None)):
            raise ConfigError(f"backend returned {shown(made)}, which is not a StateBackend.")
        return made
    if parallelism > 1:
        raise ConfigError(
            f"{parallelism} instances cannot share one backend.",
            hint="give a function that makes a backend for a KeyGroupRange",
        )
    return backend
