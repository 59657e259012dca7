"""Of random values and types: what is stored equals what was given, or a typed error says that it does not fit.

The expectation is Python's own: ``==`` of what was given and what is stored, and that a number stays a number, a text a
text. Dicts, Arrow, pandas and Polars give the same answer wherever they can carry the value.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weirflow.errors import ConfigError
from weirflow.ivm.zset.ingest import read_table
from weirflow.sql.typing.type_syntax import parse_ddl

ATOMS = [
    "BOOLEAN",
    "TINYINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(5,2)",
    "DECIMAL(38,0)",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "INTERVAL DAY TO SECOND",
]
KINDS = [*ATOMS, *(f"ARRAY<{kind}>" for kind in ATOMS), *(f"STRUCT<a: {kind}>" for kind in ATOMS)]

WHOLE = st.one_of(
    st.integers(-130, 130),
    st.sampled_from([2**k + d for k in (7, 15, 24, 31, 53, 63, 64) for d in (-1, 0, 1)]),
    st.integers(),
)
NUMBERS = st.one_of(
    WHOLE,
    WHOLE.map(lambda number: number / 4),
    st.floats(),
    st.floats(width=32),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000),
    st.decimals(),
    st.integers(-128, 127).map(np.int8),
    st.floats(width=32, allow_nan=False).map(np.float32),
)
DAYS = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
OFFSETS = st.integers(-(23 * 3600), 23 * 3600).map(lambda seconds: dt.timezone(dt.timedelta(seconds=seconds)))
CLOCKS = st.one_of(
    DAYS.map(lambda day: dt.datetime(day.year, day.month, day.day)),  # noqa: DTZ001 - a time on a clock
    st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),  # noqa: DTZ001 - as above
    st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1), timezones=OFFSETS),  # noqa: DTZ001 - as above
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.text(max_size=3),
    st.text(st.characters(categories=["Cs"]), min_size=1, max_size=1),
    st.binary(max_size=3),
    DAYS,
    CLOCKS,
    st.timedeltas(dt.timedelta(-1000), dt.timedelta(1000)),
    st.just(dt.timedelta.max),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.fixed_dictionaries({"a": SCALARS}))

OF = {
    "BOOLEAN": st.booleans(),
    "STRING": st.text(max_size=3),
    "BINARY": st.binary(max_size=3),
    "DATE": st.one_of(DAYS, CLOCKS),
    "TIMESTAMP": CLOCKS,
    "TIMESTAMP_NTZ": st.one_of(DAYS, CLOCKS),
    "INTERVAL DAY TO SECOND": st.timedeltas(dt.timedelta(-1000), dt.timedelta(1000)),
}


def pairs():
    """Types and values, of which many fit."""

    def of(kind):
        atom = kind.removeprefix("ARRAY<").removeprefix("STRUCT<a: ").removesuffix(">")
        likely = OF.get(atom, NUMBERS)
        if kind.startswith("ARRAY"):
            likely = st.lists(likely, max_size=3)
        if kind.startswith("STRUCT"):
            likely = st.fixed_dictionaries({"a": likely})
        return st.tuples(st.just(kind), st.one_of(likely, VALUES))

    return st.sampled_from(KINDS).flatmap(of)


REFUSED = object()


def stored(data, schema):
    try:
        return read_table(data, schema).column("x").to_pylist()[0]
    except ConfigError:
        return REFUSED


def same(value, found, kind):
    """Whether a column of this type, which holds ``found``, holds ``value``."""
    if value is None or found is None:
        return value is found
    if pa.types.is_list(kind):
        return isinstance(value, list) and all(
            same(one, other, kind.value_type) for one, other in zip(value, found, strict=True)
        )
    if pa.types.is_struct(kind):
        return isinstance(value, dict) and same(value["a"], found["a"], kind.field(0).type)
    if isinstance(found, bool) or isinstance(value, bool):
        return isinstance(found, bool) and isinstance(value, bool) and found is value
    if isinstance(value, int | float | Decimal | np.number):
        if not isinstance(found, int | float | Decimal):
            return False
        if isinstance(value, np.number):
            value = value.item()
        if pa.types.is_float32(kind) and isinstance(value, float):
            value = float(np.float32(value)) if math.isfinite(value) else value
            return found == value or (math.isnan(found) and math.isnan(value))
        return found == value or (found != found and value != value)  # noqa: PLR0124 - NaN
    if isinstance(value, dt.datetime) and pa.types.is_date(kind):
        return dt.datetime(found.year, found.month, found.day) == value  # noqa: DTZ001 - a time on a clock
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime) and pa.types.is_timestamp(kind):
        return dt.datetime(value.year, value.month, value.day) == found  # noqa: DTZ001 - as above
    if isinstance(value, dt.datetime):
        return isinstance(found, dt.datetime) and (value.tzinfo is None) == (found.tzinfo is None) and value == found
    return type(found) is type(value) and found == value


def is_equal(one, other):
    """Whether both are the same value of the same type."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_equal, one, other))
    if isinstance(one, dict):
        return is_equal(list(one.values()), list(other.values()))
    return one == other or (one != one and other != other)  # noqa: PLR0124 - NaN


