"""``CoProcessRunner``: runs a function of two inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from weirflow.arguments import AtLeast, Name, Positive, checked
from weirflow.process.intake import Intake, KeyOf, Rows
from weirflow.process.runner import BackendFor, Element, FunctionRunner, ProcessResult
from weirflow.state.backends.ttl import wall_clock

if TYPE_CHECKING:
    from weirflow.process.function import CoProcessFunction


@checked
class CoProcessRunner(FunctionRunner):
    """Runs a ``CoProcessFunction`` batch by batch; the watermark is the earlier one of its inputs.

    Args:
        function: copied for each instance.
        key: the keys of the left and of the right rows; otherwise as for ``ProcessRunner``.
        event_time: the event times of the left and of the right rows; an input without one does not hold the watermark
            back.
        watermark_delay: as for ``ProcessRunner``, for both inputs.
        operator: as for ``ProcessRunner``.
        parallelism: as for ``ProcessRunner``.
        backend: as for ``ProcessRunner``.
        clock: as for ``ProcessRunner``.

    Raises:
        ConfigError: as for ``ProcessRunner``.
        UserCodeError: as for ``ProcessRunner``.
        StateError: as for ``ProcessRunner``.
    """

    def __init__(
        self,
        function: CoProcessFunction,
        *,
        key: tuple[KeyOf, KeyOf],
        event_time: tuple[Name | None, Name | None] = (None, None),
        watermark_delay: Annotated[timedelta, AtLeast(timedelta(0))] | None = timedelta(0),
        operator: Name = "process",
        parallelism: Positive = 1,
        backend: BackendFor | None = None,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        intakes = [Intake(one, time, watermark_delay) for one, time in zip(key, event_time, strict=True)]
        super().__init__(function, intakes, operator=operator, parallelism=parallelism, backend=backend, clock=clock)

    def run(self, left: Rows, right: Rows) -> ProcessResult:
        """Run a batch: the right rows, then the left ones, then the timers that are due.

        It fails like ``ProcessRunner.run``.
        """
        return self._batch([left, right])

    def _feed(self, at: int, elements: Sequence[Element]) -> None:
        self._one_by_one(("on_left", "on_right")[at], elements)
