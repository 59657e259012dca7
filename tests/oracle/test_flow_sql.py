"""A Session's SQL about flows of both kinds: sources and views made, changed and read by statements."""

import json
import random
import threading
from collections import Counter
from decimal import Decimal

import pytest
from pyspark.sql.functions import udf

from weirflow import DeltaBatch
from weirflow.errors import (
    AlreadyExists,
    ColumnNotFound,
    ConfigError,
    DataError,
    FlowError,
    QueryError,
    SqlPosition,
    SqlTypeError,
    TableNotFound,
    TickPending,
    UnsupportedError,
    WeirflowError,
)
from weirflow.ivm.flow.backend import Capability

# What a statement does is the same code for both kinds of flows; these show it where shards do the work themselves.
IN_SHARDS = (
    "test_a_statement_is_one_tick",
    "test_merge",
    "test_a_key_makes_inserts_upserts",
)


def pytest_generate_tests(metafunc):
    if "shop" in metafunc.fixturenames:
        marks = () if metafunc.function.__name__ in IN_SHARDS else pytest.mark.campaign
        kinds = ["in one process", pytest.param("in shards", marks=marks)]
        metafunc.parametrize("shop", kinds, indirect=True)


@pytest.fixture
def shop(session, request):
    """The flow "shop", of either kind, with a bag of orders and their totals."""
    flow = session.flow("shop") if request.param == "in one process" else session.flow("shop", partitions=2)
    with flow, session.flow("default"), session.flow("other"):
        session.sql("CREATE SOURCE shop.orders (id BIGINT, customer STRING, amount DECIMAL(10,2))")
        session.sql(
            "CREATE INCREMENTAL VIEW shop.totals AS SELECT customer, SUM(amount) AS t FROM orders GROUP BY customer"
        )
        yield flow


def rows(session, query):
    return Counter(tuple(row.values()) for row in session.sql(query).to_arrow().to_pylist())


def only_row(frame):
    (row,) = frame.to_arrow().to_pylist()
    return row


def test_a_statement_is_one_tick(session, shop):
    watch = shop.watch_output("totals")
    step = only_row(session.sql("INSERT INTO orders VALUES (1, 'ann', 1.5), (2, 'bob', 2), (2, 'bob', 2)"))
    assert step == {"epoch": 1, "rows_in": 3, "rows_out": 2, "late": 0, "dropped": 0}
    assert only_row(session.sql("UPDATE orders SET amount = amount + id, id = id + 1 WHERE id = 2"))["epoch"] == 2
    assert rows(session, "SELECT * FROM orders") == Counter(
        {(1, "ann", Decimal("1.50")): 1, (3, "bob", Decimal("4.00")): 2}
    )
    session.sql("DELETE FROM orders AS o WHERE o.customer = 'ann' AND amount < (SELECT AVG(amount) FROM orders)")
    assert rows(session, "SELECT * FROM totals") == {("bob", Decimal("8.00")): 1}
    session.sql("DELETE FROM shop.orders")
    assert shop.snapshot("orders").num_rows == 0
    totals = DeltaBatch.from_inserts([], schema=shop.schema("totals"))
    for _ in range(4):
        totals += watch.get(0)[1]
    assert len(totals.consolidate()) == 0


def test_rows_come_from_tables_views_and_spark(session, shop):
    session.register("people", [{"name": "ann"}, {"name": "bob"}])
    session.sql("INSERT INTO orders (customer, id) SELECT name, length(name) FROM people")
    session.sql("INSERT INTO orders SELECT id + 1, soundex(customer), t FROM orders LEFT JOIN totals USING (customer)")
    assert rows(session, "SELECT * FROM orders") == Counter(
        {(3, "ann", None): 1, (3, "bob", None): 1, (4, "A500", None): 1, (4, "B100", None): 1}
    )
    session.sql("UPDATE orders SET amount = (SELECT COUNT(*) FROM people) WHERE customer IN (SELECT name FROM people)")
    session.sql("DELETE FROM orders WHERE soundex(customer) = 'B100'")
    assert rows(session, "SELECT customer, amount FROM orders") == Counter(
        {("ann", Decimal("2.00")): 1, ("A500", None): 1, ("B100", None): 1}
    )
    session.sql("DELETE FROM orders WHERE customer > (SELECT MIN(name) FROM people) OR customer < 'B'")
    assert rows(session, "SELECT customer FROM orders") == Counter({("ann",): 1, ("B100",): 1})
    assert [name for name in session.tables() if name.startswith("_")] == []


