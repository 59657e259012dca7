"""``timestampadd`` and ``timestampdiff``: moments that are so many units apart, in UTC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.calendar import month_starts, months_of, shift_months
from weirflow.ivm.kernel.expressions.failures import failure, overflow
from weirflow.ivm.kernel.expressions.rows import first_row, like_nulls, numbers, on_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

    Counts = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_DAY = 86_400_000_000
_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
}
_DAYS = {"DAY": 1, "DAYOFYEAR": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_MOST_MONTHS, _MOST_DAYS = np.iinfo(np.int32).max, _MOST // _DAY


def timestamp_add(signature: CallSignature) -> Kernel | None:
    """``timestampadd(unit, count, time)``; months keep the day, or take their last one."""
    constant, kind, position = signature.constants[0], signature.types[2], signature.position
    if constant is None or not pa.types.is_timestamp(kind):
        return None
    unit = constant.as_py()
    add = _months_later if unit in _MONTHS else _later

    def run(_: pa.Array, counts: pa.Array, times: pa.Array) -> pa.Array:
        with np.errstate(over="ignore"):
            moments, wrong = add(unit, numbers(counts), numbers(times))
        row = first_row(wrong, counts, times)
        if row is not None:
            message = f"Datetime operation overflow: add {counts[row].as_py()} {unit} to a timestamp."
            raise failure("DATETIME_OVERFLOW", message, position)
        return like_nulls(moments, kind, counts, times)

    return on_arrays(run)


def _later(unit: str, counts: Counts, times: Counts) -> tuple[Counts, Flags]:
    width = _MICROS.get(unit) or _DAYS[unit] * _DAY
    spans = counts * width
    moments = times + spans
    wrong = ((times ^ moments) & (spans ^ moments)) < 0
    if width > 1:
        wrong |= (counts > _MOST // width) | (counts < -(_MOST // width))
    return moments, wrong


def _months_later(unit: str, counts: Counts, times: Counts) -> tuple[Counts, Flags]:
    width = _MONTHS[unit]
    wrong = (counts > _MOST_MONTHS // width) | (counts < -((_MOST_MONTHS + 1) // width))
    days, rest = np.divmod(times, _DAY)
    days = shift_months(days, np.where(wrong, 0, counts) * width)
    # Days before the epoch are counted from their ends, so that no product is larger than the result.
    early = days < 0
    days, rest = days + early, rest - early * _DAY
    wrong |= (days > _MOST_DAYS) | (days < -_MOST_DAYS)
    wrong |= (days == _MOST_DAYS) & (rest > _MOST - _MOST_DAYS * _DAY)
    wrong |= (days == -_MOST_DAYS) & (rest < _LEAST + _MOST_DAYS * _DAY)
    return days * _DAY + rest, wrong


def timestamp_diff(signature: CallSignature) -> Kernel | None:
    """``timestampdiff(unit, start, end)``: whole units, rounded towards zero."""
    constant, position = signature.constants[0], signature.position
    if constant is None or not all(pa.types.is_timestamp(kind) for kind in signature.types[1:]):
        return None
    unit = constant.as_py()

    def run(_: pa.Array, starts: pa.Array, ends: pa.Array) -> pa.Array:
        (first, at), (last, till) = (np.divmod(numbers(times), _DAY) for times in (starts, ends))
        if unit not in _MICROS:
            # A day that has not come to the same time does not count.
            last = last - ((last > first) & (till < at)) + ((last < first) & (till > at))
            return like_nulls(_units_between(unit, first, last), pa.int64(), starts, ends)
        width = _MICROS[unit]
        days, rest = last - first, till - at
        sign = np.sign(days)
        days, rest = days - sign, rest + sign * _DAY
        with np.errstate(over="ignore"):
            whole, part = days * (_DAY // width), _truncated(rest, width)
            counts = whole + part
        wrong = (np.abs(days) > _MOST // (_DAY // width)) | (((whole ^ counts) & (part ^ counts)) < 0)
        if first_row(wrong, starts, ends) is not None:
            raise overflow("long", position)
        return like_nulls(counts, pa.int64(), starts, ends)

    return on_arrays(run)


def _units_between(unit: str, first: Counts, last: Counts) -> Counts:
    if unit in _DAYS:
        return _truncated(last - first, _DAYS[unit])
    longest = 32  # more than the days of any month: a month is over when its day has come
    packed = [months_of(days) * longest + days - month_starts(months_of(days)) for days in (first, last)]
    return _truncated(_truncated(packed[1] - packed[0], longest), _MONTHS[unit])


def _truncated(values: Counts, width: int) -> Counts:
    whole: Counts = np.sign(values) * (np.abs(values) // width)
    return whole


FUNCTIONS: dict[str, Builder] = {"timestampadd": timestamp_add, "timestampdiff": timestamp_diff}
