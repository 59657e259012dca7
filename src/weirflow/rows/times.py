"""Which times fit a column of times: to the microsecond, and with a zone where the column has moments."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from weirflow.arguments.in_errors import kind_of
from weirflow.rows.misfit import Misfit

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock times are counted from it, and others from it in UTC
_FIRST_DAY = date(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_LEAST, _MOST = -(2**63), 2**63 - 1
_NAT = np.iinfo(np.int64).min


def day(value: Any) -> date:
    """For DATE: a day, or its midnight on a clock."""
    if isinstance(value, np.datetime64):
        value = _datetime_of_numpy(value)
    if isinstance(value, datetime):
        if _micros_of_day(value) or value.tzinfo is not None:
            raise Misfit(value, "it is a time, not a day", "give a date, such as the datetime's date()")
    elif not isinstance(value, date):
        raise Misfit(value, f"it is {kind_of(value)}, not a date", "give a datetime.date")
    return date(value.year, value.month, value.day)


def wall_clock(value: Any) -> int:
    """For TIMESTAMP_NTZ: the microseconds of a time without a zone."""
    if isinstance(value, np.datetime64):
        return _micros(value, "datetime64[us]", "its time has nanoseconds")
    if isinstance(value, datetime):
        if value.utcoffset() is not None:
            raise Misfit(
                value,
                "it has a zone, and the column has none",
                "declare the column TIMESTAMP, or give it without tzinfo",
            )
        return _micros_of(value)
    if isinstance(value, date):
        return (date(value.year, value.month, value.day) - _FIRST_DAY) // _MICROSECOND
    raise Misfit(value, f"it is {kind_of(value)}, not a datetime", "give a datetime without tzinfo")


def moment(value: Any) -> int:
    """For TIMESTAMP: the microseconds of a time with a zone."""
    if isinstance(value, datetime):
        offset = value.utcoffset()
        if offset is not None:
            return _micros_of(value) - offset // _MICROSECOND
    elif not isinstance(value, (date, np.datetime64)):
        raise Misfit(value, f"it is {kind_of(value)}, not a datetime", "give a datetime with tzinfo")
    raise Misfit(
        value, "it has no zone", "give it one, such as datetime(..., tzinfo=UTC), or declare the column TIMESTAMP_NTZ"
    )


def _micros_of(value: datetime) -> int:
    """From 1970 to a time on a clock, whatever its zone."""
    if getattr(value, "nanosecond", 0):
        raise Misfit(value, "its time has nanoseconds", "times have microseconds: round it")
    days = date(value.year, value.month, value.day) - _FIRST_DAY
    return days // _MICROSECOND + _micros_of_day(value)


def _micros_of_day(value: datetime) -> int:
    of_day = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return of_day + bool(getattr(value, "nanosecond", 0))


def _datetime_of_numpy(value: np.datetime64) -> datetime:
    return _EPOCH + timedelta(microseconds=_micros(value, "datetime64[us]", "its time has nanoseconds"))


def _micros(value: Any, unit: str, finer: str) -> int:
    """The microseconds of a time or length of NumPy's, whose conversions round and wrap."""
    near = value.astype(unit)
    micros = int(near.astype(np.int64))
    if micros == _NAT or near != value or near.astype(value.dtype) != value:
        raise Misfit(value, f"{finer}, or it is too far away", "times have microseconds: round it")
    return micros


def duration(value: Any) -> int:
    """For INTERVAL DAY TO SECOND: its microseconds."""
    if isinstance(value, np.timedelta64):
        if np.datetime_data(value)[0] in ("Y", "M", "generic"):
            raise Misfit(value, "it has no fixed length", "give a timedelta")
        return _micros(value, "timedelta64[us]", "it has nanoseconds")
    if not isinstance(value, timedelta):
        raise Misfit(value, f"it is {kind_of(value)}, not a timedelta", "give a timedelta")
    if getattr(value, "nanoseconds", 0):
        raise Misfit(value, "it has nanoseconds", "intervals have microseconds: round it")
    micros = timedelta(value.days, value.seconds, value.microseconds) // _MICROSECOND
    if not _LEAST <= micros <= _MOST:
        raise Misfit(value, "it is too long")
    return micros
