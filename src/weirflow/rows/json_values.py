"""Arrow values as JSON and as text: one spelling for every Spark type, in every output format.

======================== =============================================================
Spark type               JSON
======================== =============================================================
integers, boolean        number, true and false
float, double            number; "NaN", "Infinity" and "-Infinity" as Spark's own JSON
decimal                  string, so that no digit is lost
date, time               string, ISO 8601
timestamp                string, ISO 8601 in UTC: "2026-01-31T12:00:00Z"
timestamp_ntz            string, ISO 8601 without a zone
interval day to second   string, ISO 8601: "P1DT2H3M4.5S"
binary                   string, base64
array, struct            array, object
map                      object; keys that are not strings are spelt as text
======================== =============================================================
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000


def json_values(column: pa.Array) -> list[Any]:
    """The column's values as the ``json`` module writes them; NULL is None."""
    kind = column.type
    if kinds.is_struct(kind):
        return _structs(column)
    if kinds.is_map(kind):
        keys, items = [as_text(key) for key in json_values(column.keys)], json_values(column.items)
        return _slices(column, lambda start, end: dict(zip(keys[start:end], items[start:end], strict=True)))
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        values = json_values(column.values)
        return _slices(column, lambda start, end: values[start:end])
    for matches, spell in _SPELT:
        if matches(kind):
            return spell(column)
    return list(column.to_pylist())


def as_text(value: Any) -> str:
    """A JSON value as people and CSV read it: strings bare, nested values as JSON. NULL is for the caller to spell."""
    return value if isinstance(value, str) else to_json(value)


def to_json(value: Any) -> str:
    """A JSON value as compact text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _structs(column: pa.StructArray) -> list[Any]:
    names = [field.name for field in column.type]
    rows = zip(*(json_values(child) for child in column.flatten()), strict=True) if names else [()] * len(column)
    return [
        dict(zip(names, row, strict=True)) if valid else None
        for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True)
    ]


def _slices(column: Any, make: Callable[[int, int], Any]) -> list[Any]:
    bounds = pairwise(column.offsets.to_pylist())
    return [
        make(start, end) if valid else None
        for (start, end), valid in zip(bounds, column.is_valid().to_pylist(), strict=True)
    ]


def _floats(column: pa.Array) -> list[Any]:
    return [value if value is None else _float(value) for value in column.to_pylist()]


def _singles(column: pa.Array) -> list[Any]:
    """With the digits a 32-bit float has, not those of the 64-bit float nearest to it."""
    return [value if value is None else _float(float(str(np.float32(value)))) for value in column.to_pylist()]


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _strings(column: pa.Array) -> list[Any]:
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:  # Spark lets strings hold bytes that are not UTF-8
        raw = column.cast(pa.large_binary() if kinds.is_large_string(column.type) else pa.binary())
        return [value if value is None else value.decode(errors="replace") for value in raw.to_pylist()]


def _binaries(column: pa.Array) -> list[Any]:
    return [value if value is None else base64.b64encode(value).decode() for value in column.to_pylist()]


def _decimals(column: pa.Array) -> list[Any]:
    return [value if value is None else format(value, "f") for value in column.to_pylist()]


def _dates(column: pa.Array) -> list[Any]:
    """By Arrow, which unlike Python knows year 0 and the years after 9999."""
    return list(column.cast(pa.string()).to_pylist())


def _timestamps(column: pa.Array) -> list[Any]:
    return [text and _without_trailing_zeros(text.replace(" ", "T")) for text in _dates(column)]


def _times(column: pa.Array) -> list[Any]:
    return [text and _without_trailing_zeros(text) for text in _dates(column)]


def _without_trailing_zeros(text: str) -> str:
    zone = "Z" if text.endswith("Z") else ""
    whole, dot, fraction = text.removesuffix("Z").partition(".")
    fraction = fraction.rstrip("0")
    return whole + (dot + fraction if fraction else "") + zone


def _durations(column: pa.Array) -> list[Any]:
    micros = column.cast(pa.duration("us")).cast(pa.int64()).to_pylist()
    return [value if value is None else _duration(value) for value in micros]


def _duration(micros: int) -> str:
    sign, rest = ("-", -micros) if micros < 0 else ("", micros)
    days, rest = divmod(rest, _DAY)
    hours, rest = divmod(rest, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    seconds = f"{rest // _SECOND}.{rest % _SECOND:06}".rstrip("0").rstrip(".")
    parts: Sequence[tuple[int | str, str]] = ((hours, "H"), (minutes, "M"), (seconds if rest else 0, "S"))
    time = "".join(f"{amount}{unit}" for amount, unit in parts if amount)
    day = f"{days}D" if days else ""
    return f"{sign}P{day}" + (f"T{time}" if time else "" if day else "T0S")


_SPELT: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[Any]]], ...] = (
    (kinds.is_float64, _floats),
    (kinds.is_float32, _singles),
    (lambda kind: kinds.is_string(kind) or kinds.is_large_string(kind), _strings),
    (lambda kind: kinds.is_binary(kind) or kinds.is_large_binary(kind), _binaries),
    (kinds.is_decimal, _decimals),
    (kinds.is_date, _dates),
    (kinds.is_timestamp, _timestamps),
    (kinds.is_time, _times),
    (kinds.is_duration, _durations),
)
