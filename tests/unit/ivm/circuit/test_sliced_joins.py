"""Joins whose pairs are added up in slices, and whose equal rows meet once, give what DuckDB computes from scratch."""

import random

import duckdb
import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry
from support.aggregated_joins import FAR, SCHEMA, VIEWS, row

from weirflow.errors import DataError
from weirflow.ivm.circuit import slices
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.operators.aggregate import partial
from weirflow.ivm.operators.join import operator, pairs
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.zset.delta import DeltaBatch

pytestmark = pytest.mark.usefixtures("either_kernel")


def changes(chance, rows):
    """A random delta of a table, which is applied to ``rows``."""
    gone = [rows.pop(chance.randrange(len(rows))) for _ in range(min(len(rows), chance.randrange(6)))]
    new = [row(chance) for _ in range(chance.randrange(10))]
    rows.extend(new)
    weights = [-1] * len(gone) + [1] * len(new)
    table = pa.Table.from_pylist(gone + new, SCHEMA).append_column("_weight", pa.array(weights, pa.int64()))
    return DeltaBatch.from_weighted(table, schema=SCHEMA)


def expected(sql, tables):
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.register(f"{name}_rows", pa.Table.from_pylist(rows, SCHEMA))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_rows")
        return sorted(connection.execute(sql).fetchall(), key=repr)


def found(flow, view):
    return sorted((tuple(one.values()) for one in flow.snapshot(view).to_pylist()), key=repr)


@pytest.fixture(params=[2, 1000])
def most(request, monkeypatch):
    monkeypatch.setattr(pairs, "MOST_PAIRS", request.param)
    monkeypatch.setattr(slices, "SLICE_PAIRS", request.param)
    monkeypatch.setattr(partial, "_MANY", request.param)
    monkeypatch.setattr(operator, "_FEW_PAIRS", 0)
    monkeypatch.setattr(operator, "_FAN_OUT", 1)
    return request.param


@pytest.fixture(params=["here", pytest.param("shards", marks=pytest.mark.campaign)])
def flow(request, tmp_path):
    if request.param == "here":
        yield IncrementalFlow()
    else:
        with PartitionedFlow(str(tmp_path), 2, InThisProcess(), registry=CollectorRegistry()) as flow:
            yield flow


def test_views_over_joins_equal_recompute_after_every_tick(flow, most):
    chance = random.Random(most)
    for name in "tu":
        flow.register_source(name, SCHEMA)
    tables = {"t": [], "u": []}
    names = {f"v{place}": sql for place, sql in enumerate(VIEWS.values())}
    for name, sql in names.items():
        flow.register_view(name, sql)
    for tick in range(5 if isinstance(flow, IncrementalFlow) else 2):
        flow.tick({name: changes(chance, rows) for name, rows in tables.items()})
        for name, sql in names.items():
            assert found(flow, name) == expected(sql, tables), (tick, sql)


def test_a_view_is_filled_in_slices(flow, most):
    chance = random.Random(most)
    tables = {"t": [row(chance) for _ in range(30)], "u": [row(chance) for _ in range(9)]}
    for name, rows in tables.items():
        flow.register_source(name, SCHEMA)
        flow.tick(name, pa.Table.from_pylist(rows, SCHEMA))
    for place, sql in enumerate(VIEWS.values()):
        flow.register_view(f"v{place}", sql)
        assert found(flow, f"v{place}") == expected(sql, tables), sql


@pytest.mark.parametrize("name", ["one side", "both sides"])
def test_doubles_of_any_size_are_added_up_in_slices_as_in_one_piece(monkeypatch, name):
    chance = random.Random(5)
    rows = pa.Table.from_pylist([row(chance, FAR) for _ in range(40)], SCHEMA)
    seen = []
    for most in (1 << 22, 7):
        monkeypatch.setattr(pairs, "MOST_PAIRS", most)
        monkeypatch.setattr(slices, "SLICE_PAIRS", most)
        flow = IncrementalFlow()
        flow.register_source("t", SCHEMA)
        flow.register_view("view", VIEWS[name])
        flow.tick("t", rows)
        flow.tick("t", DeltaBatch.from_deletes(rows.slice(0, 15)))
        seen.append(found(flow, "view"))
    assert seen[0] == seen[1]


