"""Every kind of tabular data goes into Spark and comes back with the same values and the expected types."""

import datetime as dt
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from weirflow.errors import (
    AlreadyExists,
    ConfigError,
    DataError,
    QueryError,
    TableNotFound,
    UnsupportedError,
    WeirflowError,
)

DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=dt.UTC)
NAIVE = NOON.replace(tzinfo=None)
D = Decimal

# Arrow column in, Arrow type out, values out (the values in, unless told otherwise)
COLUMNS = {
    "int8": (pa.array([-128, 127, None], pa.int8()), pa.int8(), None),
    "int64": (pa.array([-(2**63), 2**63 - 1, None], pa.int64()), pa.int64(), None),
    "uint8": (pa.array([0, 255, None], pa.uint8()), pa.int16(), None),
    "uint16": (pa.array([0, 65535, None], pa.uint16()), pa.int32(), None),
    "uint32": (pa.array([0, 2**32 - 1, None], pa.uint32()), pa.int64(), None),
    "uint64": (pa.array([0, 2**64 - 1, None], pa.uint64()), pa.decimal128(20, 0), [D(0), D(2**64 - 1), None]),
    "float16": (pa.array([1.5, None], pa.float16()), pa.float32(), None),
    "float32": (pa.array([1.5, float("inf"), None], pa.float32()), pa.float32(), None),
    "float64": (pa.array([1e300, -0.0, None]), pa.float64(), None),
    "bool": (pa.array([True, False, None]), pa.bool_(), None),
    "decimal32": (pa.array([D("1.25"), None], pa.decimal32(5, 2)), pa.decimal128(5, 2), None),
    "decimal64": (pa.array([D("1.25"), None], pa.decimal64(12, 2)), pa.decimal128(12, 2), None),
    "decimal128": (pa.array([D("-1.25"), None], pa.decimal128(38, 2)), pa.decimal128(38, 2), None),
    "decimal256": (pa.array([D("1.25"), None], pa.decimal256(40, 2)), pa.decimal128(38, 2), None),
    "negative scale": (pa.array([D(1200), None], pa.decimal128(5, -2)), pa.decimal128(7, 0), None),
    "string": (pa.array(["", "grüße 東京 🚰", "a\0b", None]), pa.string(), None),
    "large_string": (pa.array(["x", None], pa.large_string()), pa.string(), None),
    "string_view": (pa.array(["x" * 40, None], pa.string_view()), pa.string(), None),
    "binary": (pa.array([b"\x00\xff", b"", None]), pa.binary(), None),
    "large_binary": (pa.array([b"\x00", None], pa.large_binary()), pa.binary(), None),
    "binary_view": (pa.array([b"x" * 40, None], pa.binary_view()), pa.binary(), None),
    "fixed binary": (pa.array([b"abc", None], pa.binary(3)), pa.binary(), None),
    "date32": (pa.array([DAY, None], pa.date32()), pa.date32(), None),
    "date64": (pa.array([DAY, None], pa.date64()), pa.date32(), None),
    "timestamp": (pa.array([NOON, None], pa.timestamp("us", "UTC")), pa.timestamp("us", "UTC"), None),
    "timestamp in a zone": (pa.array([NOON, None], pa.timestamp("us", "Asia/Tokyo")), pa.timestamp("us", "UTC"), None),
    "timestamp in seconds": (
        pa.array([NOON.replace(microsecond=0), None], pa.timestamp("s", "UTC")),
        pa.timestamp("us", "UTC"),
        None,
    ),
    "timestamp in ns": (pa.array([NOON, None], pa.timestamp("ns", "UTC")), pa.timestamp("us", "UTC"), [NOON, None]),
    # As PySpark has it: a time without zone is one in the session's zone, which is UTC.
    "naive timestamp": (pa.array([NAIVE, None], pa.timestamp("us")), pa.timestamp("us", "UTC"), [NOON, None]),
    "time32": (pa.array([dt.time(1, 2, 3), None], pa.time32("s")), pa.time64("ns"), None),
    "time64": (pa.array([dt.time(1, 2, 3, 4), None], pa.time64("us")), pa.time64("ns"), None),
    "duration": (pa.array([dt.timedelta(days=1, microseconds=1), None]), pa.duration("us"), None),
    "duration in ms": (pa.array([5, None], pa.duration("ms")), pa.duration("us"), None),
    "null": (pa.nulls(2), pa.string(), None),
    "dictionary": (pa.array(["a", "b", "a", None]).dictionary_encode(), pa.string(), None),
    "run-end": (pc.run_end_encode(pa.array([7, 7, None])), pa.int64(), None),
    "uuid": (
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16))),
        pa.binary(),
        [b"0" * 16, None],
    ),
    "list": (pa.array([[1, None], [], None]), pa.list_(pa.field("element", pa.int64())), None),
    "large_list": (
        pa.array([[1], None], pa.large_list(pa.uint64())),
        pa.list_(pa.field("element", pa.decimal128(20, 0))),
        [[D(1)], None],
    ),
    "list_view": (
        pa.array([[1, 2], None, [3]], pa.list_view(pa.int32())),
        pa.list_(pa.field("element", pa.int32())),
        None,
    ),
    "large_list_view": (
        pa.array([[1, 2], None, []], pa.large_list_view(pa.uint8())),
        pa.list_(pa.field("element", pa.int16())),
        None,
    ),
    "fixed list": (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), pa.list_(pa.field("element", pa.int32())), None),
    "struct": (
        pa.array([{"a": 1, "b": [DAY]}, None], pa.struct([("a", pa.uint8()), ("b", pa.list_view(pa.date64()))])),
        pa.struct([("a", pa.int16()), ("b", pa.list_(pa.field("element", pa.date32())))]),
        None,
    ),
    "map": (
        pa.array([[("k", 1), ("l", None)], [], None], pa.map_(pa.string_view(), pa.uint8())),
        pa.map_(pa.string(), pa.int16()),
        None,
    ),
}


