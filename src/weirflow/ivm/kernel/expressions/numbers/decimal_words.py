"""Decimals as integers: the unscaled values of Arrow's decimal128 arrays, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.failures import decimal_overflow
from weirflow.ivm.kernel.expressions.rows import first_row, nulls_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.errors import SqlPosition

MAX_DIGITS = 38
LONG_DIGITS = 18
"""Decimals of up to so many digits fit into 64 bits."""
_LOW = (1 << 64) - 1
_PLAIN_EXPONENT = -6
"""Java writes numbers with an exponent if theirs is less."""


def unscaled(array: pa.Array) -> NDArray[Any]:
    """The unscaled values: int64 if the type's precision allows, else Python integers; zero at NULLs."""
    words = np.frombuffer(array.buffers()[1], "<i8", 2 * len(array), 16 * array.offset).reshape(-1, 2)
    if array.null_count:
        words = np.where(array.is_valid().to_numpy(zero_copy_only=False)[:, None], words, 0)
    if array.type.precision <= LONG_DIGITS:
        longs: NDArray[np.int64] = words[:, 0]
        return longs
    low: NDArray[Any] = words[:, 0].view("<u8").astype(object)
    values: NDArray[Any] = words[:, 1].astype(object) * (_LOW + 1) + low
    return values


def wide(array: pa.Array) -> NDArray[Any]:
    """The unscaled values as Python integers, which cannot overflow."""
    return unscaled(array).astype(object)


def from_unscaled(values: NDArray[Any], kind: pa.DataType, *sources: pa.Array) -> pa.Array:
    """A decimal128 array of unscaled values that fit into its precision; NULL where any of the sources is."""
    words = np.empty((len(values), 2), "<i8")
    if values.dtype == object:
        words[:, 0] = (values & _LOW).astype("<u8").view("<i8")
        words[:, 1] = values >> 64
    else:
        words[:, 0] = values
        words[:, 1] = values >> 63
    return pa.Array.from_buffers(kind, len(values), [nulls_of(*sources), pa.py_buffer(words)])


def fitted(
    values: NDArray[Any],
    kind: pa.DataType,
    position: SqlPosition | None,
    *sources: pa.Array,
    condition: str = "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
    tolerant: bool = False,
) -> pa.Array:
    """As ``from_unscaled``, but raises if a value that is not NULL has too many digits; ``tolerant``, it is NULL."""
    bound = 10**kind.precision
    if values.dtype == object or kind.precision <= LONG_DIGITS:
        outside = ((values >= bound) | (values <= -bound)).astype(np.bool_)
        row = first_row(outside, *sources)
        if row is not None:
            if tolerant:
                inside = from_unscaled(np.where(outside, 0, values), kind, *sources)
                return pc.if_else(pa.array(~outside), inside, None)
            raise decimal_overflow(plain_text(int(values[row]), kind.scale), kind, position, condition)
        if outside.any():
            values = np.where(outside, 0, values)  # NULLs all of them
    return from_unscaled(values, kind, *sources)


def rescaled(values: NDArray[Any], scale: int, to_scale: int) -> NDArray[Any]:
    """Unscaled values at another scale; digits that are dropped round half up."""
    if to_scale >= scale:
        scaled: NDArray[Any] = values * 10 ** (to_scale - scale)
        return scaled
    return half_up(values, 10 ** (scale - to_scale))


def half_up(numerator: NDArray[Any], denominator: int | NDArray[Any]) -> NDArray[Any]:
    """The quotients of integers, rounded to the nearest integer, halves away from zero."""
    sign = np.where((numerator < 0) != (denominator < 0), -1, 1).astype(object)
    size: Any = abs(denominator)  # a Python integer stays one
    rounded: NDArray[Any] = sign * ((2 * np.abs(numerator) + size) // (2 * size))
    return rounded


def plain_text(value: int, scale: int) -> str:
    """An unscaled value as digits with a decimal point, never with an exponent.

    >>> plain_text(-5, 2)
    '-0.05'
    """
    if scale == 0:
        return str(value)
    digits = str(abs(value)).rjust(scale + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def scientific_text(value: int, scale: int) -> str:
    """An unscaled value as Java's ``BigDecimal.toString`` has it.

    >>> scientific_text(-15, 20), scientific_text(0, 7), scientific_text(15, 1)
    ('-1.5E-19', '0E-7', '1.5')
    """
    digits = str(abs(value))
    exponent = len(digits) - 1 - scale
    if exponent >= _PLAIN_EXPONENT:
        return plain_text(value, scale)
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{'-' if value < 0 else ''}{digits[0]}{fraction}E{exponent}"
