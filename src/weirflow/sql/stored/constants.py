"""Types and constants of plans as JSON: exact, and the same in any process."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from weirflow.sql import types
from weirflow.sql.stored.checks import exactly, not_stored

_SIMPLE = {
    "null": types.NULL,
    "bool": types.BOOLEAN,
    "int8": types.TINYINT,
    "int16": types.SMALLINT,
    "int32": types.INT,
    "int64": types.BIGINT,
    "float32": types.FLOAT,
    "float64": types.DOUBLE,
    "string": types.STRING,
    "binary": types.BINARY,
    "date": types.DATE,
    "timestamp": types.TIMESTAMP,
    "timestamp_ntz": types.TIMESTAMP_NTZ,
    "duration": types.DAY_TIME_INTERVAL,
    "months": types.YEAR_MONTH_INTERVAL,
}
_SIMPLE_NAMES = {kind: name for name, kind in _SIMPLE.items()}


def write_type(kind: pa.DataType) -> Any:
    """A type as JSON; ``NotIncremental`` for one that no view has."""
    if kind in _SIMPLE_NAMES:
        return _SIMPLE_NAMES[kind]
    if pa.types.is_decimal128(kind):
        return ["decimal", kind.precision, kind.scale]
    if pa.types.is_map(kind):
        return ["map", _write_field(kind.key_field), _write_field(kind.item_field)]
    if pa.types.is_list(kind):
        return ["list", _write_field(kind.value_field)]
    if pa.types.is_struct(kind):
        return ["struct", *(_write_field(field) for field in kind)]
    raise not_stored(f"A value of type {kind}")


def _write_field(field: pa.Field) -> list[Any]:
    return [field.name, write_type(field.type), field.nullable]


def read_type(data: Any) -> pa.DataType:
    """The type that JSON stands for; raises whatever it comes to for what stands for none."""
    if isinstance(data, str):
        return _SIMPLE[data]
    name, *parts = data
    if name == "decimal":
        return pa.decimal128(*parts)
    fields = [pa.field(exactly(str, field), read_type(kind), exactly(bool, null)) for field, kind, null in parts]
    make: dict[str, Callable[..., pa.DataType]] = {
        "map": pa.map_,
        "list": pa.list_,
        "struct": lambda *inside: pa.struct(inside),
    }
    return make[name](*fields)


_MICROSECOND = timedelta(microseconds=1)
_WRITTEN: Mapping[type[Any], tuple[str, Callable[[Any], Any]]] = {
    float: ("float", repr),
    Decimal: ("decimal", str),
    bytes: ("bytes", bytes.hex),
    date: ("date", date.isoformat),
    datetime: ("timestamp", lambda value: (value.astimezone(UTC) if value.tzinfo else value).isoformat()),
    timedelta: ("duration", lambda value: value // _MICROSECOND),
    pa.MonthDayNano: ("months", list),
    list: ("list", lambda value: [write_value(one) for one in value]),
    tuple: ("tuple", lambda value: [write_value(one) for one in value]),
    dict: ("struct", lambda value: [[name, write_value(one)] for name, one in value.items()]),
}
_READ: Mapping[str, Callable[[Any], Any]] = {
    "float": float,
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "duration": lambda data: exactly(int, data) * _MICROSECOND,
    "months": lambda data: pa.MonthDayNano([exactly(int, one) for one in data]),
    "list": lambda data: [read_value(one) for one in data],
    "tuple": lambda data: tuple(read_value(one) for one in data),
    "struct": lambda data: {exactly(str, name): read_value(one) for name, one in data},
}


def write_value(value: Any) -> Any:
    """A constant as JSON: as it is, or as an object with its kind; ``NotIncremental`` for what pyarrow never gives."""
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind not in _WRITTEN:
        raise not_stored(f"A constant of Python's type {kind.__name__}")
    name, write = _WRITTEN[kind]
    return {name: write(value)}


def read_value(data: Any) -> Any:
    """The constant that JSON stands for; raises whatever it comes to for what stands for none."""
    if not isinstance(data, dict | list):
        return data
    ((name, inside),) = exactly(dict, data).items()
    return _READ[name](inside)
