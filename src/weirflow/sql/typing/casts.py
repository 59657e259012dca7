"""Which explicit casts exist, in ANSI mode."""

from __future__ import annotations

import pyarrow as pa

from weirflow.sql.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGRAL_DIGITS,
    NULL,
    STRING,
    TIMESTAMP,
    is_array,
    is_datetime,
    is_decimal,
    is_integral,
    is_interval,
    is_numeric,
)


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:  # noqa: PLR0911 - one per kind of type
    """Whether ``CAST(source AS target)`` is allowed at all; a value may still fail.

    >>> can_cast(pa.int32(), pa.date32())
    False
    """
    if source in (target, NULL) or target == STRING:
        return True
    if pa.types.is_nested(source) or pa.types.is_nested(target):
        return _can_cast_nested(source, target)
    if source == STRING:
        return True
    if is_datetime(source) and is_datetime(target):
        return True
    if is_interval(source) or is_interval(target):
        return is_numeric(source) or is_numeric(target)
    if BINARY in (source, target):
        return is_integral(source)
    if DATE in (source, target):
        return False
    simple = [kind in (BOOLEAN, TIMESTAMP) or is_numeric(kind) for kind in (source, target)]
    return all(simple) and {BOOLEAN, TIMESTAMP} != {source, target}


def _can_cast_nested(source: pa.DataType, target: pa.DataType) -> bool:
    if is_array(source) and is_array(target):
        return can_cast(source.value_type, target.value_type)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return can_cast(source.key_type, target.key_type) and can_cast(source.item_type, target.item_type)
    if pa.types.is_struct(source) and pa.types.is_struct(target) and source.num_fields == target.num_fields:
        return all(can_cast(one.type, other.type) for one, other in zip(source, target, strict=True))
    return False


def never_fails(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether every value of ``source`` has a counterpart in ``target``: widening casts, and casts to string."""
    if source in (target, NULL) or target == STRING:
        return True
    if target == DOUBLE:
        return is_numeric(source)
    if is_integral(source) and is_integral(target):
        return bool(source.bit_width <= target.bit_width)
    if is_integral(source) and is_decimal(target):
        return bool(INTEGRAL_DIGITS[source] <= target.precision - target.scale)
    if is_decimal(source) and is_decimal(target):
        whole = source.precision - source.scale <= target.precision - target.scale
        return bool(whole and source.scale <= target.scale)
    return is_datetime(source) and is_datetime(target)
