"""Laterals, pivots and pipes without Spark: plans that can be stored, and what is wrong with those that are wrong."""

import pytest
from support.construct_catalogue import EDGES, QUERIES, SOURCES

from weirflow.errors import ColumnNotFound, NotIncremental, SqlSyntaxError, SqlTypeError
from weirflow.sql.passes.optimize import logical_plan
from weirflow.sql.plan import Field
from weirflow.sql.stored import decode_plan, encode_plan

CATALOG = {name: tuple(Field(one.name, one.type) for one in schema) for name, schema in SOURCES.items()}
WRONG = {
    "FROM u |> SELECT sum(b)": SqlTypeError,
    "FROM u |> EXTEND sum(b) AS s": SqlTypeError,
    "FROM u |> AGGREGATE a": SqlTypeError,
    "FROM u |> AGGREGATE": SqlSyntaxError,
    "FROM u |> AGGREGATE sum(b) GROUP BY 7": SqlTypeError,
    "FROM u |> AGGREGATE sum(b) GROUP BY ROLLUP (a)": NotIncremental,
    "FROM u |> SET zz = 1": ColumnNotFound,
    "FROM u |> DROP zz": ColumnNotFound,
    "FROM u |> AS x |> WHERE u.a = 1": ColumnNotFound,
    "FROM u |> ORDER BY a LIMIT 2": SqlSyntaxError,
    "FROM u |> SELECT a WHERE a > 1": SqlSyntaxError,
    "FROM u |> GROUP BY a": SqlSyntaxError,
    "FROM u |>": SqlSyntaxError,
    "SELECT a FROM u ORDER BY a |> LIMIT 2": SqlSyntaxError,
    "SELECT * FROM u PIVOT (b FOR a IN (1))": SqlTypeError,
    "SELECT * FROM u PIVOT (sum(b) FOR a IN (1, 1))": SqlTypeError,
    "SELECT * FROM u PIVOT (sum(b) FOR a + 1 IN (1))": SqlSyntaxError,
    "SELECT * FROM u PIVOT (sum(b) FOR a IN (1)) p": SqlSyntaxError,
    "SELECT * FROM u PIVOT (sum(b) FOR a IN (b))": ColumnNotFound,
    "SELECT * FROM u UNPIVOT (v FOR n IN (a + 1))": SqlTypeError,
    "SELECT * FROM u UNPIVOT ((v, w) FOR n IN ((a, b), (b)))": SqlTypeError,
    "SELECT * FROM t, explode(t.m)": ColumnNotFound,
    "SELECT * FROM u RIGHT JOIN LATERAL (SELECT u.a) ON true": SqlSyntaxError,
    "SELECT * FROM u JOIN LATERAL (SELECT u.a) USING (a)": SqlSyntaxError,
    "SELECT * FROM range(0, 10, 0)": SqlTypeError,
    "SELECT * FROM range(a)": ColumnNotFound,
    "SELECT stack(0, a) FROM u": SqlTypeError,
    "SELECT stack(2, a, e) FROM u": SqlTypeError,
    "SELECT a FROM u LIMIT 2L": SqlTypeError,
    "SELECT a FROM u LIMIT 2147483647 + 1": SqlTypeError,
}


def test_plans_are_stored_as_they_are():
    for query in EDGES:
        plan = logical_plan(query, CATALOG)
        assert decode_plan(encode_plan(plan)) == plan, query


def test_all_are_read_without_spark():
    for query in QUERIES[::4]:
        logical_plan(query, CATALOG)


@pytest.mark.parametrize("query", WRONG)
def test_what_is_wrong_says_so(query):
    with pytest.raises(WRONG[query]):
        logical_plan(query, CATALOG)
