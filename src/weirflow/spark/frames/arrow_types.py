"""Arrow types that Spark refuses, and columns of types that hold the same values.

Arrow's own cast does most of it; list views, run-end encodings and extension types it cannot take apart, so columns
that hold those are rebuilt from their parts.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_MAX_PRECISION = 38
_REPLACED: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
    pa.null(): pa.string(),
}


def spark_type(kind: pa.DataType) -> pa.DataType:  # noqa: C901, PLR0911 - one return for each kind of type
    """The type that Spark takes in place of ``kind``, at any depth; ``kind`` itself if Spark takes it.

    >>> spark_type(pa.list_(pa.uint8()))
    ListType(list<item: int16>)
    """
    if kind in _REPLACED:
        return _REPLACED[kind]
    if isinstance(kind, pa.BaseExtensionType):
        return spark_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return spark_type(kind.value_type)
    if pa.types.is_decimal(kind):
        scale = max(kind.scale, 0)
        return pa.decimal128(min(kind.precision + scale - kind.scale, _MAX_PRECISION), scale)
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_struct(kind):
        return pa.struct([_spark_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(spark_type(kind.key_type), _spark_field(kind.item_field))
    if _is_list(kind):
        return pa.list_(_spark_field(kind.value_field))
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return kind


def to_spark_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with the type that Spark takes; ``ArrowInvalid`` if a value does not fit into it."""
    target = spark_type(column.type)
    if column.type == target:
        return column
    return pa.chunked_array([_rebuilt(chunk, target) for chunk in column.chunks], type=target)


def _rebuilt(array: pa.Array, target: pa.DataType) -> pa.Array:  # noqa: PLR0911 - as above
    kind = array.type
    if kind == target:
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return _rebuilt(array.storage, target)
    if pa.types.is_run_end_encoded(kind):
        return _rebuilt(pc.run_end_decode(array), target)
    if pa.types.is_dictionary(kind):
        return _rebuilt(array.dictionary_decode(), target)
    if pa.types.is_struct(kind):
        parts = [_rebuilt(part, field.type) for part, field in zip(array.flatten(), target, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=array.is_null())
    if pa.types.is_map(kind):
        return _rebuilt_map(array, target)
    if _is_list(kind):
        values = _rebuilt(array.flatten(), target.value_type)
        return pa.ListArray.from_arrays(_offsets(array), values, type=target, mask=array.is_null())
    return array.cast(target)


def _rebuilt_map(array: pa.MapArray, target: pa.MapType) -> pa.Array:
    # Entries of a NULL map may still be there; as lists of structs they can be taken out.
    entries = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    keys, items = entries.flatten().flatten()
    return pa.MapArray.from_arrays(
        _offsets(entries),
        _rebuilt(keys, target.key_type),
        _rebuilt(items, target.item_type),
        type=target,
        mask=array.is_null(),
    )


def _offsets(lists: pa.Array) -> pa.Array:
    """Where each list begins once all of them are laid end to end, and where the last one ends."""
    lengths = pc.list_value_length(lists).fill_null(0).cast(pa.int32())
    ends = pc.cumulative_sum(lengths)
    return pa.concat_arrays([pa.array([0], pa.int32()), ends])


def _spark_field(field: pa.Field) -> pa.Field:
    return field.with_type(spark_type(field.type))


def _is_list(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_list,
        pa.types.is_large_list,
        pa.types.is_fixed_size_list,
        pa.types.is_list_view,
        pa.types.is_large_list_view,
    )
    return any(test(kind) for test in tests)
