"""Which types may be stored in a column of another type, as Spark's ANSI store assignment has it."""

from __future__ import annotations

import pyarrow as pa

from weirflow.sql.types import NULL, is_array, is_atomic, is_datetime, is_numeric, is_string


def can_store(source: pa.DataType, target: pa.DataType) -> bool:  # noqa: PLR0911 - one for each kind of type
    """Whether INSERT, UPDATE and MERGE may put a ``source`` into a ``target``; a value may still not fit.

    >>> can_store(pa.float64(), pa.int32()), can_store(pa.string(), pa.int32())
    (True, False)
    """
    if source in (target, NULL):
        return True
    if is_array(source) and is_array(target):
        return can_store(source.value_type, target.value_type)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return can_store(source.key_type, target.key_type) and can_store(source.item_type, target.item_type)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        same = source.num_fields == target.num_fields
        return same and all(can_store(one.type, other.type) for one, other in zip(source, target, strict=True))
    if is_numeric(source) and is_numeric(target):
        return True
    if is_datetime(source) and is_datetime(target):
        return True
    return is_atomic(source) and is_string(target)
