"""CAST without ANSI: integers wrap around, floating point goes as far as Java's does, and what is malformed is NULL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.casts import dispatch
from weirflow.ivm.kernel.expressions.casts import nested as cast_nested
from weirflow.ivm.kernel.expressions.casts.context import Cast
from weirflow.ivm.kernel.expressions.casts.format import texts
from weirflow.ivm.kernel.expressions.casts.parse_times import BLANKS
from weirflow.ivm.kernel.expressions.numbers.decimal_words import scientific_text, unscaled, wide
from weirflow.ivm.kernel.expressions.numbers.math import as_long
from weirflow.ivm.kernel.expressions.rows import like_nulls, numbers, on_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.casts.context import CastBuilder
    from weirflow.ivm.kernel.expressions.rows import Value
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_SECOND = 1_000_000
_INT = np.iinfo(np.int32)
_INTEGER = re.compile(r"([+-]?)([0-9]*+)(\.[0-9]*+)?")
_LONGEST_INTEGER = 19


def legacy_cast(signature: CallSignature) -> Kernel | None:
    """``CAST`` as it is without ANSI."""
    return kernel(Cast(signature.types[0], signature.result, signature.position, tolerant=True))


def kernel(wanted: Cast) -> Kernel | None:
    """The kernel of a cast, or None if it is not proven equal to Spark's."""
    if pa.types.is_nested(wanted.source) and wanted.source != wanted.target:
        return cast_nested.kernel(wanted, kernel)
    builder = _BUILDERS.get((dispatch.family(wanted.source), dispatch.family(wanted.target)))
    return builder(wanted) if builder else dispatch.kernel(wanted)


def _wrapped(cast: Cast) -> Kernel:
    """An integer's low bits."""
    target = cast.target
    return on_arrays(lambda array: like_nulls(_low_bits(numbers(array), target), target, array))


def _low_bits(values: NDArray[np.int64], kind: pa.DataType) -> NDArray[np.int64]:
    return values.astype(kind.to_pandas_dtype())


def _from_floating(cast: Cast) -> Kernel:
    """Truncated, NaN to zero, and what is beyond the range to its end: that of BIGINT, or else of INT."""
    target = cast.target

    def truncated(array: pa.Array) -> pa.Array:
        longs = as_long(np.trunc(numbers(array).astype(np.float64)))
        if target != pa.int64():
            longs = np.clip(longs, _INT.min, _INT.max)
        return like_nulls(_low_bits(longs, target), target, array)

    return on_arrays(truncated)


def _from_decimal(cast: Cast) -> Kernel:
    """Truncated; the low bits of that."""
    power, target = 10**cast.source.scale, cast.target

    def truncated(array: pa.Array) -> pa.Array:
        values = wide(array)
        sizes = np.abs(values) // power
        whole = np.where(values < 0, -sizes, sizes)
        wrapped = ((whole + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
        return like_nulls(_low_bits(wrapped.astype(np.int64), target), target, array)

    return on_arrays(truncated)


def _from_text(cast: Cast) -> Kernel:
    """A sign and digits, and digits behind a point, which do not count; NULL for anything else."""
    bits = np.iinfo(cast.target.to_pandas_dtype())

    def integer(text: str) -> int:
        trimmed = text.strip(BLANKS)
        found = _INTEGER.fullmatch(trimmed)
        if not found or not (found[2] or found[3]):
            raise ValueError(text)
        digits = found[2].lstrip("0")
        if len(digits) > _LONGEST_INTEGER:
            raise ValueError(text)
        number = int(digits or "0")
        number = -number if found[1] == "-" else number
        if not bits.min <= number <= bits.max:
            raise ValueError(text)
        return number

    return on_arrays(lambda array: cast.to(cast.parsed(array.to_pylist(), integer)))


def _timestamp_to_boolean(_: Cast) -> Kernel:
    """False for the first moment of 1970."""
    return on_arrays(lambda array: pa.array(numbers(array) != 0, mask=array.is_null().to_numpy(zero_copy_only=False)))


def _boolean_to_timestamp(cast: Cast) -> Kernel:
    """The first or the second microsecond of 1970."""
    return lambda value: value.cast(pa.int64()).cast(cast.target)


def _floating_to_timestamp(cast: Cast) -> Kernel:
    """Seconds since 1970, truncated to microseconds, as far as those go; NULL for NaN and infinities."""

    def moment(array: pa.Array) -> pa.Array:
        doubles = numbers(array).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            moments = as_long(np.trunc(doubles * float(_SECOND)))
        return pc.if_else(pa.array(np.isfinite(doubles)), like_nulls(moments, cast.target, array), None)

    return on_arrays(moment)


def _decimal_to_text(cast: Cast) -> Kernel:
    """As Java's ``BigDecimal`` prints it: with an exponent, if there are many zeros behind the point."""
    scale = cast.source.scale
    return texts(lambda array: [scientific_text(int(number), scale) for number in unscaled(array)])


def _nothing(cast: Cast) -> Kernel:
    """NULL, whatever it is."""

    def nulls(value: Value) -> Value:
        return pa.scalar(None, cast.target) if isinstance(value, pa.Scalar) else pa.nulls(len(value), cast.target)

    return nulls


_BUILDERS: dict[tuple[str, str], CastBuilder] = {
    ("integer", "integer"): _wrapped,
    ("float", "integer"): _from_floating,
    ("double", "integer"): _from_floating,
    ("decimal", "integer"): _from_decimal,
    ("string", "integer"): _from_text,
    ("decimal", "string"): _decimal_to_text,
    ("timestamp", "boolean"): _timestamp_to_boolean,
    ("boolean", "timestamp"): _boolean_to_timestamp,
    ("float", "timestamp"): _floating_to_timestamp,
    ("double", "timestamp"): _floating_to_timestamp,
    **dict.fromkeys((("date", other) for other in ("boolean", "integer", "float", "double", "decimal")), _nothing),
}
FUNCTIONS: dict[str, Builder] = {"legacy_cast": legacy_cast}