def test_parameters(session, shop):
    session.sql("INSERT INTO orders VALUES (?, ?, ?)", [1, "it's", Decimal("2.50")])
    session.sql("UPDATE orders SET customer = :name WHERE amount = :amount", {"name": "ann", "amount": Decimal("2.50")})
    assert rows(session, "SELECT * FROM orders") == {(1, "ann", Decimal("2.50")): 1}
    with pytest.raises(ColumnNotFound) as caught:
        session.sql("DELETE FROM orders WHERE customer = :name AND nope", {"name": "a very long name"})
    assert caught.value.position == SqlPosition(1, 47, "nope")


def test_merge(session, shop):
    session.sql("INSERT INTO orders VALUES (1, 'ann', 1), (1, 'ann', 1), (2, 'bob', 2), (3, 'cyd', 3), (4, 'dan', 4)")
    session.register("news", [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}, {"id": 9, "amount": 90}])
    session.sql(
        """
        MERGE INTO shop.orders AS o USING (SELECT id, amount FROM news) n ON o.id = n.id
        WHEN MATCHED AND n.amount > 15 THEN DELETE
        WHEN MATCHED THEN UPDATE SET amount = o.amount + n.amount
        WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (n.id, n.amount)
        WHEN NOT MATCHED BY SOURCE AND o.id = 3 THEN UPDATE SET customer = DEFAULT
        WHEN NOT MATCHED BY SOURCE THEN DELETE
        """
    )
    assert rows(session, "SELECT id, customer, CAST(amount AS INT) FROM orders") == Counter(
        {(1, "ann", 11): 2, (9, None, 90): 1, (3, None, 3): 1}
    )


def test_a_merge_in_which_several_rows_match_one_is_refused(session, shop):
    session.sql("INSERT INTO orders VALUES (1, 'ann', 1)")
    twice = "MERGE INTO orders USING (VALUES (1, 2), (1, 3)) s(id, x) ON orders.id = s.id "
    with pytest.raises(DataError) as caught:
        session.sql(twice + "WHEN MATCHED AND x = 2 THEN DELETE")
    assert caught.value.condition == "MERGE_CARDINALITY_VIOLATION"
    assert shop.epoch == 1
    session.sql(twice + "WHEN MATCHED THEN DELETE")
    assert shop.snapshot("orders").num_rows == 0


def test_a_merge_looks_at_each_row_once(session, shop):
    session.sql("INSERT INTO orders SELECT id, 'old', 1 FROM range(200)")
    session.sql(
        """
        MERGE INTO orders o USING (SELECT id, rand() AS r FROM range(400)) n ON o.id = n.id
        WHEN MATCHED AND n.r < 0.5 AND rand() < 0.8 THEN DELETE
        WHEN MATCHED THEN UPDATE SET customer = 'new'
        WHEN NOT MATCHED AND rand() < 0.5 THEN INSERT (id, customer) VALUES (n.id, 'low')
        WHEN NOT MATCHED THEN INSERT (id, customer) VALUES (n.id, 'high')
        """
    )
    counts = Counter({row[0]: count for row, count in rows(session, "SELECT customer FROM orders").items()})
    assert (counts["old"], counts["low"] + counts["high"]) == (0, 200)
    assert 0 < counts["new"] < 200
    assert session.sql("SELECT DISTINCT id FROM orders").count() == counts.total()
    session.sql("DELETE FROM orders WHERE id >= 200")
    before = rows(session, "SELECT id FROM orders")
    # Of rand() Spark draws the same again; not so of this.
    session.udf("heads", udf(lambda: random.random() < 0.5, "boolean").asNondeterministic())
    session.sql(
        """
        MERGE INTO orders o USING (SELECT id + IF(heads(), 0, 1000) AS id FROM orders) n ON o.id = n.id
        WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)
        """
    )
    low, high = (rows(session, f"SELECT id % 1000 FROM orders WHERE id {side} 1000") for side in ("<", ">="))
    assert low == high
    assert 0 < low.total() < before.total()


