"""What a Python value must be to fit a type of Spark's: the one place that decides, value by value.

A converter takes a value and returns what pyarrow stores unchanged, or raises ``Misfit``. Numbers fit where they are
equal to what is stored; only a float for a FLOAT is rounded to the nearest one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from weirflow.errors import did_you_mean
from weirflow.rows.misfit import Misfit, kind_of, shown

Converter = Callable[[Any], Any]

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock times are counted from it, and others from it in UTC
_FIRST_DAY = date(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_LEAST, _MOST = -(2**63), 2**63 - 1
_WHOLE = {pa.float64(): 2**53, pa.float32(): 2**24}
_NAT = np.iinfo(np.int64).min
_NUMBERS = frozenset({int, float, Decimal})
_BOOLEANS = (bool, np.bool_)
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
        except (Misfit, MemoryError):
            raise
        except RecursionError:
            raise Misfit(value, "it is nested too deeply") from None
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
        return _integer(kind)
    if pt.is_floating(kind):
        return _float(kind)
    if pt.is_decimal(kind):
        return _decimal(kind)
    if pt.is_map(kind):
        return _map(kind)
    if pt.is_struct(kind):
        return _struct(kind)
    if pt.is_list(kind):
        return _list(kind)
    raise AssertionError(f"{kind} is none of Spark's types")


# Numbers


def _number(value: Any, wanted: str) -> int | float | Decimal:
    """The value as one of Python's own numbers."""
    if type(value) in _NUMBERS:
        return value  # type: ignore[no-any-return]  # it is one of them
    if isinstance(value, _BOOLEANS):
        raise Misfit(value, "it is a boolean", wanted)
    if isinstance(value, int):
        return int.__pos__(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float):
        return float.__pos__(value)
    if isinstance(value, np.floating):
        near = float(value)
        if near == value or math.isnan(near):
            return near
        raise Misfit(value, "it has more digits than a DOUBLE")
    if isinstance(value, Decimal):
        return value
    raise Misfit(value, f"it is {kind_of(value)}, not an int, a float or a Decimal", wanted)


def _require_finite(number: float | Decimal, what: str) -> None:
    # The math module would make a float of a Decimal, which large ones are too large for.
    finite, nan = (
        (number.is_finite(), number.is_nan())
        if isinstance(number, Decimal)
        else (math.isfinite(number), math.isnan(number))
    )
    if not finite:
        raise Misfit(number, f"it is no {what}", "None is NULL" if nan else None)


def _integer(kind: pa.DataType) -> Converter:
    most = 2 ** (kind.bit_width - 1) - 1
    digits = 20

    def convert(value: Any) -> int:
        number = _number(value, "give an int")
        if not isinstance(number, int):
            _require_finite(number, "whole number")
            if isinstance(number, Decimal) and number and number.adjusted() > digits:
                raise Misfit(value, "it is too large")
            whole = int(number)
            if whole != number:
                raise Misfit(value, "it is not a whole number", "round it, or declare the column DOUBLE or DECIMAL")
            number = whole
        if not -most - 1 <= number <= most:
            raise Misfit(value, f"it is not between {-most - 1} and {most}")
        return number

    return convert


def _float(kind: pa.DataType) -> Converter:
    single = pt.is_float32(kind)
    whole = _WHOLE[kind]

    def rounded(number: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.float32(number)) if single else number

    def convert(value: Any) -> float:
        number = _number(value, "give a float")
        if isinstance(number, float):
            near = rounded(number)
            if math.isinf(near) and not math.isinf(number):
                raise Misfit(value, "it is too large", "declare the column DOUBLE")
            return near
        if isinstance(number, int):
            if abs(number) > whole:
                raise Misfit(value, f"beyond {whole} such a column does not hold every int", "declare it DECIMAL")
            return float(number)
        try:
            near = rounded(float(number))
        except ValueError:
            raise Misfit(value, "it is no number that a column holds") from None
        if number.is_nan() or near == number:
            return near
        raise Misfit(value, "it would be rounded", "give a float, or declare the column DECIMAL")

    return convert


def _decimal(kind: pa.DataType) -> Converter:
    precision, scale = kind.precision, kind.scale

    def convert(value: Any) -> Decimal:
        number = _number(value, "give a Decimal or an int")
        _require_finite(number, "number that a DECIMAL holds")
        if isinstance(number, int) and abs(number) >= 10**precision:
            raise Misfit(value, f"it has more than {precision - scale} digits before the point")
        exact = _trimmed(Decimal(number))
        if exact and exact.adjusted() >= precision - scale:
            raise Misfit(value, f"it has more than {precision - scale} digits before the point")
        if -_exponent(exact) > scale:
            if isinstance(number, float):
                raise Misfit(value, f"the float is {shown(exact)}", "give a Decimal, which has the digits it shows")
            raise Misfit(value, f"it has more than {scale} digits after the point", "round it")
        return exact

    return convert


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "it is finite"
    return exponent


