"""SQL over the client: rows, streams, parameters, timeouts, cancel, submit; and ``weirflow watch``."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from support.server import eventually, served

from weirflow import OperationState, RemoteSession
from weirflow.errors import (
    FlowNotFound,
    OperationCancelled,
    OperationTimeout,
    OperationUnknown,
    SqlSyntaxError,
    StreamNotFound,
    TableNotFound,
)

SLOW = "SELECT sum(length(sha2(repeat(CAST(id AS STRING), 200), 512))) AS s FROM range(0, 100000000, 1, 8)"


@pytest.fixture(scope="module")
def server():
    with served(flight="127.0.0.1:0", http="off") as server:
        yield server


@pytest.fixture(scope="module")
def session(server) -> Iterator[RemoteSession]:
    with RemoteSession(server.flight_url) as session:
        yield session


def test_rows_and_types(session):
    result = session.sql(
        "SELECT 1 AS i, 'é' AS s, CAST(1.20 AS DECIMAL(10,2)) AS d, DATE '2024-02-29' AS day, "
        "array(1, 2) AS a, NULL AS n"
    )
    assert "not run yet" in repr(result)
    assert result.columns == ["i", "s", "d", "day", "a", "n"]
    expected = {"i": 1, "s": "é", "d": Decimal("1.20"), "day": date(2024, 2, 29), "a": [1, 2], "n": None}
    assert result.to_arrow().to_pylist() == [expected]
    assert result.collect() == [expected]
    assert result.count() == 1


def test_a_result_of_several_parts_is_read_whole_or_batch_by_batch(session):
    result = session.sql("SELECT id, id % 7 AS k FROM range(0, 100000, 1, 4)")
    table = result.to_arrow()
    assert sorted(table["id"].to_pylist()) == list(range(100_000))
    assert sum(batch.num_rows for batch in result.to_batches()) == 100_000
    stream = result.stream()
    assert isinstance(stream, pa.RecordBatchReader)
    assert sorted(stream.read_all()["id"].to_pylist()) == list(range(100_000))
    assert pa.table(result).num_rows == 100_000
    assert session.sql("SELECT id FROM range(10) WHERE id < 0").to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("sql", "params"),
    [("SELECT :a + 1 AS x, :b AS y", {"a": 1, "b": "it's"}), ("SELECT ? + 1 AS x, ? AS y", [1, "it's"])],
)
def test_parameters(session, sql, params):
    assert session.sql(sql, params).collect() == [{"x": 2, "y": "it's"}]


def test_errors_are_those_of_a_session(session):
    with pytest.raises(SqlSyntaxError):
        session.sql("SELECT 1 +").to_arrow()
    with pytest.raises(TableNotFound) as missing:
        session.sql("SELECT *\nFROM nowhere").to_arrow()
    assert (missing.value.position.line, missing.value.position.column) == (2, 6)


def test_commands_run_at_once_and_flows_are_tables(session):
    session.sql("CREATE SOURCE sales.orders (id BIGINT, who STRING)")
    session.sql("CREATE INCREMENTAL VIEW sales.counts AS SELECT who, count(*) AS n FROM orders GROUP BY who")
    done = session.sql("INSERT INTO sales.orders VALUES (1, 'ann'), (2, 'ann'), (3, 'bob')").collect()
    assert done == [{"epoch": 1, "rows_in": 3, "rows_out": 2, "late": 0, "dropped": 0}]
    assert sorted(row["n"] for row in session.sql("SELECT n FROM sales.counts").collect()) == [1, 2]
    assert session.flow("sales").epoch == 1


def test_a_timeout_stops_the_statement_on_the_server(server, session):
    began = time.monotonic()
    with pytest.raises(OperationTimeout):
        session.sql(SLOW, timeout=1).to_arrow()
    assert time.monotonic() - began < 20
    with pytest.raises(OperationTimeout):
        session.sql_with_timeout(SLOW, 500)
    eventually(lambda: not list(server.coordinator.session.operations), 20)


def test_cancel_reaches_the_server(server, session):
    result = session.sql(SLOW)
    threading.Thread(target=lambda: eventually(lambda: _cancelled(result), 30), daemon=True).start()
    with pytest.raises(OperationCancelled):
        result.to_arrow()
    eventually(lambda: not list(server.coordinator.session.operations), 20)


def _cancelled(result) -> bool:
    try:
        return result.cancel()
    except OperationUnknown:
        return False


def test_submit_goes_on_without_its_client(server, session):
    with RemoteSession(server.flight_url) as other:
        submitted = other.submit("SELECT :n AS n", {"n": 7}).id
    found = session.operations.get(submitted)
    assert found.wait(60)
    assert found.state is OperationState.SUCCEEDED
    assert found.result().to_pylist() == [{"n": 7}]
    failing = session.submit("SELECT 1 / 0 AS x")
    assert failing.wait(60)
    with pytest.raises(Exception, match="zero"):
        failing.result()
    slow = session.submit(SLOW)
    assert not slow.wait(0.2)
    assert slow.id in [one.id for one in session.operations]
    with pytest.raises(TimeoutError):
        slow.result(0.1)
    slow.cancel()
    with pytest.raises(OperationCancelled):
        slow.result(60)
    with pytest.raises(OperationUnknown):
        session.operations.get("weirflow-none")


def test_what_else_a_session_has(session):
    assert "range" in session.explain("SELECT id FROM range(5)", "logical").lower()
    assert session.streams.active == []
    with pytest.raises(StreamNotFound):
        session.streams.get("none")
    assert "weirflow_epoch" in session.metrics() or session.metrics() == ""
    assert session.describe().role == "admin"
    assert isinstance(session.nodes(), tuple)
    with pytest.raises(FlowNotFound):
        session._connection.call("status", flow="no such flow")


def test_weirflow_watch(server, session):
    flow = session.flow("shown")
    flow.register_source("bag", "x BIGINT, price DECIMAL(10,2)")
    flow.register_view("all", "SELECT x, price FROM bag")
    flow.tick("bag", [{"x": 1, "price": Decimal("1.50")}])
    command = [sys.executable, "-m", "weirflow", "watch", "shown.all", "--server", server.flight_url, "--epochs", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        first = json.loads(watching.stdout.readline())
        assert first == {"x": 1, "price": "1.50", "_epoch": 1, "_weight": 1}
        flow.tick("bag", [{"x": 2, "price": None}])
        assert json.loads(watching.stdout.readline()) == {"x": 2, "price": None, "_epoch": 2, "_weight": 1}
        assert watching.wait(30) == 0
    refused = subprocess.run([*command[:4], "shown.none", *command[5:]], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "TABLE_NOT_FOUND" in refused.stderr
