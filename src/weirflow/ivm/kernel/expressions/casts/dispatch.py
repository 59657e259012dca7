"""CAST and TRY_CAST: which kernel takes values from one type to another, nested types part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.ivm.kernel.expressions.casts import format as cast_format
from weirflow.ivm.kernel.expressions.casts import nested as cast_nested
from weirflow.ivm.kernel.expressions.casts import numbers as cast_numbers
from weirflow.ivm.kernel.expressions.casts import parse as cast_parse
from weirflow.ivm.kernel.expressions.casts import times as cast_times
from weirflow.ivm.kernel.expressions.casts.context import Cast

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.casts.context import CastBuilder
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel


def cast(signature: CallSignature) -> Kernel | None:
    """``CAST``: an error where a value cannot be converted."""
    return kernel(Cast(signature.types[0], signature.result, signature.position))


def try_cast(signature: CallSignature) -> Kernel | None:
    """``TRY_CAST``: NULL where a value cannot be converted."""
    return kernel(Cast(signature.types[0], signature.result, signature.position, tolerant=True))


def kernel(wanted: Cast) -> Kernel | None:
    """The kernel of a cast, or None if it is not one that Spark has, or that is proven equal to Spark's."""
    if wanted.source == wanted.target:
        return lambda value: value
    if pa.types.is_null(wanted.source):
        return lambda value: value.cast(wanted.target)
    if pa.types.is_nested(wanted.source):
        return cast_nested.kernel(wanted, kernel)
    source, target = family(wanted.source), family(wanted.target)
    builder = _BUILDERS.get((source, target))
    return builder(wanted) if builder else None


def family(kind: pa.DataType) -> str:  # noqa: PLR0911 - one for each
    """What casts tell types apart by."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_float32(kind):
        return "float"
    if pa.types.is_float64(kind):
        return "double"
    if pa.types.is_decimal128(kind):
        return "decimal"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    return {pa.string(): "string", pa.binary(): "binary", pa.date32(): "date"}.get(kind, "other")


_BUILDERS: dict[tuple[str, str], CastBuilder] = {
    ("boolean", "integer"): cast_numbers.from_boolean,
    ("boolean", "float"): cast_numbers.from_boolean,
    ("boolean", "double"): cast_numbers.from_boolean,
    ("boolean", "decimal"): cast_numbers.from_boolean,
    ("integer", "boolean"): cast_numbers.to_boolean,
    ("float", "boolean"): cast_numbers.to_boolean,
    ("double", "boolean"): cast_numbers.to_boolean,
    ("decimal", "boolean"): cast_numbers.decimal_to_boolean,
    ("integer", "integer"): cast_numbers.integer_to_integer,
    ("integer", "float"): cast_numbers.integer_to_floating,
    ("integer", "double"): cast_numbers.integer_to_floating,
    ("integer", "decimal"): cast_numbers.integer_to_decimal,
    ("float", "integer"): cast_numbers.floating_to_integer,
    ("float", "double"): cast_numbers.floating_to_floating,
    ("float", "decimal"): cast_numbers.floating_to_decimal,
    ("double", "integer"): cast_numbers.floating_to_integer,
    ("double", "float"): cast_numbers.floating_to_floating,
    ("double", "decimal"): cast_numbers.floating_to_decimal,
    ("decimal", "integer"): cast_numbers.decimal_to_integer,
    ("decimal", "float"): cast_numbers.decimal_to_float,
    ("decimal", "double"): cast_numbers.decimal_to_double,
    ("decimal", "decimal"): cast_numbers.decimal_to_decimal,
    ("string", "boolean"): cast_parse.to_boolean,
    ("string", "integer"): cast_parse.to_integer,
    ("string", "float"): cast_parse.to_float,
    ("string", "double"): cast_parse.to_double,
    ("string", "decimal"): cast_parse.to_decimal,
    ("string", "binary"): cast_parse.to_binary,
    ("string", "date"): cast_parse.to_date,
    ("string", "timestamp"): cast_parse.to_timestamp,
    ("string", "timestamp_ntz"): cast_parse.to_timestamp_ntz,
    ("boolean", "string"): cast_format.from_simple,
    ("integer", "string"): cast_format.from_simple,
    ("float", "string"): cast_format.from_floating,
    ("double", "string"): cast_format.from_floating,
    ("decimal", "string"): cast_format.from_decimal,
    ("date", "string"): cast_format.from_date,
    ("timestamp", "string"): cast_format.from_timestamp,
    ("timestamp_ntz", "string"): cast_format.from_timestamp,
    ("date", "timestamp"): cast_times.date_to_timestamp,
    ("date", "timestamp_ntz"): cast_times.date_to_timestamp,
    ("timestamp", "date"): cast_times.timestamp_to_date,
    ("timestamp_ntz", "date"): cast_times.timestamp_to_date,
    ("timestamp", "timestamp_ntz"): cast_times.timestamp_to_timestamp,
    ("timestamp_ntz", "timestamp"): cast_times.timestamp_to_timestamp,
    ("timestamp", "integer"): cast_times.timestamp_to_integer,
    ("timestamp", "float"): cast_times.timestamp_to_floating,
    ("timestamp", "double"): cast_times.timestamp_to_floating,
    ("timestamp", "decimal"): cast_times.timestamp_to_decimal,
    ("integer", "timestamp"): cast_times.integer_to_timestamp,
    ("float", "timestamp"): cast_times.floating_to_timestamp,
    ("double", "timestamp"): cast_times.floating_to_timestamp,
    ("decimal", "timestamp"): cast_times.decimal_to_timestamp,
}
FUNCTIONS: dict[str, Builder] = {"cast": cast, "try_cast": try_cast}
