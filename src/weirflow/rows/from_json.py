"""Rows that came as JSON, spelt as ``json_values`` spells them, as Python values of a schema."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from weirflow.arguments.in_errors import shown
from weirflow.errors import ConfigError

_DURATION = re.compile(r"(-)?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def from_json_rows(rows: Sequence[Any], schema: pa.Schema) -> list[dict[str, Any]]:
    """Rows of JSON as rows of Python values, for what takes rows of dicts; columns the schema lacks stay as they are.

    Raises:
        ConfigError: a row is no object, or a value is not of its column's type.
    """
    types = {field.name: field.type for field in schema}
    made = []
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ConfigError(f"Row {number + 1} is {shown(row)}; a row is an object with a value for each column.")
        made.append(
            {name: value if name not in types else _column(value, types[name], name) for name, value in row.items()}
        )
    return made


def _column(value: Any, kind: pa.DataType, name: str) -> Any:
    try:
        return _value(value, kind)
    except (ValueError, TypeError, KeyError, InvalidOperation, binascii.Error, OverflowError):
        raise ConfigError(f"The column {name!r} has {shown(value)}, which is no {kind}.") from None


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if kinds.is_struct(kind):
        return {field.name: _value(value.get(field.name), field.type) for field in kind} if _is(value, dict) else None
    if kinds.is_map(kind):
        _is(value, dict)
        return [(_key(key, kind.key_type), _value(one, kind.item_type)) for key, one in value.items()]
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        _is(value, list)
        return [_value(one, kind.value_type) for one in value]
    for matches, read in _READ:
        if matches(kind):
            return read(value)
    return value


def _key(key: str, kind: pa.DataType) -> Any:
    """The keys of JSON's objects are always text."""
    if kinds.is_integer(kind):
        return int(key)
    if kinds.is_boolean(kind):
        return {"true": True, "false": False}[key]
    if kinds.is_floating(kind):
        return _WORDS.get(key) if key in _WORDS else float(key)
    return _value(key, kind)


def _is(value: Any, kind: type) -> bool:
    if not isinstance(value, kind):
        raise TypeError(kind)
    return True


def _text(value: Any) -> str:
    _is(value, str)
    return str(value)


def _float(value: Any) -> Any:
    return _WORDS[value] if isinstance(value, str) else value


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool | float):
        raise TypeError(value)  # a number with digits behind the point has lost some of them already
    return Decimal(value)


def _binary(value: Any) -> bytes:
    return base64.b64decode(_text(value), validate=True)


def _timestamp(value: Any) -> datetime:
    return datetime.fromisoformat(_text(value))


def _duration(value: Any) -> timedelta:
    found = _DURATION.fullmatch(_text(value))
    if found is None:
        raise ValueError(value)
    sign, days, hours, minutes, seconds = found.groups()
    micros = int(Decimal(seconds or 0) * 1_000_000)
    length = timedelta(days=int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0), microseconds=micros)
    return -length if sign else length


_READ: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...] = (
    (kinds.is_floating, _float),
    (kinds.is_decimal, _decimal),
    (lambda kind: kinds.is_binary(kind) or kinds.is_large_binary(kind), _binary),
    (kinds.is_date, lambda value: date.fromisoformat(_text(value))),
    (kinds.is_timestamp, _timestamp),
    (kinds.is_time, lambda value: time.fromisoformat(_text(value))),
    (kinds.is_duration, _duration),
)
