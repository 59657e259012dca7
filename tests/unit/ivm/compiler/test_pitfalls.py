"""The ways in which incremental views go wrong elsewhere, one test each."""

import math
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from support.compiled_views import compile_views
from support.maintained import Maintained

from weirflow.errors import ConfigError, DataError, NotIncremental, Reason

T = {"t": pa.schema([("k", pa.int64()), ("v", pa.int64())]), "u": pa.schema([("k", pa.int64()), ("w", pa.int64())])}
F = {"f": pa.schema([("k", pa.float64()), ("x", pa.float64())])}


def maintained(sql, sources=T, **more):
    return Maintained(sources, {"view": sql, **more})


def rows(views, name="view"):
    return sorted(views.views[name].elements(), key=repr)


def inserts(*values):
    return [(value, 1) for value in values]


def test_float_sums_do_not_drift_under_retraction():
    views = maintained("SELECT SUM(x) AS s, AVG(x) AS a FROM f", F)
    views.tick({"f": inserts((1.0, 0.1), (1.0, 0.2))})
    views.tick({"f": inserts((1.0, 1e300), (1.0, 1e16), (1.0, 1e-300))})
    views.tick({"f": [((1.0, 1e300), -1), ((1.0, 1e16), -1), ((1.0, 1e-300), -1)]})
    assert rows(views) == [(math.fsum([0.1, 0.2]), math.fsum([0.1, 0.2]) / 2)]


def test_infinities_and_nan_leave_a_sum_as_they_came():
    views = maintained("SELECT SUM(x) AS s FROM f", F)
    views.tick({"f": inserts((1.0, 2.5), (1.0, math.inf))})
    assert rows(views) == [(math.inf,)]
    views.tick({"f": inserts((1.0, -math.inf))})
    assert rows(views) == [("NaN",)]
    views.tick({"f": [((1.0, math.inf), -1), ((1.0, -math.inf), -1)]})
    assert rows(views) == [(2.5,)]


