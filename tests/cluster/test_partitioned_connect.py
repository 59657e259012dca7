"""A flow in shards over Spark Connect: the same results, its files in a folder that client and server reach."""

import pytest

from weirflow import Session
from weirflow.errors import ColumnNotFound, ConfigError, DataError, SqlPosition, UnsupportedError


def test_a_flow_on_a_connect_server(connect_server, tmp_path):
    with Session.distributed(connect_server.url, token=connect_server.token) as session:
        for make in (
            lambda: session.flow("shop", partitions=2),
            lambda: session.sql("CREATE SOURCE shop.orders (id INT)"),
        ):
            with pytest.raises(ConfigError, match="all executors can reach"):
                make()
        flow = session.flow("shop", partitions=2, path=tmp_path / "flow")
        flow.register_source("orders", "id BIGINT, customer STRING")
        flow.register_view("totals", "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer")
        flow.tick("orders", session.sql("SELECT id, concat('c', id % 3) AS customer FROM range(30)"))
        flow.tick("orders", [{"id": 100, "customer": "c0"}])
        found = {row["customer"]: row["n"] for row in flow.snapshot("totals").to_pylist()}
        assert found == {"c0": 11, "c1": 10, "c2": 10}
        assert {row.customer: row.n for row in flow.frame("totals").collect()} == found
        change_by_statements(session)
        with pytest.raises(UnsupportedError, match="Spark Connect"):
            flow.attach(session.spark.readStream.format("rate").load(), "orders")


def change_by_statements(session):
    session.sql("CREATE SOURCE shop.people (id BIGINT, name STRING, PRIMARY KEY (id))")
    session.sql("INSERT INTO people VALUES (1, 'ann'), (2, 'bob')")
    session.sql("INSERT INTO people SELECT id, customer FROM orders WHERE id BETWEEN 2 AND 4")
    session.sql("UPDATE people SET id = id + 10 WHERE name = (SELECT MAX(name) FROM people)")
    session.sql(
        "MERGE INTO people p USING (SELECT explode(array(1, 5)) AS id) n ON p.id = n.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)"
    )
    session.sql("DELETE FROM people WHERE id = 4")
    found = session.sql("SELECT id, name FROM people ORDER BY id").to_arrow().to_pylist()
    assert found == [{"id": 3, "name": "c0"}, {"id": 5, "name": None}, {"id": 12, "name": "c2"}]
    with pytest.raises(DataError, match="several rows for one key of 'people'"):
        session.sql("UPDATE people SET id = 3")
    with pytest.raises(DataError, match="does not fit the column 'id'"):
        session.sql("INSERT INTO people SELECT 1e30, 'x'")
    with pytest.raises(ColumnNotFound) as caught:
        session.sql("DELETE FROM people WHERE nope")
    assert caught.value.position == SqlPosition(1, 26, "nope")
