"""Every function of Spark's list in a view: the table says how it is maintained, and it holds what Spark says."""

from collections import Counter
from pathlib import Path

import pytest
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
    named,
    read_table,
)
from support.maintained import comparable

from weirflow.flows.recompute import SparkRecompute
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
    engine = SparkRecompute(session.spark.newSession, session.operations.run_for_tick)
    for name in names:
        entry = ENTRIES[name]
        if entry["maintained"] != ABSENT:
            wanted = {key: entry[key] for key in ("maintained", "why") if key in entry}
            assert kind_of(engine, entry["sql"]) == wanted, f"{name}: run make docs-functions"


def check_rows(session, names):
    """The views of these functions after a tick with a row for each."""
    views = {f"v{at}": example(name) for at, name in enumerate(names)}
    empty = dict.fromkeys(name for name, _ in COLUMNS)
    with session.flow("functions") as flow:
        flow.register_source("args", SOURCES["args"])
        for view, sql in views.items():
            flow.register_view(view, sql, mode="incremental")
        flow.tick("args", [{**empty, "f": name, **MAINTAINED[name]["row"]} for name in names])
        relation_frame(session.spark, flow.snapshot("args")).createOrReplaceTempView("args")
        for view, sql in views.items():
            tables = flow.snapshot(view), session.spark.sql(sql).toArrow()
            rows = [Counter(tuple(map(comparable, row.values())) for row in one.to_pylist()) for one in tables]
            assert rows[0] == rows[1], sql
        session.spark.catalog.dropTempView("args")


def example(name):
    """The example of a function for its own row."""
    sql = MAINTAINED[name]["sql"]
    return named(f"{sql} WHERE f = '{name}'" if sql.endswith("FROM args") else sql)


def test_some_functions_are_maintained_as_the_table_says(session):
    check_kinds(session, list(ENTRIES)[::12])


def test_some_functions_hold_what_spark_says(session):
    check_rows(session, list(MAINTAINED)[::16])


@pytest.mark.campaign
def test_all_functions_are_maintained_as_the_table_says(session):
    check_kinds(session, ENTRIES)


@pytest.mark.campaign
def test_all_functions_hold_what_spark_says(session):
    check_rows(session, MAINTAINED)
