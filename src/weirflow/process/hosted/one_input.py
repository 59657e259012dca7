"""``HostedProcessFunction``: a function of one input as another engine runs it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from weirflow.arguments import shown
from weirflow.errors import ConfigError
from weirflow.process.function import CoProcessFunction, ProcessFunction
from weirflow.process.hosted.function import HostedFunction
from weirflow.process.intake import Intake

if TYPE_CHECKING:
    from weirflow.process.function import Row


class HostedProcessFunction(HostedFunction):
    """Runs a ``ProcessFunction``; see ``HostedFunction``.

    Args:
        function: what runs.
        columns: the names of the input's columns.
        event_time: the one with the time of the event.

    Attributes:
        judges_late: whether late rows are told here, so that the engine must not drop them.

    Raises:
        ConfigError: it is no ``ProcessFunction``.
    """

    function: ProcessFunction

    def __init__(self, function: Any, columns: Sequence[str], event_time: str | None) -> None:
        if not isinstance(function, ProcessFunction):
            raise _refused(function)
        super().__init__(function)
        self._columns = tuple(columns)
        self._intake = Intake(self._columns, event_time, None)
        self._whole_batches = type(function).on_batch is not ProcessFunction.on_batch
        self.judges_late = self.wants_late and event_time is not None

    @override
    def _feed(self, key: Any, rows: Iterable[Sequence[Any]]) -> None:
        columns = self._columns
        self._run(key, (dict(zip(columns, values, strict=True)) for values in rows))

    def _run(self, key: Any, rows: Iterable[Row]) -> None:
        timed = self._timed(key, rows, self._intake, judges_late=self.judges_late)
        if not self._whole_batches:
            self._each("on_element", key, timed)
            return
        with self._user_code("on_batch") as user_code:
            user_code.key = key
            self.function.on_batch(self._context, key, timed)

    @override
    def _refuse_broadcast(self) -> ConfigError:
        return ConfigError(
            f"{self.name} has broadcast state, and no stream is broadcast to it.",
            hint="give one: process(function, broadcast=stream)",
        )


def _refused(function: Any) -> ConfigError:
    if isinstance(function, CoProcessFunction):
        return ConfigError(
            f"{type(function).__name__} has two inputs, and one stream was given.",
            hint="connect two: left.key_by(...).connect(right.key_by(...)).process(function)",
        )
    return ConfigError(f"{shown(function)} is not a ProcessFunction.", hint="give an object of a class of your own")
