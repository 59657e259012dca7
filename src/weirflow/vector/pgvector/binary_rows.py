"""Rows in the binary format of ``COPY``, made column by column: a vector is copied, not written out as digits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END = b"\xff\xff"
_ABSENT = b"\xff\xff\xff\xff"
"""The length of a value that is NULL."""
_EPOCH_DAYS = 10_957
"""From 1970 to 2000, where PostgreSQL begins to count."""
_EPOCH_MICROS = _EPOCH_DAYS * 86_400_000_000
_NUMBERS: dict[pa.DataType, str] = {
    pa.int8(): ">i2",
    pa.int16(): ">i2",
    pa.int32(): ">i4",
    pa.int64(): ">i8",
    pa.float32(): ">f4",
    pa.float64(): ">f8",
}


def has_binary(kind: pa.DataType) -> bool:
    """Whether values of this type are written so; others are written as text."""
    return (
        kind in _NUMBERS
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_fixed_size_list(kind)
        or _is_bytes(kind)
    )


def copy_bytes(columns: list[pa.Array]) -> memoryview:
    """Rows, to be written behind ``HEAD`` and before ``END``."""
    count = pa.scalar(len(columns).to_bytes(2, "big"), pa.large_binary())
    rows = pc.binary_join_element_wise(count, *map(_field, columns), pa.scalar(b"", pa.large_binary()))
    _, offsets, data = rows.buffers()
    ends = np.frombuffer(offsets, np.int64)
    return memoryview(data)[ends[rows.offset] : ends[rows.offset + len(rows)]]


def _field(column: pa.Array) -> pa.Array:
    """Each value behind its length in bytes."""
    kind = column.type
    if _is_bytes(kind):
        data = column.cast(pa.large_binary())
        lengths = np.asarray(pc.fill_null(pc.binary_length(data), -1)).astype(">i4")
        return pc.binary_join_element_wise(
            _fixed(lengths.view(np.uint8).reshape(-1, 4)), pc.fill_null(data, b""), pa.scalar(b"", pa.large_binary())
        )
    values = _vectors(column) if pa.types.is_fixed_size_list(kind) else _scalars(column)
    width = np.full(len(column), values.shape[1], ">i4").view(np.uint8).reshape(-1, 4)
    fields = _fixed(np.concatenate([width, values], axis=1))
    return fields if not column.null_count else pc.if_else(column.is_valid(), fields, pa.scalar(_ABSENT, fields.type))


def _scalars(column: pa.Array) -> np.ndarray:
    """The bytes of each value, anything where it is NULL."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return np.asarray(pc.fill_null(column, False)).astype(np.uint8).reshape(-1, 1)  # noqa: FBT003 - pyarrow's
    if pa.types.is_date32(kind):
        return _bytes(np.asarray(pc.fill_null(column.view(pa.int32()), 0)).astype(np.int64) - _EPOCH_DAYS, ">i4")
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", kind.tz)).view(pa.int64())
        return _bytes(np.asarray(pc.fill_null(micros, _EPOCH_MICROS)) - _EPOCH_MICROS, ">i8")
    return _bytes(np.asarray(pc.fill_null(column, 0)), _NUMBERS[kind])


def _vectors(column: pa.Array) -> np.ndarray:
    """How many numbers a vector has, two bytes for nothing, and the numbers."""
    dimension = column.type.list_size
    numbers = column.values.slice(column.offset * dimension, len(column) * dimension)
    values = np.asarray(pc.fill_null(numbers, 0.0)).astype(">f4").reshape(-1, dimension)
    head = np.tile(np.array([dimension, 0], ">i2").view(np.uint8), (len(column), 1))
    return np.concatenate([head, values.view(np.uint8)], axis=1)


def _bytes(values: np.ndarray, dtype: str) -> np.ndarray:
    found = np.ascontiguousarray(values.astype(dtype))
    return found.view(np.uint8).reshape(len(values), found.dtype.itemsize)


def _fixed(rows: np.ndarray) -> pa.Array:
    """Rows of bytes, all of one length."""
    offsets = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
    data = pa.py_buffer(np.ascontiguousarray(rows).reshape(-1))
    return pa.Array.from_buffers(pa.large_binary(), len(rows), [None, pa.py_buffer(offsets), data])


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )
