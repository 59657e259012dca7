"""Arrow types as Spark has them: what any Arrow data is brought to before it becomes a Z-set."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from weirflow.errors import ConfigError

_WIDENED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}
_SAME = (
    pt.is_null,
    pt.is_boolean,
    pt.is_signed_integer,
    pt.is_float32,
    pt.is_float64,
    pt.is_date32,
    pt.is_decimal128,
)
_MAX_PRECISION = 38


def is_spark_type(type_: pa.DataType) -> bool:
    """Whether Spark uses this very type for values that are not nested."""
    if pt.is_timestamp(type_):
        return bool(type_.unit == "us" and type_.tz in (None, "UTC"))
    return any(is_same(type_) for is_same in _SAME) or type_ in (pa.string(), pa.binary(), pa.duration("us"))


def spark_type(type_: pa.DataType, where: str) -> pa.DataType:  # noqa: PLR0911 (one return for each kind of type)
    """The Arrow type that Spark uses for such values; ``where`` names the column for the error.

    >>> spark_type(pa.large_string(), "name")
    DataType(string)

    Raises:
        ConfigError: Spark has no such type.
    """
    if any(is_same(type_) for is_same in _SAME):
        return type_
    if type_ in _WIDENED:
        return _WIDENED[type_]
    if pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_):
        return pa.string()
    if pt.is_binary(type_) or pt.is_large_binary(type_) or pt.is_binary_view(type_) or pt.is_fixed_size_binary(type_):
        return pa.binary()
    if pt.is_timestamp(type_):
        return pa.timestamp("us", tz=None if type_.tz is None else "UTC")
    if pt.is_duration(type_):
        return pa.duration("us")
    if pt.is_decimal(type_) and type_.precision <= _MAX_PRECISION:
        return pa.decimal128(type_.precision, type_.scale)
    if pt.is_interval(type_):
        return pa.month_day_nano_interval()
    return _nested_type(type_, where)


def _nested_type(type_: pa.DataType, where: str) -> pa.DataType:
    if pt.is_dictionary(type_):
        return spark_type(type_.value_type, where)
    # What pandas has as periods and intervals is more than the numbers they are stored as.
    if isinstance(type_, pa.BaseExtensionType) and not type_.extension_name.startswith("pandas."):
        return spark_type(type_.storage_type, where)
    if pt.is_map(type_):
        return pa.map_(spark_type(type_.key_type, where), spark_type(type_.item_type, where))
    if pt.is_struct(type_):
        fields = [type_.field(index) for index in range(type_.num_fields)]
        return pa.struct([pa.field(field.name, spark_type(field.type, f"{where}.{field.name}")) for field in fields])
    if pt.is_nested(type_) and hasattr(type_, "value_type"):
        return pa.list_(spark_type(type_.value_type, where))
    raise ConfigError(
        f"Column {where!r} has type {type_}, which Spark has no type for.",
        hint="cast the column first, or leave it out",
    )


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with each column's ``spark_type``; names and nullability stay, metadata goes."""
    return pa.schema([pa.field(field.name, spark_type(field.type, field.name), field.nullable) for field in schema])
