"""The proleptic Gregorian calendar, for any day that fits into Spark's types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY = 2
_NOT_AHEAD = np.zeros(1, np.int64)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01; ``ValueError`` if there is no such day.

    >>> days_from_civil(1969, 12, 31)
    -1
    """
    if not 1 <= month <= len(_DAYS):
        raise ValueError(f"Invalid value for MonthOfYear (valid values 1 - 12): {month}")
    if not 1 <= day <= 31:  # noqa: PLR2004 - the longest month
        raise ValueError(f"Invalid value for DayOfMonth (valid values 1 - 28/31): {day}")
    leap = month == _FEBRUARY and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS[month - 1] + leap:
        raise ValueError(f"Invalid date: there is no day {day} in month {month} of {year}")
    months = (year - 1970) * 12 + month - 1
    return int(month_starts(np.array([months]))[0]) + day - 1


def month_starts(months: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first days, as days since 1970-01-01, of months counted from January 1970."""
    return months.astype("M8[M]").astype("M8[D]").astype(np.int64)


def months_of(days: NDArray[np.int64]) -> NDArray[np.int64]:
    """The months, counted from January 1970, that days are in."""
    return days.astype("M8[D]").astype("M8[M]").astype(np.int64)


def shift_months(days: NDArray[np.int64], months: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same day of a later or earlier month, or its last day if it has no such day."""
    from_month = months_of(days)
    to_month = from_month + months
    start = month_starts(to_month)
    length = month_starts(to_month + 1) - start
    shifted: NDArray[np.int64] = start + np.minimum(days - month_starts(from_month), length - 1)
    return shifted


def text_of_days(days: NDArray[np.int64]) -> list[str]:
    """``yyyy-MM-dd``; years beyond 9999 have a plus sign, as Java gives them."""
    months = months_of(days)
    parts = zip(
        (months // 12 + 1970).tolist(),
        (months % 12 + 1).tolist(),
        (days - month_starts(months) + 1).tolist(),
        strict=True,
    )
    return [f"{_year(year)}-{month:02d}-{day:02d}" for year, month, day in parts]


def _year(year: int) -> str:
    sign = "-" if year < 0 else "+" if year > 9999 else ""  # noqa: PLR2004 - four digits
    return f"{sign}{abs(year):04d}"


def days_and_times(micros: NDArray[np.int64], ahead: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The day and the time of day that clocks show which are so far ahead; together they may be more than 64 bits hold.

    >>> [part.tolist() for part in days_and_times(np.array([2**63 - 1]), np.array([86_400_000_000]))]
    [[106751992], [14454775807]]
    """
    days, rest = np.divmod(micros, 86_400_000_000)
    more, rest = np.divmod(rest + ahead, 86_400_000_000)
    return days + more, rest


def text_of_micros(micros: NDArray[np.int64], ahead: NDArray[np.int64] = _NOT_AHEAD) -> list[str]:
    """``yyyy-MM-dd HH:mm:ss`` and the fraction of a second, if any, without trailing zeros."""
    days, rest = days_and_times(micros, ahead)
    dates = text_of_days(days)
    texts = []
    for date, time in zip(dates, rest.tolist(), strict=True):
        seconds, fraction = divmod(time, 1_000_000)
        tail = f".{fraction:06d}".rstrip("0") if fraction else ""
        texts.append(f"{date} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}")
    return texts
