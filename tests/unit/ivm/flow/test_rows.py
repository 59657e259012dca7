"""What rows given to a flow mean: every value is stored as it is, or refused by a typed error; never another value."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from weirflow import DeltaBatch, IncrementalFlow
from weirflow.errors import ConfigError, WeirflowError

UTC = dt.UTC
PARIS = ZoneInfo("Europe/Paris")
NOON = dt.datetime(2020, 1, 1, 12)  # noqa: DTZ001 - a time on a clock
MIDNIGHT = dt.datetime(2020, 1, 1)  # noqa: DTZ001 - as above
NEW_YEAR = dt.date(2020, 1, 1)
NANOSECOND = pd.Timestamp("2020-01-01T00:00:00.000000001")


class Number(enum.IntEnum):
    ONE = 1


class Word(str, enum.Enum):  # noqa: UP042 - unlike StrEnum, its str() is not its value
    A = "a"


class Plain(enum.Enum):
    A = 1


class OtherInt(int):
    def __int__(self):
        return 99

    def __index__(self):
        return 98


class OtherStr(str):
    __slots__ = ()

    def __str__(self):
        return "other"


class Raising(dt.tzinfo):
    def utcoffset(self, _):
        raise RuntimeError("no offset today")


class NoOffset(dt.tzinfo):
    def utcoffset(self, _):
        return None


class OneHour(dt.tzinfo):
    def utcoffset(self, _):
        return dt.timedelta(hours=1)


class NoRepr:
    def __repr__(self):
        raise RuntimeError("no repr")


class LongRepr:
    def __repr__(self):
        return "x" * 1_000_000


@dataclasses.dataclass
class Data:
    a: int = 1


def in_zone(zone, *, fold=0, hour=12):
    return dt.datetime(2020, 10, 25, hour, 30, tzinfo=zone, fold=fold)


def at(hour, minute=0, second=0, micro=0, day=1):
    return dt.datetime(2020, 1, day, hour, minute, second, micro, tzinfo=UTC)


TAKEN = [
    ("BIGINT", 1.0, 1),
    ("BIGINT", -(2**63), -(2**63)),
    ("BIGINT", Decimal("1E+3"), 1000),
    ("BIGINT", np.int8(3), 3),
    ("BIGINT", np.float64(2), 2),
    ("BIGINT", Number.ONE, 1),
    ("BIGINT", OtherInt(5), 5),
    ("BIGINT", pa.scalar(7), 7),
    ("BIGINT", pd.NA, None),
    ("TINYINT", 127, 127),
    ("DOUBLE", 2**53, 2.0**53),
    ("DOUBLE", -(2**53), -(2.0**53)),
    ("DOUBLE", Decimal("0.5"), 0.5),
    ("DOUBLE", np.float32(0.1), float(np.float32(0.1))),
    ("DOUBLE", pd.NA, None),
    ("FLOAT", 0.1, float(np.float32(0.1))),
    ("FLOAT", float("inf"), float("inf")),
    ("FLOAT", 2**24, 2.0**24),
    ("BOOLEAN", np.bool_(True), True),
    ("STRING", "a\0b", "a\0b"),
    ("STRING", Word.A, "a"),
    ("STRING", OtherStr("me"), "me"),
    ("STRING", np.str_("x"), "x"),
    ("STRING", pd.NA, None),
    ("BINARY", bytearray(b"x"), b"x"),
    ("BINARY", memoryview(b"x"), b"x"),
    ("DECIMAL(10,2)", Decimal("1.000"), Decimal("1.00")),
    ("DECIMAL(10,2)", Decimal("1." + "0" * 60), Decimal("1.00")),
    ("DECIMAL(10,2)", Decimal("0E+1000"), Decimal("0.00")),
    ("DECIMAL(10,2)", Decimal("99999999.99"), Decimal("99999999.99")),
    ("DECIMAL(10,2)", 10**8 - 1, Decimal("99999999.00")),
    ("DECIMAL(10,2)", np.int64(1), Decimal("1.00")),
    ("DECIMAL(10,2)", 0.25, Decimal("0.25")),
    ("DECIMAL(38,0)", 10**38 - 1, Decimal(10**38 - 1)),
    ("DATE", MIDNIGHT, NEW_YEAR),
    ("DATE", np.datetime64("2020-01-01"), NEW_YEAR),
    ("DATE", pd.Timestamp("2020-01-01"), NEW_YEAR),
    ("DATE", pd.NaT, None),
    ("TIMESTAMP", at(12), at(12)),
    ("TIMESTAMP", in_zone(PARIS, hour=2), dt.datetime(2020, 10, 25, 0, 30, tzinfo=UTC)),
    ("TIMESTAMP", in_zone(PARIS, hour=2, fold=1), dt.datetime(2020, 10, 25, 1, 30, tzinfo=UTC)),
    ("TIMESTAMP", in_zone(OneHour()), dt.datetime(2020, 10, 25, 11, 30, tzinfo=UTC)),
    (
        "TIMESTAMP",
        dt.datetime(2020, 1, 2, tzinfo=dt.timezone(dt.timedelta(microseconds=1))),
        at(23, 59, 59, 999_999),
    ),
    ("TIMESTAMP", pd.Timestamp("2020-01-01T01:00", tz="Europe/Paris"), at(0)),
    ("TIMESTAMP", pd.NaT, None),
    ("TIMESTAMP", np.datetime64("NaT"), None),
    ("TIMESTAMP_NTZ", NOON.replace(tzinfo=NoOffset()), NOON),
    ("TIMESTAMP_NTZ", NEW_YEAR, MIDNIGHT),
    ("TIMESTAMP_NTZ", np.datetime64("2020-01-01T12"), NOON),
    ("INTERVAL DAY TO SECOND", pd.Timedelta(1, "us"), dt.timedelta(microseconds=1)),
    ("INTERVAL DAY TO SECOND", np.timedelta64(1, "D"), dt.timedelta(1)),
    ("ARRAY<BIGINT>", (1, None), [1, None]),
    ("ARRAY<BIGINT>", range(2), [0, 1]),
    ("ARRAY<BIGINT>", np.array([1, 2], np.int8), [1, 2]),
    ("ARRAY<BIGINT>", collections.deque([1.0]), [1]),
    ("ARRAY<FLOAT>", [0.5, float("-inf")], [0.5, float("-inf")]),
    ("MAP<STRING,BIGINT>", {"a": 1, "b": None}, [("a", 1), ("b", None)]),
    ("MAP<STRING,BIGINT>", [["a", 1.0]], [("a", 1)]),
    ("STRUCT<a: BIGINT, b: STRING>", {"a": 1.0}, {"a": 1, "b": None}),
    ("ARRAY<STRUCT<a: ARRAY<DECIMAL(3,1)>>>", [{"a": [Decimal("1.5"), 1]}], [{"a": [Decimal("1.5"), Decimal("1.0")]}]),
]

REFUSED = [
    ("BIGINT", 1.5, "1.5 does not fit column 'x' of type BIGINT: it is not a whole number"),
    ("BIGINT", float("nan"), "not a whole number"),
    ("BIGINT", float("inf"), "not a whole number"),
    ("BIGINT", 1e30, "not between"),
    ("BIGINT", True, "a boolean"),
    ("BIGINT", np.bool_(True), "a boolean"),
    ("BIGINT", "1", "a str"),
    ("BIGINT", b"1", "it is bytes"),
    ("BIGINT", Decimal("1.5"), "not a whole number"),
    ("BIGINT", Decimal("1E+999999"), "too large"),
    ("BIGINT", np.float64(2.5), "not a whole number"),
    ("BIGINT", np.uint64(2**63), "not between"),
    ("BIGINT", 2**63, "not between"),
    ("BIGINT", 10**5000, "not between"),
    ("BIGINT", pa.scalar(1.5), "not a whole number"),
    ("BIGINT", Plain.A, "a Plain"),
    ("BIGINT", Data(), "a Data"),
    ("BIGINT", Fraction(1), "a Fraction"),
    ("BIGINT", NoRepr(), "a NoRepr"),
    ("BIGINT", LongRepr(), r"xxx\.\.\."),
    ("BIGINT", "x" * 1_000_000, r"xxx\.\.\."),
    ("BIGINT", NOON, "a datetime"),
    ("TINYINT", 128, "not between -128 and 127"),
    ("DOUBLE", 2**53 + 1, "9007199254740993"),
    ("DOUBLE", np.uint64(2**64 - 1), "does not hold every int"),
    ("DOUBLE", 10**400, "does not hold every int"),
    ("DOUBLE", True, "a boolean"),
    ("DOUBLE", Decimal("0.1"), "would be rounded"),
    ("DOUBLE", np.longdouble("0.1"), "more digits"),
    ("FLOAT", 1e300, "too large"),
    ("FLOAT", np.float64(-1e300), "too large"),
    ("FLOAT", 2**24 + 1, "does not hold every int"),
    ("BOOLEAN", 1, "an int"),
    ("BOOLEAN", 0.0, "a float"),
    ("BOOLEAN", "true", "a str"),
    ("STRING", 1, "an int"),
    ("STRING", b"a", "it is bytes"),
    ("STRING", float("nan"), "a float"),
    ("STRING", "\ud800", "lone surrogate"),
    ("STRING", Plain.A, "a Plain"),
    ("BINARY", "a", "a str"),
    ("DECIMAL(10,2)", Decimal("1.005"), "more than 2 digits after the point"),
    ("DECIMAL(10,2)", 10**8, "more than 8 digits before the point"),
    ("DECIMAL(10,2)", 0.1, r"the float is Decimal\('0\.1000000"),
    ("DECIMAL(10,2)", True, "a boolean"),
    ("DECIMAL(10,2)", "1.5", "a str"),
    ("DECIMAL(10,2)", Decimal("NaN"), "not a number that a DECIMAL holds"),
    ("DECIMAL(10,2)", Decimal("1E+100000"), "before the point"),
    ("DECIMAL(10,2)", Decimal("1E-100000"), "after the point"),
    ("DATE", NOON, "a time, not a day"),
    ("DATE", at(0), "a time, not a day"),
    ("DATE", NANOSECOND, "a time, not a day"),
    ("DATE", np.datetime64("2020-01-01T05"), "a time, not a day"),
    ("DATE", 5, "an int"),
    ("DATE", "2020-01-01", "a str"),
    ("TIMESTAMP", NOON, "it has no zone"),
    ("TIMESTAMP", NOON.replace(tzinfo=NoOffset()), "it has no zone"),
    ("TIMESTAMP", NOON.replace(tzinfo=Raising()), "RuntimeError: 'no offset today'"),
    ("TIMESTAMP", NEW_YEAR, "it has no zone"),
    ("TIMESTAMP", np.datetime64("2020-01-01"), "it has no zone"),
    ("TIMESTAMP", NANOSECOND.tz_localize("UTC"), "nanoseconds"),
    ("TIMESTAMP", 5, "an int"),
    ("TIMESTAMP", "2020-01-01", "a str"),
    ("TIMESTAMP_NTZ", at(12), "has a zone, and the column has none"),
    ("TIMESTAMP_NTZ", NANOSECOND, "nanoseconds"),
    ("TIMESTAMP_NTZ", np.datetime64("2020-01-01T00:00:00.000000001"), "nanoseconds"),
    ("TIMESTAMP_NTZ", np.datetime64(10**12, "Y"), "too far away"),
    ("TIMESTAMP_NTZ", 5, "an int"),
    ("INTERVAL DAY TO SECOND", pd.Timedelta(1, "ns"), "nanoseconds"),
    ("INTERVAL DAY TO SECOND", np.timedelta64(1, "ns"), "nanoseconds"),
    ("INTERVAL DAY TO SECOND", np.timedelta64(1, "Y"), "no fixed length"),
    ("INTERVAL DAY TO SECOND", dt.timedelta.max, "too long"),
    ("INTERVAL DAY TO SECOND", 5, "an int"),
    ("ARRAY<BIGINT>", [1, 1.7], r"1\.7 does not fit column 'x\[1\]'"),
    ("ARRAY<BIGINT>", np.array([1.5]), r"1\.5\) does not fit"),
    ("ARRAY<BIGINT>", [True], "a boolean"),
    ("ARRAY<BIGINT>", {1}, "a set"),
    ("ARRAY<BIGINT>", b"ab", "it is bytes"),
    ("ARRAY<BIGINT>", "ab", "a str"),
    ("ARRAY<BIGINT>", (one for one in [1]), "a generator"),
    ("ARRAY<FLOAT>", [1e300], "too large"),
    ("ARRAY<TIMESTAMP>", [NOON], "it has no zone"),
    ("MAP<STRING,BIGINT>", {"a": 1.5}, "not a whole number"),
    ("MAP<STRING,BIGINT>", {1: 1}, "an int, not a str"),
    ("MAP<STRING,BIGINT>", [("a", 1), ("a", 2)], "a key occurs twice"),
    ("MAP<STRING,BIGINT>", [(None, 1)], "a key is NULL"),
    ("MAP<STRING,BIGINT>", [("a",)], "not a pair"),
    ("MAP<ARRAY<BIGINT>,BIGINT>", [([1], 1), ((1.0,), 2)], "a key occurs twice"),
    ("STRUCT<a: BIGINT>", {"a": 1.5}, r"1\.5 does not fit column 'x\.a'"),
    ("STRUCT<a: BIGINT>", {"a": 1, "b": 2}, "no field 'b'"),
    ("STRUCT<a: BIGINT>", {1: 2}, "no field 1"),
    ("STRUCT<a: BIGINT>", (1,), "a tuple"),
    ("STRUCT<a: BIGINT>", [("a", 1)], "a list"),
]


def flow_of(columns, **options):
    flow = IncrementalFlow()
    flow.register_source("t", columns, **options)
    return flow


def rows(flow):
    return sorted(flow.snapshot("t").to_pylist(), key=repr)


@pytest.mark.parametrize(("kind", "value", "stored"), TAKEN, ids=lambda one: f"{one!r:.40}")
def test_a_value_that_a_column_holds_is_stored_as_it_is(kind, value, stored):
    flow = flow_of(f"n BIGINT, x {kind}")
    flow.tick("t", [{"n": 0, "x": None}, {"n": 1, "x": value}])
    assert rows(flow) == [{"n": 0, "x": None}, {"n": 1, "x": stored}]
    assert type(rows(flow)[1]["x"]) is type(stored)


@pytest.mark.parametrize(("kind", "value", "why"), REFUSED, ids=lambda one: f"{type(one).__name__}")
def test_any_other_value_is_refused_by_its_row_and_column_and_the_flow_goes_on(kind, value, why):
    flow = flow_of(f"n BIGINT, x {kind}")
    with pytest.raises(ConfigError, match=why) as caught:
        flow.tick("t", [{"n": 0, "x": None}, {"n": 1, "x": value}])
    assert caught.value.message.startswith("The delta does not fit the source 't': Row 1: ")
    assert "column 'x" in caught.value.message or 'column "x' in caught.value.message
    assert len(caught.value.message) < 320
    flow.tick("t", [{"n": 2, "x": None}])
    assert rows(flow) == [{"n": 2, "x": None}]


# Weights


@pytest.mark.parametrize("weight", [1.9, 1.0, True, "1", None, Decimal(1), pd.NA])
def test_a_weight_is_an_int(weight):
    flow = flow_of("x BIGINT")
    with pytest.raises(ConfigError, match=r"Row 1: the weight .* weights are ints"):
        flow.tick("t", [{"x": 1, "_weight": 1}, {"x": 2, "_weight": weight}])
    with pytest.raises(ConfigError, match=r"Row 1: the weight .* weights are ints"):
        DeltaBatch.from_weighted([{"x": 1, "_weight": 1}, {"x": 2, "_weight": weight}])
    assert rows(flow) == []


@pytest.mark.parametrize("given", [[{"x": 1, "_weight": 1}, {"x": 2}], [{"x": 2}, {"x": 1, "_weight": 1}]])
def test_all_rows_have_a_weight_or_none(given):
    with pytest.raises(ConfigError, match=r"Row \d has no '_weight'"):
        flow_of("x BIGINT").tick("t", given)


@pytest.mark.parametrize("frame", [pa.table, pd.DataFrame, pl.DataFrame, dict], ids=lambda one: one.__module__)
def test_weights_of_frames_are_integers(frame):
    flow = flow_of("x BIGINT")
    with pytest.raises(ConfigError, match=r"_weight|the weight"):
        flow.tick("t", frame({"x": [1], "_weight": [1.0]}))
    flow.tick("t", frame({"x": [1], "_weight": [2]}))
    assert rows(flow) == [{"x": 1}, {"x": 1}]


def test_weights_of_any_integer_type():
    flow = flow_of("x BIGINT")
    flow.tick("t", pa.table({"x": [1], "_weight": pa.array([2], pa.uint64())}))
    flow.tick("t", [{"x": 2, "_weight": np.int8(1)}, {"x": 3, "_weight": 0}])
    assert rows(flow) == [{"x": 1}, {"x": 1}, {"x": 2}]


# Rows without a column, and keys

PEOPLE = "id BIGINT, name STRING, age BIGINT NOT NULL"
ANN, BOB = {"id": 1, "name": "ann", "age": 30}, {"id": 2, "name": "bob", "age": 40}


def people():
    flow = flow_of(PEOPLE, key="id")
    flow.tick("t", [ANN, BOB])
    return flow


def test_a_row_of_a_source_without_a_key_may_lack_a_column_that_may_be_null():
    flow = flow_of("id BIGINT, name STRING, age BIGINT NOT NULL")
    flow.tick("t", [{"id": 1, "age": 2}, {"age": 3, "name": "x"}])
    assert rows(flow) == [{"id": 1, "name": None, "age": 2}, {"id": None, "name": "x", "age": 3}]
    with pytest.raises(ConfigError, match="Row 1: column 'age' must not be NULL"):
        flow.tick("t", [ANN, {"id": 2, "name": "x"}])


@pytest.mark.parametrize(
    "given",
    [
        [ANN, {"id": 1}],
        [ANN, {"id": 1, "age": 3}],
        [{"id": 2, "_weight": -1}, {"id": 1, "_weight": 1}],
        DeltaBatch.from_changes([{"op": "d", "id": 2}, {"op": "c", "id": 1}]),
    ],
    ids=["key alone", "one column", "weighted", "changes"],
)
def test_an_upsert_that_lacks_a_column_is_refused_and_erases_nothing(given):
    flow = people()
    with pytest.raises(ConfigError, match=r"Row 1 has no column 'name': .* replaces all columns"):
        flow.tick("t", given)
    assert rows(flow) == [ANN, BOB]
    flow.tick("t", [{"id": 1, "name": None, "age": 31}])
    assert rows(flow) == [{"id": 1, "name": None, "age": 31}, BOB]


DELETIONS = {
    "dicts": lambda: DeltaBatch.from_deletes([{"id": 1}]),
    "whole rows": lambda: DeltaBatch.from_deletes([ANN]),
    "rows that were": lambda: DeltaBatch.from_deletes([{**ANN, "name": "anna"}]),
    "another type": lambda: DeltaBatch.from_deletes(pa.table({"id": pa.array([1], pa.int8())})),
    "Arrow": lambda: DeltaBatch.from_deletes(pa.table({"id": [1]})),
    "pandas": lambda: DeltaBatch.from_deletes(pd.DataFrame({"id": [1]})),
    "Polars": lambda: DeltaBatch.from_deletes(pl.DataFrame({"id": [1]})),
    "weighted dicts": lambda: [{"id": 1, "_weight": -1}],
    "weighted Arrow": lambda: pa.table({"_weight": [-1], "id": [1]}),
    "weighted Polars": lambda: pl.DataFrame({"_weight": [-1], "id": [1]}),
    "changes": lambda: DeltaBatch.from_changes([{"op": "delete", "id": 1}]),
    "several": lambda: [{"id": 1, "_weight": -1}, {**BOB, "_weight": 1}],
}


@pytest.mark.parametrize("deletion", DELETIONS.values(), ids=DELETIONS)
def test_a_source_with_a_key_deletes_by_it(deletion):
    flow = people()
    flow.tick("t", deletion())
    assert rows(flow) == [BOB]


def test_a_deletion_without_the_key_is_refused():
    flow = people()
    with pytest.raises(ConfigError, match="Row 0 has no column 'id', which is in the key"):
        flow.tick("t", DeltaBatch.from_deletes([{"name": "ann"}]))
    with pytest.raises(ConfigError, match=r"1\.5 does not fit column 'id'"):
        flow.tick("t", DeltaBatch.from_deletes([{"id": 1.5}]))
    assert rows(flow) == [ANN, BOB]


def test_a_source_without_a_key_retracts_whole_rows():
    flow = flow_of(PEOPLE)
    flow.tick("t", [ANN])
    with pytest.raises(WeirflowError, match="'name' is missing"):
        flow.tick("t", DeltaBatch.from_deletes([{"id": 1}]))
    flow.tick("t", DeltaBatch.from_deletes([ANN]))
    assert rows(flow) == []


def test_updates_of_a_source_with_a_key_name_the_old_rows_by_it():
    flow = people()
    flow.tick("t", DeltaBatch.from_updates([{"id": 1}], [{"id": 1, "name": "eve", "age": 5}]))
    assert rows(flow) == [{"id": 1, "name": "eve", "age": 5}, BOB]
    flow.tick("t", DeltaBatch.from_updates(pl.DataFrame({"id": [2]}), pl.DataFrame([{**BOB, "id": 3}])))
    assert rows(flow) == [{"id": 1, "name": "eve", "age": 5}, {**BOB, "id": 3}]


def test_updates_may_be_read_but_once():
    def reader(*rows):
        return pa.Table.from_pylist(list(rows)).to_reader()

    schema = pa.schema([("id", pa.int64()), ("name", pa.large_string()), ("age", pa.uint8())])
    for options in ({}, {"schema": schema}):
        delta = DeltaBatch.from_updates(reader({"id": 1}), reader({**ANN, "age": 31}), **options)
        flow = people()
        flow.tick("t", delta)
        assert rows(flow) == [{**ANN, "age": 31}, BOB]


def test_updates_have_all_columns_and_types_of_both():
    with pytest.raises(ConfigError, match="Row 0 of the new rows has no column 'name'"):
        DeltaBatch.from_updates([{"id": 1, "name": "ann"}], [{"id": 1}])
    delta = DeltaBatch.from_updates([{"x": 1}], [{"x": 1.5}])
    assert delta == DeltaBatch.from_weighted([{"x": 1.0, "_weight": -1}, {"x": 1.5, "_weight": 1}])
    with pytest.raises(ConfigError, match=r"1\.5 does not fit"):
        DeltaBatch.from_updates(pa.table({"x": [1]}), pa.table({"x": [1.5]}))


# Rows that are none

NO_ROWS = {
    "one row": ({"x": 1, "s": "ann"}, "'x' is 1, which is not a list"),
    "one row of text": ({"x": "1", "s": "a"}, "'x' is '1', which is not a list"),
    "columns of other lengths": ({"x": [1], "s": ["a", "b"]}, "different lengths: 'x' has 1, 's' has 2"),
    "a key that is no name": ([{"x": 1}, {1: 2}], "Row 1: 1 cannot be the name of a column"),
    "a column that is no name": ({1: [2]}, "1 cannot be the name of a column"),
    "another column": ([{"x": 1, "s": "a"}, {"x": 1, "y": 2}], "Row 1: there is no column 'y'"),
    "another case": ([{"X": 1}], "did you mean 'x'"),
    "tuples": ([(1, "a")], "Row 0 is a tuple"),
    "rows and others": ([{"x": 1, "s": "a"}, 5], "Row 1 is an int"),
    "a generator": (({"x": one} for one in [1]), "A generator holds no rows"),
    "nothing": (None, "A NoneType holds no rows"),
    "text": ("x", "A str holds no rows"),
    "a series": (pd.Series([1]), "A Series holds no rows"),
    "a lazy frame": (pl.LazyFrame({"x": [1]}), "A LazyFrame holds no rows"),
}


@pytest.mark.parametrize(("data", "why"), NO_ROWS.values(), ids=NO_ROWS)
def test_what_holds_no_rows_is_refused(data, why):
    flow = flow_of("x BIGINT, s STRING")
    with pytest.raises(ConfigError, match=why):
        flow.tick("t", data)
    flow.tick("t", ({"x": 1, "s": "a"},))
    assert rows(flow) == [{"x": 1, "s": "a"}]


def test_rows_may_be_mappings_of_any_kind():
    flow = flow_of("x BIGINT, s STRING")
    flow.tick("t", [collections.OrderedDict(x=1, s="a"), collections.defaultdict(int, s="b")])
    assert rows(flow) == [{"x": 1, "s": "a"}, {"x": None, "s": "b"}]


# Deltas whose types nobody says


@pytest.mark.parametrize(
    "values",
    [
        ["a", b"b"],
        [NOON, at(12)],
        [at(12), NOON],
        [NEW_YEAR, NOON],
        [NANOSECOND],
        [True, 1],
        [2**63],
        ["\ud800"],
        [1, "a"],
        [object()],
        [{1: 2}],
        [2**53 + 1, 0.5],
    ],
    ids=repr,
)
def test_types_are_inferred_only_for_values_that_all_fit(values):
    with pytest.raises(ConfigError, match="column 'x'") as caught:
        DeltaBatch.from_inserts([{"x": value} for value in values])
    assert "schema=" in caught.value.hint


def test_inferred_types_hold_the_values():
    delta = DeltaBatch.from_inserts([{"x": 1, "y": pd.NA, "z": "a"}, {"x": 2.5, "y": 7, "z": Word.A}])
    assert delta.inserts().to_pylist() == [{"x": 1.0, "y": None, "z": "a"}, {"x": 2.5, "y": 7, "z": "a"}]


def test_tables_of_a_query_are_rows_like_others():
    flow = flow_of("x BIGINT")
    query = "SELECT x, s FROM given"
    assert flow.sql(query, tables={"given": [{"x": 1, "s": "a"}, {"x": None, "s": "b"}]}).sort_by("s").to_pylist() == [
        {"x": 1, "s": "a"},
        {"x": None, "s": "b"},
    ]
    assert flow.sql(query, tables={"given": pl.DataFrame({"x": [1], "s": ["a"]})}).to_pylist() == [{"x": 1, "s": "a"}]
    with pytest.raises(ConfigError, match="nanoseconds"):
        flow.sql(query, tables={"given": [{"x": NANOSECOND, "s": "a"}]})


# Names of columns


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("x BIGINT, _weight BIGINT", "the name for the weights"),
        ("x BIGINT, _Weight BIGINT", "the name for the weights"),
        ("x BIGINT, x STRING", "'x' and 'x', which SQL cannot tell apart"),
        ("x BIGINT, X STRING", "'x' and 'X', which SQL cannot tell apart"),
        ("s STRUCT<a: INT, A: INT>", "The column 's' of the source 't' has fields 'a' and 'A'"),
        ("s ARRAY<STRUCT<p: STRUCT<a: INT, A: INT>>>", "The column 's.p' of the source 't' has fields"),
        ("", "no columns"),
        (pa.schema([]), "no columns"),
        ([{"x": 1, "X": 2}], "cannot tell apart"),
    ],
)
def test_columns_that_cannot_be_told_apart_are_refused_when_they_are_declared(schema, why):
    flow = IncrementalFlow()
    with pytest.raises(ConfigError, match=why):
        flow.register_source("t", schema)
    flow.register_source("t", "x BIGINT")


@pytest.mark.parametrize("name", ["", "a b", "a.b", "a`b", "a\nb", "a\0b", "é", " ", "1", "select", "a,b;c{}()=", "🦆"])
def test_columns_may_have_any_name_that_spark_allows(name):
    flow = flow_of(pa.schema([(name, pa.int64())]))
    flow.register_view("v", "SELECT `{}` AS x FROM t".format(name.replace("`", "``")))
    flow.tick("t", [{name: 1}])
    assert flow.snapshot("v").to_pylist() == [{"x": 1}]
