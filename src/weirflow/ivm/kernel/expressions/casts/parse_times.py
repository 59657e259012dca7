"""Texts to dates and timestamps, by the grammar that Spark's casts have."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from weirflow.ivm.kernel.expressions.calendar import days_from_civil
from weirflow.ivm.kernel.expressions.failures import failure, shown

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition

BLANKS = "".join(map(chr, [*range(0x21), 0x7F]))
"""What Spark trims from texts that it parses: white space and control characters of ASCII."""
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*+))?([^0-9.].*)?)?)?)?)?)?",
    re.DOTALL,
)
_TIME_ONLY = re.compile(
    r"(?:T[0-9]{1,2}|[0-9]{1,2}:)(?::?[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]*+)?(?:[^0-9.].*)?)?)?", re.DOTALL
)
_SINGLE_HOUR = re.compile(r"([+-])(\d):", re.ASCII)
_SINGLE_MINUTE = re.compile(r"([+-])(\d\d):(\d)$", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(?:(\d)|(\d\d)(?::(\d\d)(?::(\d\d))?|(\d\d)(\d\d)?)?)", re.ASCII)
_UTC = frozenset({"Z", "UTC", "GMT", "UT"})
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+")
_MAX_OFFSET = 18 * 3600
_DAY_MICROS = 86_400_000_000
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


def _unknown(_: str, __: int) -> None:
    """Knows no zone by its name."""


def parse_timestamp(
    text: str,
    position: SqlPosition | None,
    *,
    zoned: bool,
    moment: Callable[[int], int] | None = None,
    region: Callable[[str, int], int | None] = _unknown,
) -> int:
    """Microseconds since 1970; ``ValueError`` for what is not one, ``DataError`` for what needs more than UTC.

    For a text without a zone of its own, ``moment`` makes the moment that is meant of what a clock shows; for one with
    the name of a zone, ``region`` does, if it knows it.
    """
    trimmed = text.strip(BLANKS)
    found = _TIMESTAMP.fullmatch(trimmed)
    if not found:
        if zoned and _TIME_ONLY.fullmatch(trimmed):
            raise failure("CAST_INVALID_INPUT", f"{shown(text)!r} has no date; Spark would take today's.", position)
        raise ValueError(text)
    sign, year, month, day, hour, minute, second, fraction, zone = found.groups()
    days = days_from_civil(-int(year) if sign == "-" else int(year), int(month or 1), int(day or 1))
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:  # noqa: PLR2004 - a clock
        raise ValueError(text)
    micros = days * _DAY_MICROS + (hours * 3600 + minutes * 60 + seconds) * 1_000_000
    micros += int((fraction or "0")[:6].ljust(6, "0"))
    if zone:
        there = region(zone.strip(), micros) if zoned else None
        if there is None:
            offset = _offset(zone.strip(), text, position)
            there = micros - offset * 1_000_000 if zoned else micros
        micros = there
    elif moment is not None:
        micros = moment(micros)
    if not -_MAX_MICROS <= micros < _MAX_MICROS:
        raise ValueError(text)
    return micros


def names_zone(text: str) -> bool:
    """Whether a text that is a timestamp has a zone of its own."""
    found = _TIMESTAMP.fullmatch(text.strip(BLANKS))
    return found is not None and found[9] is not None


def _offset(zone: str, text: str, position: SqlPosition | None) -> int:
    """Seconds east of UTC; zones that have a history are refused."""
    if zone in _UTC:
        return 0
    spelled = _SINGLE_MINUTE.sub(r"\1\2:0\3", _SINGLE_HOUR.sub(r"\g<1>0\2:", zone, count=1), count=1)
    found = _OFFSET.fullmatch(spelled)
    if found:
        sign, hour, hours, minutes, seconds, short_minutes, short_seconds = found.groups()
        parts = [int(part or 0) for part in (hour or hours, minutes or short_minutes, seconds or short_seconds)]
        total = parts[0] * 3600 + parts[1] * 60 + parts[2]
        if parts[1] > 59 or parts[2] > 59 or total > _MAX_OFFSET:  # noqa: PLR2004 - a clock
            raise ValueError(text)
        return -total if sign == "-" else total
    if not _REGION.fullmatch(spelled):
        raise ValueError(text)
    message = f"The time zone of {shown(text)!r} is not UTC and no fixed offset, so it is not read here."
    raise failure("UNSUPPORTED_TIME_ZONE", message, position, hint="write the offset, such as +02:00")
