"""``CoProcessRunner``: runs a function of two inputs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError
from weirflow.process.function import CoProcessFunction
from weirflow.process.intake import Intake
from weirflow.process.runner import Runner
from weirflow.state.ttl import wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirflow.process.intake import KeyOf, Rows
    from weirflow.process.runner import BackendFor, Element, ProcessResult


class CoProcessRunner(Runner):
    """Runs a ``CoProcessFunction`` batch by batch; the watermark is the earlier one of its inputs.

    Args:
        function: copied for each instance.
        key: of the left and of the right rows; else as for ``ProcessRunner``.
        event_time: of the left and of the right rows; an input without one does not hold the watermark back.
        watermark_delay: as for ``ProcessRunner``, of both.
        operator: as for ``ProcessRunner``.
        parallelism: as for ``ProcessRunner``.
        backend: as for ``ProcessRunner``.
        clock: as for ``ProcessRunner``.

    Raises:
        ConfigError: as for ``ProcessRunner``.
        UserCodeError: as for ``ProcessRunner``.
        StateError: as for ``ProcessRunner``.
    """

    runs = CoProcessFunction

    def __init__(
        self,
        function: CoProcessFunction,
        *,
        key: tuple[KeyOf, KeyOf],
        event_time: tuple[str | None, str | None] = (None, None),
        watermark_delay: timedelta | None = timedelta(0),
        operator: str = "process",
        parallelism: int = 1,
        backend: BackendFor | None = None,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        _require_pair(key, "key")
        _require_pair(event_time, "event_time")
        intakes = [Intake(one, time, watermark_delay) for one, time in zip(key, event_time, strict=True)]
        super().__init__(function, intakes, operator=operator, parallelism=parallelism, backend=backend, clock=clock)

    def run(self, left: Rows, right: Rows) -> ProcessResult:
        """Run a batch: the right rows, then the left ones, then the timers that are due.

        It fails like ``ProcessRunner.run``.
        """
        return self._batch([left, right])

    def _feed(self, at: int, elements: Sequence[Element]) -> None:
        self._one_by_one(("on_left", "on_right")[at], elements)


def _require_pair(option: object, name: str) -> None:
    if not isinstance(option, tuple) or len(option) != 2:  # noqa: PLR2004 - left and right
        raise ConfigError(f"{name}={option!r} is not for two inputs.", hint=f"give a pair: {name}=(left, right)")
