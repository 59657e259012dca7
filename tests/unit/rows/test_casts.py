"""Arrow, pandas and Polars columns become those of a source by the rules of dicts: exactly, or not at all."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from weirflow import DeltaBatch, IncrementalFlow
from weirflow.errors import ConfigError

NOON = dt.datetime(2020, 1, 1, 12)  # noqa: DTZ001 - a time on a clock
MIDNIGHT = dt.datetime(2020, 1, 1)  # noqa: DTZ001 - as above
NEW_YEAR = dt.date(2020, 1, 1)


def arrow(values, kind=None):
    return pa.table({"x": values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, kind)})


def pandas(values, **options):
    return pd.DataFrame({"x": pd.Series(values, **options)})


def polars(values, kind=None):
    return pl.DataFrame({"x": pl.Series(values, dtype=kind)})


def broken_text(kind, offsets):
    ends = pa.py_buffer(np.array([0, 1], offsets).tobytes())
    return pa.Array.from_buffers(kind, 1, [None, ends, pa.py_buffer(b"\xff")])


TAKEN = {
    "narrow integers": (arrow([1, None], pa.int8()), "BIGINT", [1, None]),
    "unsigned integers": (arrow([5], pa.uint64()), "BIGINT", [5]),
    "integers to double": (arrow([2**53]), "DOUBLE", [2.0**53]),
    "integers to decimal": (arrow([5, None]), "DECIMAL(10,2)", [Decimal("5.00"), None]),
    "whole floats": (arrow([1.0, None]), "BIGINT", [1, None]),
    "floats": (arrow([0.5], pa.float32()), "DOUBLE", [0.5]),
    "rounded floats": (arrow([0.1, float("inf")]), "FLOAT", [float(np.float32(0.1)), float("inf")]),
    "floats to decimal": (arrow([0.25]), "DECIMAL(10,2)", [Decimal("0.25")]),
    "decimals": (arrow([Decimal("1.500")]), "DECIMAL(10,2)", [Decimal("1.50")]),
    "whole decimals": (arrow([Decimal("5.0")]), "BIGINT", [5]),
    "nanoseconds": (arrow([1000], pa.timestamp("ns")), "TIMESTAMP_NTZ", [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),  # noqa: DTZ001
    "seconds": (
        arrow([1], pa.timestamp("s", "Asia/Tokyo")),
        "TIMESTAMP",
        [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)],
    ),
    "midnights": (arrow([MIDNIGHT, None]), "DATE", [NEW_YEAR, None]),
    "days": (arrow([NEW_YEAR]), "TIMESTAMP_NTZ", [MIDNIGHT]),
    "days of milliseconds": (arrow([86_400_000], pa.date64()), "DATE", [dt.date(1970, 1, 2)]),
    "fixed bytes": (arrow([b"ab"], pa.binary(2)), "BINARY", [b"ab"]),
    "views": (arrow(["a" * 40, None], pa.string_view()), "STRING", ["a" * 40, None]),
    "dictionaries": (arrow(pa.array(["a", None, "a"]).dictionary_encode()), "STRING", ["a", None, "a"]),
    "dictionaries of numbers": (arrow(pa.array([1, 2], pa.int8()).dictionary_encode()), "BIGINT", [1, 2]),
    "runs": (arrow(pa.RunEndEncodedArray.from_arrays([2], [7])), "BIGINT", [7, 7]),
    "nothing but NULL": (arrow([None, None]), "BIGINT", [None, None]),
    "no rows of another type": (arrow([], pa.string()), "BIGINT", []),
    "chunks": (arrow(pa.chunked_array([[1], [], [2, None]], pa.int32())), "BIGINT", [1, 2, None]),
    "lists": (arrow([[1, None], None, []], pa.large_list(pa.int32())), "ARRAY<BIGINT>", [[1, None], None, []]),
    "a slice of lists": (
        arrow(pa.array([[9], [1], None, [2, 3]], pa.list_(pa.int32())).slice(1)),
        "ARRAY<BIGINT>",
        [[1], None, [2, 3]],
    ),
    "lists of floats": (arrow([[0.5], [0.1]]), "ARRAY<FLOAT>", [[0.5], [float(np.float32(0.1))]]),
    "structs": (
        arrow(pa.array([{"a": 9}, None, {"a": 3}], pa.struct([("a", pa.int32())])).slice(1)),
        "STRUCT<a: BIGINT>",
        [None, {"a": 3}],
    ),
    "structs of another order": (
        arrow([{"b": "q", "a": 1}], pa.struct([("b", pa.string()), ("a", pa.int64())])),
        "STRUCT<a: BIGINT, b: STRING>",
        [{"a": 1, "b": "q"}],
    ),
    "maps": (
        arrow([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        "MAP<STRING,BIGINT>",
        [[("a", 1)], None, []],
    ),
    "pandas floats with NaN": (pandas([1.0, np.nan]), "BIGINT", [1, None]),
    "pandas NaN in a double": (pandas([1.5, np.nan]), "DOUBLE", [1.5, None]),
    "pandas integers": (pandas([1, None], dtype="Int64"), "BIGINT", [1, None]),
    "pandas objects": (pandas(["a", np.nan, None, pd.NA], dtype=object), "STRING", ["a", None, None, None]),
    "pandas decimals": (pandas([Decimal("1.5"), 2], dtype=object), "DECIMAL(10,2)", [Decimal("1.50"), Decimal("2.00")]),
    "pandas categories": (pandas(["a", "b"], dtype="category"), "STRING", ["a", "b"]),
    "pandas days": (pandas(pd.to_datetime(["2020-01-01", None])), "DATE", [NEW_YEAR, None]),
    "pandas dicts": (pandas([{"a": 1}]), "MAP<STRING,BIGINT>", [[("a", 1)]]),
    "Polars categories": (polars(["a", None], pl.Categorical), "STRING", ["a", None]),
    "Polars enums": (polars(["a"], pl.Enum(["b", "a"])), "STRING", ["a"]),
    "Polars arrays": (polars([[1, 2]], pl.Array(pl.Int8, 2)), "ARRAY<BIGINT>", [[1, 2]]),
    "Polars pairs": (polars([[{"key": "a", "value": 1}]]), "MAP<STRING,BIGINT>", [[("a", 1)]]),
    "NumPy": ({"x": np.array([1.0, 2.0])}, "BIGINT", [1, 2]),
    "NumPy objects": ({"x": np.array([1, None], object)}, "BIGINT", [1, None]),
    "an Arrow array": ({"x": pa.array([1], pa.int8())}, "BIGINT", [1]),
    "a Polars series": ({"x": pl.Series([1])}, "BIGINT", [1]),
}

REFUSED = {
    "halves": (arrow([1.0, 1.5]), "BIGINT", "Row 1: 1.5 does not fit column 'x' of type BIGINT"),
    "halves in another chunk": (arrow(pa.chunked_array([[1.0, 2.0], [3.5]])), "BIGINT", "Row 2: 3.5"),
    "halves in a dictionary": (arrow(pa.array([1.5]).dictionary_encode()), "BIGINT", "Row 0: 1.5"),
    "NaN": (arrow([float("nan")]), "BIGINT", "not a whole number"),
    "large integers": (arrow([2**53 + 1]), "DOUBLE", "9007199254740993"),
    "larger integers": (arrow([2**63], pa.uint64()), "BIGINT", "not between"),
    "integers of too many digits": (arrow([10**9]), "DECIMAL(10,2)", "more than 8 digits before"),
    "large floats": (arrow([1e300]), "FLOAT", "too large"),
    "large floats in lists": (arrow([[1.0], [1e300]]), "ARRAY<FLOAT>", r"Row 1: 1e\+300 .* 'x\[0\]'"),
    "floats to decimal": (arrow([0.1]), "DECIMAL(10,2)", "the float is Decimal"),
    "digits": (arrow([Decimal("1.005")]), "DECIMAL(10,2)", "more than 2 digits after"),
    "large decimals": (arrow([Decimal(123456789)]), "DECIMAL(10,2)", "more than 8 digits before"),
    "decimals to double": (arrow([Decimal("0.1")]), "DOUBLE", "would be rounded"),
    "text to integers": (arrow(["1"]), "BIGINT", "it is a str"),
    "integers to text": (arrow([1]), "STRING", "it is an int"),
    "booleans to integers": (arrow([True]), "BIGINT", "it is a boolean"),
    "integers to booleans": (arrow([1]), "BOOLEAN", "it is an int"),
    "text to bytes": (arrow(["a"]), "BINARY", "it is a str"),
    "bytes to text": (arrow([b"a"]), "STRING", "it is bytes"),
    "text to times": (arrow(["2020-01-01"]), "TIMESTAMP", "it is a str"),
    "integers to times": (arrow([1]), "TIMESTAMP", "it is an int"),
    "times to integers": (arrow([NOON]), "BIGINT", "it is a datetime"),
    "clocks to moments": (arrow([NOON]), "TIMESTAMP", "it has no zone"),
    "moments to clocks": (arrow([NOON.replace(tzinfo=dt.UTC)]), "TIMESTAMP_NTZ", "has a zone"),
    "moments to days": (arrow([MIDNIGHT.replace(tzinfo=dt.UTC)]), "DATE", "a time, not a day"),
    "noons": (arrow([MIDNIGHT, NOON]), "DATE", "Row 1: .* a time, not a day"),
    "days to moments": (arrow([NEW_YEAR]), "TIMESTAMP", "it has no zone"),
    "nanoseconds": (arrow([1], pa.timestamp("ns")), "TIMESTAMP_NTZ", "nanoseconds"),
    "far seconds": (arrow([2**62], pa.timestamp("s")), "TIMESTAMP_NTZ", "OverflowError"),
    "nanoseconds of time": (arrow([1], pa.duration("ns")), "INTERVAL DAY TO SECOND", "nanoseconds"),
    "days and a bit": (arrow([86_400_001], pa.date64()), "DATE", "not valid Arrow data"),
    "halves in lists": (arrow([[1.0], [2.0, 1.5]]), "ARRAY<BIGINT>", r"Row 1: 1\.5 .* 'x\[1\]'"),
    "another field": (arrow([{"a": 1, "b": 2}]), "STRUCT<a: BIGINT>", "no field 'b'"),
    "a key twice": (
        arrow([[("a", 1)], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())),
        "MAP<STRING,BIGINT>",
        "Row 1: .* a key occurs twice",
    ),
    "no UTF-8": (arrow(broken_text(pa.string(), np.int32)), "STRING", "not valid Arrow data: .*UTF8"),
    "no large UTF-8": (arrow(broken_text(pa.large_string(), np.int64)), "STRING", "not valid Arrow data: .*UTF8"),
    "no UTF-8 in a dictionary": (
        arrow(pa.DictionaryArray.from_arrays(pa.array([0]), broken_text(pa.string(), np.int32))),
        "STRING",
        "not valid Arrow data: .*UTF8",
    ),
    "outside of the dictionary": (
        arrow(pa.DictionaryArray.from_arrays(pa.array([5]), pa.array(["a"]), safe=False)),
        "STRING",
        "not valid Arrow data",
    ),
    "times of day": (arrow([1], pa.time64("us")), "BIGINT", "which Spark has no type for"),
    "pandas halves": (pandas([1.5]), "BIGINT", "Row 0: 1.5"),
    "pandas objects": (pandas([1, 1.5], dtype=object), "BIGINT", "Row 1: 1.5"),
    "pandas booleans": (pandas([True]), "BIGINT", "a boolean"),
    "pandas clocks": (pandas(pd.to_datetime(["2020-01-01"])), "TIMESTAMP", "it has no zone"),
    "pandas nanoseconds": (pandas(pd.to_datetime(["2020-01-01T00:00:00.000000001"])), "TIMESTAMP_NTZ", "nanoseconds"),
    "pandas noons": (pandas(pd.to_datetime(["2020-01-01T12:00"])), "DATE", "a time, not a day"),
    "pandas periods": (pandas(pd.period_range("2020-01-01", periods=1)), "BIGINT", "which Spark has no type for"),
    "pandas columns of one name": (pd.DataFrame([[1, 2]], columns=["x", "x"]), "BIGINT", "Several columns"),
    "Polars objects": (polars([object()], pl.Object), "BINARY", "holds Python objects"),
    "Polars nanoseconds": (polars([1], pl.Datetime("ns")), "TIMESTAMP_NTZ", "nanoseconds"),
    "Polars digits": (polars([Decimal("1.005")]), "DECIMAL(10,2)", "more than 2 digits"),
    "NumPy tables": ({"x": np.array([[1]])}, "BIGINT", "not a list of values"),
}


def flow_of(kind):
    flow = IncrementalFlow()
    flow.register_source("t", f"x {kind}")
    return flow


@pytest.mark.parametrize(("data", "kind", "stored"), TAKEN.values(), ids=TAKEN)
def test_what_a_column_holds_is_stored_as_it_is(data, kind, stored):
    flow = flow_of(kind)
    flow.tick("t", data)
    assert sorted(flow.snapshot("t")["x"].to_pylist(), key=repr) == sorted(stored, key=repr)
    assert DeltaBatch.from_inserts(data, schema=flow.schema("t")).inserts()["x"].to_pylist() == stored


@pytest.mark.parametrize(("data", "kind", "why"), REFUSED.values(), ids=REFUSED)
def test_what_it_does_not_hold_is_refused_and_the_flow_goes_on(data, kind, why):
    flow = flow_of(kind)
    with pytest.raises(ConfigError, match=why):
        flow.tick("t", data)
    flow.tick("t", [{"x": None}])
    assert flow.snapshot("t").to_pylist() == [{"x": None}]


def test_an_error_late_in_a_long_column_names_its_row():
    values = np.arange(250_000, dtype=np.float64)
    values[200_000] = 0.5
    with pytest.raises(ConfigError, match=r"Row 200000: 0\.5 "):
        flow_of("BIGINT").tick("t", pa.table({"x": values}))
