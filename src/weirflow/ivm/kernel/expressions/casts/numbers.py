"""Casts among booleans, integers, floating point and decimals."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.failures import decimal_overflow
from weirflow.ivm.kernel.expressions.numbers.decimal_words import (
    LONG_DIGITS,
    from_unscaled,
    rescaled,
    unscaled,
    wide,
)
from weirflow.ivm.kernel.expressions.numbers.double_rounding import scaled_integers
from weirflow.ivm.kernel.expressions.rows import like_nulls, numbers, on_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.casts.context import Cast
    from weirflow.ivm.kernel.expressions.rows import Value
    from weirflow.ivm.kernel.expressions.signature import Kernel

_EXACT_DOUBLE = 1 << 53
_EXACT_POWER = 22
"""Ten to this power, and all lower ones, are doubles without rounding."""


def to_boolean(cast: Cast) -> Kernel:
    """False for zero, true for anything else, NaN included."""
    zero = pa.scalar(0, pa.int32()).cast(cast.source)
    return lambda value: pc.not_equal(value, zero)


def from_boolean(cast: Cast) -> Kernel:
    """One and zero."""
    if pa.types.is_decimal(cast.target):
        return _then(lambda value: value.cast(pa.int32()), integer_to_decimal(cast))
    return lambda value: value.cast(cast.target)


def integer_to_integer(cast: Cast) -> Kernel:
    """The same number; an error if the target is too narrow."""
    target, info = cast.target, np.iinfo(cast.target.to_pandas_dtype())
    if target.bit_width > cast.source.bit_width:
        return lambda value: value.cast(target)

    def narrowed(array: pa.Array) -> pa.Array:
        values = numbers(array)
        failed = (values < info.min) | (values > info.max)
        return cast.settled(like_nulls(values.astype(info.dtype), target, array), failed, array)

    return on_arrays(narrowed)


def integer_to_floating(cast: Cast) -> Kernel:
    """The nearest number, ties to even."""
    target = cast.target
    return on_arrays(lambda array: like_nulls(numbers(array).astype(target.to_pandas_dtype()), target, array))


def floating_to_floating(cast: Cast) -> Kernel:
    """The nearest number; infinity if a FLOAT cannot hold it."""
    target = cast.target

    def converted(array: pa.Array) -> pa.Array:
        with np.errstate(over="ignore"):
            return like_nulls(numbers(array).astype(target.to_pandas_dtype()), target, array)

    return on_arrays(converted)


def floating_to_integer(cast: Cast) -> Kernel:
    """Truncated; an error if that does not fit, or for NaN.

    The bounds are compared as doubles, as Spark does: 2**63 passes for BIGINT, and becomes the largest one.
    """
    target, info = cast.target, np.iinfo(cast.target.to_pandas_dtype())
    low, high = float(info.min), float(info.max)

    def truncated(array: pa.Array) -> pa.Array:
        values = numbers(array).astype(np.float64)
        failed = ~((np.floor(values) <= high) & (np.ceil(values) >= low))
        inside = np.where(failed, 0.0, values)
        with np.errstate(invalid="ignore"):
            integers = np.where(inside >= high, info.max, inside.astype(np.int64))
        return cast.settled(like_nulls(integers.astype(info.dtype), target, array), failed, array)

    return on_arrays(truncated)


def integer_to_decimal(cast: Cast) -> Kernel:
    """Exact; an error if there are too many digits."""
    target = cast.target
    bound, power = 10 ** (target.precision - target.scale), 10**target.scale

    def scaled(array: pa.Array) -> pa.Array:
        values = numbers(array).astype(np.int64)
        failed = (values >= bound) | (values <= -bound) if bound < _EXACT_DOUBLE << 10 else np.zeros(len(values), bool)
        inside = np.where(failed, 0, values)
        if target.precision > LONG_DIGITS:
            inside = inside.astype(object)
        return cast.settled(
            from_unscaled(inside * power, target, array),
            failed,
            array,
            lambda value: decimal_overflow(value, target, cast.position),
        )

    return on_arrays(scaled)


def decimal_to_decimal(cast: Cast) -> Kernel:
    """Rounded half up; an error if there are too many integral digits."""
    source, target = cast.source, cast.target
    if target.precision - target.scale >= source.precision - source.scale and target.scale >= source.scale:
        if target.precision > LONG_DIGITS:
            return lambda value: value.cast(target)
        power = 10 ** (target.scale - source.scale)
        return on_arrays(lambda array: from_unscaled(unscaled(array) * power, target, array))

    def rounded(array: pa.Array) -> pa.Array:
        return fitted_or_failed(cast, rescaled(wide(array), source.scale, target.scale), array)

    return on_arrays(rounded)


def fitted_or_failed(cast: Cast, values: NDArray[Any], array: pa.Array) -> pa.Array:
    """Unscaled values as the target's decimals, where they have no more digits than it has."""
    target = cast.target
    bound = 10**target.precision
    failed = ((values >= bound) | (values <= -bound)).astype(np.bool_)
    if failed.any():
        values = np.where(failed, 0, values)
    return cast.settled(
        from_unscaled(values, target, array),
        failed,
        array,
        lambda value: decimal_overflow(value, target, cast.position),
    )


