"""Constants in SQL text: numbers with Spark's types, dates, timestamps, intervals."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa

from weirflow.errors import NotIncremental, Reason, SqlPosition, SqlSyntaxError
from weirflow.sql.expr import Literal
from weirflow.sql.types import (
    BIGINT,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    decimal,
)
from weirflow.sql.typing.durations import MICROS

_SUFFIXED = {"Y": TINYINT, "S": SMALLINT, "L": BIGINT}
_MONTHS = {"YEAR": 12, "MONTH": 1}
_AMOUNT = re.compile(r"([+-]?)\s*(\d+)(?:\.(\d{1,9}))?")
_DATE_TEXT = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP_TEXT = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?(Z|UTC|GMT|[+-]\d{2}:\d{2})?)?)?)?"
)


def number(text: str, suffix: str = "", position: SqlPosition | None = None) -> Literal:
    """A number as Spark types it: int, bigint or decimal by its digits, double with an exponent, or by its suffix."""
    if suffix in _SUFFIXED:
        kind = _SUFFIXED[suffix]
        if not _fits(int(text), kind):
            raise SqlSyntaxError(f"{text}{suffix} is out of range.", position=position)
        return Literal(int(text), kind)
    if suffix in ("F", "D") or (suffix == "" and "e" in text.casefold()):
        value = _float32(text) if suffix == "F" else float(text)
        if math.isinf(value):
            raise SqlSyntaxError(f"{text}{suffix} is out of range.", position=position)
        return Literal(value, FLOAT if suffix == "F" else DOUBLE)
    if suffix == "" and text.lstrip("-").isdigit():
        whole = int(text)
        if _fits(whole, INT):
            return Literal(whole, INT)
        if _fits(whole, BIGINT):
            return Literal(whole, BIGINT)
    return _decimal(text, position)


def _decimal(text: str, position: SqlPosition | None) -> Literal:
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "text of a number has no NaN"
    scale = max(0, -exponent)
    significant = len(str(int("".join(map(str, digits))))) + max(0, exponent)
    precision = max(significant, scale)
    if precision > MAX_PRECISION:
        raise SqlSyntaxError(f"{text} has more than {MAX_PRECISION} digits.", position=position)
    return Literal(value if exponent <= 0 else Decimal(int(value)), decimal(precision, scale))


def _fits(value: int, kind: pa.DataType) -> bool:
    return bool(-(1 << (kind.bit_width - 1)) <= value < (1 << (kind.bit_width - 1)))


def _float32(text: str) -> float:
    return float(pa.scalar(float(text), DOUBLE).cast(FLOAT).as_py())


def date_literal(text: str) -> Literal | None:
    """The date that ``yyyy[-M[-d]]`` text stands for, or None when casting rules must decide."""
    found = _DATE_TEXT.fullmatch(text.strip())
    if found is None:
        return None
    try:
        return Literal(date(*(int(part or 1) for part in found.groups())), DATE)
    except ValueError:
        return None


def timestamp_literal(text: str, kind: pa.DataType, zone: tzinfo) -> Literal | None:
    """The timestamp that ISO text stands for, read in ``zone`` unless it names one; None when casting must decide."""
    found = _TIMESTAMP_TEXT.fullmatch(text.strip())
    if found is None:
        return None
    day = date_literal("-".join(part for part in found.groups()[:3] if part))
    hour, minute, second = (int(part or 0) for part in found.groups()[3:6])
    micros, offset = int((found[7] or "").ljust(6, "0")[:6]), found[8]
    if day is None:
        return None
    try:
        moment = datetime.combine(day.value, time(hour, minute, second, micros))
        if offset and kind != TIMESTAMP_NTZ:
            zone = UTC if offset in ("Z", "UTC", "GMT") else datetime.strptime(offset, "%z").tzinfo or zone
        if kind == TIMESTAMP_NTZ:
            return Literal(moment, TIMESTAMP_NTZ)
        return Literal(moment.replace(tzinfo=zone).astimezone(UTC), TIMESTAMP)
    except (ValueError, OverflowError):
        return None


def datetime_text(value: date | datetime, zone: tzinfo) -> str:
    """A date or timestamp as Spark shows it in a session of that zone.

    >>> datetime_text(datetime(2024, 2, 29, 12, 30, 0, 500_000), UTC)
    '2024-02-29 12:30:00.5'
    """
    if not isinstance(value, datetime):
        return value.isoformat()
    local = value.astimezone(zone) if value.tzinfo else value
    fraction = f".{local.microsecond:06}".rstrip("0") if local.microsecond else ""
    return local.strftime("%Y-%m-%d %H:%M:%S").zfill(19) + fraction


def interval(text: str, first: str, last: str | None, position: SqlPosition | None = None) -> Literal:
    """``INTERVAL 'text' first [TO last]``; units without their plural s."""
    if last is None:
        return _single_unit(text, first, position)
    if (first, last) == ("YEAR", "MONTH"):
        found = re.fullmatch(r"([+-]?)(\d+)-(\d+)", text.strip())
        if found is None:
            raise _bad_interval(text, position)
        months = int(found[2]) * 12 + int(found[3])
        return Literal(pa.MonthDayNano([-months if found[1] == "-" else months, 0, 0]), YEAR_MONTH_INTERVAL)
    return _day_time_span(text, first, last, position)


def is_whole_days(first: str, last: str | None) -> bool:
    """Whether an interval of these units counts days, so that adding it to a date gives a date."""
    return last is None and first in ("DAY", "WEEK")


def _single_unit(text: str, unit: str, position: SqlPosition | None) -> Literal:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or (found[3] and unit != "SECOND"):
        raise _bad_interval(text, position)
    sign = -1 if found[1] == "-" else 1
    if unit in _MONTHS:
        return Literal(pa.MonthDayNano([sign * int(found[2]) * _MONTHS[unit], 0, 0]), YEAR_MONTH_INTERVAL)
    if unit not in MICROS:
        raise NotIncremental(
            f"Intervals of {unit} are not supported.", reason=Reason.TYPE_NOT_SUPPORTED, position=position
        )
    micros = int(found[2]) * MICROS[unit] + int((found[3] or "0").ljust(6, "0")[:6])
    return Literal(timedelta(microseconds=sign * micros), DAY_TIME_INTERVAL)


def _day_time_span(text: str, first: str, last: str, position: SqlPosition | None) -> Literal:
    order = ("DAY", "HOUR", "MINUTE", "SECOND")
    if first not in order or last not in order or order.index(first) >= order.index(last):
        raise _bad_interval(text, position)
    units = order[order.index(first) : order.index(last) + 1]
    separators = {
        "DAY": r"(\d+)",
        "HOUR": r"(\d{1,10})",
        "MINUTE": r"(\d{1,10})",
        "SECOND": r"(\d{1,10}(?:\.\d{1,9})?)",
    }
    pattern = separators[units[0]]
    for before, unit in pairwise(units):
        pattern += (" +" if before == "DAY" else ":") + separators[unit]
    found = re.fullmatch(rf"([+-]?){pattern}", text.strip())
    if found is None:
        raise _bad_interval(text, position)
    micros = sum(int(Decimal(part) * MICROS[unit]) for unit, part in zip(units, found.groups()[1:], strict=True))
    return Literal(timedelta(microseconds=-micros if found[1] == "-" else micros), DAY_TIME_INTERVAL)


def _bad_interval(text: str, position: SqlPosition | None) -> SqlSyntaxError:
    return SqlSyntaxError(f"{text!r} is not an interval of these units.", position=position)
