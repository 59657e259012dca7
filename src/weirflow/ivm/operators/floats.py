"""Keys as Spark compares them: -0.0 becomes 0.0, in every float of a key column, nested ones included."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.zset.hashing import has_floats


def normalized(column: pa.Array) -> pa.Array:
    """The column with every -0.0 made 0.0, so that keys that are equal in SQL are equal in every bit.

    Nested columns are rebuilt from Python values; keys with floats inside arrays or structs are rare.
    """
    kind = column.type
    if pa.types.is_floating(kind):
        return pc.add(column, pa.scalar(0.0, kind))
    if not has_floats(kind):
        return column
    return pa.array([_normalized_value(value) for value in column.to_pylist()], kind)


def _normalized_value(value: object) -> object:
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, dict):
        return {name: _normalized_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_normalized_value(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_normalized_value(item) for item in value)
    return value