def carried(make, value):
    """What a container has for the value, if it has just this value."""
    try:
        held, back = make(value)
        same_value = is_equal(back, value)
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001 - it is about which containers carry which values
        return None
    return held if same_value else None


def in_arrow(value):
    array = pa.array([value])
    return pa.table({"x": array}), array[0].as_py()


def in_polars(value):
    series = pl.Series("x", [value])
    frame = pl.DataFrame([series])
    return (pa.table(frame) and frame), series.to_list()[0]  # Arrow has no integers of 128 bits


def in_pandas(value):
    series = pd.Series([value])
    return pd.DataFrame({"x": series}), series.tolist()[0]


def in_pandas_objects(value):
    return pd.DataFrame({"x": pd.Series([value], dtype=object)}), value


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def check(kind, value):
    schema = parse_ddl(f"x {kind}")
    found = stored([{"x": value}], schema)
    assert found is REFUSED or same(value, found, schema.field(0).type), (kind, value, found)
    assert repr(stored({"x": [value]}, schema)) == repr(found)
    containers = [in_arrow, in_polars]
    if not is_nan(value):  # which is NULL in a pandas frame
        containers += [in_pandas, in_pandas_objects]
    for make in containers:
        frame = carried(make, value)
        if frame is not None:
            assert repr(stored(frame, schema)) == repr(found), (make.__name__, kind, value)


@settings(max_examples=400, deadline=None)
@given(pairs())
def test_what_is_stored_is_what_was_given(pair):
    check(*pair)


@pytest.mark.campaign
@settings(max_examples=20_000, deadline=None)
@given(pairs())
def test_what_is_stored_is_what_was_given_however_many_are(pair):
    check(*pair)


PLAIN = {
    "BIGINT": [0, 5, 2.0, -(2**63), Decimal(7), np.int64(3)],
    "DOUBLE": [0, 5, 2.5, 2**53, Decimal("0.5"), np.float32(0.1), float("nan")],
    "DECIMAL(5,2)": [1, Decimal("1.25"), 0.5, Decimal("999.99")],
    "STRING": ["", "a", "é", "a\0"],
    "DATE": [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)],  # noqa: DTZ001 - a time on a clock
    "TIMESTAMP": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), pd.Timestamp("2020-01-01", tz="Europe/Paris")],
    "ARRAY<BIGINT>": [[], [1, 2], (3,), [1.0]],
}


def test_no_value_that_fits_is_refused():
    """The other way round: a property that refuses everything would hold as well."""
    for kind, values in PLAIN.items():
        schema = parse_ddl(f"x {kind}")
        for value in values:
            assert stored([{"x": value}], schema) is not REFUSED, (kind, value)
