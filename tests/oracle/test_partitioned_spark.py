"""Flows in shards on Spark: the same deltas as in one piece, frames of any size, exactly-once streams."""

import shutil
from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql.classic.dataframe import DataFrame as NativeFrame
from support.maintained import comparable
from support.together import together
from support.view_corpus import SOURCES, VIEWS, RandomTables

from weirflow import Lateness, PartitionedIncrementalFlow, Trigger
from weirflow.errors import ConfigError, DataError, LeaseHeld, NotIncremental, TableNotFound
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded import coordinator
from weirflow.ivm.zset.delta import DeltaBatch

SOME_VIEWS = ("grouped", "joined", "crossed", "left_residual", "top_totals", "ranked", "cubed", "excepted_all")


@pytest.fixture
def flow(session, request):
    flow = session.flow(request.node.originalname, partitions=2)
    yield flow
    flow.close()


def rows(table):
    columns = [[comparable(value) for value in column.to_pylist()] for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


def weighted(name, changes):
    schema = SOURCES[name]
    columns = {field.name: [row[at] for row, _ in changes] for at, field in enumerate(schema)}
    weights = pa.array([weight for _, weight in changes], pa.int64())
    table = pa.table(columns, schema=schema).append_column("_weight", weights)
    return DeltaBatch.from_weighted(table, schema=schema)


def next_delta(watch):
    epoch, delta = watch.get(timeout=0)
    return epoch, rows(delta.to_arrow())


@pytest.mark.parametrize(
    "spread",
    [
        pytest.param({}, id="by use", marks=pytest.mark.campaign),
        pytest.param({"t": "evenly", "u": "everywhere"}, id="otherwise"),
    ],
)
def test_every_delta_is_that_of_the_flow_in_one_piece(flow, spread):
    central = IncrementalFlow()
    views = {name: VIEWS[name] for name in (*SOME_VIEWS, "extremes") if name in VIEWS}
    for name, schema in SOURCES.items():
        central.register_source(name, schema)
        flow.register_source(name, schema, spread=spread.get(name))
    for one in (central, flow):
        for name, sql in views.items():
            one.register_view(name, sql)
    watches = [{name: one.watch_output(name) for name in views} for one in (central, flow)]
    tables = RandomTables(7)
    for _ in range(4):
        deltas = {name: weighted(name, changes) for name, changes in tables.changes(most=9).items()}
        changed = set(central.tick(deltas).views)
        assert set(flow.tick(deltas).views) == changed
        for name in changed:
            assert next_delta(watches[1][name]) == next_delta(watches[0][name]), name
    for name in views:
        assert rows(flow.snapshot(name)) == rows(central.snapshot(name)), name


def test_ticks_of_several_threads_share_jobs(flow):
    """Some retract what others bring; one fails, which is nobody else's business."""
    central = IncrementalFlow()
    views = {name: VIEWS[name] for name in SOME_VIEWS if name in VIEWS}
    for one in (central, flow):
        for name, schema in SOURCES.items():
            one.register_source(name, schema)
        for name, sql in views.items():
            one.register_view(name, sql)
    watches = [{name: one.watch_output(name) for name in views} for one in (central, flow)]
    tables = RandomTables(11)
    ticks = [{name: weighted(name, rows) for name, rows in tables.changes(most=5).items()} for _ in range(8)]
    for deltas in ticks:
        central.tick(deltas)
    missing = {"t": weighted("t", [(row, -9) for row, _ in tables.changes(most=5)["t"][:1]])}
    done = together(flow, [partial(flow.tick, deltas) for deltas in ticks[:5]])
    *more, failed = together(flow, [*(partial(flow.tick, deltas) for deltas in ticks[5:]), partial(flow.tick, missing)])
    assert [one.epoch for one in (*done, *more)] == list(range(1, 9))
    assert isinstance(failed, DataError)
    flow.discard()
    for name in views:
        expected, found = [[(epoch, rows(delta.to_arrow())) for epoch, delta in taken(own[name])] for own in watches]
        assert found == expected, name
        assert rows(flow.snapshot(name)) == rows(central.snapshot(name)), name


def taken(watch):
    while (one := watch.get(timeout=0)) is not None:
        yield one


def declare(flow):
    flow.register_source("orders", "id BIGINT, customer STRING, amount DECIMAL(12,2), at TIMESTAMP, tags ARRAY<STRING>")
    flow.register_view(
        "totals", "SELECT customer, COUNT(*) AS n, SUM(amount) AS total, MAX(at) AS last FROM orders GROUP BY customer"
    )


ORDERS = """
    SELECT id, concat('c', id % 10) AS customer, CAST(id AS DECIMAL(12,2)) AS amount,
        timestamp'2024-03-30 12:00:00' + make_dt_interval(0, 0, 0, id) AS at, array('a', NULL) AS tags
    FROM range({})
"""


def test_a_frame_is_a_delta_and_a_view_a_frame(session, flow):
    declare(flow)
    orders = session.sql(ORDERS.format(1000))
    summary = flow.tick("orders", orders)
    assert (summary.rows_in, summary.views) == (1000, {"totals": 10})
    orders.createOrReplaceTempView("all_orders")
    expected = session.sql(
        "SELECT customer, COUNT(*) AS n, SUM(amount) AS total, MAX(at) AS last FROM all_orders GROUP BY customer"
    )
    assert rows(flow.frame("totals").to_arrow()) == rows(expected.to_arrow())
    assert flow.frame("totals").schema["total"].dataType.simpleString() == "decimal(22,2)"
    flow.tick("orders", orders.withColumn("_weight", orders.id * 0 - 1))
    assert flow.frame("orders").count() == 0


def test_a_frame_is_spread_as_its_source_says(session, flow):
    flow.register_source("clicks", "page STRING, ms BIGINT", spread="evenly")
    flow.register_source("pages", "name STRING, topic STRING", key="name", spread="everywhere")
    flow.register_view("topics", "SELECT topic, SUM(ms) AS ms FROM clicks JOIN pages ON page = name GROUP BY topic")
    clicks = session.sql("SELECT if(id % 10 = 0, 'about', 'home') AS page, id AS ms FROM range(10000)")
    pages = session.sql("SELECT * FROM VALUES ('home', 'news'), ('about', 'us') AS pages (name, topic)")
    assert flow.tick({"clicks": clicks, "pages": pages}).rows_in == 10_002
    assert rows(flow.snapshot("topics")) == [("news", 45_000_000), ("us", 4_995_000)]
    assert flow.frame("pages").count() == 2
    flow.rescale(3, spread={"clicks": "by use", "pages": "by use"})
    flow.tick("pages", [{"name": "about", "topic": "news"}])
    assert rows(flow.snapshot("topics")) == [("news", 49_995_000)]


def test_a_frame_of_a_view_stays_as_it_was(session, flow, monkeypatch):
    monkeypatch.setattr(coordinator, "_KEPT_COMMITS", 3)  # and older ones are deleted
    declare(flow)
    flow.tick("orders", session.sql(ORDERS.format(20)))
    before = flow.frame("totals")
    for _ in range(7):
        flow.tick("orders", session.sql(ORDERS.format(20)).to_arrow())
    assert {row.n for row in before.collect()} == {2}
    assert {row.n for row in flow.frame("totals").collect()} == {16}


def test_a_key_twice_in_a_frame_is_refused(session, flow):
    flow.register_source("names", "id BIGINT, name STRING", key="id")
    frame = session.sql("SELECT id % 5 AS id, concat('n', id) AS name FROM range(10)")
    with pytest.raises(DataError, match="several rows for a key"):
        flow.tick("names", frame)
    flow.discard()
    flow.tick("names", frame.to_arrow())
    assert rows(flow.snapshot("names")) == [(key, f"n{5 + key}") for key in range(5)]


def test_a_failed_tick_can_be_retried_or_discarded(flow):
    flow.register_source("numbers", "n INT")
    flow.register_view("inverse", "SELECT n, 10 / n AS inverse FROM numbers")
    with pytest.raises(DataError, match="by zero"):
        flow.tick("numbers", [{"n": 0}, {"n": 1}])
    assert flow.pending
    with pytest.raises(DataError, match="by zero"):
        flow.retry()
    flow.discard()
    flow.tick("numbers", [{"n": 5}])
    assert rows(flow.snapshot("inverse")) == [(5, 2.0)]


def test_a_token_is_taken_once(flow):
    flow.register_source("numbers", "n INT")
    flow.tick("numbers", [{"n": 1}], token="first")
    assert flow.tick("numbers", [{"n": 1}], token="first").replayed
    assert rows(flow.snapshot("numbers")) == [(1,)]


def test_another_number_of_shards_gives_the_same(session, flow):
    declare(flow)
    flow.tick("orders", session.sql(ORDERS.format(100)))
    before = rows(flow.snapshot("totals"))
    flow.rescale(3)
    assert flow.partitions == 3
    assert rows(flow.snapshot("totals")) == before
    flow.tick("orders", session.sql(ORDERS.format(100)))
    assert [row[1] for row in rows(flow.snapshot("totals"))] == [20] * 10


def test_explain_says_what_ran_where(session, flow):
    declare(flow)
    flow.tick("orders", session.sql(ORDERS.format(10)))
    text = flow.explain()
    assert "stage 0" in text
    assert "aggregate" in text
    assert text.count("shard 0 on ") == text.count("stage ")


def test_views_are_recomputed_by_spark_and_compared_in_shards(session, flow):
    central = session.flow("central")
    for one in (central, flow):
        one.register_source("people", "id BIGINT, name STRING, born TIMESTAMP, weight DECIMAL(10, 2)", key="id")
        one.register_view("sounds", "SELECT printf(name) AS code, COUNT(*) AS n FROM people GROUP BY 1")
        one.register_view("known", "SELECT id, name, born, weight FROM people WHERE name IS NOT NULL")
        one.register_view("rare", "SELECT code FROM sounds WHERE n = 1")
        one.force_diff_based("known")
    assert [one.kind for one in flow.describe().relations] == ["source", "diff", "diff", "incremental"]
    watches = [{name: one.watch_output(name) for name in one.views} for one in (central, flow)]
    people = "SELECT id, IF(id % 5 = 0, NULL, concat('n', id % {0})) AS name, timestamp_seconds(id * 1e9) AS born, "
    people += "CAST(id / 4 AS DECIMAL(10, 2)) AS weight FROM range(0, 40, {1})"
    for tick in (people.format(7, 1), people.format(11, 3)):
        frame = session.sql(tick)
        changed = central.tick("people", frame.to_arrow()).views
        assert flow.tick("people", frame).views == changed
        for name in changed:
            (epoch, expected), (number, delta) = [watched[name].get(timeout=0) for watched in watches]
            assert (number, delta.checksum()) == (epoch, expected.checksum()), name
    central.close()


def test_the_sessions_sql_reads_views_beside_its_tables(session, flow):
    flow.register_source("numbers", "n INT")
    flow.register_view("even", "SELECT n FROM numbers WHERE n % 2 = 0")
    session.register("names", pa.table({"n": [0, 2], "name": ["zero", "two"]}))
    query = "SELECT name, COUNT(*) AS times FROM names JOIN even USING (n) GROUP BY name ORDER BY name"
    for times in (1, 2):
        flow.tick("numbers", [{"n": n} for n in range(5)])
        assert session.sql(query).to_arrow().to_pylist() == [
            {"name": "two", "times": times},
            {"name": "zero", "times": times},
        ]
    assert session.sql(f"SELECT COUNT(*) AS n FROM `{flow.name}`.even").to_arrow().to_pylist() == [{"n": 6}]
    flow.frame("even").createOrReplaceTempView("evens")
    assert session.sql("SELECT SUM(n) AS total FROM evens").to_arrow().to_pylist() == [{"total": 12}]
    flow.close()
    with pytest.raises(TableNotFound):
        session.sql("SELECT * FROM even")


def test_a_query_reads_sources_and_views(flow):
    flow.register_source("numbers", "n INT")
    flow.register_view("even", "SELECT n FROM numbers WHERE n % 2 = 0")
    flow.register_view("gone", "SELECT n + 1 AS n FROM numbers", materialized=False)
    flow.tick("numbers", [{"n": n} for n in range(5)])
    query = "SELECT COUNT(*) AS n, SUM(Even.n) AS total FROM numbers LEFT JOIN EVEN ON numbers.n = Even.n"
    assert flow.sql(query).to_pylist() == [{"n": 5, "total": 6}]
    with pytest.raises(ConfigError, match="not kept"):
        flow.sql("SELECT * FROM gone")
    with pytest.raises(TableNotFound, match="odd"):
        flow.sql("SELECT * FROM odd")


def test_a_stream_ticks_the_flow_batch_by_batch(session, flow, tmp_path):
    flow.register_source("events", "id BIGINT, k STRING")
    flow.register_view("counts", "SELECT k, COUNT(*) AS n FROM events GROUP BY k")
    schema = "id BIGINT, k STRING"
    for number in range(2):
        path = str(tmp_path / "in" / str(number))
        session.sql("SELECT id, concat('k', id % 3) AS k FROM range(30)").write.parquet(path)
        stream = session.spark.readStream.schema(schema).parquet(str(tmp_path / "in" / "*"))
        with flow.attach(stream, "events", checkpoint=tmp_path / "checkpoint", trigger="available now") as attached:
            attached.await_termination()
        assert rows(flow.snapshot("counts")) == [(f"k{at}", 10 * (number + 1)) for at in range(3)]


def test_rows_of_a_stream_do_not_pass_the_driver_and_a_repeated_batch_keeps_its_state(
    session, flow, tmp_path, monkeypatch
):
    monkeypatch.setattr("weirflow.ivm.sharded.coordinator._TOKENS", 2)
    flow.register_source("counts", "k STRING, count BIGINT", key="k")
    flow.register_source("others", "n INT")

    def run(number):
        session.sql(f"SELECT concat('k', id % {number}) AS k FROM range(30)").write.parquet(f"{tmp_path}/in/{number}")
        stream = session.read_stream("parquet", f"{tmp_path}/in/*", schema="k STRING")
        writer = stream.groupBy("k").count().write_stream().output_mode("update").flow(flow, "counts")
        writer = writer.option("checkpointLocation", tmp_path / "checkpoint").trigger(Trigger.available_now())
        with monkeypatch.context() as driver:
            driver.setattr(NativeFrame, "toArrow", passed_the_driver)
            assert writer.start().await_termination(60)

    run(3)
    assert rows(flow.snapshot("counts")) == [("k0", 10), ("k1", 10), ("k2", 10)]
    for number in range(3):
        flow.tick("others", [{"n": number}], token=f"other {number}")
    # Spark was killed before it noted that the batch is done, and what it has written of its state is lost.
    shutil.rmtree(tmp_path / "checkpoint" / "commits")
    shutil.rmtree(tmp_path / "checkpoint" / "state")
    run(2)
    assert rows(flow.snapshot("counts")) == [("k0", 25), ("k1", 25), ("k2", 10)]
    assert flow.epoch == 5


def passed_the_driver(*_):
    raise AssertionError("rows have passed the driver")


def test_a_stream_of_changes_retracts_rows(session, flow, tmp_path):
    flow.register_source("events", "id BIGINT, k STRING", key="id")
    flow.register_view("counts", "SELECT k, COUNT(*) AS n FROM events GROUP BY k")
    changes = [
        "SELECT id, 'a' AS k, 'insert' AS op FROM range(10)",
        "SELECT id, if(n = 0, 'a', 'b') AS k, if(n = 0, '-U', '+U') AS op FROM range(3) JOIN VALUES (0), (1) AS t (n)",
        "SELECT 9L AS id, 'a' AS k, 'delete' AS op",
        "SELECT 1L AS id, 'a' AS k, 'perhaps' AS op",
    ]
    for number, query in enumerate(changes):
        session.sql(query).write.parquet(str(tmp_path / "in" / str(number)))
        stream = session.spark.readStream.schema("id BIGINT, k STRING, op STRING").parquet(str(tmp_path / "in" / "*"))
        place = {"checkpoint": tmp_path / "checkpoint", "trigger": "available now"}
        with flow.attach(stream, "events", changes="op", **place) as attached:
            if number < len(changes) - 1:
                attached.await_termination()
            else:
                with pytest.raises(DataError, match="perhaps"):
                    attached.await_termination()
    assert rows(flow.snapshot("counts")) == [("a", 6), ("b", 3)]


def test_it_is_read_as_a_flow_in_one_process_is(session, flow):
    declare(flow)
    flow.register_source("names", "customer STRING, name STRING")
    flow.tick("orders", session.sql(ORDERS.format(20)))
    flow.tick("orders", session.sql(ORDERS.format(10)))
    epoch, tables = flow.snapshots(["orders", "totals"])
    assert (epoch, tables["orders"].num_rows, tables["totals"].num_rows) == (2, 30, 10)
    assert {row.n for row in flow.frame("totals", epoch=1).collect()} == {2}
    assert {one.name: one.rows for one in flow.describe().relations} == {"orders": 30, "names": 0, "totals": 10}
    given = pa.table({"customer": ["c1", "c2"], "name": ["ann", "bob"]})
    query = "SELECT name, n FROM totals JOIN names USING (customer)"
    assert rows(flow.sql(query, tables={"names": given})) == [("ann", 3), ("bob", 3)]
    assert flow.sql(query).num_rows == 0
    assert "names" not in flow.explain("totals")
    assert "names" in flow.explain()


def test_what_cannot_be_done_in_shards_is_refused(flow):
    flow.register_source("numbers", "n INT")
    with pytest.raises(NotIncremental):
        flow.register_view("sounds", "SELECT printf(CAST(n AS STRING)) AS s FROM numbers", mode="incremental")
    with pytest.raises(ConfigError, match="partitions is 0"):
        flow.rescale(0)


def test_one_process_at_a_time_has_the_lease(session, tmp_path):
    options = {"partitions": 1, "path": tmp_path / "flow", "metadata": str(tmp_path / "metadata.db")}
    with PartitionedIncrementalFlow(session, **options) as first:
        first.register_source("numbers", "n INT")
        first.tick("numbers", [{"n": 1}])
        with pytest.raises(LeaseHeld):
            PartitionedIncrementalFlow(session, **options)
    with PartitionedIncrementalFlow(session, **options) as second:
        assert second.epoch == 1
        assert rows(second.snapshot("numbers")) == [(1,)]


MOVED = {
    "sums": "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM seen GROUP BY k",
    "extremes": "SELECT v % 7 AS k, MIN(v) AS low, MAX(at) AS last, SUM(v - 500) AS s FROM seen GROUP BY v % 7",
    "whole": "SELECT MAX(v) AS high, COUNT(*) AS n FROM seen",
    "first": "SELECT v, k FROM seen ORDER BY v DESC, k LIMIT 5",
    "named": "SELECT name, COUNT(*) AS n FROM seen JOIN names USING (k) GROUP BY name",
}


@pytest.mark.campaign
def test_state_moves_to_other_shards_where_rows_were_let_go(session, flow, tmp_path):
    late = Lateness("at", "1 hour", keep=False)
    flow.register_source("seen", "at TIMESTAMP, k BIGINT, v BIGINT", lateness=late)
    flow.register_source("names", "k BIGINT, name STRING", spread="everywhere")
    for name, sql in MOVED.items():
        flow.register_view(name, sql)
    known = session.sql("SELECT id AS k, concat('n', id % 3) AS name FROM range(40)")
    every = []

    def tick(one, day):
        at = f"TIMESTAMP'2026-01-01' + make_dt_interval({day}, 0, 0, id % 600)"
        columns = f"{at} AS at, (id * 7 + {day}) % 50 AS k, (id * 31 + {day}) % 997 AS v"
        every.append(session.sql(f"SELECT {columns} FROM range(6000)"))
        one.tick({"seen": every[-1], **({"names": known} if day == 0 else {})})

    def check(one):
        rows_seen = every[0]
        for more in every[1:]:
            rows_seen = rows_seen.union(more)
        rows_seen.createOrReplaceTempView("seen")
        known.createOrReplaceTempView("names")
        for name, sql in MOVED.items():
            assert rows(one.snapshot(name)) == rows(session.spark.sql(sql).toArrow()), name

    for day in range(4):
        tick(flow, day)
    assert flow.snapshot("seen").num_rows < 4 * 6000, "rows were let go"
    flow.rescale(3)
    tick(flow, 4)
    check(flow)
    flow.checkpoint(str(tmp_path / "saved"))
    with session.flow("moved_further", partitions=1) as other:
        other.restore(str(tmp_path / "saved"))
        tick(other, 5)
        check(other)
