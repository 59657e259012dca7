"""``ManualClock``: a clock that moves when it is told to."""

from __future__ import annotations

from datetime import timedelta

from weirflow.arguments import checked
from weirflow.errors import ConfigError

_MILLISECOND = timedelta(milliseconds=1)


@checked
class ManualClock:
    """A clock in milliseconds since 1970 that stands still until you advance it.

    Use it as any ``clock`` option: calling it returns the time.

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
        """Let time pass.

        Raises:
            ConfigError: the clock would go back.
        """
        if by < timedelta(0):
            raise ConfigError(f"The clock cannot be advanced by {by}.", hint="time does not go back")
        self._now += by // _MILLISECOND
