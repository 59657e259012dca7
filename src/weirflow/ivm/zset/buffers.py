"""NumPy views of Arrow buffers, without copies, minding offsets and validity.

Only little-endian machines are supported, as by Arrow's own IPC between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

if TYPE_CHECKING:
    import numpy.typing as npt

    from weirflow.ivm.zset.batch import Bools, Int64s

_DTYPES = {
    type_.id: np.dtype(code)
    for type_, code in (
        (pa.int8(), "<i1"),
        (pa.int16(), "<i2"),
        (pa.int32(), "<i4"),
        (pa.int64(), "<i8"),
        (pa.uint8(), "<u1"),
        (pa.uint16(), "<u2"),
        (pa.uint32(), "<u4"),
        (pa.uint64(), "<u8"),
        (pa.float16(), "<f2"),
        (pa.float32(), "<f4"),
        (pa.float64(), "<f8"),
        (pa.date32(), "<i4"),
        (pa.date64(), "<i8"),
        (pa.time32("s"), "<i4"),
        (pa.time64("us"), "<i8"),
        (pa.timestamp("us"), "<i8"),
        (pa.duration("us"), "<i8"),
    )
}
_WIDE = {pa.decimal128(1).id, pa.decimal256(1).id, pa.month_day_nano_interval().id, pa.binary(1).id}
_BYTES = {pa.string().id, pa.binary().id, pa.large_string().id, pa.large_binary().id}
_SHORT_BYTES = {pa.string().id, pa.binary().id}


def raw_dtype(type_: pa.DataType) -> np.dtype[Any] | None:
    """The NumPy type of a fixed-width value that fits 64 bits; None for all other types and for booleans."""
    return _DTYPES.get(type_.id)


def is_fixed_width(type_: pa.DataType) -> bool:
    """Whether ``raw_values`` can show an array of this type."""
    return type_.id in _DTYPES or type_.id in _WIDE


def is_bytes(type_: pa.DataType) -> bool:
    """Whether values are offsets into bytes: strings and binary values, also large ones."""
    return type_.id in _BYTES


def raw_values(array: pa.Array) -> npt.NDArray[Any]:
    """A view of a fixed-width array's values: one number each, or (rows, words) where they are wider than 64 bits.

    What stands where a value is NULL has no meaning. Booleans are not fixed-width in this sense: see ``bits``.
    """
    dtype = _DTYPES.get(array.type.id)
    data = array.buffers()[1]
    if dtype is not None:
        if data is None:
            return np.zeros(len(array), dtype)
        return np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)
    width = array.type.bit_width // 8
    if data is None:
        return np.zeros((len(array), -(-width // 8)), "<u8")
    if width % 8:
        raw = np.frombuffer(data, np.uint8, len(array) * width, array.offset * width).reshape(len(array), width)
        return np.pad(raw, ((0, 0), (0, -width % 8))).view("<u8")
    words = np.frombuffer(data, "<u8", len(array) * width // 8, array.offset * width)
    return words.reshape(len(array), width // 8)


def _bitmap(buffer: pa.Buffer, offset: int, length: int) -> Bools:
    first = offset // 8
    bytes_ = np.frombuffer(buffer, np.uint8, (offset + length + 7) // 8 - first, first)
    return np.unpackbits(bytes_, count=length + offset % 8, bitorder="little")[offset % 8 :].view(np.bool_)


def bits(array: pa.Array) -> Bools:
    """The values of a boolean array, false or true where NULL."""
    return _bitmap(array.buffers()[1], array.offset, len(array)) if len(array) else np.empty(0, np.bool_)


def validity(array: pa.Array) -> Bools | None:
    """Which values are not NULL; None when all are. Arrays of type null are not asked."""
    if array.null_count == 0:
        return None
    return _bitmap(array.buffers()[0], array.offset, len(array))


def value_offsets(array: pa.Array) -> Int64s:
    """Where each value of a string, binary, list or map array begins, and where the last one ends."""
    large = pt.is_large_string(array.type) or pt.is_large_binary(array.type) or pt.is_large_list(array.type)
    dtype = np.dtype("<i8" if large else "<i4")
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:
        return np.zeros(len(array) + 1, np.int64)
    return np.frombuffer(buffer, dtype, len(array) + 1, array.offset * dtype.itemsize).astype(np.int64)


def byte_strings(array: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]] | None:
    """Offsets and bytes of a string or binary array that has such buffers with 32-bit offsets; else None."""
    if array.type.id not in _SHORT_BYTES:
        return None
    _, offsets, data = array.buffers()
    if data is None or offsets is None or offsets.size == 0:
        return None
    return np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4), np.frombuffer(data, np.uint8)


def struct_fields(array: pa.Array) -> list[pa.Array]:
    """A struct's fields, with the struct's own slice but not its validity."""
    return [array.field(index) for index in range(array.type.num_fields)]
