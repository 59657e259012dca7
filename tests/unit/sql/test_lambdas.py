"""Lambdas in plans: what they are as text, which names they see, and what they may not hold."""

import pyarrow as pa
import pytest

from weirflow import IncrementalFlow
from weirflow.errors import ColumnNotFound, DataError, QueryError, SqlTypeError
from weirflow.sql.bind.query import bind_query
from weirflow.sql.plan import Field
from weirflow.sql.print import print_plan
from weirflow.sql.stored import decode_plan, encode_plan
from weirflow.sql.types import INT, array_of

CATALOG = {"t": (Field("a", array_of(INT)), Field("x", INT))}


def bound(item):
    return bind_query(f"SELECT {item} AS r FROM t", CATALOG)


def test_a_lambda_is_printed_and_stored_as_it_is():
    plan = bound("transform(a, y -> y + x)")
    assert "transform(a#0, (x0) -> (x0 + x#1))" in print_plan(plan)
    assert decode_plan(encode_plan(plan)) == plan


def test_what_is_written_the_same_way_is_the_same():
    assert bound("filter(a, y -> y > x)") == bound("filter(a, Y -> y > X)")
    assert bound("transform(a, y -> exists(a, z -> z = y))") != bound("transform(a, y -> exists(a, z -> z = z))")


def test_a_variable_hides_a_column_and_an_outer_variable():
    assert "(x0) -> (x0 + 1::int)" in print_plan(bound("transform(a, x -> x + 1)"))
    assert "(x0) -> transform(a#0, (x1) -> x1)" in print_plan(bound("transform(a, y -> transform(a, y -> y))"))
    assert bound("transform(a, y -> transform(a, y -> y))") == bound("transform(a, y -> transform(a, z -> z))")


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ("transform(a, y -> z)", ColumnNotFound),
        ("transform(a, (y, y) -> y)", SqlTypeError),
        ("transform(a, (p, q, r) -> p)", SqlTypeError),
        ("transform(x, y -> y)", SqlTypeError),
        ("filter(a, y -> y)", QueryError),
        ("aggregate(a, 0, (s, y) -> 'x')", QueryError),
        ("transform(a, y -> max(y))", QueryError),
        ("transform(a, y -> (SELECT max(x) FROM t))", QueryError),
        ("transform(a, y -> row_number() OVER (ORDER BY y))", QueryError),
        ("exists(a)", QueryError),
    ],
)
def test_what_a_lambda_may_not_hold(item, error):
    with pytest.raises(error):
        bound(item)


def test_nothing_is_evaluated_that_is_not_reached():
    with IncrementalFlow() as flow:
        flow.register_source("t", pa.schema([("a", array_of(INT)), ("x", INT)]))
        flow.register_view("v", "SELECT exists(a, y -> x / y > 0) AS e, forall(a, y -> x / y < 0) AS f FROM t")
        flow.tick("t", [{"a": [1, 0], "x": 1}, {"a": [], "x": 0}, {"a": None, "x": 2}])
        found = sorted(flow.snapshot("v").to_pylist(), key=str)
        assert found == sorted([{"e": True, "f": False}, {"e": False, "f": True}, {"e": None, "f": None}], key=str)
        with pytest.raises(DataError) as caught:
            flow.tick("t", [{"a": [0, 1], "x": 1}])
        assert caught.value.condition == "DIVIDE_BY_ZERO"
