"""Functions of dates and timestamps, in the proleptic Gregorian calendar and in UTC."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.by_value import by_value
from weirflow.ivm.kernel.expressions.calendar import days_from_civil, month_starts, months_of, shift_months
from weirflow.ivm.kernel.expressions.casts import dispatch as casts
from weirflow.ivm.kernel.expressions.casts.context import Cast
from weirflow.ivm.kernel.expressions.failures import failure, overflow
from weirflow.ivm.kernel.expressions.rows import first_row, like_nulls, numbers, on_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.errors import SqlPosition
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

    Days = NDArray[np.int64]

DAY = 86_400_000_000
_DATE, _INT, _LONG = pa.date32(), pa.int32(), pa.int64()
_INT_RANGE, _LONG_RANGE = np.iinfo(np.int32), np.iinfo(np.int64)


def _years(days: Days) -> Days:
    return months_of(days) // 12


def _year_starts(days: Days) -> Days:
    return month_starts(_years(days) * 12)


def _week_of_year(days: Days) -> Days:
    """ISO 8601: weeks begin on Monday, and belong to the year that has their Thursday."""
    thursday = days - (days + 3) % 7 + 3
    return (thursday - _year_starts(thursday)) // 7 + 1


_DATE_PARTS: dict[str, Callable[[Days], Days]] = {
    "year": lambda days: _years(days) + 1970,
    "quarter": lambda days: months_of(days) % 12 // 3 + 1,
    "month": lambda days: months_of(days) % 12 + 1,
    "day": lambda days: days - month_starts(months_of(days)) + 1,
    "dayofweek": lambda days: (days + 4) % 7 + 1,
    "weekday": lambda days: (days + 3) % 7,
    "dayofyear": lambda days: days - _year_starts(days) + 1,
    "weekofyear": _week_of_year,
    "unix_date": lambda days: days,
}
_TIME_PARTS: dict[str, tuple[int, int]] = {
    "hour": (3_600_000_000, 24),
    "minute": (60_000_000, 60),
    "second": (1_000_000, 60),
}


def part_of_date(signature: CallSignature) -> Kernel | None:
    """``year``, ``month`` and the like: an INT."""
    if signature.types[0] != _DATE:
        return None
    part = _DATE_PARTS[signature.function]
    return on_arrays(lambda dates: like_nulls(part(_wide(dates)), _INT, dates))


def part_of_time(signature: CallSignature) -> Kernel | None:
    """``hour``, ``minute`` and ``second``, whole."""
    if not pa.types.is_timestamp(signature.types[0]):
        return None
    unit, count = _TIME_PARTS[signature.function]
    return on_arrays(lambda times: like_nulls(numbers(times) // unit % count, _INT, times))


def date_add(signature: CallSignature) -> Kernel | None:
    """``date_add``, ``date_sub`` and ``date_diff``; days are 32 bits wide and wrap around, as Java's do."""
    operate = np.add if signature.function == "date_add" else np.subtract
    kind = signature.result

    def run(left: pa.Array, right: pa.Array) -> pa.Array:
        with np.errstate(over="ignore"):
            return like_nulls(operate(numbers(left), numbers(right)), kind, left, right)

    return on_arrays(run)


def date_from_days(signature: CallSignature) -> Kernel | None:
    """``date_from_unix_date``."""
    return on_arrays(lambda days: days.view(_DATE)) if signature.types[0] == _INT else None


def add_months(signature: CallSignature) -> Kernel:
    """The same day of another month, or its last."""
    position = signature.position

    def run(dates: pa.Array, months: pa.Array) -> pa.Array:
        return _dates(shift_months(_wide(dates), _wide(months)), position, dates, months)

    return on_arrays(run)


def last_day(signature: CallSignature) -> Kernel:
    """The last day of the month."""
    position = signature.position
    return on_arrays(lambda dates: _dates(month_starts(months_of(_wide(dates)) + 1) - 1, position, dates))


def _dates(days: Days, position: SqlPosition | None, *sources: pa.Array) -> pa.Array:
    if first_row((days < _INT_RANGE.min) | (days > _INT_RANGE.max), *sources) is not None:
        raise overflow("integer", position)
    return like_nulls(days, _DATE, *sources)


