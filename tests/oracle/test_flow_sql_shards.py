"""SQL about flows in shards: rows that never come here, flows that are kept and found by name."""

from collections import Counter

import pytest

from weirflow import PartitionedIncrementalFlow, Session
from weirflow.errors import (
    AlreadyExists,
    ConfigError,
    DataError,
    LeaseHeld,
    SqlSyntaxError,
    TableNotFound,
    UnsupportedError,
)
from weirflow.flows.sql import sharded_change as spread_change

MANY = 200_000
SOME = 40_000


@pytest.fixture
def shop(session):
    with session.flow("shop", partitions=2) as flow:
        yield flow


def rows(frame):
    return Counter(tuple(row.values()) for row in frame.to_arrow().to_pylist())


def only_row(frame):
    (row,) = frame.to_arrow().to_pylist()
    return row


@pytest.mark.campaign
def test_rows_stay_on_the_executors_and_the_flow_is_found_by_its_name_later(tmp_path, exclusive_spark):
    # Whatever comes from executors to this process in one job has a megabyte at most, and nothing is broadcast.
    conf = {"spark.driver.maxResultSize": "1m", "spark.sql.autoBroadcastJoinThreshold": "-1"}
    with Session.single_node(tmp_path, cores=2, progress="off", spark_conf=conf) as session:
        session.sql("CREATE FLOW big WITH (partitions = 2)")
        session.sql("CREATE SOURCE big.orders (id BIGINT, customer STRING, amount BIGINT)")
        session.sql("CREATE INCREMENTAL VIEW big.total AS SELECT COUNT(*) AS n, SUM(amount) AS t FROM orders")
        step = session.sql(f"INSERT INTO orders SELECT id, concat('a customer of number ', id), 1 FROM range({MANY})")
        assert only_row(step) == {"epoch": 1, "rows_in": MANY, "rows_out": 2, "late": 0, "dropped": 0}
        session.sql(f"DELETE FROM orders WHERE id >= {SOME}")
        session.sql("UPDATE orders SET amount = 2")
        assert only_row(session.sql("SELECT * FROM total")) == {"n": SOME, "t": 2 * SOME}
        session.sql(
            f"MERGE INTO orders o USING (SELECT id * 4 AS id FROM range({SOME // 2})) n ON o.id = n.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (n.id, 5)"
        )
        assert only_row(session.sql("SELECT * FROM total")) == {"n": SOME, "t": 6 * SOME // 4 + 5 * SOME // 4}
        with pytest.raises(DataError, match="does not fit"):
            session.sql(f"INSERT INTO orders SELECT id * 1e300, '', 0 FROM range({MANY})")
        session.sql("DELETE FROM orders WHERE id > 10")
        left = rows(session.sql("SELECT id, amount FROM orders"))
        with pytest.raises(Exception, match="maxResultSize"):
            session.sql(f"SELECT id, uuid() FROM range({MANY})").to_arrow()
        session.sql("CREATE SOURCE here.things (x INT)")
    with Session.single_node(tmp_path, cores=2, progress="off") as session:
        session.sql("INSERT INTO things VALUES (1)")
        assert only_row(session.sql("SELECT * FROM things")) == {"x": 1}
        with PartitionedIncrementalFlow(session, name="big") as flow:  # nobody has opened it here
            assert flow.epoch == 5
            with pytest.raises(LeaseHeld):
                session.sql("DELETE FROM big.orders")
            with pytest.raises(TableNotFound) as caught:
                session.sql("DESCRIBE SOURCE orders")
            assert "'big' could not be searched" in caught.value.hint
        assert rows(session.sql("SELECT id, amount FROM orders")) == left
        assert only_row(session.sql("INSERT INTO orders (id, amount) VALUES (100, 100)"))["epoch"] == 6
        shown = session.sql("SHOW SOURCES").to_arrow().to_pylist()
        assert [(row["flow"], row["name"], row["rows"]) for row in shown] == [
            ("big", "orders", left.total() + 1),
            ("here", "things", 1),
        ]
        for name, options, refusal in (("big", {}, "in partitions"), ("here", {"partitions": 2}, "in this process")):
            for is_open in (True, False):
                with pytest.raises(ConfigError, match=f"{name!r}.*{refusal}"):
                    session.flow(name, **options)
                if is_open:
                    session.flow(name, **({} if options else {"partitions": 2})).close()


def test_two_flows_of_one_name_that_were_kept_are_refused(tmp_path):
    (tmp_path / "flows" / "shop").mkdir(parents=True)
    (tmp_path / "flows" / "shop" / "identity").write_text("1")
    (tmp_path / "partitioned" / "shop" / "commits").mkdir(parents=True)
    with Session.single_node(tmp_path) as session:
        for options in ({}, {"partitions": 2}):
            with pytest.raises(ConfigError, match="Two flows are kept as 'shop'"):
                session.flow("shop", **options)


def test_create_flow(session):
    session.sql("CREATE FLOW spread WITH (partitions = 2)")
    session.sql("CREATE FLOW whole")
    with session.flow("spread", partitions=2) as spread, session.flow("whole") as whole:
        for name in ("spread", "whole"):
            session.sql(f"CREATE SOURCE {name}.{name}_items (x INT)")
            session.sql(f"CREATE FLOW IF NOT EXISTS {name} WITH (partitions = 7)")
            with pytest.raises(AlreadyExists, match=name):
                session.sql(f"CREATE FLOW {name.upper()}")
        assert (spread.sources, spread.partitions, whole.sources) == (("spread_items",), 2, ("whole_items",))
        session.sql("INSERT INTO spread_items SELECT id FROM range(3)")
        session.sql("INSERT INTO whole_items SELECT x + 1 FROM spread_items")
        session.sql("MERGE INTO spread_items s USING whole_items w ON s.x = w.x WHEN NOT MATCHED THEN INSERT *")
        assert rows(session.sql("SELECT * FROM spread_items")) == Counter([(0,), (1,), (2,), (3,)])
        for name, options in (("spread", {}), ("whole", {"partitions": 2})):
            with pytest.raises(ConfigError, match=name):
                session.flow(name, **options)


def test_what_is_random_is_drawn_once(session, shop):
    session.sql("CREATE SOURCE shop.draws (id BIGINT, x DOUBLE)")
    session.sql("CREATE INCREMENTAL VIEW shop.sums AS SELECT id, SUM(x) AS x FROM draws GROUP BY id")
    session.sql("CREATE INCREMENTAL VIEW shop.all_draws AS SELECT id, x FROM draws WHERE x < 1")
    session.sql("INSERT INTO draws SELECT id, rand() FROM range(50)")
    session.sql("UPDATE draws SET x = rand() WHERE rand() < 0.5")
    session.sql("DELETE FROM draws WHERE rand() < 0.3")
    drawn = rows(session.sql("SELECT * FROM draws"))
    assert rows(session.sql("SELECT * FROM sums")) == drawn
    assert rows(session.sql("SELECT * FROM all_draws")) == drawn


def test_a_source_that_notices_repetitions_takes_only_so_many_rows(session, shop, monkeypatch):
    session.sql("CREATE SOURCE shop.items (x BIGINT) WITH (dedup = true)")
    monkeypatch.setattr(spread_change, "_MOST_NOTICED", 10)
    insert = "INSERT INTO items SELECT id FROM range({})"
    assert [only_row(session.sql(insert.format(10)))["dropped"] for _ in range(2)] == [0, 10]
    with pytest.raises(UnsupportedError, match="10 rows"):
        session.sql(insert.format(11))
    assert (shop.epoch, shop.pending, session.sql("SELECT * FROM items").count()) == (2, False, 10)


def test_a_query_may_read_a_relation_more_than_once(session, shop):
    session.sql("CREATE SOURCE shop.items (x BIGINT)")
    session.sql("INSERT INTO items SELECT id FROM range(5)")
    session.sql("INSERT INTO items SELECT x + 10 FROM items UNION ALL SELECT x + 20 FROM shop.items")
    expected = Counter((start + x,) for start in (0, 10, 20) for x in range(5))
    assert rows(session.sql("SELECT x FROM items WHERE x < 10 UNION ALL SELECT x FROM items WHERE x > 9")) == expected


def test_what_was_made_is_there_before_the_first_row(session, shop):
    session.sql("CREATE SOURCE shop.items (x BIGINT)")
    assert rows(session.sql("SELECT * FROM items")) == Counter()
    session.sql("CREATE INCREMENTAL VIEW shop.sums AS SELECT SUM(x) AS s FROM items")
    assert rows(session.sql("SELECT * FROM shop.sums")) == Counter([(None,)])


def test_how_rows_are_spread_is_decided_by_what_reads_them_or_said(session, shop):
    session.sql("CREATE SOURCE shop.clicks (page STRING, ms BIGINT)")
    session.sql("CREATE SOURCE shop.pages (name STRING, topic STRING, PRIMARY KEY (name)) WITH (spread = 'everywhere')")
    assert "source clicks, by columns 0, 1" in shop.explain()
    session.sql("CREATE INCREMENTAL VIEW shop.totals AS SELECT page, SUM(ms) AS ms FROM clicks GROUP BY page")
    assert "source clicks, by columns 0 " in shop.explain()
    assert "source pages, on every shard" in shop.explain()
    session.sql("CREATE INCREMENTAL VIEW shop.topics AS SELECT topic, ms FROM totals JOIN pages ON page = name")
    session.sql("INSERT INTO pages VALUES ('home', 'news'), ('about', 'us')")
    session.sql("INSERT INTO clicks VALUES ('home', 1), ('home', 2), ('about', 5)")
    assert rows(session.sql("SELECT * FROM topics")) == Counter([("news", 3), ("us", 5)])
    with pytest.raises(SqlSyntaxError, match="cannot be spread 'evenli'") as caught:
        session.sql("CREATE SOURCE shop.more (x INT) WITH (spread = 'evenli')")
    assert "evenly" in caught.value.hint
    with pytest.raises(ConfigError, match="has no shards"):
        session.sql("CREATE SOURCE here.more (x INT) WITH (spread = 'evenly')")
