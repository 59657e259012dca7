"""``DeltaBatch``: made from anything tabular, added, filtered and shown."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.rows import VALUES, count_rows

from weirflow.errors import ConfigError, DataError, DependencyMissing
from weirflow.ivm.zset import DeltaBatch
from weirflow.rows import libraries

PEOPLE = [{"name": "ann", "age": 30}, {"name": "bob", "age": None}]
TABLE = pa.table({"name": ["ann", "bob"], "age": [30, None]})
INSERTED = {(b"ann", 30): 1, (b"bob", None): 1}


def rows(delta: DeltaBatch) -> dict[object, int]:
    return dict(count_rows([delta.batch]))


SOURCES = {
    "table": TABLE,
    "record batch": TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "chunks": pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "list of dicts": PEOPLE,
    "dict of columns": {"name": ["ann", "bob"], "age": [30, None]},
    "pandas": pd.DataFrame({"name": ["ann", "bob"], "age": pd.array([30, None], "Int64")}, index=[7, 8]),
    "polars": pl.DataFrame({"name": ["ann", "bob"], "age": [30, None]}),
    "dictionary": TABLE.set_column(0, "name", TABLE["name"].dictionary_encode()),
    "large string": TABLE.set_column(0, "name", TABLE["name"].cast(pa.large_string())),
    "string view": TABLE.set_column(0, "name", TABLE["name"].cast(pa.string_view())),
}


class Capsule:
    """An object that only has the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


class ArrayCapsule:
    def __arrow_c_array__(self, requested_schema=None):
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("source", [*SOURCES.values(), Capsule(), ArrayCapsule()], ids=[*SOURCES, "stream", "array"])
def test_made_from_anything_tabular(source):
    delta = DeltaBatch.from_inserts(source() if callable(source) else source)
    assert rows(delta) == INSERTED
    assert delta.schema == pa.schema([("name", pa.string()), ("age", pa.int64())])
    assert delta.to_arrow().schema.field(2) == pa.field("_weight", pa.int64(), nullable=False)


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_every_type(type_):
    table = pa.table({"x": pa.array(VALUES[type_], type_)})
    delta = DeltaBatch.from_inserts(table)
    assert delta.schema.field("x").type == type_
    assert len(delta.consolidate()) == len(table)
    assert len((delta + delta.negate()).consolidate()) == 0
    assert delta == DeltaBatch.from_inserts(delta.inserts())
    assert repr(delta).count("\n+1") + repr(delta).count("\n  +1") == len(table)


def test_deletes_and_updates():
    assert rows(DeltaBatch.from_deletes(PEOPLE)) == dict.fromkeys(INSERTED, -1)
    updated = DeltaBatch.from_updates([{"name": "ann", "age": 30}], [{"name": "ann", "age": 31}])
    assert rows(updated) == {(b"ann", 30): -1, (b"ann", 31): 1}


def test_weighted_rows():
    table = pa.table({"_weight": pa.array([2, 0, -1], pa.int16()), "x": [1, 2, 3]})
    delta = DeltaBatch.from_weighted(table)
    assert rows(delta) == {(1,): 2, (3,): -1}
    assert len(delta) == 2
    assert delta.to_arrow().schema.names == ["x", "_weight"]
    assert DeltaBatch.from_weighted(delta) == delta
    assert DeltaBatch.from_weighted([{"x": 1, "_weight": 2}], schema=pa.schema([("x", pa.int8())])).schema.types == [
        pa.int8()
    ]


@pytest.mark.parametrize(
    ("kinds", "weight"),
    [
        (["insert", "+I", "I", "c", "r", "update_postimage", "+U", "INSERT", "C"], 1),
        (["delete", "-D", "D", "update_preimage", "-U", "Delete"], -1),
    ],
)
def test_changes(kinds, weight):
    delta = DeltaBatch.from_changes(pa.table({"op": kinds, "x": list(range(len(kinds)))}))
    assert rows(delta) == {(x,): weight for x in range(len(kinds))}