def test_a_key_makes_inserts_upserts(session, shop):
    session.sql("CREATE SOURCE shop.people (id INT, name STRING, PRIMARY KEY (id))")
    session.sql("INSERT INTO people VALUES (1, 'ann'), (2, 'bob')")
    session.sql("INSERT INTO people VALUES (2, 'ben'), (3, 'cyd')")
    session.sql("UPDATE people SET id = id + 1")
    session.sql("INSERT INTO people SELECT 4, 'cyd' FROM range(2)")
    assert rows(session, "SELECT * FROM people") == {(2, "ann"): 1, (3, "ben"): 1, (4, "cyd"): 1}
    for statement, refusal in (
        ("UPDATE people SET id = 3 WHERE id = 2", "several rows for one key of 'people': {'id': 3}"),
        ("UPDATE people SET id = 7", "several rows for one key of 'people': {'id': 7}"),
        ("INSERT INTO people VALUES (5, 'x'), (5, 'y')", "several rows for one key of 'people': {'id': 5}"),
        ("INSERT INTO people SELECT 5, string(id) FROM range(2)", "several rows for one key of 'people': {'id': 5}"),
        ("INSERT INTO people (name) VALUES ('nobody')", "NULL in its key"),
    ):
        with pytest.raises(DataError, match=refusal):
            session.sql(statement)
    assert rows(session, "SELECT * FROM people") == {(2, "ann"): 1, (3, "ben"): 1, (4, "cyd"): 1}


VALUES = [
    ("'1', 1, 'x', 1.5", SqlTypeError),
    ("true, 1, 'x', 1.5", SqlTypeError),
    ("128, 1, 'x', 1.5", DataError),
    ("1.9, 1.9, 1.9, 1", None),
    ("1e10, 1, 'x', 1", DataError),
    ("1, 3000000000, 'x', 1", DataError),
    ("1, 1, 5, 12345.678", None),
    ("1, 1, 'x', 1234567", DataError),
    ("1, 1, DATE '2024-02-29', NULL", None),
    ("1, CAST('7' AS INT), CAST(X'61' AS STRING), 0", None),
    ("1, 1, array(1), 1", SqlTypeError),
    ("1, 1, 'x'", SqlTypeError),
    ("NULL, 1, 'x', 1", DataError),  # the last, because a file's column is nullable whatever was said
]


def test_values_are_stored_as_spark_stores_them(session, shop):
    columns = "(a TINYINT NOT NULL, b INT, c STRING, d DECIMAL(8,2))"
    session.sql(f"CREATE SOURCE shop.kept {columns}")
    session.sql(f"CREATE TABLE stored {columns} USING parquet")
    for values, error in VALUES:
        outcomes = []
        # A list of values is computed here; in shards, the executors are to store what Spark computes.
        query = f"SELECT {values}" if hasattr(shop, "partitions") else f"VALUES ({values})"
        for table in ("kept", "stored"):
            try:
                session.sql(f"INSERT INTO {table} {query}")
            except QueryError as raised:
                outcomes.append(type(raised))
            else:
                outcomes.append(rows(session, f"SELECT * FROM {table}"))
        if error is None:
            assert outcomes[0] == outcomes[1], values
        else:
            assert outcomes[0] is error, values
            # Spark has no class of its own for too few values.
            assert isinstance(outcomes[1], type) or values.startswith("NULL"), values


def test_a_statement_that_fails_in_a_view_leaves_nothing_behind(session, shop):
    session.sql("CREATE INCREMENTAL VIEW shop.shares AS SELECT id, 1 / amount AS share FROM orders")
    session.sql("INSERT INTO orders VALUES (1, 'ann', 2)")
    with pytest.raises(DataError):
        session.sql("UPDATE orders SET amount = 0")
    assert (shop.epoch, shop.pending) == (1, False)
    with pytest.raises(DataError):
        shop.tick("orders", [{"id": 1, "customer": "x", "amount": Decimal(0)}])
    with pytest.raises(TickPending):
        session.sql("DELETE FROM orders")
    assert shop.pending
    shop.discard()


