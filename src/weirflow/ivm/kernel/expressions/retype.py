"""Arrays given the exact Arrow type that a plan promised, when only nullability or names of nested fields differ."""

from __future__ import annotations

import pyarrow as pa

from weirflow.ivm.kernel.expressions.rows import validity


def retyped(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same values as an array of ``kind``, without a copy; the array itself if it already is."""
    if array.type == kind:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    return _rebuilt(array, kind)


def _rebuilt(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_struct(kind):
        children = [
            _rebuilt(array.field(index), kind.field(index).type) for index in range(kind.num_fields)
        ]  # field() applies the array's own offset
        return pa.Array.from_buffers(kind, len(array), [validity(array)], children=children)
    if pa.types.is_map(kind):
        entries = kind.field(0).type
        values = pa.StructArray.from_arrays(
            [_rebuilt(array.keys, kind.key_type), _rebuilt(array.items, kind.item_type)], fields=list(entries)
        )
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[values])
    if pa.types.is_list(kind):
        values = _rebuilt(array.values, kind.value_type)
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[values])
    return array.cast(kind)
