"""Python values to an Arrow array of a type of Spark's: exactly, or an error that names the row and the value.

Most columns hold nothing but values of one Python type that pyarrow converts exactly. They are told by the set of their
types and converted as a whole; every other column goes value by value through ``exact``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from weirflow.arguments.in_errors import kind_of
from weirflow.errors import ConfigError
from weirflow.rows.arrays import from_short_list
from weirflow.rows.exact import PLAIN, converter, is_missing
from weirflow.rows.misfit import Misfit, misfit_error, named
from weirflow.rows.types import spark_type

_NONE = type(None)
# Unsigned integers of 64 bits are left out: pyarrow wraps them on their way to floats.
_INT: frozenset[type] = frozenset({int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, _NONE})
_FLOAT: frozenset[type] = frozenset({float, np.float16, np.float32, np.float64, *_INT})
_SURE: dict[pa.DataType, frozenset[type]] = {
    pa.bool_(): frozenset({bool, _NONE}),
    pa.int8(): _INT,
    pa.int16(): _INT,
    pa.int32(): _INT,
    pa.int64(): _INT,
    pa.float32(): _FLOAT,
    pa.float64(): _FLOAT,
    pa.string(): frozenset({str, _NONE}),
    pa.binary(): frozenset({bytes, _NONE}),
    pa.date32(): frozenset({date, _NONE}),
    pa.duration("us"): frozenset({timedelta, _NONE}),
}
"""Types of values, subclasses apart, that pyarrow stores unchanged in a column or refuses."""
_KNOWN: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
"""What pyarrow infers of values of one type."""
_BIGINT = range(-(2**63), 2**63)
_DECIMAL = frozenset({Decimal, int, _NONE})
_DATETIME = frozenset({datetime, _NONE})
_ZONES = frozenset({ZoneInfo, timezone})
_LIST = frozenset({list, tuple, _NONE})
_DICT = frozenset({dict, _NONE})
_SECOND = timedelta(seconds=1)

_ARROW = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""What pyarrow raises for a value that it cannot convert."""


def column(values: Sequence[Any], kind: pa.DataType, name: str) -> pa.Array:
    """The values as an array.

    Args:
        values: one for each row; None and the missing values of pandas and NumPy are NULL.
        kind: a type of Spark's, as ``rows.types`` has them.
        name: of the column, for the error.

    Raises:
        ConfigError: a value does not fit; it names the row, counted from 0.
    """
    if _all_fit(values, kind):
        try:
            array = from_short_list(values, kind)
            if array is None:
                array = pa.array(values, kind)
        except _ARROW:
            array = None
        if array is not None and not _overflown(array):
            return array
    return _one_by_one(values, kind, name)


def inferred(values: Sequence[Any], name: str) -> pa.DataType:
    """The type of Spark's for values whose type nobody says; ``ConfigError`` if there is none."""
    plain = values
    types = set(map(type, values))
    known = _KNOWN.get(*types) if len(types) == 1 else None
    if known is not None and (known != pa.int64() or (min(values) in _BIGINT and max(values) in _BIGINT)):
        return known  # infer_type imports pandas
    if not types <= PLAIN:
        plain = [value for value in values if not is_missing(value)]
    try:
        kind = pa.infer_type(plain)
    except _ARROW as error:
        for row, value in enumerate(values):
            try:
                pa.infer_type([] if is_missing(value) else [value])
            except _ARROW:
                reason = Misfit(value, f"no type is known for {kind_of(value)}", "pass schema=")
                raise misfit_error(reason, name, row, pa.null()) from error
        raise ConfigError(
            f"The values of column {name!r} are of types that do not go together: {error}",
            hint="pass schema= to fix the types",
        ) from error
    return spark_type(kind, name)


def _one_by_one(values: Sequence[Any], kind: pa.DataType, name: str) -> pa.Array:
    convert = converter(kind)
    converted = []
    row = 0
    try:
        for value in values:
            converted.append(convert(value))
            row += 1
    except Misfit as misfit:
        raise misfit_error(misfit, name, row, kind) from misfit.__cause__
    try:
        return pa.array(converted, kind)
    except _ARROW as error:
        raise ConfigError(f"The values of column {name!r} do not fit its type {named(kind)}: {error}") from error


def _all_fit(values: Sequence[Any], kind: pa.DataType) -> bool:
    """Whether pyarrow stores all values unchanged or raises, to go by their types."""
    types = set(map(type, values))
    sure = _SURE.get(kind)
    if sure is not None:
        return types <= sure
    if pt.is_decimal(kind):
        return types <= _DECIMAL
    if pt.is_timestamp(kind):
        return types <= _DATETIME and _zones_fit(values, kind.tz)
    if pt.is_map(kind):
        return types <= _DICT and _maps_fit([value for value in values if value is not None], kind)
    if pt.is_list(kind):
        return types <= _LIST and _all_fit(_flat(value for value in values if value is not None), kind.value_type)
    return pt.is_struct(kind) and types <= _DICT and _structs_fit([one for one in values if one is not None], kind)


def _zones_fit(values: Sequence[Any], zone: str | None) -> bool:
    zones = {type(value.tzinfo) for value in values if value is not None}
    if zone is None:
        return zones <= {_NONE}
    # pyarrow knows offsets to the second, and none of a tzinfo that is not what it seems.
    return zones <= _ZONES and (
        timezone not in zones
        or all(not tz.utcoffset(None) % _SECOND for tz in {v.tzinfo for v in values if v} if type(tz) is timezone)
    )


def _maps_fit(values: list[Any], kind: pa.DataType) -> bool:
    return _all_fit(_flat(values), kind.key_type) and _all_fit(
        _flat(value.values() for value in values), kind.item_type
    )


def _structs_fit(values: list[Any], kind: pa.DataType) -> bool:
    names = {field.name for field in kind}
    return set(_flat(values)) <= names and all(
        _all_fit([value.get(field.name) for value in values], field.type) for field in kind
    )


def _flat(values: Iterable[Iterable[Any]]) -> list[Any]:
    return list(chain.from_iterable(values))


def _overflown(array: pa.Array) -> bool:
    """Whether a float may have become infinite in a FLOAT."""
    kind = array.type
    if pt.is_map(kind):
        return _overflown(array.keys) or _overflown(array.items)
    if pt.is_struct(kind):
        return any(_overflown(array.field(at)) for at in range(kind.num_fields))
    if pt.is_list(kind):
        return _overflown(array.values)
    return bool(pt.is_float32(kind) and pc.any(pc.is_inf(array)).as_py())
