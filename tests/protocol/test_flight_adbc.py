"""Flight SQL as ADBC's driver speaks it: statements, parameters, partitions, metadata, ingest, cancel."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import adbc_driver_manager as manager
import pyarrow as pa
import pytest
from support.flight import HEADER, Flighted, flighted
from support.server import eventually

from weirflow.server.results.spool import SpoolLimits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from weirflow import Session


@pytest.fixture
def served(session: Session, tmp_path: Path) -> Iterator[Flighted]:
    flow = session.flow("shop")
    flow.register_source("orders", "id BIGINT, who STRING, amount DOUBLE", key="id")
    flow.register_view("totals", "SELECT who, sum(amount) AS total FROM orders GROUP BY who")
    flow.tick("orders", [{"id": 1, "who": "ann", "amount": 2.5}, {"id": 2, "who": "bob", "amount": 4.0}])
    with flighted(session, tmp_path, SpoolLimits(result_bytes=4 << 20)) as opened:
        yield opened
    flow.close()


def asked(cursor: Any, sql: str, params: tuple[Any, ...] | None = None) -> list[dict[str, Any]]:
    cursor.execute(sql, params)
    return cursor.fetch_arrow_table().to_pylist()


def test_statements_parameters_and_changes(served: Flighted) -> None:
    with served.adbc() as connection, connection.cursor() as cursor:
        assert asked(cursor, "SELECT * FROM shop.totals ORDER BY who") == [
            {"who": "ann", "total": 2.5},
            {"who": "bob", "total": 4.0},
        ]
        assert asked(cursor, "SELECT id FROM orders WHERE id = ? AND who = ? LIMIT ?", (2, "bob", 5)) == [{"id": 2}]
        cursor.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(3, "ann", 1.0), (4, "cat", 7.0)])
        cursor.adbc_statement.set_sql_query("UPDATE orders SET amount = 8.0 WHERE id = 4")
        assert cursor.adbc_statement.execute_update() == 2
        assert asked(cursor, "SELECT * FROM totals ORDER BY who") == [
            {"who": "ann", "total": 3.5},
            {"who": "bob", "total": 4.0},
            {"who": "cat", "total": 8.0},
        ]
        assert asked(cursor, "SHOW SOURCES") == [{"flow": "shop", "name": "orders", "rows": 4, "key": "id"}]


def test_each_partition_of_a_result_is_an_endpoint_that_is_fetched_again_and_in_parallel(served: Flighted) -> None:
    with served.adbc() as connection, connection.cursor() as cursor:
        partitions, schema = cursor.adbc_execute_partitions("SELECT id, id % 7 AS m FROM range(0, 1000, 1, 4)")
        assert (len(partitions), schema.names) == (4, ["id", "m"])
        found: list[list[int]] = []

        def read(partition: bytes) -> None:
            with served.adbc() as other, other.cursor() as own:
                own.adbc_read_partition(partition)
                found.append(own.fetch_arrow_table().column("id").to_pylist())

        readers = [threading.Thread(target=read, args=(one,)) for one in (*partitions, *partitions)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert sorted(number for part in found for number in part) == sorted(2 * list(range(1000)))
        assert {len(part) for part in found} == {250}


def test_an_order_is_kept_and_columns_may_have_one_name(served: Flighted) -> None:
    with served.adbc() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT -id AS `a.b`, id AS x, id AS x FROM range(0, 5000, 1, 4) ORDER BY id DESC")
        table = cursor.fetch_arrow_table()
        assert table.column_names == ["a.b", "x", "x"]
        assert table.column(1).to_pylist() == list(range(4999, -1, -1))


def test_what_there_is_is_listed_for_those_who_may_see_it(served: Flighted) -> None:
    def tables(connection: Any) -> dict[str, dict[str, list[str]]]:
        found = connection.adbc_get_objects(depth="tables", table_name_filter="%t%").read_all().to_pylist()
        return {
            schema["db_schema_name"]: {one["table_name"]: one["table_type"] for one in schema["db_schema_tables"]}
            for catalog in found
            for schema in catalog["catalog_db_schemas"]
        }

    with served.adbc() as connection:
        assert tables(connection)["shop"] == {"totals": "VIEW"}
        assert connection.adbc_get_table_schema("orders", db_schema_filter="shop").names == ["id", "who", "amount"]
        assert connection.adbc_get_info()["vendor_name"] == "Weirflow"
        assert sorted(connection.adbc_get_table_types()) == ["TABLE", "VIEW"]
    _, secret = served.coordinator.gate.tokens.create("guest", "reader", flows=("nothing",))  # type: ignore[arg-type]
    with served.adbc(**{HEADER: f"Bearer {secret}"}) as guest:
        assert "shop" not in tables(guest)


def test_rows_are_ingested_into_sources_and_tables(served: Flighted, session: Session) -> None:
    rows = pa.table({"amount": [1.0, 2.0], "id": [10, 11], "who": ["dan", "dan"]})
    with served.adbc() as connection:
        with connection.cursor() as cursor:
            assert cursor.adbc_ingest("orders", rows, mode="append", db_schema_name="shop") == 2
            assert asked(cursor, "SELECT total FROM totals WHERE who = 'dan'") == [{"total": 3.0}]
        with connection.cursor() as cursor:
            assert cursor.adbc_ingest("taken_in", rows, mode="create") == 2
            assert cursor.adbc_ingest("taken_in", rows.select(["who", "id", "amount"]), mode="append") == 2
            with pytest.raises(manager.Error, match="ALREADY_EXISTS"):
                cursor.adbc_ingest("taken_in", rows, mode="create")
            assert asked(cursor, "SELECT id, who, amount FROM taken_in ORDER BY id, amount") == [
                {"id": 10, "who": "dan", "amount": 1.0},
                {"id": 10, "who": "dan", "amount": 1.0},
                {"id": 11, "who": "dan", "amount": 2.0},
                {"id": 11, "who": "dan", "amount": 2.0},
            ]
        with pytest.raises(manager.Error, match="TABLE_NOT_FOUND"), connection.cursor() as cursor:
            cursor.adbc_ingest("not_there", rows, mode="append")


def test_a_query_that_is_cancelled_ends_in_spark(served: Flighted, session: Session) -> None:
    with served.adbc() as connection, connection.cursor() as cursor:
        errors: list[BaseException] = []

        def run() -> None:
            try:
                cursor.execute("SELECT count(*) FROM range(0, 4000000000000, 1, 2) WHERE hash(id) = 7")
            except manager.Error as error:
                errors.append(error)

        running = threading.Thread(target=run)
        running.start()
        eventually(lambda: [one for one in session.operations if one.progress.total], 60.0)
        cursor.adbc_cancel()
        running.join(30.0)
        assert not running.is_alive()
        assert isinstance(errors[0], manager.OperationalError)
        eventually(lambda: not list(session.operations), 30.0)
        tracker = session.spark.sparkContext.statusTracker()
        eventually(lambda: not tracker.getActiveJobsIds(), 30.0)
        assert asked(cursor, "SELECT 1 AS one") == [{"one": 1}]
        assert len(served.spool) == 1  # nothing is left of what was cancelled


def test_a_result_that_is_too_large_is_refused_and_leaves_nothing(served: Flighted) -> None:
    with served.adbc() as connection, connection.cursor() as cursor:
        with pytest.raises(manager.Error, match="RESULT_TOO_LARGE"):
            cursor.execute("SELECT id, repeat('x', 100) FROM range(0, 1000000, 1, 4)")
        assert served.spool.size == 0


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELEC 1", "SQL_SYNTAX"),
        ("SELECT * FROM nowhere", "TABLE_NOT_FOUND"),
        ("SELECT 1 / 0", "DATA_ERROR"),
        ("SELECT nothing FROM orders", "COLUMN_NOT_FOUND"),
    ],
)
def test_errors_say_their_code_and_nothing_of_the_server(served: Flighted, sql: str, code: str) -> None:
    with served.adbc() as connection, connection.cursor() as cursor:
        with pytest.raises(manager.Error) as failed:
            cursor.execute(sql)
        assert f"[{code}]" in str(failed.value)
        assert "Traceback" not in str(failed.value)
        assert "/weirflow/" not in str(failed.value)


def test_a_reader_reads_and_does_nothing_else(served: Flighted) -> None:
    rows = pa.table({"id": [5], "who": ["eve"], "amount": [1.0]})
    with served.adbc("reader") as connection:
        with connection.cursor() as cursor:
            assert asked(cursor, "SELECT count(*) AS n FROM orders") == [{"n": 2}]
            for statement in ("INSERT INTO orders VALUES (5, 'eve', 1.0)", "CREATE TABLE t (a INT)", "SET x = 1"):
                with pytest.raises(manager.ProgrammingError, match="NOT_ALLOWED"):
                    cursor.execute(statement)
        with pytest.raises(manager.ProgrammingError, match="NOT_ALLOWED"), connection.cursor() as cursor:
            cursor.adbc_ingest("orders", rows, mode="append", db_schema_name="shop")
    with served.adbc("writer") as writer, writer.cursor() as cursor:
        assert cursor.adbc_ingest("orders", rows, mode="append", db_schema_name="shop") == 1
        with pytest.raises(manager.ProgrammingError, match="NOT_ALLOWED"):
            cursor.adbc_ingest("made", rows, mode="create", db_schema_name="default", catalog_name="spark_catalog")


def test_a_subscription_is_a_result_without_an_end(served: Flighted, session: Session) -> None:
    with served.adbc("reader") as connection, connection.cursor() as cursor:
        cursor.execute("SUBSCRIBE TO shop.totals WITH (SNAPSHOT = false)")
        reader = cursor.fetch_record_batch()
        epoch = session.flow("shop").tick("orders", [{"id": 3, "who": "ann", "amount": 1.0}]).epoch
        assert reader.read_next_batch().to_pylist() == [
            {"who": "ann", "total": 2.5, "_epoch": epoch, "_weight": -1},
            {"who": "ann", "total": 3.5, "_epoch": epoch, "_weight": 1},
        ]
        cursor.adbc_cancel()
    eventually(lambda: not served.coordinator.under_way)


def test_transactions_are_refused_with_a_sentence(served: Flighted) -> None:
    with served.adbc() as connection, pytest.raises(manager.Error):
        connection.adbc_connection.set_autocommit(False)
    with served.client() as client, pytest.raises(Exception, match="no transactions"):
        list(client.do_action(("BeginTransaction", b""), served.options()))


def test_prepared_statements_are_forgotten_when_they_are_closed(served: Flighted) -> None:
    with served.adbc() as connection:
        for _ in range(3):
            with connection.cursor() as cursor:
                asked(cursor, "SHOW SOURCES")
    started = time.monotonic()
    while len(served.door._sql.prepared):
        assert time.monotonic() - started < 10.0
