"""Times made of their parts, of other clocks and of seconds; and what is between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.calendar import month_starts, months_of
from weirflow.ivm.kernel.expressions.dates import nulls_like
from weirflow.ivm.kernel.expressions.failures import failure, overflow, shown
from weirflow.ivm.kernel.expressions.nested.selection import known
from weirflow.ivm.kernel.expressions.numbers.decimal_words import from_unscaled, unscaled
from weirflow.ivm.kernel.expressions.rows import first_row, like_nulls, numbers, on_arrays
from weirflow.ivm.kernel.expressions.times.clocks import clock_of
from weirflow.ivm.kernel.expressions.times.names import DAYS, MONTHS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.errors import SqlPosition
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

    Numbers = NDArray[np.int64]

_DAY, _SECOND, _MINUTE = 86_400_000_000, 1_000_000, 60_000_000
_LONG = np.iinfo(np.int64)
_MOST_YEARS = 300_000
_YEARS = 999_999_999
_WEEKDAYS = {name[:length].upper(): at for at, name in enumerate(DAYS[1]) for length in (2, 3, len(name))}
_LONGEST_MONTH = 31
_DIGITS = 6


def make_timestamp(signature: CallSignature) -> Kernel | None:
    """A time of year, month, day, hour, minute and seconds with their fraction; the 60th second is the next minute."""
    if signature.types[5] != pa.decimal128(16, 6):
        return None
    position, tolerant = signature.position, signature.function.startswith("try_")

    def run(*parts: pa.Array) -> pa.Array:
        year, month, day, hour, minute = (numbers(one).astype(np.int64) for one in parts[:5])
        fraction = unscaled(parts[5]).astype(np.int64)
        valid = known(*parts)
        fits = (np.abs(year) <= _YEARS) & _within(month, 1, 12) & (day >= 1)
        near = np.where(np.abs(year) > _MOST_YEARS, year % 400 + 2000, year)  # then the calendar begins again
        months = np.where(fits & valid, (near - 1970) * 12 + month - 1, 0)
        starts = month_starts(months)
        fits &= day <= month_starts(months + 1) - starts
        fits &= _within(hour, 0, 23) & _within(minute, 0, 59)
        fits &= (fraction >= 0) & (fraction < 61 * _SECOND)
        _require(fits | ~valid, tolerant=tolerant, position=position)
        whole = fraction <= _MINUTE
        if (fits & valid & ~whole).any() and not tolerant:
            message = "The fraction of a second must be zero in the 60th second."
            raise failure("INVALID_FRACTION_OF_SECOND", message, position)
        fits &= whole & valid
        days = starts + day - 1
        if (fits & ((np.abs(year) > _MOST_YEARS) | (np.abs(days) >= _LONG.max // _DAY))).any():
            raise overflow("long", position)
        total = days * _DAY + hour * 60 * _MINUTE + minute * _MINUTE + fraction
        bitmap = pa.array(fits, mask=~fits) if not fits.all() else pa.array(fits)
        return like_nulls(np.where(fits, total, 0), signature.result, bitmap)

    return on_arrays(run)


def _within(values: Numbers, least: int, most: int) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = (values >= least) & (values <= most)
    return inside


def _require(fits: NDArray[np.bool_], *, tolerant: bool, position: SqlPosition | None) -> None:
    if tolerant or fits.all():
        return
    raise failure("DATETIME_FIELD_OUT_OF_BOUNDS.WITH_SUGGESTION", "A part of a time is out of its range.", position)


def next_day(signature: CallSignature) -> Kernel | None:
    """``next_day(date, 'MO')``: the first such day after the date."""
    if signature.types[0] != pa.date32():
        return None
    position, tolerant = signature.position, signature.function.startswith("try_")

    def run(dates: pa.Array, names: pa.Array) -> pa.Array:
        spelled = [None if name is None else _WEEKDAYS.get(name.upper(), -1) for name in names.to_pylist()]
        wanted = pa.array(spelled, pa.int64())
        unknown = numbers(wanted) < 0
        row = first_row(unknown, dates, wanted)
        if row is not None and not tolerant:
            message = f"Illegal input for day of week: {shown(names[row].as_py())}."
            raise failure("ILLEGAL_DAY_OF_WEEK", message, position)
        days = numbers(dates).astype(np.int64)
        later = days + 1 + (numbers(wanted) - (days + 1 + 3)) % 7
        if unknown.any():
            wanted = pa.array([None if one == -1 else one for one in spelled], pa.int64())
        with np.errstate(over="ignore"):
            return like_nulls(later.astype(np.int32), pa.date32(), dates, wanted)

    return on_arrays(run)


def months_between(signature: CallSignature) -> Kernel | None:
    """``months_between(a, b, rounded, zone)``: by days of 31 in a month, unless both are last days or the same ones."""
    rounds, zone = signature.constants[2:]
    if rounds is None or zone is None or signature.types[:2] != (pa.timestamp("us", "UTC"),) * 2:
        return None
    if not rounds.is_valid:
        return lambda times, *_: nulls_like(times, pa.float64())
    clock, is_rounded = clock_of(zone.as_py()), rounds.as_py()

    def run(left: pa.Array, right: pa.Array) -> pa.Array:
        months, days, ends, seconds = [], [], [], []
        for times in (left, right):
            moments = numbers(times)
            day = clock.local(moments) // _DAY
            month = months_of(day)
            months.append(month)
            days.append(day - month_starts(month))
            ends.append(month_starts(month + 1) - 1 == day)
            seconds.append((moments - clock.day_start(day * _DAY)) // _SECOND)
        apart = (months[0] - months[1]).astype(np.float64)
        rest = (days[0] - days[1]) * 86_400 + seconds[0] - seconds[1]
        found = apart + rest / float(_LONGEST_MONTH * 86_400)
        if is_rounded:
            found = np.floor(found * 1e8 + 0.5) / 1e8
        even = (days[0] == days[1]) | (ends[0] & ends[1])
        return like_nulls(np.where(even, apart, found), pa.float64(), left, right)

    both = on_arrays(run)
    return lambda left, right, *_: both(left, right)


def name_of_part(signature: CallSignature) -> Kernel | None:
    """``dayname`` and ``monthname``, in short."""
    if signature.types[0] != pa.date32():
        return None
    is_day = signature.function == "dayname"
    names = pa.array((DAYS if is_day else MONTHS)[0])

    def run(dates: pa.Array) -> pa.Array:
        days = numbers(dates).astype(np.int64)
        places = (days + 3) % 7 if is_day else months_of(days) % 12
        return names.take(like_nulls(places, pa.int64(), dates))

    return on_arrays(run)


def timestamp_seconds(signature: CallSignature) -> Kernel | None:
    """Seconds since 1970 as a time; of floating point, NULL for what is no number."""
    kind, position = signature.types[0], signature.position

    def of_integers(seconds: pa.Array) -> pa.Array:
        values = numbers(seconds).astype(np.int64)
        if first_row(np.abs(values.astype(np.float64)) > float(_LONG.max // _SECOND), seconds) is not None:
            raise overflow("long", position)
        return like_nulls(values * _SECOND, signature.result, seconds)

    def of_doubles(seconds: pa.Array) -> pa.Array:
        values = numbers(seconds).astype(np.float64)
        finite = np.isfinite(values)
        scaled = np.where(finite, values, 0.0) * float(_SECOND)
        inside = np.abs(scaled) < float(1 << 63)
        micros = np.where(inside, np.where(inside, scaled, 0.0).astype(np.int64), 0)
        micros = np.where(inside, micros, np.where(scaled > 0, _LONG.max, _LONG.min))
        gone = pa.array(finite, mask=~finite)
        return like_nulls(micros, signature.result, seconds, gone)

    def of_decimals(seconds: pa.Array) -> pa.Array:
        values = unscaled(seconds).astype(object) * 10 ** (_DIGITS - kind.scale)
        wrong = np.array([not _LONG.min <= value <= _LONG.max for value in values], np.bool_)
        if first_row(wrong, seconds) is not None:
            raise overflow("long", position)
        return like_nulls(np.where(wrong, 0, values).astype(np.int64), signature.result, seconds)

    if pa.types.is_decimal128(kind) and kind.scale <= _DIGITS:
        return on_arrays(of_decimals)
    if pa.types.is_integer(kind):
        return on_arrays(of_integers)
    return on_arrays(of_doubles) if pa.types.is_floating(kind) else None


def make_dt_interval(signature: CallSignature) -> Kernel | None:
    """``make_dt_interval(days, hours, minutes, seconds)``, of which each may be negative."""
    if signature.types[3] != pa.decimal128(18, 6):
        return None

    def run(*parts: pa.Array) -> pa.Array:
        total = unscaled(parts[3]).astype(object)
        for part, unit in zip(parts, (_DAY, 60 * _MINUTE, _MINUTE), strict=False):
            total = total + numbers(part).astype(object) * unit
        wrong = np.array([not _LONG.min <= value <= _LONG.max for value in total], np.bool_)
        if first_row(wrong, *parts) is not None:
            message = "An interval of these parts is too long."
            raise failure("INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", message, signature.position)
        return like_nulls(np.where(wrong, 0, total).astype(np.int64), signature.result, *parts)

    return on_arrays(run)


def truncated_seconds(signature: CallSignature) -> Kernel | None:
    """``unix_timestamp``: seconds since 1970, of times before rounded towards it, as what Spark compiles does."""
    if not pa.types.is_timestamp(signature.types[0]):
        return None

    def run(times: pa.Array) -> pa.Array:
        micros = numbers(times)
        seconds = micros // _SECOND
        return like_nulls(seconds + ((micros < 0) & (micros % _SECOND != 0)), pa.int64(), times)

    return on_arrays(run)


def second_with_fraction(signature: CallSignature) -> Kernel | None:
    """``extract(SECOND FROM time)``, with six digits of the fraction."""
    if not pa.types.is_timestamp(signature.types[0]):
        return None

    def run(times: pa.Array) -> pa.Array:
        return from_unscaled(numbers(times) % _MINUTE, signature.result, times)

    return on_arrays(run)


def year_of_week(signature: CallSignature) -> Kernel | None:
    """``extract(YEAROFWEEK FROM date)``: the year that the week of a day belongs to, which has its Thursday."""
    if signature.types[0] != pa.date32():
        return None

    def run(dates: pa.Array) -> pa.Array:
        days = numbers(dates).astype(np.int64)
        return like_nulls(months_of(days - (days + 3) % 7 + 3) // 12 + 1970, pa.int32(), dates)

    return on_arrays(run)


FUNCTIONS: dict[str, Builder] = {
    **dict.fromkeys(("make_timestamp", "try_make_timestamp"), make_timestamp),
    **dict.fromkeys(("next_day", "try_next_day"), next_day),
    "months_between": months_between,
    "dayname": name_of_part,
    "monthname": name_of_part,
    "timestamp_seconds": timestamp_seconds,
    "make_dt_interval": make_dt_interval,
    "truncated_seconds": truncated_seconds,
    "second_with_fraction": second_with_fraction,
    "year_of_week": year_of_week,
}