def test_a_view_that_cannot_be_filled_is_not_made(session, shop):
    for _ in range(2):
        session.sql("INSERT INTO orders VALUES (1, 'ann', 2)")
        with pytest.raises(DataError, match="by zero"):
            session.sql("CREATE INCREMENTAL VIEW shop.wrong AS SELECT 1 / (COUNT(*) - COUNT(*)) AS x FROM orders")
        assert shop.views == ("totals",)


def test_late_rows_are_told_and_old_ones_stay(session, shop):
    session.sql(
        "CREATE SOURCE shop.events (x INT, at DATE) WITH (event_time = 'at', lateness = '2 days', dedup = true)"
    )
    session.sql("INSERT INTO events VALUES (1, DATE '2024-01-01'), (2, DATE '2024-01-10')")
    step = only_row(session.sql("INSERT INTO events VALUES (3, DATE '2024-01-02')"))
    assert (step["late"], shop.snapshot("events").num_rows) == (1, 2)
    assert only_row(session.sql("INSERT INTO events VALUES (3, DATE '2024-01-02')"))["dropped"] == 1
    with pytest.raises(DataError, match="lateness"):
        session.sql("UPDATE events SET at = DATE '2024-01-11'")
    session.sql("DELETE FROM events WHERE x = 2")
    assert rows(session, "SELECT x FROM events") == {(1,): 1}


def test_statements_do_not_lose_each_others_changes(session, shop):
    session.sql("INSERT INTO orders VALUES (1, 'ann', 0)")
    times = 2 if hasattr(shop, "partitions") else 10

    def count():
        for _ in range(times):
            session.sql("UPDATE orders SET amount = amount + 1")

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(session, "SELECT CAST(amount AS INT) FROM orders") == {(3 * times,): 1}


def test_statements_that_read_each_others_flows_do_not_wait_for_each_other(session, shop):
    session.sql("CREATE SOURCE other.items (x BIGINT)")
    times = 3 if hasattr(shop, "partitions") else 10

    def copy(statement):
        for _ in range(times):
            session.sql(statement)

    statements = (
        "INSERT INTO shop.orders (id) SELECT COUNT(*) FROM other.items",
        "INSERT INTO other.items SELECT COUNT(*) FROM shop.orders",
    )
    threads = [threading.Thread(target=copy, args=[statement], daemon=True) for statement in statements]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert (shop.epoch, session.flow("other").epoch) == (times, times)


MISTAKES = [
    ("INSERT INTO orders SELECT nope FROM orders", ColumnNotFound, "nope", 27),
    ("UPDATE orders SET amount = soundex(nope)", ColumnNotFound, "nope", 36),
    ("DELETE FROM orders WHERE id = (SELECT x FROM nowhere)", TableNotFound, "nowhere", 46),
    ("UPDATE orders SET nope = 1", ColumnNotFound, "nope", None),
    ("UPDATE orders SET id = 1, ID = 2", SqlTypeError, "twice", None),
    ("UPDATE orders SET customer.name = 1", UnsupportedError, "whole columns", None),
    ("INSERT INTO totals VALUES (1, 2)", ConfigError, "not a source", None),
    ("DROP SOURCE totals", ConfigError, "not a source", None),
    ("DROP SOURCE orders", ConfigError, "totals reads it", None),
    ("DROP INCREMENTAL VIEW nothing", TableNotFound, "nothing", None),
    ("DESCRIBE SOURCE nothing", TableNotFound, "nothing", None),
    ("SHOW SOURCES IN nowhere", ConfigError, "nowhere", None),
    ("CREATE SOURCE shop.Orders (id INT)", AlreadyExists, "Orders", None),
    ("CREATE INCREMENTAL VIEW shop.v AS SELECT nope FROM shop.orders", ColumnNotFound, "nope", 42),
    ("CREATE INCREMENTAL VIEW shop.v AS SELECT * FROM nowhere", TableNotFound, "nowhere", 49),
    ("CREATE INCREMENTAL VIEW v AS SELECT * FROM orders", TableNotFound, "orders", 44),
    ("CREATE OR REPLACE INCREMENTAL VIEW shop.totals AS SELECT nope FROM orders", ColumnNotFound, "nope", 58),
    ("EXPLAIN INCREMENTAL SELECT nope FROM shop.orders", ColumnNotFound, "nope", 28),
]


