"""LIMIT without ORDER BY: which rows it keeps is ours to choose, and always the same."""

import random

import duckdb
import pyarrow as pa
import pytest
from support.maintained import Maintained, duckdb_rows
from support.rows import MINUS_ZERO, NAN, OTHER_NAN, VALUES
from support.view_corpus import SOURCES, RandomTables

T = {"t": pa.schema([("k", pa.int64()), ("s", pa.string())])}
HOW_MANY = """
SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u LIMIT 1)
SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u LIMIT 0)
SELECT k FROM t WHERE NOT EXISTS (SELECT * FROM u LIMIT 0)
SELECT k FROM t WHERE EXISTS (SELECT * FROM u LIMIT 2 OFFSET 1)
SELECT k FROM t WHERE EXISTS (SELECT * FROM u OFFSET 2)
SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k LIMIT 3)
SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k < t.k LIMIT 1 OFFSET 1)
SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k LIMIT 0)
SELECT k, EXISTS (SELECT 1 FROM u LIMIT 1) AS found FROM t
SELECT k, EXISTS (SELECT 1 FROM u LIMIT 0) AS found FROM t
SELECT k, EXISTS (SELECT 1 FROM u WHERE u.k = t.k LIMIT 2) AS found FROM t
SELECT k FROM t WHERE k IN (SELECT k FROM u LIMIT 0)
SELECT k FROM t WHERE k NOT IN (SELECT k FROM u LIMIT 0)
SELECT k FROM t WHERE k IN (SELECT k FROM u ORDER BY k NULLS FIRST LIMIT 2)
SELECT COUNT(*) AS n FROM (SELECT 1 FROM u LIMIT 3)
SELECT COUNT(*) AS n FROM (SELECT * FROM u LIMIT 0)
SELECT COUNT(*) AS n FROM (SELECT k FROM u LIMIT 2 OFFSET 1)
SELECT COUNT(*) AS n FROM (SELECT k FROM u OFFSET 1)
SELECT COUNT(*) AS n FROM (SELECT k FROM t UNION ALL SELECT k FROM u LIMIT 4)
SELECT COUNT(*) AS n FROM (SELECT * FROM t LEFT JOIN u ON t.k = u.k LIMIT 4)
SELECT k, (SELECT COUNT(*) FROM (SELECT 1 FROM u WHERE u.k = t.k LIMIT 2)) AS n FROM t
SELECT t.k FROM t CROSS JOIN (SELECT k FROM u LIMIT 2)
""".strip().splitlines()
"""Queries whose rows do not depend on which rows LIMIT keeps."""


@pytest.mark.parametrize("sql", HOW_MANY)
def test_where_only_the_number_of_rows_counts(sql):
    tables = RandomTables(3)
    views = Maintained(SOURCES, {"view": sql})
    for _ in range(8):
        views.tick(tables.changes(most=3))
        with duckdb.connect() as connection:
            for name in SOURCES:
                connection.register(name, views.table(name))
            assert views.views["view"] == duckdb_rows(connection, sql)


def test_the_rows_kept_are_the_first_in_the_order_of_all_columns():
    views = Maintained(T, {"view": "SELECT * FROM t LIMIT 3"})
    views.tick({"t": [((2, "b"), 1), ((2, "a"), 2), ((None, "z"), 1), ((1, None), 1)]})
    assert views.views["view"] == {(None, "z"): 1, (1, None): 1, (2, "a"): 1}
    views.tick({"t": [((1, None), -1)]})
    assert views.views["view"] == {(None, "z"): 1, (2, "a"): 2}
    views.tick({"t": [((2, "a"), -2), ((None, "z"), -1)]})
    assert views.views["view"] == {(2, "b"): 1}


def test_offset_skips_the_rows_that_limit_keeps():
    views = Maintained(T, {"rest": "SELECT * FROM t OFFSET 2", "some": "SELECT k FROM t LIMIT 1 OFFSET 1"})
    views.tick({"t": [((number, "x"), 1) for number in (4, 1, 3, 2)]})
    assert views.views["rest"] == {(3, "x"): 1, (4, "x"): 1}
    assert views.views["some"] == {(2,): 1}


def test_limit_of_no_columns_of_the_table():
    views = Maintained(T, {"view": "SELECT 1 AS one FROM t LIMIT 2"})
    views.tick({"t": [((number, "x"), 1) for number in range(5)]})
    assert views.views["view"] == {(1,): 2}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_every_type_has_an_order_that_does_not_depend_on_history(kind):
    extra = [MINUS_ZERO, NAN, OTHER_NAN] if pa.types.is_floating(kind) else []
    rows = [(value, number) for number in range(2) for value in [*VALUES[kind], *extra]]
    sources = {"t": pa.schema([("x", kind), ("n", pa.int64())])}
    results = []
    for seed in range(3):
        dice = random.Random(seed)
        shuffled = dice.sample(rows, len(rows))
        views = Maintained(sources, {"view": "SELECT * FROM t LIMIT 4"})
        noise = dice.choices(rows, k=5)
        apply(views, [(row, 1) for row in noise])
        for row in shuffled:
            apply(views, [(row, 1)])
        apply(views, [(row, -1) for row in noise])
        results.append(views)
    kept = [sorted(map(repr, views.views["view"].elements())) for views in results]
    assert len(kept[0]) == 4
    assert kept[1:] == kept[:1] * 2


def apply(views, changes):
    views._apply(views.circuit.step({"t": views._batch("t", changes)}))
    views.circuit.commit([])
    views.circuit.maintain(len(changes))
