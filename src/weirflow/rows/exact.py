"""What a Python value must be to fit a type of Spark's: the one place that decides, value by value.

A converter takes a value and returns what pyarrow stores unchanged, or raises ``Misfit``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from weirflow.arguments.in_errors import kind_of, shown
from weirflow.errors import did_you_mean
from weirflow.rows.misfit import Misfit
from weirflow.rows.numbers import BOOLEANS, decimal, floating, integer
from weirflow.rows.times import day, duration, moment, wall_clock

Converter = Callable[[Any], Any]

_NUMPY_TIMES = (np.datetime64, np.timedelta64)
_BYTES = (bytes, bytearray, memoryview)
_TEXTS = (str, *_BYTES)

PLAIN = frozenset({bool, int, float, str, bytes, Decimal, date, datetime, timedelta, list, tuple, dict, type(None)})
"""Types of Python's own, none of whose values is missing but None."""


@lru_cache(maxsize=1024)
def converter(kind: pa.DataType) -> Converter:
    """What converts values for a type of ``rows.types``; None and the missing values of pandas and NumPy are NULL."""
    convert = _converter(kind)

    def converted(value: Any) -> Any:
        if value is None:
            return None
        try:
            if type(value) not in PLAIN:
                if isinstance(value, pa.Scalar):
                    value = value.as_py()
                if is_missing(value):
                    return None
            return convert(value)
        except (Misfit, MemoryError, RecursionError):
            raise
        except Exception as error:
            # Values are objects of the user's: their methods may raise anything.
            raise Misfit(value, f"it raised {type(error).__name__}: {shown(str(error))}") from error

    return converted


def is_missing(value: Any) -> bool:
    """Whether a value is None, ``pandas.NA``, ``pandas.NaT`` or a NaT of NumPy; NaN is a number."""
    if value is None:
        return True
    if isinstance(value, _NUMPY_TIMES):
        return bool(np.isnat(value))
    pandas = sys.modules.get("pandas")
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def _converter(kind: pa.DataType) -> Converter:  # noqa: PLR0911 - one return for each kind of type
    if kind in _ATOMIC:
        return _ATOMIC[kind]
    if pt.is_integer(kind):
        return integer(kind)
    if pt.is_floating(kind):
        return floating(kind)
    if pt.is_decimal(kind):
        return decimal(kind)
    if pt.is_map(kind):
        return _map(kind)
    if pt.is_struct(kind):
        return _struct(kind)
    if pt.is_list(kind):
        return _list(kind)
    raise AssertionError(f"{kind} is none of Spark's types")


# Text, bytes and truth


def _boolean(value: Any) -> bool:
    if isinstance(value, BOOLEANS):
        return bool(value)
    raise Misfit(value, f"it is {kind_of(value)}, not a boolean", "give True, False or None")


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise Misfit(value, f"it is {kind_of(value)}, not a str", "give a str")
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Misfit(value, "it has a lone surrogate, which UTF-8 cannot hold") from None
    return text


def _binary(value: Any) -> bytes:
    if isinstance(value, _BYTES):
        return bytes(value)
    raise Misfit(value, f"it is {kind_of(value)}, not bytes", "give bytes; a str has to be encoded")


def _months(value: Any) -> Any:
    if isinstance(value, pa.MonthDayNano):
        return value
    raise Misfit(value, f"it is {kind_of(value)}", "give a pyarrow.MonthDayNano")


def _nothing(value: Any) -> None:
    raise Misfit(value, "the column has no type but NULL", "declare its type")


_ATOMIC: dict[pa.DataType, Converter] = {
    pa.null(): _nothing,
    pa.bool_(): _boolean,
    pa.string(): _string,
    pa.binary(): _binary,
    pa.date32(): day,
    pa.timestamp("us"): wall_clock,
    pa.timestamp("us", "UTC"): moment,
    pa.duration("us"): duration,
    pa.month_day_nano_interval(): _months,
}


# Values that hold others


def _list(kind: pa.DataType) -> Converter:
    element = converter(kind.value_type)

    def convert(value: Any) -> list[Any]:
        elements = _elements(value, "an array", "give a list")
        return [_inside(element, one, f"[{at}]") for at, one in enumerate(elements)]

    return convert


def _struct(kind: pa.DataType) -> Converter:
    fields = {field.name: converter(field.type) for field in kind}

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise Misfit(value, f"it is {kind_of(value)}, not a dict", f"give a dict of {', '.join(fields)}")
        for name in value:
            if name not in fields:
                hint = did_you_mean(name, fields) if isinstance(name, str) else None
                raise Misfit(value, f"there is no field {shown(name)} in it", hint)
        return {name: _inside(field, value.get(name), f".{name}") for name, field in fields.items()}

    return convert


def _map(kind: pa.DataType) -> Converter:
    key_of, item_of = converter(kind.key_type), converter(kind.item_type)

    def convert(value: Any) -> list[tuple[Any, Any]]:
        pairs = []
        for pair in list(value.items()) if isinstance(value, Mapping) else _elements(value, "a map", "give a dict"):
            given, item = _pair(pair)
            key = _inside(key_of, given, ".key")
            if key is None:
                raise Misfit(value, "a key is NULL")
            pairs.append((key, _inside(item_of, item, f"[{shown(given)}]")))
        if _repeats([key for key, _ in pairs]):
            raise Misfit(value, "a key occurs twice")
        return pairs

    return convert


def _pair(pair: Any) -> tuple[Any, Any]:
    """A key and its value; frames that have no maps, as those of Polars, have structs of them."""
    if isinstance(pair, pa.Scalar):
        pair = pair.as_py()
    if isinstance(pair, Mapping) and pair.keys() == {"key", "value"}:
        return pair["key"], pair["value"]
    if isinstance(pair, (tuple, list)) and len(pair) == 2:  # noqa: PLR2004 - key and value
        return pair[0], pair[1]
    raise Misfit(pair, "it is not a pair of a key and a value", "give a dict")


def _elements(value: Any, what: str, hint: str) -> Sequence[Any]:
    if isinstance(value, np.ndarray) and value.ndim:
        return list(value)
    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        return list(value)
    if isinstance(value, Sequence) and not isinstance(value, _TEXTS):
        return value
    raise Misfit(value, f"it is {kind_of(value)}, not {what}", hint)


def _inside(convert: Converter, value: Any, step: str) -> Any:
    try:
        return convert(value)
    except Misfit as misfit:
        raise misfit.inside(step) from misfit.__cause__


def _repeats(keys: list[Any]) -> bool:
    try:
        return len(set(keys)) < len(keys)
    except TypeError:  # arrays and structs have no hash
        return any(key in keys[:at] for at, key in enumerate(keys))
