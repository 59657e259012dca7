"""Lengths of time as users write them: milliseconds, ``timedelta``, or Spark's words."""

from __future__ import annotations

import re
from datetime import timedelta

from weirflow.errors import ConfigError

Duration = float | timedelta | str

_PART = re.compile(r"\s*(\d+)\s+([a-z]+?)s?(?=\s|$)", re.IGNORECASE)
_FOREVER = 10**15  # some thirty thousand years
_UNITS = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}


def spark_interval(length: Duration, what: str, *, allow_zero: bool = False) -> str:
    """A length of time in Spark's words; text is taken as it is, for Spark to read.

    Args:
        length: milliseconds, a ``timedelta``, or text such as ``"10 minutes"``.
        what: what it is the length of, for the error.
        allow_zero: whether nothing at all is a length.
    """
    if isinstance(length, str):
        if not length.strip():
            raise ConfigError(f"The {what} is empty.", hint='write it as "10 minutes", or give milliseconds')
        return length
    return f"{milliseconds(length, what, allow_zero=allow_zero)} milliseconds"


def milliseconds(length: float | timedelta, what: str, *, allow_zero: bool = False) -> int:
    """A length of time as whole milliseconds."""
    exact = length / timedelta(milliseconds=1) if isinstance(length, timedelta) else length
    if isinstance(exact, bool) or not -_FOREVER < exact < _FOREVER or exact != int(exact):
        raise ConfigError(
            f"The {what} is {length!r}, which is not a number of milliseconds.", hint="give a whole number"
        )
    if exact < 0 or (exact == 0 and not allow_zero):
        raise ConfigError(f"The {what} is {length!r}, and must be longer.", hint="give milliseconds above 0")
    return int(exact)


def interval_ms(words: str) -> int:
    """Milliseconds of an interval in Spark's words, such as ``"1 hour 30 minutes"``."""
    total, at = 0, 0
    while at < len(words.rstrip()):
        match = _PART.match(words, at)
        unit = _UNITS.get(match.group(2).casefold()) if match else None
        if match is None or unit is None:
            raise ConfigError(
                f"{words!r} is not a number of milliseconds.", hint='give milliseconds, or words such as "10 minutes"'
            )
        total += int(match.group(1)) * unit
        at = match.end()
    return total
