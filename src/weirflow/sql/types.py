"""Spark SQL's types: Arrow type to Spark name and back, in the one-to-one correspondence Spark itself uses."""

from __future__ import annotations

import pyarrow as pa

NULL = pa.null()
BOOLEAN = pa.bool_()
TINYINT = pa.int8()
SMALLINT = pa.int16()
INT = pa.int32()
BIGINT = pa.int64()
FLOAT = pa.float32()
DOUBLE = pa.float64()
STRING = pa.string()
BINARY = pa.binary()
DATE = pa.date32()
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
DAY_TIME_INTERVAL = pa.duration("us")
YEAR_MONTH_INTERVAL = pa.month_day_nano_interval()

MAX_PRECISION = 38
INTEGRAL_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_NAMES: dict[pa.DataType, str] = {
    NULL: "void",
    BOOLEAN: "boolean",
    TINYINT: "tinyint",
    SMALLINT: "smallint",
    INT: "int",
    BIGINT: "bigint",
    FLOAT: "float",
    DOUBLE: "double",
    STRING: "string",
    BINARY: "binary",
    DATE: "date",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
    DAY_TIME_INTERVAL: "interval day to second",
    YEAR_MONTH_INTERVAL: "interval year to month",
}


def decimal(precision: int, scale: int) -> pa.DataType:
    """Spark's ``decimal(precision,scale)``."""
    return pa.decimal128(precision, scale)


def array_of(element: pa.DataType) -> pa.DataType:
    """Spark's ``array<element>``, with the field name that Spark gives it in Arrow."""
    return pa.list_(pa.field("element", element))


def type_name(kind: pa.DataType) -> str:  # noqa: PLR0911 - one return for each kind of type
    """Spark's short name of a type, as ``DESCRIBE`` prints it.

    >>> type_name(pa.list_(pa.decimal128(10, 2)))
    'array<decimal(10,2)>'
    """
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ",".join(f"{field.name}:{type_name(field.type)}" for field in kind) + ">"
    return str(kind)


def is_numeric(kind: pa.DataType) -> bool:
    """Integers, decimals, float and double."""
    return kind in INTEGRAL_DIGITS or kind in (FLOAT, DOUBLE) or pa.types.is_decimal(kind)


def is_integral(kind: pa.DataType) -> bool:
    """tinyint, smallint, int and bigint."""
    return kind in INTEGRAL_DIGITS


def is_decimal(kind: pa.DataType) -> bool:
    """Decimals of any precision."""
    return bool(pa.types.is_decimal(kind))


def is_string(kind: pa.DataType) -> bool:
    """String."""
    return bool(kind == STRING)


def is_datetime(kind: pa.DataType) -> bool:
    """Dates and timestamps, with or without a zone."""
    return kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def is_interval(kind: pa.DataType) -> bool:
    """Intervals of years and months, and of days to microseconds."""
    return kind in (DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL)


def is_array(kind: pa.DataType) -> bool:
    """Arrays of anything."""
    return bool(pa.types.is_list(kind))


def is_atomic(kind: pa.DataType) -> bool:
    """Neither an array, a map, a struct nor the type of NULL."""
    return not (kind == NULL or pa.types.is_nested(kind))


def nullable(kind: pa.DataType) -> pa.DataType:
    """The type with every nested field nullable and named as Spark names it: plans do not track what is never NULL."""
    if pa.types.is_map(kind):
        return pa.map_(nullable(kind.key_type), nullable(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, nullable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return array_of(nullable(kind.value_type))
    return kind


def is_orderable(kind: pa.DataType) -> bool:
    """Whether values can be sorted: everything but maps, at any depth."""
    if pa.types.is_map(kind):
        return False
    if is_array(kind):
        return is_orderable(kind.value_type)
    return all(is_orderable(field.type) for field in kind) if pa.types.is_struct(kind) else True
