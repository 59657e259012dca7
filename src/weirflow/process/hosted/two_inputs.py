"""``HostedCoProcessFunction``: a function of two inputs as another engine runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from weirflow.arguments import shown
from weirflow.errors import ConfigError, UnsupportedError
from weirflow.process.function import CoProcessFunction, ProcessFunction
from weirflow.process.hosted.function import HostedFunction
from weirflow.process.intake import Intake

if TYPE_CHECKING:
    from weirflow.process.function import Row


class HostedCoProcessFunction(HostedFunction):
    """Runs a ``CoProcessFunction``; see ``HostedFunction``.

    The last two columns of a row that the engine hands over are a left row and a right one, one of which is None. Late
    rows are told here.

    Args:
        function: what runs.
        event_time: the column with the time of the event, of the left and of the right rows.

    Raises:
        ConfigError: it is no ``CoProcessFunction``.
    """

    def __init__(self, function: Any, event_time: tuple[str | None, str | None]) -> None:
        if not isinstance(function, CoProcessFunction):
            raise _refused(function)
        super().__init__(function)
        self._left, self._right = (Intake((time or "",), time, None) for time in event_time)

    @override
    def _feed(self, key: Any, rows: Iterable[Sequence[Any]]) -> None:
        lefts: list[Row] = []
        rights = self._timed(key, _rights(rows, lefts), self._right, judges_late=True)
        self._each("on_right", key, rights)
        self._each("on_left", key, self._timed(key, lefts, self._left, judges_late=True))

    @override
    def _refuse_broadcast(self) -> UnsupportedError:
        return UnsupportedError(
            f"{self.name} has broadcast state, but no input of two connected streams is broadcast.",
            hint="write a ProcessFunction: stream.key_by(...).process(function, broadcast=other)",
        )


def _rights(rows: Iterable[Sequence[Any]], lefts: list[Row]) -> Iterator[Row]:
    """The right rows; the left ones are kept for later."""
    for *_, left, right in rows:
        if right is not None:
            yield right
        else:
            lefts.append(left)


def _refused(function: Any) -> ConfigError:
    if isinstance(function, ProcessFunction):
        return ConfigError(
            f"{type(function).__name__} has one input, and two streams were connected.",
            hint="write a CoProcessFunction, or call process(...) on each stream",
        )
    return ConfigError(f"{shown(function)} is not a CoProcessFunction.", hint="give an object of a class of your own")
