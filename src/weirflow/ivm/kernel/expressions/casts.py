"""CAST and TRY_CAST: which kernel takes values from one type to another, nested types part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.ivm.kernel.expressions import cast_numbers
from weirflow.ivm.kernel.expressions.cast_context import Cast

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.cast_context import CastBuilder
    from weirflow.ivm.kernel.expressions.signature import Builder, FormBuilder, Kernel, Signature


def cast(signature: Signature) -> Kernel | None:
    """``CAST``: an error where a value cannot be converted."""
    return kernel(Cast(signature.types[0], signature.result, signature.position))


def try_cast(signature: Signature) -> Kernel | None:
    """``TRY_CAST``: NULL where a value cannot be converted."""
    return kernel(Cast(signature.types[0], signature.result, signature.position, tolerant=True))


def kernel(wanted: Cast) -> Kernel | None:
    """The kernel of a cast, or None if it is not one that Spark has, or that is proven equal to Spark's."""
    if wanted.source == wanted.target:
        return lambda value: value
    if pa.types.is_null(wanted.source):
        return lambda value: value.cast(wanted.target)
    source, target = _family(wanted.source), _family(wanted.target)
    builder = _BUILDERS.get((source, target))
    return builder(wanted) if builder else None


def _family(kind: pa.DataType) -> str:
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
    return str(kind)


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
}
FUNCTIONS: dict[str, Builder] = {"cast": cast, "try_cast": try_cast}
FORMS: dict[str, FormBuilder] = {}
