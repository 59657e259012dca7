"""``ProcessHarness`` and ``CoProcessHarness``: process functions under test, with clock and watermark set by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from weirflow.arguments import Name, Positive, checked
from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.process import CoProcessFunction, CoProcessRunner, ProcessFunction, ProcessResult, ProcessRunner
from weirflow.process.runner import BackendFor, FunctionRunner
from weirflow.state.dry_run import stored_versions
from weirflow.testing.clock import ManualClock

if TYPE_CHECKING:
    from weirflow.process.intake import KeyOf

_OPERATOR = "harness"
_PROGRESS = "weirflow.progress"
_Runner = TypeVar("_Runner", bound=FunctionRunner)
_Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class HarnessSnapshot:
    """A harness at one moment; made by ``snapshot``, taken by ``restore``."""

    checkpoints: KeyedStateCheckpoints
    parallelism: int
    output: _Rows
    sides: Mapping[str, _Rows]
    late: int


@checked
class Harness(Generic[_Runner]):
    """What the harnesses for one and for two inputs have in common.

    Calls return the rows that they put out, as dicts. The watermark moves by ``advance_watermark`` alone.

    Attributes:
        clock: processing time; moved by ``advance_clock``.
        output: all rows of the output so far.
        sides: all rows of each side output so far.
        late: the number of rows that were late.
    """

    def __init__(self, runner_for: Callable[..., _Runner], parallelism: int) -> None:
        self._runner_for = runner_for
        self.output: _Rows = []
        self.sides: dict[str, _Rows] = {}
        self.late = 0
        self._start(parallelism, None)

    @property
    def watermark(self) -> int | None:
        """The watermark, or None."""
        return self._runner.watermark

    def advance_watermark(self, to: int) -> _Rows:
        """Let event time reach a moment, and let its timers fire; an earlier moment than before changes nothing."""
        return self._collected(self._runner.advance(to))

    def advance_clock(self, by: timedelta) -> _Rows:
        """Let processing time pass, and let its timers fire."""
        self.clock.advance(by)
        return self._collected(self._runner.advance())

    def finish(self) -> _Rows:
        """End the input: all timers by event time fire."""
        return self._collected(self._runner.finish())

    def stored(self) -> dict[str, int]:
        """The number of entries in each slot that is not empty, including timers."""
        counts: dict[str, int] = {}
        for backend in self._runner.backends.values():
            for (slot, _), (values, _) in stored_versions(backend, _OPERATOR).items():
                if slot.name != _PROGRESS:
                    counts[slot.name] = counts.get(slot.name, 0) + values
        return counts

    def snapshot(self) -> HarnessSnapshot:
        """State, timers, watermark, clock and output, as they are now."""
        checkpoints = KeyedStateCheckpoints(open_checkpoint_storage("memory://"))
        self._runner.snapshot(checkpoints)
        sides = {tag: rows.copy() for tag, rows in self.sides.items()}
        return HarnessSnapshot(checkpoints, self._parallelism, self.output.copy(), sides, self.late)

    def restore(self, snapshot: HarnessSnapshot, *, parallelism: Positive | None = None) -> None:
        """Continue from a snapshot with new instances of the function, as after a crash.

        Args:
            snapshot: a snapshot of this harness, or of another one for the same function.
            parallelism: the number of instances; by default as many as the snapshot has.
        """
        self.output = snapshot.output.copy()
        self.sides = {tag: rows.copy() for tag, rows in snapshot.sides.items()}
        self.late = snapshot.late
        self._start(snapshot.parallelism if parallelism is None else parallelism, snapshot.checkpoints.restore)

    def _start(self, parallelism: int, backend: BackendFor | None) -> None:
        self._parallelism = parallelism
        self.clock = ManualClock()
        self._runner = self._runner_for(
            watermark_delay=None, operator=_OPERATOR, parallelism=parallelism, backend=backend, clock=self.clock
        )
        self.clock.advance(timedelta(milliseconds=self._runner.now))

    def _collected(self, result: ProcessResult) -> _Rows:
        rows: _Rows = result.rows.to_pylist()
        self.output += rows
        for tag, table in result.sides.items():
            self.sides.setdefault(tag, []).extend(table.to_pylist())
        self.late += result.late
        return rows


@checked
class ProcessHarness(Harness[ProcessRunner]):
    """A ``ProcessFunction`` under test: no JVM, no waiting, the same result every time.

    Args:
        function: what to test.
        key: as for ``ProcessRunner``.
        event_time: as for ``ProcessRunner``.
        parallelism: the number of instances.
    """

    def __init__(
        self, function: ProcessFunction, *, key: KeyOf, event_time: Name | None = None, parallelism: Positive = 1
    ) -> None:
        super().__init__(partial(ProcessRunner, function, key=key, event_time=event_time), parallelism)

    def push(self, *rows: Mapping[str, Any]) -> _Rows:
        """Run a batch of rows; fails like ``ProcessRunner.run``."""
        return self._collected(self._runner.run(rows))

    def broadcast(self, *rows: Mapping[str, Any]) -> _Rows:
        """Run a batch of broadcast rows; fails like ``ProcessRunner.run``."""
        return self._collected(self._runner.run((), broadcast=rows))


@checked
class CoProcessHarness(Harness[CoProcessRunner]):
    """A ``CoProcessFunction`` under test; otherwise like ``ProcessHarness``, with pairs for the two inputs."""

    def __init__(
        self,
        function: CoProcessFunction,
        *,
        key: tuple[KeyOf, KeyOf],
        event_time: tuple[Name | None, Name | None] = (None, None),
        parallelism: Positive = 1,
    ) -> None:
        super().__init__(partial(CoProcessRunner, function, key=key, event_time=event_time), parallelism)

    def push_left(self, *rows: Mapping[str, Any]) -> _Rows:
        """Run a batch of left rows; fails like ``CoProcessRunner.run``."""
        return self._collected(self._runner.run(rows, ()))

    def push_right(self, *rows: Mapping[str, Any]) -> _Rows:
        """Run a batch of right rows; fails like ``CoProcessRunner.run``."""
        return self._collected(self._runner.run((), rows))