def decimal_to_boolean(cast: Cast) -> Kernel:
    """False for zero."""
    zero = pa.scalar(0, cast.source)
    return lambda value: pc.not_equal(value, zero)


def decimal_to_integer(cast: Cast) -> Kernel:
    """Truncated; an error if that does not fit.

    Decimals of more than 18 digits go to INT, SMALLINT and TINYINT by way of the nearest double, as in Spark.
    """
    source, target = cast.source, cast.target
    power, info = 10**source.scale, np.iinfo(target.to_pandas_dtype())
    by_double = source.precision > LONG_DIGITS and target != pa.int64()

    def truncated(array: pa.Array) -> pa.Array:
        values = unscaled(array)
        if by_double:
            doubles = np.array([value / power for value in values], np.float64)
            failed = ~((np.floor(doubles) <= info.max) & (np.ceil(doubles) >= info.min))
            whole = np.where(failed, 0.0, doubles).astype(np.int64)
        else:
            whole = np.abs(values) // power
            whole = np.where(values < 0, -whole, whole)
            failed = ((whole < info.min) | (whole > info.max)).astype(np.bool_)
            whole = np.where(failed, 0, whole).astype(np.int64)
        return cast.settled(like_nulls(whole.astype(info.dtype), target, array), failed, array)

    return on_arrays(truncated)


def decimal_to_double(cast: Cast) -> Kernel:
    """The nearest number, ties to even."""
    power, scale, target = 10**cast.source.scale, cast.source.scale, cast.target

    def converted(array: pa.Array) -> pa.Array:
        values = unscaled(array)
        if scale <= _EXACT_POWER and (np.abs(values) < _EXACT_DOUBLE).all():
            doubles = values.astype(np.float64) / float(power)  # both exact, so rounded once
        else:
            doubles = np.array([int(value) / power for value in values], np.float64)
        return like_nulls(doubles, target, array)

    return on_arrays(converted)


def decimal_to_float(cast: Cast) -> Kernel:
    """The nearest number, ties to even; not by way of a double, which would round twice."""
    power, target = 10**cast.source.scale, cast.target

    def converted(array: pa.Array) -> pa.Array:
        floats = [nearest_float(int(value), power) for value in unscaled(array)]
        return like_nulls(np.array(floats, np.float32), target, array)

    return on_arrays(converted)


def nearest_float(numerator: int, denominator: int) -> np.float32:
    """The FLOAT nearest to a fraction."""
    double = numerator / denominator
    with np.errstate(over="ignore", under="ignore"):
        near = np.float32(double)
        if float(near) == double or not np.isfinite(near):
            return near
        # Rounding twice goes wrong only if the double is half-way between two floats and the fraction is not.
        other = np.nextafter(near, np.float32(np.inf if float(near) < double else -np.inf))
    if not np.isfinite(other) or double - float(near) != float(other) - double:
        return near
    exact = Fraction(numerator, denominator) - Fraction(double)
    if exact == 0:
        return near
    return max(near, other) if exact > 0 else min(near, other)


def floating_to_decimal(cast: Cast) -> Kernel:
    """The digits Java prints, rounded half up; NULL, not an error, for NaN and infinities."""
    target = cast.target

    def converted(array: pa.Array) -> pa.Array:
        doubles = numbers(array).astype(np.float64)
        finite = np.isfinite(doubles)
        if not finite.all():
            array = pc.if_else(pa.array(finite), array, None)
        return fitted_or_failed(cast, scaled_integers(np.where(finite, doubles, 0.0), target.scale), array)

    return on_arrays(converted)


def _then(first: Kernel, second: Kernel) -> Kernel:
    def run(value: Value) -> Value:
        return second(first(value))

    return run
