"""Rows that a Session makes a frame of: stored as they are, or refused."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pyarrow as pa
import pytest

from weirflow.errors import ConfigError
from weirflow.spark.frames.arrow import to_table

NOON = dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
NANOSECOND = pd.Timestamp("2020-01-01T00:00:00.000000001")


@pytest.mark.parametrize(
    "values",
    [["a", b"b"], [NOON, NOON.replace(tzinfo=None)], [NOON.date(), NOON], [NANOSECOND], [2**63], ["\ud800"]],
    ids=repr,
)
def test_values_that_no_type_holds_are_refused(values):
    for data in ([{"x": value} for value in values], pd.DataFrame({"x": pd.Series(values, dtype=object)})):
        with pytest.raises(ConfigError, match="'x'"):
            to_table(data)


def test_values_are_what_they_were():
    data = [{"x": 1, "y": "a"}, {"x": 2.5, "z": pd.NA}, {"y": None, "z": NOON}]
    table = to_table(data)
    assert table.schema == pa.schema([("x", pa.float64()), ("y", pa.string()), ("z", pa.timestamp("us", "UTC"))])
    assert table.to_pylist() == [
        {"x": 1.0, "y": "a", "z": None},
        {"x": 2.5, "y": None, "z": None},
        {"x": None, "y": None, "z": NOON},
    ]


def test_columns_of_pandas_keep_their_types():
    frame = pd.DataFrame({"x": pd.Series([1, 2], dtype="int8"), "s": ["a", None]}).set_index(pd.Index([7, 8]))
    assert to_table(frame).schema == pa.schema([("x", pa.int8()), ("s", pa.string())])
    assert to_table(frame).to_pylist() == [{"x": 1, "s": "a"}, {"x": 2, "s": None}]