def test_every_arrow_type(session):
    for length in {len(column) for column, _, _ in COLUMNS.values()}:
        some = {kind: expected for kind, expected in COLUMNS.items() if len(expected[0]) == length}
        table = session.register("t", pa.table({kind: column for kind, (column, _, _) in some.items()})).to_arrow()
        for kind, (column, out_type, out_values) in some.items():
            assert table.schema.field(kind).type == out_type, kind
            assert table[kind].to_pylist() == (column.to_pylist() if out_values is None else out_values), kind


def test_every_arrow_type_of_an_empty_table(session):
    table = session.from_arrow(
        pa.table({kind: column.slice(0, 0) for kind, (column, _, _) in COLUMNS.items()})
    ).to_arrow()
    assert table.num_rows == 0
    for kind, (_, out_type, _) in COLUMNS.items():
        assert table.schema.field(kind).type == out_type, kind


def test_a_slice_of_chunks(session):
    chunks = pa.chunked_array([[[1], None], [[2, 3]], [[4]]], type=pa.list_view(pa.int32()))
    table = pa.table({"x": chunks}).slice(1, 2)
    assert session.from_arrow(table).to_arrow()["x"].to_pylist() == [None, [2, 3]]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1], pa.timestamp("ns")),
        pa.array([1], pa.time64("ns")),
        pa.array([D(10**39)], pa.decimal256(40, 0)),
    ],
)
def test_a_value_spark_cannot_hold_is_named_not_rounded(session, column):
    with pytest.raises(DataError, match="The column 'precise'"):
        session.register("t", pa.table({"precise": column}))


def test_a_type_spark_has_not(session):
    with pytest.raises(UnsupportedError, match="month_day_nano_interval"):
        session.register("t", pa.table({"x": pa.nulls(1, pa.month_day_nano_interval())}))


ROWS = [{"id": 1, "name": "ann"}, {"id": 2, "name": None}, {"id": None, "name": "bob"}]
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