def test_errors_are_typed_and_say_where(session, shop):
    for statement, error, message, column in MISTAKES:
        with pytest.raises(WeirflowError) as caught:
            session.sql(statement)
        assert isinstance(caught.value, error), statement
        assert message in caught.value.message, statement
        if column is not None:
            assert (caught.value.position.line, caught.value.position.column) == (1, column), statement
        assert (shop.epoch, shop.views) == (0, ("totals",)), statement


def test_views_are_replaced_refreshed_and_explained(session, shop):
    session.sql("INSERT INTO orders VALUES (1, 'ann', 2)")
    session.sql("CREATE INCREMENTAL VIEW shop.best WITH (mode = 'diff') AS SELECT MAX(t) AS t FROM totals")
    watch = shop.watch_output("best")
    changed = "SELECT customer, SUM(CAST(amount * 2 AS DECIMAL(10,2))) AS t FROM shop.orders GROUP BY customer"
    session.sql(f"CREATE OR REPLACE INCREMENTAL VIEW shop.totals AS {changed}")
    session.sql("CREATE INCREMENTAL VIEW IF NOT EXISTS shop.totals AS SELECT 1")
    assert rows(session, "SELECT * FROM best") == {(Decimal("4.00"),): 1}
    assert list(watch.get(0)[1].weights) == [1, -1]
    session.sql("REFRESH best")
    session.sql("REFRESH INCREMENTAL VIEW shop.best")
    assert (shop.epoch, watch.get(0)) == (4, None)
    assert only_row(session.sql("EXPLAIN INCREMENTAL best"))["plan"].startswith("best: diff-based")
    assert "aggregate" in only_row(session.sql("EXPLAIN INCREMENTAL totals"))["plan"]
    plan = only_row(session.sql("EXPLAIN INCREMENTAL SELECT approx_top_k(customer) FROM orders"))["plan"]
    assert "FUNCTION_NOT_PROVEN" in plan
    plan = only_row(session.sql("EXPLAIN INCREMENTAL SELECT printf(customer) FROM orders"))["plan"]
    in_shards = Capability.SHARDS in shop.capabilities
    assert ("SPARK_NOT_ON_EXECUTORS" if in_shards else "evaluated by Spark on the delta: printf(customer)") in plan


def test_what_there_is_can_be_seen(session, shop):
    session.sql("CREATE SOURCE people (name STRING PRIMARY KEY)")
    session.sql("INSERT INTO orders VALUES (1, 'ann', 2)")
    assert session.sql("SHOW SOURCES").to_arrow().to_pylist() == [
        {"flow": "default", "name": "people", "rows": 0, "key": "name"},
        {"flow": "shop", "name": "orders", "rows": 1, "key": None},
    ]
    assert session.sql("SHOW INCREMENTAL VIEWS IN shop").to_arrow().to_pylist() == [
        {"flow": "shop", "name": "totals", "rows": 1, "mode": "incremental", "reads": "orders"}
    ]
    described = session.sql("DESCRIBE totals").to_arrow().to_pylist()
    assert [tuple(row.values()) for row in described] == [
        ("customer", "string"),
        ("t", "decimal(20,2)"),
        ("", ""),
        ("# Incremental", ""),
        ("Flow", "shop"),
        ("Mode", "incremental"),
        ("Rows", "1"),
        ("Epoch", "1"),
        ("Settings", "time zone UTC, ANSI, names not case sensitive"),
    ]


