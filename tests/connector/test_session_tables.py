"""Views over Delta and Iceberg tables of the Session, and such tables of a durable Session that is opened again."""

from collections import Counter

import pyarrow as pa
import pytest
from support.connectors import available_connectors, require_connectors
from support.shared_session import SETTINGS

from weirflow import Session

NAMES = {"delta": "people", "iceberg": "iceberg.flows.people"}


@pytest.fixture(autouse=True)
def _connectors():
    require_connectors("iceberg", "delta")


def rows(table):
    return Counter(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("kind", ["iceberg", pytest.param("delta", marks=pytest.mark.campaign)])
def test_a_table_is_a_snapshot_until_it_is_refreshed(session, kind):
    name = NAMES[kind]
    session.sql(f"CREATE TABLE {name} (id BIGINT, name STRING) USING {kind}").collect()
    try:
        session.sql(f"INSERT INTO {name} VALUES (1, 'Ada'), (2, 'Bob')").collect()
        with session.flow("outside") as flow:
            flow.register_source("orders", "person BIGINT, amount INT")
            flow.register_view(
                "named", f"SELECT p.name, sum(amount) AS n FROM orders JOIN {name} p ON person = p.id GROUP BY 1"
            )
            people, orders = session.table(name), flow.table("orders")
            flow.register_view("framed", orders.join(people, orders.person == people.id).select("name"))
            flow.tick("orders", [{"person": 1, "amount": 5}, {"person": 2, "amount": 7}])
            session.sql(f"UPDATE {name} SET name = 'Bea' WHERE id = 2").collect()
            session.sql(f"DELETE FROM {name} WHERE id = 1").collect()
            assert rows(flow.snapshot("named")) == Counter([("Ada", 5), ("Bob", 7)])
            assert f"{name}: its rows as they were when last refreshed" in flow.explain("named")
            session.sql("REFRESH INCREMENTAL VIEW named").collect()
            assert rows(flow.snapshot("named")) == Counter([("Bea", 7)])
            assert rows(flow.snapshot("framed")) == Counter([("Bea",)])
    finally:
        session.drop(name)


@pytest.mark.campaign
def test_tables_of_a_durable_session_are_there_again(exclusive_spark, tmp_path):
    packages = available_connectors("iceberg", "delta")
    parts = pa.table({"k": ["a", "b", "a"], "n": pa.array([1, 2, 3], pa.int32())})
    for opened in range(2):
        with Session.single_node(tmp_path / "kept", packages=packages, **SETTINGS) as session:
            if not opened:
                session.register("source", parts)
                session.sql("CREATE TABLE iceberg.db.parts USING iceberg PARTITIONED BY (k) AS SELECT * FROM source")
            else:
                assert session.table("iceberg.db.parts").orderBy("n").to_arrow().equals(parts)
                session.from_arrow(parts).write_table("iceberg.db.parts", format="iceberg", mode="append")
                both = parts.take([0, 0, 1, 1, 2, 2])
                assert session.table("iceberg.db.parts").orderBy("n").to_arrow().equals(both)
            for kind, name in NAMES.items():
                if not opened:
                    session.sql(f"CREATE TABLE {name} (id BIGINT) USING {kind}").collect()
                    session.sql(f"ALTER TABLE {name} ADD COLUMNS (age INT)").collect()
                session.sql(f"INSERT INTO {name} VALUES ({opened}, 30)").collect()
                found = session.sql(f"SELECT id, age FROM {name}").collect()
                assert sorted(map(tuple, found)) == [(at, 30) for at in range(opened + 1)]