def _week(days: Days) -> Days:
    return days - (days + 3) % 7


def _month(days: Days) -> Days:
    return month_starts(months_of(days))


def _quarter(days: Days) -> Days:
    return month_starts(months_of(days) // 3 * 3)


DATE_UNITS: dict[str, Callable[[Days], Days]] = {
    "WEEK": _week,
    **dict.fromkeys(("MONTH", "MON", "MM"), _month),
    "QUARTER": _quarter,
    **dict.fromkeys(("YEAR", "YYYY", "YY"), _year_starts),
}
TIME_UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": DAY,
    "DD": DAY,
}


def trunc(signature: CallSignature) -> Kernel | None:
    """``trunc(date, unit)``: the unit's first day; NULL for a unit it does not know, days included."""
    unit = signature.constants[1]
    if signature.types[0] != _DATE:
        return None
    if unit is None:
        return by_value(trunc, signature, 1)
    position = signature.position
    cut = DATE_UNITS.get((unit.as_py() or "").upper())
    if cut is None:
        return lambda dates, _: nulls_like(dates, _DATE)
    return on_arrays(lambda dates, _: _dates(cut(_wide(dates)), position, dates))


def date_trunc(signature: CallSignature) -> Kernel | None:
    """``date_trunc(unit, timestamp)``; NULL for a unit it does not know."""
    unit, kind = signature.constants[0], signature.types[1]
    if not pa.types.is_timestamp(kind):
        return None
    if unit is None:
        return by_value(date_trunc, signature, 0)
    name, position = (unit.as_py() or "").upper(), signature.position
    if name in TIME_UNITS:
        width = TIME_UNITS[name]
        return on_arrays(lambda _, times: like_nulls(numbers(times) // width * width, kind, times))
    if name not in DATE_UNITS:
        return lambda _, times: nulls_like(times, kind)
    cut = DATE_UNITS[name]

    def run(_: pa.Array, times: pa.Array) -> pa.Array:
        return _moments(cut(numbers(times) // DAY), 0, kind, position, times)

    return on_arrays(run)


def nulls_like(value: pa.Array | pa.Scalar, kind: pa.DataType) -> pa.Array | pa.Scalar:
    """As many NULLs as there are values."""
    return pa.scalar(None, kind) if isinstance(value, pa.Scalar) else pa.nulls(len(value), kind)


def _moments(
    days: Days, micros: int | Days, kind: pa.DataType, position: SqlPosition | None, *sources: pa.Array
) -> pa.Array:
    limit = _LONG_RANGE.max // DAY
    if first_row((days > limit) | (days < -limit), *sources) is not None:
        raise overflow("long", position)
    return like_nulls(days * DAY + micros, kind, *sources)


def parsed(signature: CallSignature) -> Kernel | None:
    """``to_date`` and ``to_timestamp`` without a format: casts."""
    if len(signature.types) != 1:
        return None
    return casts.kernel(Cast(signature.types[0], signature.result, signature.position))


def make_date(signature: CallSignature) -> Kernel:
    """A date of year, month and day; if there is none, an error, or NULL if the function's name says so."""
    position, tolerant = signature.position, signature.function == "try_make_date"

    def run(years: pa.Array, months: pa.Array, days: pa.Array) -> pa.Array:
        results: list[int | None] = []
        for year, month, day in zip(years.to_pylist(), months.to_pylist(), days.to_pylist(), strict=True):
            known = None not in (year, month, day)
            results.append(_made(year, month, day, position, tolerant=tolerant) if known else None)
        return pa.array(results, _INT).view(_DATE)

    return on_arrays(run)


def _made(year: int, month: int, day: int, position: SqlPosition | None, *, tolerant: bool) -> int | None:
    condition = "DATETIME_FIELD_OUT_OF_BOUNDS.WITH_SUGGESTION"
    if abs(year) > 999_999_999:  # noqa: PLR2004 - the years Java has
        if tolerant:
            return None
        raise failure(condition, f"Invalid value for Year (valid values -999999999 - 999999999): {year}.", position)
    try:
        made = days_from_civil(year, month, day)
    except ValueError as error:
        if tolerant:
            return None
        raise failure(condition, f"{error}.", position) from None
    if not _INT_RANGE.min <= made <= _INT_RANGE.max:
        raise overflow("integer", position)
    return made


def add_interval(signature: CallSignature) -> Kernel | None:
    """A date or timestamp plus an interval: of days to microseconds, or (a constant) of months."""
    kind, interval = signature.types
    position = signature.position
    if pa.types.is_duration(interval) and pa.types.is_timestamp(kind):
        return on_arrays(
            lambda times, spans: _checked_sum(numbers(times), numbers(spans), kind, position, times, spans)
        )
    constant = signature.constants[1]
    if interval != pa.month_day_nano_interval() or constant is None:
        return None
    if not constant.is_valid:
        return lambda times, _: nulls_like(times, kind)
    months, days, nanos = constant.as_py()
    if days or nanos:
        return None
    shift = np.array([months])
    if kind == _DATE:
        return _first(lambda dates: _dates(shift_months(_wide(dates), shift), position, dates))

    def run(times: pa.Array) -> pa.Array:
        day, time = np.divmod(numbers(times), DAY)
        return _moments(shift_months(day, shift), time, kind, position, times)

    return _first(run)


def _first(kernel: Callable[[pa.Array], pa.Array]) -> Kernel:
    alone = on_arrays(kernel)
    return lambda times, _: alone(times)


def subtract(signature: CallSignature) -> Kernel | None:
    """The interval between two dates, in days, or between two timestamps."""
    kind, other = signature.types
    position = signature.position
    if kind != other:
        return None
    if kind == _DATE:
        return on_arrays(lambda a, b: _moments(_wide(a) - _wide(b), 0, signature.result, position, a, b))
    return on_arrays(lambda a, b: _checked_sum(numbers(a), -numbers(b), signature.result, position, a, b))


def _checked_sum(a: Days, b: Days, kind: pa.DataType, position: SqlPosition | None, *sources: pa.Array) -> pa.Array:
    with np.errstate(over="ignore"):
        total = a + b
    if first_row(((a ^ total) & (b ^ total)) < 0, *sources) is not None:
        raise overflow("long", position)
    return like_nulls(total, kind, *sources)


_TO_EPOCH = {"unix_seconds": 1_000_000, "unix_millis": 1_000, "unix_micros": 1}
_FROM_EPOCH = {"timestamp_millis": 1_000, "timestamp_micros": 1}


def to_epoch(signature: CallSignature) -> Kernel | None:
    """``unix_seconds`` and the like, rounded down."""
    if not pa.types.is_timestamp(signature.types[0]):
        return None
    unit = _TO_EPOCH[signature.function]
    return on_arrays(lambda times: like_nulls(numbers(times) // unit, _LONG, times))


def from_epoch(signature: CallSignature) -> Kernel | None:
    """``timestamp_millis`` and ``timestamp_micros``."""
    unit, position, kind = _FROM_EPOCH[signature.function], signature.position, signature.result
    limit = _LONG_RANGE.max // unit
    if signature.types[0] != _LONG:
        return None

    def run(counts: pa.Array) -> pa.Array:
        values = numbers(counts)
        if unit > 1 and first_row((values > limit) | (values < -limit), counts) is not None:
            raise overflow("long", position)
        return like_nulls(values * unit, kind, counts)

    return on_arrays(run)


def _wide(array: pa.Array) -> Days:
    return numbers(array).astype(np.int64)


FUNCTIONS: dict[str, Builder] = {
    **dict.fromkeys(_DATE_PARTS, part_of_date),
    **dict.fromkeys(_TIME_PARTS, part_of_time),
    **dict.fromkeys(("date_add", "date_sub", "date_diff"), date_add),
    **dict.fromkeys(("to_date", "to_timestamp"), parsed),
    **dict.fromkeys(("date_add_interval", "timestamp_add_interval"), add_interval),
    **dict.fromkeys(("subtract_dates", "subtract_timestamps"), subtract),
    **dict.fromkeys(_TO_EPOCH, to_epoch),
    **dict.fromkeys(_FROM_EPOCH, from_epoch),
    "add_months": add_months,
    "date_from_unix_date": date_from_days,
    "date_trunc": date_trunc,
    "last_day": last_day,
    **dict.fromkeys(("make_date", "try_make_date"), make_date),
    "trunc": trunc,
}