def integers(name, rows):
    flow = IncrementalFlow()
    flow.register_source("t", "k BIGINT, v BIGINT")
    flow.register_view("view", name)
    flow.tick("t", rows)
    return flow


@pytest.mark.usefixtures("most")
def test_a_sum_that_overflows_fails_the_tick_whole():
    flow = integers(
        "SELECT a.k, sum(a.v + b.v) AS s FROM t a JOIN t b ON a.k = b.k GROUP BY a.k", [{"k": 1, "v": 2**60}]
    )
    with pytest.raises(DataError, match="SUM overflows") as caught:
        flow.tick("t", [{"k": 1, "v": 2**60}, {"k": 1, "v": 3}])
    assert caught.value.condition == "ARITHMETIC_OVERFLOW"
    flow.discard()
    assert found(flow, "view") == [(1, 2**61)]
    flow.tick("t", [{"k": 1, "v": -1}])
    assert found(flow, "view") == [(1, 4 * (2**60 - 1))]


@pytest.mark.usefixtures("most")
def test_pairs_that_are_not_there_at_the_same_time_cannot_fail():
    """The 4 that goes never meets the 5 that comes: in no state of the table does a pair divide by zero."""
    sql = "SELECT a.k, sum(12 div (a.v - b.v + 1)) AS s FROM t a JOIN t b ON a.k = b.k GROUP BY a.k"
    flow = integers(sql, [{"k": 1, "v": 4}, {"k": 1, "v": 9}])
    assert found(flow, "view") == [(1, 12 + 12 + 12 // 6 - 12 // 4)]
    flow.tick("t", DeltaBatch.from_updates([{"k": 1, "v": 4}], [{"k": 1, "v": 5}]))
    assert found(flow, "view") == [(1, 12 + 12 + 12 // 5 - 12 // 3)]


def test_a_key_of_very_many_rows_is_counted_without_making_their_pairs():
    count = 100_000
    flow = IncrementalFlow()
    flow.register_source("t", "k BIGINT, v BIGINT")
    flow.register_view("view", "SELECT a.k, count(*) AS n, sum(b.v) AS s FROM t a JOIN t b ON a.k = b.k GROUP BY a.k")
    rows = pa.table({"k": [7] * count, "v": [index % 10 for index in range(count)]})
    flow.tick("t", rows)
    assert found(flow, "view") == [(7, count**2, count * count * 9 // 2)]
    flow.tick("t", DeltaBatch.from_deletes(rows.slice(10)))
    assert found(flow, "view") == [(7, 100, 10 * 45)]


def weighted(weight):
    table = pa.table({"k": [7], "v": [3], "_weight": [weight]})
    return DeltaBatch.from_weighted(table)


def test_more_equal_rows_than_can_be_counted_fail_the_tick():
    flow = integers("SELECT a.k, count(*) AS n FROM t a JOIN t b ON a.k = b.k GROUP BY a.k", weighted(2**30))
    assert found(flow, "view") == [(7, 2**60)]
    with pytest.raises(DataError, match="more equal rows"):
        flow.tick("t", weighted(2**32))
    flow.discard()
    assert found(flow, "view") == [(7, 2**60)]


def test_a_row_that_counts_too_often_to_be_summed_fails_the_tick():
    flow = integers("SELECT a.k, sum(b.v) AS n FROM t a JOIN t b ON a.k = b.k GROUP BY a.k", weighted(1000))
    assert found(flow, "view") == [(7, 3_000_000)]
    with pytest.raises(DataError, match="does not fit its 64-bit accumulator"):
        flow.tick("t", weighted(2**31 - 1000))
    flow.discard()
    assert found(flow, "view") == [(7, 3_000_000)]