def test_changes_with_another_column_of_kinds():
    delta = DeltaBatch.from_changes([{"kind": "-d", "x": 1}], op="kind", schema=pa.schema([("x", pa.int32())]))
    assert rows(delta) == {(1,): -1}


REFUSED = {
    "not rows": (lambda: DeltaBatch.from_inserts(42), "int holds no rows"),
    "not dicts": (lambda: DeltaBatch.from_inserts([1, 2]), "must be a dict"),
    "text": (lambda: DeltaBatch.from_inserts("abc"), "str holds no rows"),
    "empty list": (lambda: DeltaBatch.from_inserts([]), "empty list"),
    "weight in inserts": (lambda: DeltaBatch.from_inserts({"_weight": [1]}), "from_weighted"),
    "weight in deletes": (lambda: DeltaBatch.from_deletes({"_weight": [1]}), "from_weighted"),
    "weight in changes": (lambda: DeltaBatch.from_changes({"op": ["c"], "_weight": [1]}), "from_weighted"),
    "no weight": (lambda: DeltaBatch.from_weighted({"x": [1]}), "no column '_weight'"),
    "text weight": (lambda: DeltaBatch.from_weighted({"x": [1], "_weight": ["1"]}), "the weight '1' is a str"),
    "float weight": (lambda: DeltaBatch.from_weighted({"x": [1], "_weight": [1.0]}), "the weight 1.0 is a float"),
    "null weight": (lambda: DeltaBatch.from_weighted({"x": [1], "_weight": pa.array([None], pa.int64())}), "NULLs"),
    "no op": (lambda: DeltaBatch.from_changes({"x": [1]}), "no column 'op'"),
    "unknown op": (lambda: DeltaBatch.from_changes({"op": ["upsert"], "x": [1]}), "'upsert'"),
    "null op": (lambda: DeltaBatch.from_changes({"op": pa.array([None], pa.string()), "x": [1]}), "None"),
    "unknown column": (lambda: DeltaBatch.from_inserts([{"nmae": "x"}], schema=TABLE.schema), "did you mean 'name'"),
    "extra column": (
        lambda: DeltaBatch.from_inserts({"x": [1], "y": [2]}, schema=pa.schema([("x", pa.int64())])),
        "'y'",
    ),
    "missing column": (lambda: DeltaBatch.from_inserts({"name": ["ann"]}, schema=TABLE.schema), "'age' is missing"),
    "wrong type": (lambda: DeltaBatch.from_inserts({"x": ["a"]}, schema=pa.schema([("x", pa.int64())])), "column 'x'"),
    "too large": (lambda: DeltaBatch.from_inserts([{"x": 300}], schema=pa.schema([("x", pa.int8())])), "'x'"),
    "mixed types": (lambda: DeltaBatch.from_inserts([{"x": 1}, {"x": "a"}]), "schema="),
    "null in not null": (
        lambda: DeltaBatch.from_inserts([{"x": None}], schema=pa.schema([pa.field("x", pa.int64(), nullable=False)])),
        "must not be NULL",
    ),
    "two columns of one name": (lambda: DeltaBatch.from_inserts(pa.table([[1], [2]], names=["x", "x"])), "named 'x'"),
    "no Spark type": (lambda: DeltaBatch.from_inserts({"x": pa.array([1], pa.time64("us"))}), "time64"),
    "nanoseconds": (lambda: DeltaBatch.from_inserts({"x": pa.array([1], pa.timestamp("ns"))}), "column 'x'"),
    "not weighted": (lambda: DeltaBatch(TABLE.to_batches()[0]), "last column"),
    "different columns": (
        lambda: DeltaBatch.from_inserts({"x": [1]}) + DeltaBatch.from_inserts({"y": [1]}),
        "x: int64",
    ),
    "different types": (lambda: DeltaBatch.from_inserts({"x": [1]}) + DeltaBatch.from_inserts({"x": ["1"]}), "string"),
    "more columns": (
        lambda: DeltaBatch.from_inserts({"x": [1]}) + DeltaBatch.from_inserts({"x": [1], "y": [1]}),
        "1 and 2 columns",
    ),
    "short mask": (lambda: DeltaBatch.from_inserts(TABLE).filter([True]), "cannot be filtered"),
    "unknown filter column": (lambda: DeltaBatch.from_inserts(TABLE).filter(pc.field("z") > 1), "cannot be filtered"),
    "huge weights": (lambda: DeltaBatch.from_weighted({"x": [1], "_weight": [2**62]}).inserts(), "to_arrow"),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_says_why(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_types_become_those_of_spark():
    table = pa.table(
        {
            "u8": pa.array([1], pa.uint8()),
            "u64": pa.array([2**64 - 1], pa.uint64()),
            "ms": pa.array([1], pa.timestamp("ms", tz="Europe/Berlin")),
            "ns": pa.array([1000], pa.timestamp("ns")),
            "fixed": pa.array([b"ab"], pa.binary(2)),
            "lists": pa.array([["a"]], pa.large_list(pa.large_string())),
            "struct": pa.array([{"d": Decimal("1.5")}], pa.struct([("d", pa.decimal256(5, 2))])),
            "map": pa.array([[("k", 1)]], pa.map_(pa.large_string(), pa.int32())),
        }
    )
    delta = DeltaBatch.from_inserts(table)
    assert delta.schema.types == [
        pa.int16(),
        pa.decimal128(20, 0),
        pa.timestamp("us", tz="UTC"),
        pa.timestamp("us"),
        pa.binary(),
        pa.list_(pa.string()),
        pa.struct([("d", pa.decimal128(5, 2))]),
        pa.map_(pa.string(), pa.int32()),
    ]
    assert delta.inserts().column("u64").to_pylist() == [Decimal(2**64 - 1)]


def test_a_schema_casts_and_reorders():
    schema = pa.schema([("age", pa.float64()), ("name", pa.string())])
    assert rows(DeltaBatch.from_inserts(TABLE.slice(0, 1), schema=schema)) == {
        (np.float64(30).view(np.int64).item(), b"ann"): 1
    }
    assert rows(DeltaBatch.from_inserts([], schema=schema)) == {}


def test_pandas_nan_is_null_as_spark_reads_it():
    assert DeltaBatch.from_inserts(pd.DataFrame({"x": [1.5, np.nan]})).inserts().column("x").null_count == 1


def test_consolidation():
    delta = DeltaBatch.from_inserts(TABLE) + DeltaBatch.from_inserts(TABLE) + DeltaBatch.from_deletes(TABLE.slice(1))
    consolidated = delta.consolidate()
    assert rows(consolidated) == {(b"ann", 30): 2, (b"bob", None): 1}
    assert (len(delta), len(consolidated)) == (5, 2)
    with pytest.raises(DataError, match="64-bit"):
        DeltaBatch.from_weighted({"x": [1, 1], "_weight": [2**63 - 1, 1]}).consolidate()
    with pytest.raises(DataError):
        DeltaBatch.from_weighted({"x": [1], "_weight": [-(2**63)]}).negate()


def test_equality_is_that_of_multisets():
    one = DeltaBatch.from_weighted({"x": [1, 2], "_weight": [2, -1]})
    assert one == DeltaBatch.from_weighted({"x": [2, 1, 1, 3, 3], "_weight": [-1, 1, 1, 5, -5]})
    assert one != DeltaBatch.from_weighted({"x": [1, 2], "_weight": [2, 1]})
    assert one != DeltaBatch.from_weighted({"y": [1, 2], "_weight": [2, -1]})
    assert one != "something else"
    with pytest.raises(TypeError):
        hash(one)


@pytest.mark.parametrize(
    "condition",
    [pc.field("age") > 20, [True, False], np.array([True, False]), pa.array([True, None])],
    ids=["expression", "list", "numpy", "arrow"],
)
def test_filter(condition):
    assert rows(DeltaBatch.from_inserts(TABLE).filter(condition)) == {(b"ann", 30): 1}


def test_rows_repeated_by_weight():
    delta = DeltaBatch.from_weighted({"x": [1, 2, 3], "_weight": [2, -3, 1]})
    assert delta.inserts() == pa.table({"x": [1, 1, 3]})
    assert delta.retractions() == pa.table({"x": [2, 2, 2]})


def test_other_libraries_read_it():
    delta = DeltaBatch.from_deletes(TABLE)
    assert pl.DataFrame(delta).rows() == [("ann", 30, -1), ("bob", None, -1)]
    assert pa.table(delta) == pa.Table.from_batches([delta.to_arrow()])


CHANGE = DeltaBatch.from_updates([{"name": "ann", "age": 30}], [{"name": "ann", "age": None}])
WEIGHTED = [{"name": "ann", "age": 30, "_weight": -1}, {"name": "ann", "age": None, "_weight": 1}]


def test_it_is_gone_through_row_by_row_with_weights():
    assert list(CHANGE) == [({"name": "ann", "age": 30}, -1), ({"name": "ann", "age": None}, 1)]
    assert list(DeltaBatch.from_inserts(pa.table({"a": pa.array([], pa.int64())}))) == []


def test_it_becomes_dicts_and_frames():
    assert CHANGE.to_pylist() == WEIGHTED
    assert CHANGE.to_polars().to_dicts() == WEIGHTED
    frame = CHANGE.to_pandas()
    assert frame["_weight"].tolist() == [-1, 1]
    assert frame["age"].isna().tolist() == [False, True]
    assert DeltaBatch.from_weighted(CHANGE.to_polars()) == CHANGE


@pytest.mark.parametrize(
    ("module", "convert", "command"),
    [
        ("pandas", DeltaBatch.to_pandas, "pip install 'weirflow[pandas]'"),
        ("polars", DeltaBatch.to_polars, "pip install polars"),
    ],
)
def test_a_missing_library_is_named_with_its_command(monkeypatch, module, convert, command):
    monkeypatch.setattr(libraries, "find_spec", lambda name: None if name == module else object())
    with pytest.raises(DependencyMissing) as caught:
        convert(CHANGE)
    assert caught.value.hint == command


def test_an_empty_change():
    empty = DeltaBatch.from_inserts(TABLE.slice(0, 0))
    assert (len(empty), empty.num_rows) == (0, 0)
    assert empty.consolidate() == empty.negate() == empty + empty
    assert empty.inserts().num_rows == empty.retractions().num_rows == 0
    assert repr(empty) == "DeltaBatch of 0 rows\n    name  age"


def test_it_is_readable():
    delta = DeltaBatch.from_updates([{"name": "ann", "age": 30}], [{"name": "a\nb", "age": None}])
    assert repr(delta) == "DeltaBatch of 2 rows\n      name  age\n  -1  ann   30\n  +1  a\\nb  NULL"


def test_long_batches_and_values_are_cut():
    text = repr(DeltaBatch.from_inserts({"x": ["y" * 1000] * 30} | {f"c{index}": [0] * 30 for index in range(20)}))
    assert "... 10 rows more" in text
    assert "... 5 columns more" in text
    assert max(map(len, text.splitlines())) < 160


def test_dates_beyond_pythons_are_shown():
    delta = DeltaBatch.from_inserts({"t": pa.array([2**62], pa.timestamp("us")), "d": pa.array([2**30], pa.date32())})
    assert str(2**62) in repr(delta)


def test_html_is_escaped():
    html = DeltaBatch.from_inserts({"<b>": ["<script>"], "d": [dt.date(2026, 1, 1)]})._repr_html_()
    assert "<script>" not in html
    assert "&lt;b&gt;" in html
    assert "+1" in html
