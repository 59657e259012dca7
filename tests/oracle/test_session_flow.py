"""Flows of a Session: Spark recomputes what has no delta rule, and its SQL reads the views."""

import gc
import weakref

import pytest
from support.view_corpus import SOURCES, VIEWS, RandomTables

from weirflow import Session
from weirflow.errors import ConfigError, TableNotFound
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.rows import group_rows

READ_BY_OTHERS = ("grouped", "extremes")


def delta(name, changes):
    schema = SOURCES[name]
    rows = [{field.name: row[at] for at, field in enumerate(schema)} for row, _ in changes]
    inserted = DeltaBatch.from_inserts(rows, schema=schema).batch if rows else Batch.empty(schema.types)
    weights = [weight for _, weight in changes]
    return DeltaBatch.of_batch(schema, Batch(inserted.columns, inserted.weights * weights))


def canonical(change):
    """The rows of a delta by their hash."""
    return change.to_arrow().take(group_rows(change.batch.columns, len(change)).order)


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.campaign)])
def test_diff_based_and_incremental_views_give_equal_deltas_in_canonical_order(session, every):
    incremental, forced = session.flow("incremental"), session.flow("forced")
    names = [name for number, name in enumerate(VIEWS) if number % every == 0 or name in READ_BY_OTHERS]
    for flow in (incremental, forced):
        for name, schema in SOURCES.items():
            flow.register_source(name, schema)
    for name in names:
        incremental.register_view(name, VIEWS[name], mode="incremental")
    for name in names[:3]:
        forced.register_view(name, VIEWS[name])
    forced.force_diff_based()
    for name in names[3:]:
        forced.register_view(name, VIEWS[name])
    assert {one.kind for one in forced.describe().relations} == {"source", "diff"}
    tables = RandomTables(seed=2)
    watches = {name: (incremental.watch_output(name), forced.watch_output(name)) for name in names}
    for _ in range(2):
        deltas = {name: delta(name, rows) for name, rows in tables.changes(most=8).items()}
        for flow in (incremental, forced):
            flow.tick(deltas)
        for name in names:
            one, other = (watch.get(0) for watch in watches[name])
            assert (one is None) == (other is None), name
            if one is not None:
                assert canonical(one[1]) == other[1].to_arrow(), name
    incremental.close()
    forced.close()


def test_ranks_that_are_filtered_are_the_first_of_each_partition_as_spark_reads_them_too(session):
    flow = session.flow("ranks")
    flow.register_source("scores", "team STRING, points BIGINT")
    over = "OVER (PARTITION BY team ORDER BY points DESC)"
    ranked = f"SELECT team, points, rank() {over} AS place, sum(points) {over} AS total FROM scores"
    flow.register_view("best", f"SELECT * FROM ({ranked}) WHERE place <= 2L", mode="incremental")
    flow.register_view("first", f"SELECT team, points FROM ({ranked}) WHERE place = 1", mode="incremental")
    flow.tick("scores", [{"team": "a", "points": points} for points in (3, 9, 7, 7, 1)])
    assert "the first 2 of each partition" in flow.explain("best")
    assert "the first 1 of each partition" in flow.explain("first")
    assert sorted(tuple(row.values()) for row in flow.snapshot("best").to_pylist()) == [
        ("a", 7, 2, 23),
        ("a", 7, 2, 23),
        ("a", 9, 1, 9),
    ]
    assert flow.snapshot("first").to_pylist() == [{"team": "a", "points": 9}]
    flow.close()


def test_sql_outside_the_incremental_subset_runs_on_spark(session):
    flow = session.flow("auto")
    flow.register_source("orders", "customer STRING, amount BIGINT")
    middle = "approx_percentile(amount, 0.5)"
    flow.register_view("loud", f"SELECT soundex(customer) AS code, {middle} AS n FROM orders GROUP BY 1")
    flow.register_view("codes", "SELECT COUNT(*) AS n FROM loud")
    assert "FUNCTION_NOT_PROVEN" in flow.explain("loud")
    flow.tick("orders", [{"customer": "Robert", "amount": 1}, {"customer": "Rupert", "amount": 2}])
    assert flow.snapshot("loud").to_pylist() == [{"code": "R163", "n": 1}]
    assert flow.snapshot("codes").to_pylist() == [{"n": 1}]
    flow.close()


def test_views_are_tables_for_the_sessions_sql(session):
    flow = session.flow("tables")
    flow.register_source("orders", "customer STRING, amount BIGINT")
    flow.register_view("flow_totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    session.register("names", [{"customer": "a", "name": "Ann"}])
    query = "SELECT name, total FROM flow_totals JOIN names USING (customer)"
    for amount, total in ((5, 5), (7, 12)):
        flow.tick("orders", session.sql(f"SELECT 'a' AS customer, CAST({amount} AS BIGINT) AS amount"))
        assert session.sql(query).to_arrow().to_pylist() == [{"name": "Ann", "total": total}]
    assert flow.frame("flow_totals").count() == 1
    flow.close()


def test_a_flow_that_is_spread_runs_on_spark_and_says_so(session):
    with session.flow("spread", partitions=4) as flow:
        assert "on Spark" in flow.describe().runs
        assert "on 4 shards" in flow.describe().runs
        assert session.flow("spread", partitions=4) is flow
        with pytest.raises(ConfigError, match="open with 4 partitions"):
            session.flow("spread", partitions=2)


def test_a_durable_session_reopens_its_flows(tmp_path):
    for expected in (1, 2):
        with Session.single_node(tmp_path) as durable:
            flow = durable.flow("shop")
            flow.register_source("orders", "customer STRING, amount BIGINT")
            flow.register_view("n", "SELECT COUNT(*) AS n FROM orders")
            flow.tick("orders", [{"customer": "a", "amount": 1}])
            assert flow.snapshot("n").to_pylist() == [{"n": expected}]
            assert durable.flow("shop") is flow


def test_a_table_of_the_sessions_own_is_not_hidden_by_a_view_of_its_name(session):
    session.register("mine", [{"x": 1}])
    flow = session.flow("names")
    flow.register_source("mine", "x BIGINT")
    flow.register_view("theirs", "SELECT COUNT(*) AS n FROM mine")
    flow.tick("mine", [{"x": 7}, {"x": 8}])
    assert session.sql("SELECT x, n FROM mine CROSS JOIN theirs").to_arrow().to_pylist() == [{"x": 1, "n": 2}]
    assert session.table("theirs").count() == 1
    flow.close()
    with pytest.raises(TableNotFound):
        session.sql("SELECT * FROM theirs").to_arrow()


@pytest.mark.parametrize("name", ["../elsewhere", "a/b", "", ".."])
def test_a_durable_flow_stays_in_the_sessions_folder(tmp_path, name):
    with Session.single_node(tmp_path) as durable, pytest.raises(ConfigError, match="name"):
        durable.flow(name)


@pytest.mark.parametrize("partitions", [None, 2], ids=["in this process", "in shards"])
def test_a_closed_flow_is_let_go_of(session, partitions):
    flow = session.flow("brief", partitions=partitions)
    flow.register_source("orders", "id BIGINT")
    held = weakref.ref(flow)
    flow.close()
    del flow
    gc.collect()
    assert held() is None
    with session.flow("brief") as another:
        assert another.sources == ()