def test_dropped_names_are_gone_and_may_be_made_again(session, shop):
    session.sql("INSERT INTO orders VALUES (1, 'ann', 2)")
    assert session.sql("SELECT * FROM totals").count() == 1
    session.sql("DROP INCREMENTAL VIEW totals")
    session.sql("CREATE INCREMENTAL VIEW shop.totals AS SELECT MAX(id) AS id FROM orders")
    assert rows(session, "SELECT id FROM totals") == {(1,): 1}
    session.sql("DROP INCREMENTAL VIEW totals")
    session.sql("DROP INCREMENTAL VIEW IF EXISTS totals")
    with pytest.raises(TableNotFound):
        session.sql("SELECT * FROM totals")
    session.sql("CREATE INCREMENTAL VIEW shop.totals AS SELECT COUNT(*) AS n FROM orders")
    assert rows(session, "SELECT * FROM totals") == {(1,): 1}


def test_a_name_in_two_flows_needs_that_of_its_flow(session, shop):
    session.sql("CREATE SOURCE other.orders (x INT)")
    session.sql("INSERT INTO shop.orders VALUES (7, 'ann', 2)")
    session.sql("INSERT INTO other.orders SELECT id FROM shop.orders")
    session.sql("INSERT INTO other.orders SELECT length(soundex('a')) + o.id FROM shop.orders o")
    for statement in ("SELECT * FROM orders", "INSERT INTO orders VALUES (1)", "DESCRIBE orders"):
        with pytest.raises(ConfigError, match=r"(?s)Several flows.*shop.orders or other.orders"):
            session.sql(statement)
    query = "SELECT orders.x, s.id FROM other.orders CROSS JOIN shop.orders s"
    assert rows(session, query) == {(7, 7): 1, (11, 7): 1}
    session.sql("CREATE TABLE copy AS SELECT * FROM other.orders")
    session.sql("MERGE INTO other.orders t USING other.orders s ON t.x = s.x WHEN MATCHED THEN UPDATE SET x = s.x * 2")
    assert rows(session, "SELECT x FROM other.orders") == {(14,): 1, (22,): 1}
    assert rows(session, "SELECT x FROM copy") == {(7,): 1, (11,): 1}


def test_tables_go_before_sources(session, shop):
    session.sql("CREATE TABLE plain (a INT) USING parquet")
    with pytest.raises(AlreadyExists, match="plain"):
        session.sql("CREATE SOURCE plain (a INT)")
    shop.register_source("plain", "a INT")
    session.sql("INSERT INTO plain VALUES (1)")
    session.sql("INSERT INTO shop.plain SELECT a + 1 FROM plain")
    assert rows(session, "SELECT * FROM plain") == {(1,): 1}
    assert shop.snapshot("plain").to_pylist() == [{"a": 2}]
    assert session.sql("DESCRIBE plain").columns == ["col_name", "data_type", "comment"]
    session.sql("INSERT INTO plain SELECT id FROM orders")
    with pytest.raises(TableNotFound):
        session.sql("INSERT INTO nowhere VALUES (1)")


def test_a_table_may_have_the_name_of_a_keyword(session, shop):
    session.sql("SELECT 1 AS a").createOrReplaceTempView("source")
    try:
        assert [row["col_name"] for row in session.sql("DESC source").to_arrow().to_pylist()] == ["a"]
    finally:
        session.drop("source")


def test_a_change_that_begins_with_another_word_is_refused(session, shop):
    for sql in (
        "WITH n AS (SELECT 1L AS id, 'ann' AS customer, 2 AS amount) INSERT INTO orders SELECT * FROM n",
        "FROM (SELECT 1L AS id, 'ann' AS customer, 2 AS amount) INSERT INTO shop.orders SELECT *",
    ):
        with pytest.raises(UnsupportedError, match="cannot begin with WITH or FROM") as caught:
            session.sql(sql)
        assert "INSERT INTO name WITH" in caught.value.hint
    session.sql("INSERT INTO orders WITH n AS (SELECT 1L AS id, 'ann' AS customer, 2 AS amount) SELECT * FROM n")
    assert rows(session, "SELECT * FROM orders") == {(1, "ann", Decimal("2.00")): 1}


