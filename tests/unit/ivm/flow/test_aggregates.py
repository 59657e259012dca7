"""Aggregates in shards, after a restart, and where Spark leaves their answer open."""

import uuid
from collections import Counter

import pyarrow as pa
import pytest
from support.aggregate_catalogue import QUERIES, SOURCES, ticks
from support.maintained import comparable

from weirflow import IncrementalFlow
from weirflow.errors import DataError, NotIncremental, Reason, SqlTypeError
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.zset.delta import DeltaBatch

TEXTS = {f"view_{at}": query.text for at, query in enumerate(QUERIES.values())}
T = SOURCES["t"]


def with_views(flow, views=None):
    flow.register_source("t", T)
    for name, text in (TEXTS if views is None else views).items():
        flow.register_view(name, text)
    return flow


def weighted(changes):
    columns = [pa.array([row[at] for row, _ in changes], field.type) for at, field in enumerate(T)]
    weights = pa.array([weight for _, weight in changes], pa.int64())
    return DeltaBatch.from_weighted(pa.table(columns, schema=T).append_column("_weight", weights), schema=T)


def rows_of(flow, name):
    return Counter(tuple(map(comparable, row.values())) for row in flow.snapshot(name).to_pylist())


def test_shards_hold_what_one_flow_holds():
    whole = with_views(IncrementalFlow())
    parts = with_views(PartitionedFlow(f"memory://{uuid.uuid4().hex}", 3, InThisProcess()))
    for tick in ticks(seed=3, count=3, size=30):
        for flow in (whole, parts):
            flow.tick("t", weighted(tick))
    for name in TEXTS:
        assert rows_of(parts, name) == rows_of(whole, name)


def test_a_reopened_flow_goes_on_where_it_was(tmp_path):
    first, *later = ticks(seed=4, count=3, size=30)
    fresh = with_views(IncrementalFlow())
    fresh.tick("t", weighted(first))
    with with_views(IncrementalFlow(path=tmp_path / "flow")) as flow:
        flow.tick("t", weighted(first))
        flow.checkpoint()
    with with_views(IncrementalFlow(path=tmp_path / "flow")) as flow:
        for tick in later:
            fresh.tick("t", weighted(tick))
            flow.tick("t", weighted(tick))
        for name in TEXTS:
            assert rows_of(flow, name) == rows_of(fresh, name)


def test_rows_that_are_all_taken_back_leave_nothing():
    flow = with_views(IncrementalFlow())
    nothing = {name: rows_of(flow, name) for name in TEXTS}
    first = weighted(ticks(seed=6, count=1, size=40)[0])
    flow.tick("t", first)
    assert {name: rows_of(flow, name) for name in TEXTS} != nothing
    flow.tick("t", first.negate())
    assert {name: rows_of(flow, name) for name in TEXTS} == nothing


@pytest.mark.parametrize(
    "call", ["mode(i)", "mode(i, false)", "listagg(s)", "string_agg(s, ',')", "first(i)", "last(s)", "any_value(i + k)"]
)
def test_what_spark_leaves_open_is_refused_with_what_to_write_instead(call):
    flow = with_views(IncrementalFlow(), {})
    with pytest.raises(NotIncremental) as refused:
        flow.register_view("v", f"SELECT k, {call} AS x FROM t GROUP BY k")
    assert refused.value.reason is Reason.EXPRESSION_NOT_DETERMINISTIC
    assert refused.value.hint
    assert refused.value.position is not None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, first(k) AS a, last(k * 2) AS b, any_value(1) AS c FROM t GROUP BY k",
        "SELECT k, any_value(n) AS a FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) GROUP BY k",
        "SELECT i, first(x) AS a FROM (SELECT DISTINCT i, x FROM t) WHERE x > 0 GROUP BY i, x",
    ],
)
def test_the_only_value_of_a_group_is_its_first(text):
    assert with_views(IncrementalFlow(), {"v": text}).schema("v").names[1] == "a"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT first(x) AS a FROM t GROUP BY x",  # zeros of either sign are one group
        "SELECT k, first(k) AS a FROM t GROUP BY ROLLUP (k)",
        "SELECT i, first(x) AS a FROM (SELECT DISTINCT i, x FROM t) GROUP BY i",
    ],
)
def test_one_of_several_values_is_not(text):
    with pytest.raises(NotIncremental):
        with_views(IncrementalFlow(), {"v": text})


@pytest.mark.parametrize(
    "call",
    [
        *("mode(DISTINCT i)", "mode() WITHIN GROUP (ORDER BY i, s)", "sum(i) WITHIN GROUP (ORDER BY i)"),
        *("listagg(DISTINCT s) WITHIN GROUP (ORDER BY i)", "percentile(i, 0.5, 1, true)", "bit_and(s)"),
        *("percentile_disc(0.5)", "percentile_cont(0.5, 1) WITHIN GROUP (ORDER BY i)", "approx_count_distinct()"),
    ],
)
def test_what_is_called_otherwise_than_it_can_be(call):
    with pytest.raises(SqlTypeError):
        with_views(IncrementalFlow(), {"v": f"SELECT {call} AS x FROM t"})


@pytest.mark.parametrize(
    "call", ["listagg(s, s) WITHIN GROUP (ORDER BY s)", "approx_count_distinct(i, 0.00001D)", "mode(r, true)"]
)
def test_what_is_not_proven(call):
    with pytest.raises(NotIncremental) as refused:
        with_views(IncrementalFlow(), {"v": f"SELECT {call} AS x FROM t"})
    assert refused.value.reason is Reason.FUNCTION_NOT_PROVEN


@pytest.mark.parametrize(
    ("call", "condition"),
    [
        ("percentile(i, 0.5, l)", "NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION"),
        ("bitmap_construct_agg(l)", "INVALID_BITMAP_POSITION"),
    ],
)
def test_a_value_that_fits_nowhere_is_an_error_with_sparks_name(call, condition):
    flow = with_views(IncrementalFlow(), {"v": f"SELECT {call} AS x FROM t"})
    with pytest.raises(DataError) as failed:
        flow.tick("t", [{"i": 1, "l": -1}])
    assert failed.value.condition == condition


def test_an_order_is_evaluated_for_rows_that_count():
    text = "SELECT listagg(s) WITHIN GROUP (ORDER BY 1 / i, s) FILTER (WHERE i <> 0) AS x FROM t"
    flow = with_views(IncrementalFlow(), {"v": text})
    flow.tick("t", [{"i": 0, "s": "a"}, {"i": 1, "s": "b"}, {"i": 2, "s": "c"}])
    assert rows_of(flow, "v") == {("cb",): 1}
