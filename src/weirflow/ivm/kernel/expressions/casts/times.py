"""Casts among dates, timestamps and numbers of seconds, in UTC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.casts import numbers as cast_numbers
from weirflow.ivm.kernel.expressions.casts.context import Cast
from weirflow.ivm.kernel.expressions.failures import cast_invalid, overflow
from weirflow.ivm.kernel.expressions.numbers.decimal_words import rescaled, wide
from weirflow.ivm.kernel.expressions.rows import first_row, like_nulls, numbers, on_arrays

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Kernel

_DAY = 86_400_000_000
_SECOND = 1_000_000
_SECOND_DIGITS = 6
_LONG = np.iinfo(np.int64)
_EXACT_DIGITS = 34 - 6
"""Spark multiplies a decimal by a million with 34 digits; up to this precision that is exact."""


def timestamp_to_timestamp(cast: Cast) -> Kernel:
    """With a zone or without: the same moment, for the zone is UTC."""
    return on_arrays(lambda array: array.view(cast.target))


def timestamp_to_date(cast: Cast) -> Kernel:
    """The day it is in."""
    return on_arrays(lambda array: like_nulls(numbers(array) // _DAY, cast.target, array))


def date_to_timestamp(cast: Cast) -> Kernel:
    """Midnight."""

    def midnight(array: pa.Array) -> pa.Array:
        days = numbers(array).astype(np.int64)
        if first_row(np.abs(days) > _LONG.max // _DAY, array) is not None:
            raise overflow("long", cast.position)
        return like_nulls(days * _DAY, cast.target, array)

    return on_arrays(midnight)


def timestamp_to_integer(cast: Cast) -> Kernel:
    """Whole seconds since 1970, rounded down."""
    narrow = cast_numbers.integer_to_integer(Cast(pa.int64(), cast.target, cast.position, tolerant=cast.tolerant))
    keep = cast.target == pa.int64()

    def seconds(array: pa.Array) -> pa.Array:
        whole = like_nulls(numbers(array) // _SECOND, pa.int64(), array)
        return whole if keep else narrow(whole)

    return on_arrays(seconds)


def timestamp_to_floating(cast: Cast) -> Kernel:
    """Seconds since 1970, with their fraction."""
    return on_arrays(
        lambda array: like_nulls(_seconds(array).astype(cast.target.to_pandas_dtype()), cast.target, array)
    )


def timestamp_to_decimal(cast: Cast) -> Kernel:
    """Seconds since 1970, exactly; rounded half up to the scale."""

    def run(array: pa.Array) -> pa.Array:
        micros = numbers(array).astype(object)
        return cast_numbers.fitted_or_failed(cast, rescaled(micros, _SECOND_DIGITS, cast.target.scale), array)

    return on_arrays(run)


def _seconds(array: pa.Array) -> np.ndarray:
    return numbers(array).astype(np.float64) / float(_SECOND)


def integer_to_timestamp(cast: Cast) -> Kernel:
    """Seconds since 1970; what is too far away is as far as it goes."""
    furthest = _LONG.max // _SECOND

    def moment(array: pa.Array) -> pa.Array:
        seconds = numbers(array).astype(np.int64)
        late, early = seconds > furthest, seconds < -furthest
        micros = np.where(late | early, 0, seconds) * _SECOND
        micros = np.where(late, _LONG.max, np.where(early, _LONG.min, micros))
        return like_nulls(micros, cast.target, array)

    return on_arrays(moment)


def floating_to_timestamp(cast: Cast) -> Kernel:
    """Seconds since 1970, truncated to microseconds."""
    to_long = cast_numbers.floating_to_integer(Cast(pa.float64(), pa.int64(), cast.position, tolerant=cast.tolerant))

    def moment(array: pa.Array) -> pa.Array:
        with np.errstate(over="ignore"):
            micros = numbers(array).astype(np.float64) * float(_SECOND)
        infinite = ~np.isfinite(numbers(array))
        scaled = cast.settled(
            like_nulls(micros, pa.float64(), array),
            infinite,
            array,
            lambda value: cast_invalid(value, cast.source, cast.target, cast.position),
        )
        return to_long(scaled).view(cast.target)

    return on_arrays(moment)


def decimal_to_timestamp(cast: Cast) -> Kernel | None:
    """Seconds since 1970, truncated to microseconds; as in Spark, the low 64 bits of what is too large."""
    if cast.source.precision > _EXACT_DIGITS:
        return None
    power = 10**cast.source.scale

    def moment(array: pa.Array) -> pa.Array:
        size = np.abs(wide(array)) * _SECOND // power
        micros = np.where(wide(array) < 0, -size, size)
        wrapped = ((micros + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
        return like_nulls(wrapped.astype(np.int64), cast.target, array)

    return on_arrays(moment)
