"""Functions of the bits of integers, and of bitmaps, which are binaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.failures import failure
from weirflow.ivm.kernel.expressions.rows import first_row, like_nulls, numbers, on_arrays, to_mask
from weirflow.ivm.kernel.expressions.strings.texts import one_by_one

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_INT, _LONG = pa.int32(), pa.int64()
_ALL_BITS = (1 << 64) - 1
_BITMAP = 8 * 4096
"""The bits of one bitmap."""


def shift_unsigned(signature: CallSignature) -> Kernel | None:
    """``>>>``: zeros come in from the left; as in Java, only the distance's low bits count."""
    kind = signature.types[0]
    if kind not in (_INT, _LONG) or signature.types[1] != _INT:
        return None
    unsigned = np.uint32 if kind == _INT else np.uint64

    def run(values: pa.Array, distances: pa.Array) -> pa.Array:
        by = (numbers(distances) & (kind.bit_width - 1)).astype(unsigned)
        return like_nulls((numbers(values).view(unsigned) >> by).view(numbers(values).dtype), kind, values, distances)

    return on_arrays(run)


def bit_count(signature: CallSignature) -> Kernel | None:
    """How many bits are set, of any integer as a BIGINT, or of a BOOLEAN."""
    kind = signature.types[0]
    if kind == pa.bool_():
        return on_arrays(lambda array: like_nulls(to_mask(array.fill_null(False)), _INT, array))  # noqa: FBT003 - NULL
    if not pa.types.is_integer(kind):
        return None

    def run(array: pa.Array) -> pa.Array:
        return like_nulls(np.bitwise_count(numbers(array).astype(np.int64).view(np.uint64)), _INT, array)

    return on_arrays(run)


def bit_get(signature: CallSignature) -> Kernel | None:
    """``bit_get(value, place)``: places are counted from the right, from 0 on."""
    kind, position = signature.types[0], signature.position
    if not pa.types.is_integer(kind) or signature.types[1] != _INT:
        return None

    def run(values: pa.Array, places: pa.Array) -> pa.Array:
        at = numbers(places)
        row = first_row((at < 0) | (at >= kind.bit_width), values, places)
        if row is not None:
            raise failure(
                "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE",
                f"bit_get() takes positions from 0 to {kind.bit_width - 1}, not {at[row]}.",
                position,
            )
        bits = (numbers(values).astype(np.int64) >> (at & (kind.bit_width - 1))) & 1
        return like_nulls(bits, pa.int8(), values, places)

    return on_arrays(run)


def binary_digits(signature: CallSignature) -> Kernel | None:
    """``bin``: the digits 0 and 1; of a negative number all 64 of them."""
    if signature.types != (_LONG,):
        return None
    return one_by_one(lambda value: format(value & _ALL_BITS, "b"), pa.string())


def bitmap_position(signature: CallSignature) -> Kernel | None:
    """``bitmap_bit_position``: the place of a number in its bitmap."""
    if signature.types != (_LONG,):
        return None

    def run(array: pa.Array) -> pa.Array:
        values = numbers(array)
        with np.errstate(over="ignore"):
            return like_nulls(np.where(values > 0, values - 1, -values) % _BITMAP, _LONG, array)

    return on_arrays(run)


def bitmap_bucket(signature: CallSignature) -> Kernel | None:
    """``bitmap_bucket_number``: the number of the bitmap that a number is in."""
    if signature.types != (_LONG,):
        return None

    def run(array: pa.Array) -> pa.Array:
        values = numbers(array)
        up = values // _BITMAP + (values % _BITMAP != 0)
        return like_nulls(np.where(values > 0, 1 + (values - (values > 0)) // _BITMAP, up), _LONG, array)

    return on_arrays(run)


def bitmap_count(signature: CallSignature) -> Kernel | None:
    """How many bits of a bitmap are set."""
    if signature.types != (pa.binary(),):
        return None
    return one_by_one(lambda value: int.from_bytes(value).bit_count(), _LONG)


FUNCTIONS: dict[str, Builder] = {
    "shiftrightunsigned": shift_unsigned,
    "bit_count": bit_count,
    "bit_get": bit_get,
    "bin": binary_digits,
    "bitmap_bit_position": bitmap_position,
    "bitmap_bucket_number": bitmap_bucket,
    "bitmap_count": bitmap_count,
}