class Capsule:
    """Somebody else's table: nothing but the Arrow PyCapsule interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


ARROW = pa.Table.from_pylist(ROWS, schema=SCHEMA)
SOURCES = {
    "arrow table": lambda _: ARROW,
    "record batch": lambda _: ARROW.to_batches()[0],
    "record batch reader": lambda _: pa.RecordBatchReader.from_batches(SCHEMA, ARROW.to_batches()),
    "polars": lambda _: pl.DataFrame(ROWS),
    "pandas": lambda _: pd.DataFrame({"id": pd.array([1, 2, None], "Int64"), "name": ["ann", None, "bob"]}),
    "pandas with an index": lambda _: pd.DataFrame(
        {"id": pd.array([1, 2, None], "Int64"), "name": ["ann", None, "bob"]}, index=["x", "y", "z"]
    ),
    "dicts": lambda _: ROWS,
    "capsule": lambda _: Capsule(ARROW),
    "frame": lambda session: session.from_arrow(ARROW),
    "native frame": lambda session: session.spark.createDataFrame(ARROW),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source(session, source):
    registered = session.register("people", SOURCES[source](session))
    assert registered.to_arrow() == ARROW
    assert session.sql("SELECT * FROM people ORDER BY id NULLS LAST").to_arrow() == ARROW
    assert session.table("people").to_arrow() == ARROW


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_without_a_name(session, source):
    assert session.from_arrow(SOURCES[source](session)).to_arrow() == ARROW
    assert session.tables() == []


def test_dicts_with_different_keys_lose_nothing(session):
    table = session.from_arrow([{"a": 1}, {"b": "x"}, {}]).to_arrow()
    assert table.to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": None, "b": None}]


@pytest.mark.parametrize(
    "data",
    [
        [],
        42,
        "name",
        None,
        {"a": [1]},
        [1, 2],
        [{"a": 1}, 2],
        [{"a": 1}, {"a": "x"}],
        pd.Series([1, 2]),
        pl.Series([1, 2]),
        object(),
    ],
)
def test_what_is_no_table_is_refused(session, data):
    with pytest.raises(ConfigError):
        session.register("t", data)
    assert session.tables() == []


def test_registering_again_replaces(session):
    session.register("t", [{"a": 1}])
    session.register("t", [{"b": "x"}])
    assert session.table("t").to_arrow().to_pylist() == [{"b": "x"}]


def test_registered_data_is_a_copy_of_the_moment(session):
    frame = pd.DataFrame({"a": [1, 2]})
    session.register("t", frame)
    frame.loc[0, "a"] = 99
    assert session.table("t").to_arrow()["a"].to_pylist() == [1, 2]


def test_columns_of_one_name(session):
    table = session.register("t", pa.table([[1], ["x"]], names=["a", "a"])).to_arrow()
    assert (table.column_names, [c.to_pylist() for c in table.columns]) == (["a", "a"], [[1], ["x"]])


COLUMN_NAMES = [
    "a.b",
    "c`d",
    "e\"f'g",
    "with space",
    "ünïcode",
    "東京",
    "",
    "; DROP TABLE t --",
    "SELECT",
    "_x",
    "count",
]


def test_hostile_column_names(session):
    table = pa.table({name: [index] for index, name in enumerate(COLUMN_NAMES)})
    frame = session.register("t", table)
    assert frame.to_arrow() == table
    assert pa.Table.from_batches(frame.to_batches()) == table
    assert frame.columns == COLUMN_NAMES


TABLE_NAMES = [
    "plain",
    "MixedCase",
    "with space",
    "tablé",
    "東京",
    "quote'd",
    'double"quoted',
    "semi;colon",
    "x; DROP TABLE y",
    "-- comment",
    "/* comment */",
    "a-b",
    "1starts_with_digit",
    "select",
    "{}",
    ":param",
    "?",
    "🚰",
    "`back``tick`",
    "`dotted.name`",
]


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_hostile_table_names(session, name):
    session.register("bystander", [{"a": 0}])
    session.register(name, [{"a": 1}])
    assert session.table(name).to_arrow().to_pylist() == [{"a": 1}]
    bare = name[1:-1].replace("``", "`") if name.startswith("`") else name
    assert {listed.casefold() for listed in session.tables()} == {"bystander", bare.casefold()}
    session.drop(name)
    assert session.tables() == ["bystander"]


@pytest.mark.parametrize("name", ["", "a`b", "a.b", "a.b.c", "..", "`open"])
def test_names_that_cannot_be_registered(session, name):
    with pytest.raises(QueryError if name else ConfigError):
        session.register(name, [{"a": 1}])
    assert session.tables() == []


@pytest.mark.parametrize("name", ["nope", "a.b", "", "a`b", "x; DROP TABLE kept", "default.nope"])
def test_dropping_what_is_not_there(session, name):
    session.register("kept", [{"a": 1}])
    with pytest.raises(WeirflowError) as caught:
        session.drop(name)
    assert isinstance(caught.value, ConfigError if not name else QueryError if "`" in name else TableNotFound)
    assert session.tables() == ["kept"]


def test_dropping_suggests_the_nearest(session):
    session.register("orders", [{"a": 1}])
    with pytest.raises(TableNotFound, match="No table or view is called 'ordres'") as caught:
        session.drop("ordres")
    assert caught.value.hint == "did you mean 'orders'?"


def test_dropping_tables_and_qualified_names(session):
    session.sql("CREATE SCHEMA depot")
    try:
        session.sql("SELECT 1 AS a").write_table("depot.goods")
        assert session.read_table("depot.goods").to_arrow().to_pylist() == [{"a": 1}]
        with pytest.raises(AlreadyExists):
            session.sql("CREATE SCHEMA depot")
        session.drop("depot.goods")
        with pytest.raises(TableNotFound):
            session.read_table("depot.goods")
    finally:
        session.sql("DROP SCHEMA depot CASCADE")


def test_a_registered_name_hides_a_table_and_goes_first(session):
    session.sql("SELECT 'table' AS a").write_table("both")
    session.register("both", [{"a": "view"}])
    assert session.table("both").to_arrow().to_pylist() == [{"a": "view"}]
    session.drop("both")
    assert session.table("both").to_arrow().to_pylist() == [{"a": "table"}]
    session.drop("both")
    assert session.tables() == []
