"""A flow in shards over Spark Connect: the same results, its files in a folder that client and server reach."""

import pytest

from weirflow import Session
from weirflow.errors import ConfigError, UnsupportedError


def test_a_flow_on_a_connect_server(connect_server, tmp_path):
    with Session.distributed(connect_server.url, token=connect_server.token) as session:
        with pytest.raises(ConfigError, match="all executors reach"):
            session.flow("shop", partitions=2)
        flow = session.flow("shop", partitions=2, path=tmp_path / "flow")
        flow.register_source("orders", "id BIGINT, customer STRING")
        flow.register_view("totals", "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer")
        flow.tick("orders", session.sql("SELECT id, concat('c', id % 3) AS customer FROM range(30)"))
        flow.tick("orders", [{"id": 100, "customer": "c0"}])
        found = {row["customer"]: row["n"] for row in flow.snapshot("totals").to_pylist()}
        assert found == {"c0": 11, "c1": 10, "c2": 10}
        assert {row.customer: row.n for row in flow.frame("totals").collect()} == found
        with pytest.raises(UnsupportedError, match="Spark Connect"):
            flow.attach(session.spark.readStream.format("rate").load(), "orders")
