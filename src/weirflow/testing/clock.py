"""``ManualClock``: a clock that moves when it is told to."""

from __future__ import annotations

from datetime import timedelta

from weirflow.arguments import checked
from weirflow.errors import ConfigError

_MILLISECOND = timedelta(milliseconds=1)


@checked
class ManualClock:
    """Milliseconds since 1970, as long as nobody advances it the same.

    It takes the place of any ``clock`` option: calling it tells the time.

    >>> clock = ManualClock(1_000)
    >>> clock.advance(timedelta(seconds=2))
    >>> clock()
    3000
    """

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def __call__(self) -> int:
        """The time."""
        return self._now

    def __repr__(self) -> str:
        return f"ManualClock({self._now})"

    def advance(self, by: timedelta) -> None:
        """Let time go by.

        Raises:
            ConfigError: it would go back.
        """
        if by < timedelta(0):
            raise ConfigError(f"The clock cannot be advanced by {by}.", hint="time does not go back")
        self._now += by // _MILLISECOND