def test_null_keys_group_together():
    views = maintained("SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    views.tick({"t": inserts((None, 1), (None, 2))})
    assert rows(views) == [(None, 2)]


def test_null_join_keys_never_match():
    views = maintained("SELECT v, w FROM t JOIN u ON t.k = u.k")
    views.tick({"t": inserts((None, 1)), "u": inserts((None, 2))})
    assert rows(views) == []


def test_a_group_disappears_with_its_last_row_and_not_when_its_sum_is_zero():
    views = maintained("SELECT k, SUM(v) AS s FROM t GROUP BY k")
    views.tick({"t": inserts((1, 5), (1, -5))})
    assert rows(views) == [(1, 0)]
    views.tick({"t": [((1, 5), -1), ((1, -5), -1)]})
    assert rows(views) == []


def test_the_sum_of_nothing_but_nulls_is_null():
    views = maintained("SELECT k, SUM(v) AS s, COUNT(v) AS n FROM t GROUP BY k")
    views.tick({"t": inserts((1, None))})
    assert rows(views) == [(1, None, 0)]


def test_a_global_aggregate_over_nothing_has_one_row():
    views = maintained("SELECT COUNT(*) AS n, SUM(v) AS s, MIN(v) AS m FROM t")
    assert rows(views) == [(0, None, None)]
    views.tick({"t": inserts((1, 2))})
    views.tick({"t": [((1, 2), -1)]})
    assert rows(views) == [(0, None, None)]


def test_duplicates_count():
    views = maintained("SELECT t.k, v, w FROM t JOIN u ON t.k = u.k")
    views.tick({"t": inserts((1, 2), (1, 2)), "u": inserts((1, 3), (1, 3))})
    assert views.views["view"] == Counter({(1, 2, 3): 4})


def test_an_insertion_and_its_retraction_in_one_delta_are_nothing():
    views = maintained("SELECT k, MAX(v) AS m FROM t GROUP BY k", top="SELECT * FROM t ORDER BY v DESC LIMIT 1")
    views.tick({"t": inserts((1, 1))})
    assert views.tick({"t": [((1, 9), 1), ((1, 9), -1)]}) == {}


def test_an_update_followed_by_a_delete_in_one_tick():
    views = maintained("SELECT k, v FROM t WHERE v > 0")
    views.tick({"t": inserts((1, 1))})
    views.tick({"t": [((1, 1), -1), ((1, 2), 1), ((1, 2), -1)]})
    assert rows(views) == []


def test_an_outer_join_pads_again_when_the_last_match_goes():
    views = maintained("SELECT t.k, v, w FROM t LEFT JOIN u ON t.k = u.k")
    views.tick({"t": inserts((1, 1)), "u": inserts((1, 7), (1, 7))})
    views.tick({"u": [((1, 7), -1)]})
    assert rows(views) == [(1, 1, 7)]
    views.tick({"u": [((1, 7), -1)]})
    assert rows(views) == [(1, 1, None)]


def test_ties_in_top_k_are_broken_by_all_columns():
    views = maintained("SELECT k, v FROM t ORDER BY v LIMIT 2")
    views.tick({"t": inserts((3, 1), (1, 1), (2, 1))})
    assert rows(views) == [(1, 1), (2, 1)]
    views.tick({"t": [((1, 1), -1)]})
    assert rows(views) == [(2, 1), (3, 1)]


def test_having_remembers_groups_it_does_not_show():
    views = maintained("SELECT k FROM t GROUP BY k HAVING COUNT(*) > 1")
    views.tick({"t": inserts((1, 1))})
    assert rows(views) == []
    views.tick({"t": inserts((1, 2))})
    assert rows(views) == [(1,)]


def test_a_diamond_of_views_changes_in_one_tick():
    views = maintained(
        "SELECT a.k, n, s FROM a JOIN b ON a.k = b.k",
        a="SELECT k, COUNT(*) AS n FROM t GROUP BY k",
        b="SELECT k, SUM(v) AS s FROM t GROUP BY k",
    )
    views.tick({"t": inserts((1, 2))})
    changed = views.tick({"t": inserts((1, 3))})
    assert rows(views) == [(1, 2, 5)]
    assert sorted(changed["view"].weights.tolist()) == [-1, 1]


def test_both_sides_of_a_self_join_change_in_the_same_tick():
    views = maintained("SELECT x.v, y.v AS v2 FROM t x JOIN t y ON x.k = y.k")
    views.tick({"t": inserts((1, 1), (1, 2))})
    assert rows(views) == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_empty_deltas_change_nothing():
    views = maintained("SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    assert views.tick({"t": []}) == {}


def test_minus_zero_and_nan_are_keys_like_others():
    views = maintained("SELECT k, COUNT(*) AS n FROM f GROUP BY k", F)
    views.tick({"f": inserts((-0.0, 1.0), (0.0, 1.0), (math.nan, 1.0), (math.nan, 1.0))})
    assert rows(views) == [("NaN", 2), (0.0, 2)]
    assert [math.copysign(1, row[0]) for row in rows(views)[1:]] == [1.0]


def test_decimals_are_exact():
    schema = {"d": pa.schema([("x", pa.decimal128(10, 2))])}
    views = maintained("SELECT SUM(x) AS s, AVG(x) AS a FROM d", schema)
    views.tick({"d": inserts((Decimal("0.10"),), (Decimal("0.20"),), (Decimal("99999999.99"),))})
    assert rows(views) == [(Decimal("100000000.29"), Decimal("33333333.430000"))]
    assert views.schemas["view"].types == [pa.decimal128(20, 2), pa.decimal128(14, 6)]


@pytest.mark.parametrize(
    ("sql", "bad", "condition"),
    [
        ("SELECT k, 10 DIV v AS q FROM t", (1, 0), "DIVIDE_BY_ZERO"),
        ("SELECT k, v + 9223372036854775807 AS q FROM t", (1, 1), "ARITHMETIC_OVERFLOW"),
    ],
)
def test_a_tick_that_fails_changes_nothing_and_can_be_tried_again(sql, bad, condition):
    views = maintained(sql, total="SELECT SUM(v) AS s FROM t")
    views.tick({"t": inserts((1, -1))})
    before = {name: dict(counts) for name, counts in views.views.items()}
    with pytest.raises(DataError) as raised:
        views.circuit.step({"t": views._batch("t", inserts(bad))})
    views.circuit.discard()
    assert raised.value.condition == condition
    assert {name: dict(counts) for name, counts in views.views.items()} == before
    views.tick({"t": inserts((1, -2))})
    assert rows(views, "total") == [(-3,)]


def test_a_sum_that_leaves_bigint_fails_the_tick():
    views = maintained("SELECT SUM(v) AS s FROM t")
    views.tick({"t": inserts((1, 2**63 - 1))})
    with pytest.raises(DataError, match="overflow"):
        views.circuit.step({"t": views._batch("t", inserts((1, 1)))})


def test_a_scalar_subquery_with_two_rows_fails_the_tick():
    views = maintained("SELECT k FROM t WHERE v = (SELECT w FROM u)")
    views.tick({"u": inserts((1, 1))})
    with pytest.raises(DataError) as raised:
        views.circuit.step({"u": views._batch("u", inserts((2, 2)))})
    assert raised.value.condition == "SCALAR_SUBQUERY_TOO_MANY_ROWS"


@pytest.mark.parametrize("function", ["rand()", "uuid()", "now()", "current_date()"])
def test_what_is_not_deterministic_is_refused_with_its_place(function):
    with pytest.raises(NotIncremental) as raised:
        compile_views(T, {"view": f"SELECT k,\n  {function} AS x FROM t"})
    assert raised.value.reason == Reason.EXPRESSION_NOT_DETERMINISTIC
    assert raised.value.position is not None
    assert (raised.value.position.line, raised.value.position.column) == (2, 3)


def test_views_that_read_each_other_in_a_circle_are_refused_by_name():
    with pytest.raises(ConfigError, match=r"a reads b reads a|b reads a reads b"):
        compile_views(T, {"a": "SELECT * FROM b", "b": "SELECT * FROM a"})
