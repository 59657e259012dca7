"""Arrow values as Python ones that are equal only if the values are the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def plain(array: pa.Array) -> list[Any]:
    """Values that compare exactly: NaN equals itself, -0.0 differs from 0.0, times of any year are numbers."""
    kind = array.type
    if pa.types.is_date(kind):
        return array.view(pa.int32()).to_pylist()
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return array.view(pa.int64()).to_pylist()
    if pa.types.is_struct(kind):
        fields = [plain(field) for field in array.flatten()]
        there = array.is_valid().to_pylist()
        return [tuple(field[row] for field in fields) if there[row] else None for row in range(len(array))]
    if pa.types.is_list(kind):
        return [None if one is None else plain(one) for one in (item.values for item in array)]
    if pa.types.is_floating(kind) or pa.types.is_nested(kind):
        return [repr(value) for value in array.to_pylist()]
    return array.to_pylist()
