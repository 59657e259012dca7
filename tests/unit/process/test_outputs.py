"""What a function puts out is stored as it is, or refused: embedded as a table, on Spark as the rows of that table."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from weirflow.errors import ConfigError, UserCodeError
from weirflow.process.outputs import OutputRows
from weirflow.sql.typing.type_syntax import parse_ddl

NOON = dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)


def emitted(kind, *values):
    output = OutputRows(parse_ddl(f"x {kind}"), "The output of F")
    for value in values:
        output.add({"x": value})
    return output


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        ("BIGINT", 1, 1),
        ("BIGINT", 1.0, 1),
        ("BIGINT", np.int64(1), 1),
        ("BIGINT", pd.NA, None),
        ("DOUBLE", 1, 1.0),
        ("STRING", "é", "é"),
        ("DECIMAL(10,2)", 1, Decimal("1.00")),
        ("TIMESTAMP", NOON, NOON),
        ("MAP<STRING,BIGINT>", {"a": 1}, [("a", 1)]),
        ("ARRAY<BIGINT>", (1,), [1]),
    ],
)
def test_a_value_that_fits_is_put_out_as_its_column_holds_it(kind, value, stored):
    output = emitted(kind, value)
    assert output.table()["x"].to_pylist() == [stored]
    assert output.rows() == [{"x": stored}]
    # Spark makes a table of the rows, and must make this one.
    again = pa.RecordBatch.from_pylist(output.rows(), output.table().schema)
    assert again.to_pylist() == output.table().to_pylist()


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("BIGINT", 1.5, r"Row 1: 1\.5 does not fit column 'x' of type BIGINT"),
        ("BIGINT", True, "a boolean"),
        ("BIGINT", 2**63, "not between"),
        ("DOUBLE", True, "a boolean"),
        ("DOUBLE", 2**53 + 1, "9007199254740993"),
        ("FLOAT", 1e300, "too large"),
        ("STRING", b"a", "it is bytes"),
        ("STRING", "\ud800", "lone surrogate"),
        ("BINARY", "a", "a str"),
        ("DATE", NOON, "a time, not a day"),
        ("TIMESTAMP", 5, "an int"),
        ("TIMESTAMP", NOON.replace(tzinfo=None), "it has no zone"),
        ("TIMESTAMP_NTZ", NOON, "has a zone"),
        ("ARRAY<BIGINT>", [1.7], "not a whole number"),
        ("STRUCT<a: BIGINT>", {"a": 1, "b": 2}, "no field 'b'"),
    ],
)
def test_any_other_value_is_refused_in_both(kind, value, why):
    for read in (OutputRows.table, OutputRows.rows):
        with pytest.raises(UserCodeError, match=why) as caught:
            read(emitted(kind, None, value))
        assert caught.value.message.startswith("The output of F: Row 1: ")


def test_types_of_arrow_that_spark_has_as_others():
    schema = pa.schema([("x", pa.uint8()), ("s", pa.large_string()), ("at", pa.timestamp("ms", "UTC"))])
    output = OutputRows(schema, "The output of F")
    output.add({"x": 255, "s": "a", "at": NOON})
    assert output.table().schema == schema
    assert output.table().to_pylist() == [{"x": 255, "s": "a", "at": NOON}]
    output.add({"x": 256, "s": "a", "at": NOON})
    with pytest.raises(UserCodeError, match=r"256 .*uint8|uint8.* 256"):
        output.table()


def test_a_type_that_spark_has_not_is_refused_before_anything_runs():
    with pytest.raises(ConfigError, match="time64"):
        OutputRows(pa.schema([("x", pa.time64("us"))]), "The output of F")