def _trimmed(number: Decimal) -> Decimal:
    """The same number without zeros behind its last digit; ``normalize`` would round."""
    sign, digits, _ = number.as_tuple()
    exponent, end = _exponent(number), len(digits)
    while end and not digits[end - 1]:
        end -= 1
    return Decimal((sign, digits[:end], exponent + len(digits) - end)) if end else Decimal(0)


# Text, bytes and truth


def _boolean(value: Any) -> bool:
    if isinstance(value, _BOOLEANS):
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


# Times


def _date(value: Any) -> date:
    if isinstance(value, np.datetime64):
        value = _datetime_of_numpy(value)
    if isinstance(value, datetime):
        if _micros_of_day(value) or value.tzinfo is not None:
            raise Misfit(value, "it is a time, not a day", "give a date, such as the datetime's date()")
    elif not isinstance(value, date):
        raise Misfit(value, f"it is {kind_of(value)}, not a date", "give a datetime.date")
    return date(value.year, value.month, value.day)


def _wall_clock(value: Any) -> int:
    """The microseconds of a TIMESTAMP_NTZ."""
    if isinstance(value, np.datetime64):
        return _micros(value, "datetime64[us]", "its time has nanoseconds")
    if isinstance(value, datetime):
        if value.utcoffset() is not None:
            raise Misfit(
                value,
                "it has a zone, and the column has none",
                "declare the column TIMESTAMP, or give it without tzinfo",
            )
        return _micros_of(value)
    if isinstance(value, date):
        return (date(value.year, value.month, value.day) - _FIRST_DAY) // _MICROSECOND
    raise Misfit(value, f"it is {kind_of(value)}, not a datetime", "give a datetime without tzinfo")


def _moment(value: Any) -> int:
    """The microseconds of a TIMESTAMP."""
    if isinstance(value, datetime):
        offset = value.utcoffset()
        if offset is not None:
            return _micros_of(value) - offset // _MICROSECOND
    elif not isinstance(value, (date, np.datetime64)):
        raise Misfit(value, f"it is {kind_of(value)}, not a datetime", "give a datetime with tzinfo")
    raise Misfit(
        value, "it has no zone", "give it one, such as datetime(..., tzinfo=UTC), or declare the column TIMESTAMP_NTZ"
    )


def _micros_of(value: datetime) -> int:
    """From 1970 to a time on a clock, whatever its zone."""
    if getattr(value, "nanosecond", 0):
        raise Misfit(value, "its time has nanoseconds", "times have microseconds: round it")
    day = date(value.year, value.month, value.day) - _FIRST_DAY
    return day // _MICROSECOND + _micros_of_day(value)


def _micros_of_day(value: datetime) -> int:
    of_day = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return of_day + bool(getattr(value, "nanosecond", 0))


def _datetime_of_numpy(value: np.datetime64) -> datetime:
    return _EPOCH + timedelta(microseconds=_micros(value, "datetime64[us]", "its time has nanoseconds"))


def _micros(value: Any, unit: str, finer: str) -> int:
    """The microseconds of a time or length of NumPy's, whose conversions round and wrap."""
    near = value.astype(unit)
    micros = int(near.astype(np.int64))
    if micros == _NAT or near != value or near.astype(value.dtype) != value:
        raise Misfit(value, f"{finer}, or it is too far away", "times have microseconds: round it")
    return micros


def _duration(value: Any) -> int:
    if isinstance(value, np.timedelta64):
        if np.datetime_data(value)[0] in ("Y", "M", "generic"):
            raise Misfit(value, "how long it is, is not said", "give a timedelta")
        return _micros(value, "timedelta64[us]", "it has nanoseconds")
    if not isinstance(value, timedelta):
        raise Misfit(value, f"it is {kind_of(value)}, not a timedelta", "give a timedelta")
    if getattr(value, "nanoseconds", 0):
        raise Misfit(value, "it has nanoseconds", "intervals have microseconds: round it")
    micros = timedelta(value.days, value.seconds, value.microseconds) // _MICROSECOND
    if not _LEAST <= micros <= _MOST:
        raise Misfit(value, "it is too long")
    return micros


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
    pa.date32(): _date,
    pa.timestamp("us"): _wall_clock,
    pa.timestamp("us", "UTC"): _moment,
    pa.duration("us"): _duration,
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
            raise Misfit(value, "a key is there twice")
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
    raise Misfit(pair, "it is no pair of a key and a value", "give a dict")


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
