"""Dates and times in JSON texts: by a pattern, or else as casts read them and as ISO 8601 has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.calendar import days_and_times, days_from_civil, text_of_days
from weirflow.ivm.kernel.expressions.casts.parse_times import names_zone, parse_date, parse_timestamp
from weirflow.ivm.kernel.expressions.rows import numbers
from weirflow.ivm.kernel.expressions.times.format import TimeWriter
from weirflow.ivm.kernel.expressions.times.parse import TimeReader

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.json.options import JsonOptions

Read: TypeAlias = Callable[[str], int]
"""From a text to days or microseconds since 1970; ``ValueError`` for what is no such time."""
Write: TypeAlias = Callable[[pa.Array], list[str]]
"""From times to texts, of NULLs any."""

_DAY, _SECOND = 86_400_000_000, 1_000_000
_INT, _LONG = 1 << 31, 1 << 63
_DIGITS = re.compile(r"[+-]?\d+")
_GREGORIAN = -141_427
"""The day on which the calendar was changed."""
_OF_DATES = frozenset("yMLdDQqE")


def date_reader(options: JsonOptions) -> Read | None:
    """Reads dates; None for a pattern that is not known here."""
    if options.date_format is None:
        return _usual_date
    reader = TimeReader.of(options.date_format)
    if reader is None:
        return None

    def read(text: str) -> int:
        shown = reader.shown(text)
        if shown is None or not -_INT <= shown // _DAY < _INT:
            raise ValueError(text)
        return shown // _DAY

    return read


def _usual_date(text: str) -> int:
    """A date; one with GMT somewhere; or days since 1970 in digits, of the calendar that was in use then."""
    try:
        return _without_gmt(text, parse_date)
    except ValueError:
        return _counted(text)


def _counted(text: str) -> int:
    days = int(text) if _DIGITS.fullmatch(text) else _INT
    if not -_INT <= days < _INT:
        raise ValueError(text)
    return days if days >= _GREGORIAN else _of_julian(days)


def _of_julian(days: int) -> int:
    """The day of the same year, month and day in the Gregorian calendar, counted on from the first of the month."""
    number = days + 719_470  # days since the first of March of the year 0, in the Julian calendar
    cycle, rest = divmod(number, 1461)
    year_of_cycle = min(rest // 365, 3)
    day_of_year = rest - 365 * year_of_cycle
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    year = 4 * cycle + year_of_cycle + (month >= 10)  # noqa: PLR2004 - January and February are the last months
    return days_from_civil(year, (month + 2) % 12 + 1, 1) + day - 1


def moment_reader(options: JsonOptions) -> Read | None:
    """Reads moments; None for a pattern that is not known here."""
    clock = options.clock
    if options.timestamp_format is not None:
        reader = TimeReader.of(options.timestamp_format)
        return None if reader is None else lambda text: _fitting(reader.moment(text, clock), text)

    def read(text: str) -> int:
        return _without_gmt(text, lambda spelled: parse_timestamp(spelled, None, zoned=True, moment=clock.moment_at))

    return read


def _without_gmt(text: str, parse: Callable[[str], int]) -> int:
    """What a text says, or else what it says without the letters GMT."""
    try:
        return parse(text)
    except ValueError:
        return parse(text.replace("GMT", ""))


def shown_reader(options: JsonOptions) -> Read | None:
    """Reads times of no zone, which must have none."""
    del options  # those that are known say nothing of them

    def read(text: str) -> int:
        if names_zone(text):
            raise ValueError(text)
        return parse_timestamp(text, None, zoned=False)

    return read


def _fitting(micros: int | None, text: str) -> int:
    if micros is None or not -_LONG <= micros < _LONG:
        raise ValueError(text)
    return micros


def date_writer(options: JsonOptions) -> Write | None:
    """Writes dates; None for a pattern that is not known here, or that has more than dates."""
    if options.date_format is None:
        return lambda dates: text_of_days(numbers(dates).astype(np.int64))
    writer = TimeWriter.of(options.date_format)
    if writer is None or not writer.letters <= _OF_DATES:
        return None

    def write(dates: pa.Array) -> list[str]:
        texts: list[str] = writer(numbers(dates).astype(np.int64) * _DAY).to_pylist()
        return texts

    return write


def moment_writer(options: JsonOptions) -> Write | None:
    """Writes moments; None for a pattern that is not known here."""
    clock = options.clock
    writer = None if options.timestamp_format is None else TimeWriter.of(options.timestamp_format)
    if writer is None and options.timestamp_format is not None:
        return None

    def write(moments: pa.Array) -> list[str]:
        micros = numbers(moments)
        offsets = clock.offset_at(micros)
        if writer is None:
            zones = [_offset(offset // _SECOND) for offset in offsets.tolist()]
            return [f"{text}{zone}" for text, zone in zip(_shown(micros, offsets), zones, strict=True)]
        texts: list[str] = writer(micros + offsets, offsets).to_pylist()
        return texts

    return write


def shown_texts(times: pa.Array) -> list[str]:
    """Times of no zone, with milliseconds."""
    return _shown(numbers(times), np.zeros(1, np.int64))


def _shown(micros: np.ndarray, ahead: np.ndarray) -> list[str]:
    days, rest = days_and_times(micros, ahead)
    texts = []
    for day, time in zip(text_of_days(days), rest.tolist(), strict=True):
        seconds, fraction = divmod(time, _SECOND)
        shown = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction // 1000:03d}"
        texts.append(f"{day}T{shown}")
    return texts


def _offset(seconds: int) -> str:
    if not seconds:
        return "Z"
    size = abs(seconds)
    tail = f":{size % 60:02d}" if size % 60 else ""
    return f"{'-' if seconds < 0 else '+'}{size // 3600:02d}:{size // 60 % 60:02d}{tail}"