def test_a_durable_session_finds_its_flows_when_it_is_opened_again(tmp_path, open_durable):
    with open_durable(tmp_path) as durable:
        durable.sql("CREATE SOURCE orders (customer STRING, amount BIGINT)")
        durable.sql("CREATE INCREMENTAL VIEW totals AS SELECT customer, SUM(amount) AS t FROM orders GROUP BY customer")
        durable.sql("INSERT INTO orders VALUES ('ann', 1)")
        durable.sql("CREATE SOURCE shop.items (x INT)")
    with open_durable(tmp_path) as durable:
        assert rows(durable, "SELECT * FROM totals") == {("ann", 1): 1}
    with open_durable(tmp_path) as durable:
        assert only_row(durable.sql("INSERT INTO orders VALUES ('ann', 2)"))["epoch"] == 2
        names = [row["name"] for row in durable.sql("SHOW SOURCES").to_arrow().to_pylist()]
        assert names == ["orders", "items"]
        assert durable.table("totals").to_arrow().to_pylist() == [{"customer": "ann", "t": 3}]
        durable.flow("shop").close()
        with durable.flow("default"), open_durable(tmp_path) as second:
            with pytest.raises(TableNotFound) as caught:
                second.sql("DESCRIBE SOURCE orders")
            assert "'default' could not be searched" in caught.value.hint
            with pytest.raises(FlowError, match="open in another"):
                second.sql("SHOW SOURCES")
            assert second.sql("SHOW SOURCES IN shop").to_arrow().num_rows == 1


def test_the_command_line_runs_statements_one_after_the_other(tmp_path, weirflow_durable):
    def weirflow(sql, code=0):
        done = weirflow_durable("sql", "--path", tmp_path / "shop", "--json", "-", stdin=sql, code=code)
        return json.loads(done.stdout if code == 0 else done.stderr)

    weirflow(
        """
        CREATE SOURCE orders (customer STRING, amount BIGINT);  -- a bag; of rows
        CREATE INCREMENTAL VIEW totals AS SELECT customer, SUM(amount) AS t FROM orders GROUP BY customer;
        INSERT INTO orders VALUES (';', 30);
        CREATE FLOW spread WITH (partitions = 2);
        CREATE SOURCE spread.items (x BIGINT)
        """
    )
    assert weirflow("INSERT INTO items SELECT id FROM range(3); SELECT SUM(x) FROM items")["rows"] == [[3]]
    assert weirflow("INSERT INTO orders VALUES (';', 5); SELECT * FROM totals;")["rows"] == [[";", 35]]
    error = weirflow("DELETE FROM orders;\nSELECT nope FROM totals", code=1)["error"]
    assert (error["code"], error["line"], error["column"]) == ("COLUMN_NOT_FOUND", 2, 8)
    assert weirflow("SELECT 1; SELECT 2", code=1)["error"]["code"] == "CONFIG_INVALID"


def test_a_query_has_one_epoch_whatever_others_read_meanwhile(session):
    with session.flow("one_epoch") as flow:
        flow.register_source("given", "id BIGINT")
        for view in ("left_of_it", "right_of_it"):
            flow.register_view(view, "SELECT id FROM given")
        flow.tick("given", [{"id": 1}])
        runs = []

        def run(text):
            if not runs:  # others' queries come between this one's and its analysis
                flow.tick("given", [{"id": 2}])
                session.sql("SELECT * FROM left_of_it").to_arrow()
                session.sql("SELECT * FROM one_epoch.left_of_it").to_arrow()
            runs.append(text)
            return session.spark.sql(text)

        for l_name, r_name in (("left_of_it", "right_of_it"), ("one_epoch.left_of_it", "one_epoch.right_of_it")):
            runs.clear()
            query = f"SELECT (SELECT count(*) FROM {l_name}) AS l, (SELECT count(*) FROM {r_name}) AS r"
            [row] = session._flows_sql().reading(query, run, repeats=True).collect()
            assert row.l == row.r
            assert len(runs) == 2
