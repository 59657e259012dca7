"""Every function of Spark's list in a view: the table says how it is maintained, and it holds what Spark says."""

import contextlib
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from support.function_catalogue import (
    ABSENT,
    COLUMNS,
    INCREMENTAL,
    RECOMPUTED,
    REFUSED,
    SHORT_LIST,
    SOURCES,
    SPARK,
    document,
    kind_of,
    kind_without,
    named,
    read_table,
)
from support.maintained import comparable
from support.spark_engine import spark_engine

from weirflow.spark.frames.arrow import relation_frame

PAGE = Path(__file__).parents[2] / "docs" / "functions.md"
ENTRIES = read_table()
MAINTAINED = {name: one for name, one in ENTRIES.items() if one["maintained"] in (INCREMENTAL, SPARK)}


def test_the_page_is_the_table():
    assert PAGE.read_text() == document(ENTRIES), "run: make docs-functions"


def test_nothing_but_the_short_list_is_refused():
    kinds = {INCREMENTAL, SPARK, RECOMPUTED, REFUSED, ABSENT}
    assert {one["maintained"] for one in ENTRIES.values()} == kinds
    assert {name for name, one in ENTRIES.items() if one["maintained"] == REFUSED} == SHORT_LIST
    assert all(one.get("why") for one in ENTRIES.values() if one["maintained"] in (RECOMPUTED, REFUSED))


def test_the_table_has_all_functions(session):
    listed = {row[0].rpartition(".")[2] for row in session.spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert ENTRIES.keys() == listed, "run: make docs-functions"


def check_kinds(session, names):
    engine = spark_engine(session)
    for name in names:
        entry = ENTRIES[name]
        if entry["maintained"] != ABSENT:
            wanted = {key: entry[key] for key in ("maintained", "why") if key in entry}
            assert kind_of(engine, entry["sql"]) == wanted, f"{name}: run make docs-functions"
            assert kind_without(entry["sql"]) == entry["without"], f"{name}: run make docs-functions"


def check_rows(session, names, recomputed=frozenset()):
    """The views of these functions after a tick with a row for each; Spark itself fails for some of its examples."""
    empty = dict.fromkeys(name for name, _ in COLUMNS)
    given = {name: {**empty, "f": name, **MAINTAINED[name]["row"]} for name in names}
    rows = pa.Table.from_pylist(list(given.values()), schema=SOURCES["args"])
    relation_frame(session.spark, rows).createOrReplaceTempView("args")
    expected = {}
    for name in names:
        with contextlib.suppress(PySparkException):
            expected[name] = session.spark.sql(example(name)).toArrow()
    session.spark.catalog.dropTempView("args")
    assert len(expected) >= 0.95 * len(given)
    with session.flow("functions") as flow:
        flow.register_source("args", SOURCES["args"])
        views = {name: f"v{at}" for at, name in enumerate(expected)}
        for name, view in views.items():
            flow.register_view(view, example(name), mode="auto" if name in recomputed else "incremental")
        kinds = {one.name: one.kind for one in flow.describe().relations}
        assert {name for name, view in views.items() if kinds[view] == "diff"} == recomputed & views.keys()
        flow.tick("args", [given[name] for name in expected])
        differing = [  # the order of what is collected is not defined
            name for name, wanted in expected.items() if counted(flow.snapshot(views[name])) != counted(wanted)
        ]
        assert {*differing} <= {"array_agg", "collect_list"}


def counted(table):
    return Counter(tuple(map(comparable, row.values())) for row in table.to_pylist())


def example(name):
    """The example of a function for its own row."""
    return named(MAINTAINED[name]["sql"].replace("FROM args", f"FROM (SELECT * FROM args WHERE f = '{name}') args"))


def test_some_functions_are_maintained_as_the_table_says(session):
    check_kinds(session, list(ENTRIES)[::12])


def test_some_functions_hold_what_spark_says(session):
    check_rows(session, list(MAINTAINED)[::16])


@pytest.mark.campaign
def test_all_functions_are_maintained_as_the_table_says(session):
    check_kinds(session, ENTRIES)


READ_BY_SPARK_WITHOUT_ANSI = {"session_window", "window"}
"""Of texts, which Spark casts to times by itself: without ANSI such casts are not read here."""


@pytest.mark.campaign
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_all_functions_hold_what_spark_says(session, zone, ansi):
    settings = {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}
    before = {name: session.spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        session.spark.conf.set(name, value)
    try:
        check_rows(session, MAINTAINED, READ_BY_SPARK_WITHOUT_ANSI if ansi == "false" else set())
    finally:
        for name, value in before.items():
            session.spark.conf.set(name, value)
