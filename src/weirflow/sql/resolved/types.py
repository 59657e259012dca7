"""Spark's types and constants, as its plans write them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.expr import Literal
from weirflow.sql.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    array_of,
    decimal,
)

_ATOMIC = {
    "void": NULL,
    "boolean": BOOLEAN,
    "byte": TINYINT,
    "short": SMALLINT,
    "integer": INT,
    "long": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}
_DECIMAL = re.compile(r"decimal\((\d+), ?(-?\d+)\)")
_YEAR_MONTH = re.compile(r"interval (year|month)")
_DAY_TIME = re.compile(r"interval (day|hour|minute|second)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def type_of(written: Any) -> pa.DataType:
    """The Arrow type of a type as Spark's JSON has it; ``NotIncremental`` if views have no such columns."""
    if isinstance(written, dict):
        return _nested(written)
    if written in _ATOMIC:
        return _ATOMIC[written]
    if found := _DECIMAL.fullmatch(written):
        return decimal(int(found[1]), int(found[2]))
    if _YEAR_MONTH.match(written):
        return YEAR_MONTH_INTERVAL
    if _DAY_TIME.match(written):
        return DAY_TIME_INTERVAL
    raise _unknown(str(written))


def literal(value: Any, kind: pa.DataType) -> Literal:
    """A constant: times are given in days or microseconds since 1970, intervals in months or microseconds."""
    if value is not None:
        if kind == DATE:
            value = date(1970, 1, 1) + timedelta(days=value)
        elif kind == TIMESTAMP:
            value = _EPOCH + timedelta(microseconds=value)
        elif kind == TIMESTAMP_NTZ:
            value = (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=None)
        elif kind == DAY_TIME_INTERVAL:
            value = timedelta(microseconds=value)
        elif kind == YEAR_MONTH_INTERVAL:
            value = pa.MonthDayNano([value, 0, 0])
    return Literal(value, kind)


def _nested(written: dict[str, Any]) -> pa.DataType:
    match written.get("type"):
        case "array":
            return array_of(type_of(written["elementType"]))
        case "map":
            return pa.map_(type_of(written["keyType"]), type_of(written["valueType"]))
        case "struct":
            return pa.struct([(field["name"], type_of(field["type"])) for field in written["fields"]])
    raise _unknown(str(written.get("type")))


def _unknown(name: str) -> NotIncremental:
    return NotIncremental(f"Views have no columns of type {name.upper()}.", reason=Reason.TYPE_NOT_SUPPORTED)
