"""What random cases found, each with its smallest input."""

import datetime as dt
import math

import pyarrow as pa
import pytest
from support.maintained import Maintained

from weirflow.errors import NotIncremental

T = {"t": pa.schema([("k", pa.int64()), ("v", pa.int64())])}
LOWEST = -(2**63)


def test_a_row_that_comes_and_goes_in_one_tick_cannot_fail_it():
    views = Maintained(T, {"view": "SELECT v + v AS w FROM t"})
    assert views.tick({"t": [((1, LOWEST), 1), ((1, LOWEST), -1)]}) == {}


def test_a_row_that_comes_and_goes_between_operators_cannot_fail_the_tick():
    """Without its match the row would come back from the anti join, were it not gone itself."""
    views = Maintained(T, {"view": "SELECT a.v * a.v AS w FROM t a LEFT ANTI JOIN t b ON a.k = b.k"})
    views.tick({"t": [((1, LOWEST), 1)]})
    assert views.tick({"t": [((1, LOWEST), -1)]}) == {}


def test_zero_and_minus_zero_are_one_distinct_value_of_one_group():
    views = Maintained(
        {"f": pa.schema([("k", pa.float64()), ("x", pa.float64())])},
        {"view": "SELECT k, COUNT(DISTINCT x) AS n, SUM(DISTINCT x + 1) AS s FROM f GROUP BY k"},
    )
    views.tick({"f": [((0.0, 0.0), 1)]})
    views.tick({"f": [((-0.0, -0.0), 1)]})
    assert dict(views.views["view"]) == {(0.0, 1, 1.0): 1}


def test_months_are_subtracted():
    views = Maintained(
        {"d": pa.schema([("at", pa.timestamp("us"))])}, {"view": "SELECT at - INTERVAL '1' MONTH AS m FROM d"}
    )
    views.tick({"d": [((dt.datetime(2024, 3, 31),), 1)]})  # noqa: DTZ001 - the type without a zone
    assert dict(views.views["view"]) == {(dt.datetime(2024, 2, 29),): 1}  # noqa: DTZ001 - as above


def test_null_text_as_a_date_is_null():
    views = Maintained(T, {"view": "SELECT k, TRY_CAST(CAST(NULL AS STRING) AS DATE) AS d FROM t"})
    views.tick({"t": [((1, 1), 1)]})
    assert dict(views.views["view"]) == {(1, None): 1}


def test_nan_is_the_largest_value_of_a_median():
    views = Maintained({"f": pa.schema([("x", pa.float64())])}, {"view": "SELECT median(x) AS m FROM f"})
    views.tick({"f": [((math.nan,), 1), ((1.0,), 1), ((math.inf,), 1)]})
    assert dict(views.views["view"]) == {(math.inf,): 1}
    views.tick({"f": [((math.nan,), 1), ((1.0,), -1)]})
    assert dict(views.views["view"]) == {("NaN",): 1}


def test_an_aggregate_looks_only_at_rows_that_its_filter_lets_pass():
    sql = "SELECT SUM(10 DIV v) FILTER (WHERE v <> 0) AS s, MAX(10 DIV v) FILTER (WHERE v <> 0) AS m FROM t"
    views = Maintained(T, {"view": sql})
    views.tick({"t": [((1, 0), 1), ((1, 5), 1)]})
    assert dict(views.views["view"]) == {(2, 2): 1}


def test_what_a_correlated_subquery_collects_of_nothing_is_an_empty_array():
    sql = "SELECT k, (SELECT size(collect_set(b.v)) FROM t b WHERE b.k = t.v) AS n FROM t"
    views = Maintained(T, {"view": sql})
    views.tick({"t": [((1, 2), 1)]})
    assert dict(views.views["view"]) == {(1, 0): 1}


def test_a_grouping_set_named_twice_makes_its_groups_twice():
    views = Maintained(
        {"t": pa.schema([("a", pa.int64()), ("v", pa.int64())])},
        {"v": "SELECT a, SUM(v) AS s FROM t GROUP BY GROUPING SETS ((a), (a), ())"},
    )
    views.tick({"t": [((1, 2), 1), ((1, 3), 1)]})
    assert views.views["v"] == {(1, 5): 2, (None, 5): 1}


def test_a_percentile_has_several_shares():
    views = Maintained(T, {"view": "SELECT k, percentile(v, array(0.25, 0.75)) AS p FROM t GROUP BY k"})
    views.tick({"t": [((1, 0), 1), ((1, 10), 1), ((2, None), 1)]})
    assert dict(views.views["view"]) == {(1, (2.5, 7.5)): 1, (2, None): 1}


@pytest.mark.parametrize("share", ["NULL", "2", "-0.5", "k", "array(0.5, NULL)", "array(0.5, k)"])
def test_a_share_that_spark_would_not_take_is_refused(share):
    with pytest.raises(NotIncremental, match="between 0 and 1"):
        Maintained(T, {"view": f"SELECT percentile(v, {share}) AS p FROM t"})


def test_the_share_of_a_percentile_in_order_is_a_number():
    with pytest.raises(NotIncremental, match="a literal between 0 and 1"):
        Maintained(T, {"view": "SELECT percentile_cont(NULL) WITHIN GROUP (ORDER BY v) AS p FROM t"})


def test_group_by_all_leaves_out_window_functions_of_aggregates():
    views = Maintained(T, {"view": "SELECT k % 2 AS o, SUM(SUM(v)) OVER () AS s FROM t GROUP BY ALL"})
    views.tick({"t": [((1, 5), 1), ((2, 4), 1), ((3, 6), 1)]})
    assert dict(views.views["view"]) == {(0, 15): 1, (1, 15): 1}
