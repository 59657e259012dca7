"""Texts to dates and timestamps, by the grammar that Spark's casts have."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from weirflow.errors import UnsupportedError
from weirflow.ivm.kernel.expressions.calendar import days_from_civil
from weirflow.ivm.kernel.expressions.failures import TIME_WITHOUT_DATE, UNSUPPORTED_TIME_ZONE, failure, shown
from weirflow.ivm.kernel.expressions.times.clocks import written_clock

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition
    from weirflow.ivm.kernel.expressions.times.clocks import Clock

BLANKS = "".join(map(chr, [*range(0x21), 0x7F]))
"""What Spark trims from texts that it parses: white space and control characters of ASCII."""
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*+))?([^0-9.].*)?)?)?)?)?)?",
    re.DOTALL,
)
_TIME_ONLY = re.compile(
    r"(?:T([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.[0-9]*+)?([^0-9.].*)?)?)?"
    r"|([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.[0-9]*+)?([^0-9.].*)?)?)",
    re.DOTALL,
)
_DAY_MICROS, _SECOND = 86_400_000_000, 1_000_000
_MAX_DAYS = 1 << 31
_MAX_MICROS = 1 << 63


def parse_date(text: str) -> int:
    """Days since 1970-01-01; ``ValueError`` for what is not a date."""
    found = _DATE.fullmatch(text.strip(BLANKS))
    if not found:
        raise ValueError(text)
    sign, year, month, day = found.groups()
    days = days_from_civil(-int(year) if sign == "-" else int(year), int(month or 1), int(day or 1))
    if not -_MAX_DAYS <= days < _MAX_DAYS:
        raise ValueError(text)
    return days


def parse_timestamp(
    text: str, position: SqlPosition | None, *, zoned: bool, moment: Callable[[int], int] | None = None
) -> int:
    """Microseconds since 1970; ``ValueError`` for what is not one, ``DataError`` for what is not read here.

    For a text without a zone of its own, ``moment`` makes the moment that is meant of what a clock shows.
    """
    trimmed = text.strip(BLANKS)
    found = _TIMESTAMP.fullmatch(trimmed)
    if not found:
        if zoned:
            _require_no_time(text, trimmed, position)
        raise ValueError(text)
    sign, year, month, day, hour, minute, second, fraction, zone = found.groups()
    days = days_from_civil(-int(year) if sign == "-" else int(year), int(month or 1), int(day or 1))
    micros = days * _DAY_MICROS + _seconds(text, hour, minute, second) * _SECOND
    micros += int((fraction or "0")[:6].ljust(6, "0"))
    if zone:
        there = _clock(zone, text, position)
        micros = there.moment_at(micros) if zoned else micros
    elif moment is not None:
        micros = moment(micros)
    if not -_MAX_MICROS <= micros < _MAX_MICROS:
        raise ValueError(text)
    return micros


def _seconds(text: str, *written: str | None) -> int:
    """The seconds since midnight of an hour, a minute and a second, as far as they are written."""
    hours, minutes, seconds = (int(part or 0) for part in written)
    if hours > 23 or minutes > 59 or seconds > 59:  # noqa: PLR2004 - a clock
        raise ValueError(text)
    return hours * 3600 + minutes * 60 + seconds


def _require_no_time(text: str, trimmed: str, position: SqlPosition | None) -> None:
    """Refuse a time without a date: Spark takes the day of the query, which is another when the row is retracted."""
    found = _TIME_ONLY.fullmatch(trimmed)
    if found is None or (trimmed[0] == "T" and not text.startswith("T")):
        return
    parts = found.groups()
    *written, zone = parts[:4] if parts[0] else parts[4:]
    _seconds(text, *written)
    if zone:
        _clock(zone, text, position)
    raise failure(
        TIME_WITHOUT_DATE,
        f"{shown(text)!r} has no date. Spark would use today's date, so the row would have another value tomorrow.",
        position,
        hint="write the date into the text, or read it as a STRING",
    )


def names_zone(text: str) -> bool:
    """Whether a text that is a timestamp has a zone of its own."""
    found = _TIMESTAMP.fullmatch(text.strip(BLANKS))
    return found is not None and found[9] is not None


def _clock(zone: str, text: str, position: SqlPosition | None) -> Clock:
    """The clock of a zone that is written in a text."""
    try:
        return written_clock(zone.strip(BLANKS[:-1]))
    except UnsupportedError as error:
        message = f"{shown(text)!r} is not read here: {error.message}"
        raise failure(UNSUPPORTED_TIME_ZONE, message, position, hint="write the offset, such as +02:00") from None
