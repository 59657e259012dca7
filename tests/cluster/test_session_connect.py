"""A Session on a Spark Connect server: the same API, rows and errors as on local Spark."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from support.hang import HangingEndpoint, dead_port
from support.processes import descendants, java_children, wait_until

from weirflow import Session
from weirflow.errors import (
    AlreadyExists,
    AuthenticationFailed,
    ColumnNotFound,
    DataError,
    EndpointUnreachable,
    FunctionNotFound,
    OperationCancelled,
    OperationTimeout,
    OperationUnknown,
    PathNotFound,
    SessionClosed,
    SessionConflict,
    SqlSyntaxError,
    SqlTypeError,
    TableNotFound,
    UnsupportedError,
    UserCodeError,
    WeirflowError,
)
from weirflow.types import OperationState

WRONG = "canary-wrong-token"
ENDPOINT_SECONDS = 15.0
# Minutes of work in the JVM, and in Python; the latter starts its tasks one by one.
LONG = "SELECT count(*) FROM range(0, 1000000000000, 1, 8) WHERE id % 7 = 3"
LONG_PYTHON = "SELECT sum(wait(id)) FROM range(0, 400, 1, 400)"
QUICK = "SELECT sum(id) AS total FROM range(0, 1000, 1, 4)"

TABLE = pa.table({"a": pa.array([1, 2, 2], pa.int64()), "b": pa.array(["x", "é", None], pa.string())})

BAD_QUERIES = {
    "no SQL": ("SELEC 1", SqlSyntaxError),
    "no SQL in line 2": ("SELECT a\nFRM t WHERE", SqlSyntaxError),
    "unknown table": ("SELECT *\n  FROM ordres", TableNotFound),
    "unknown column": ("SELECT amuont\nFROM orders", ColumnNotFound),
    "unknown function": ("SELECT 1,\n       no_such(id) FROM orders", FunctionNotFound),
    "types that do not fit": ("SELECT array(1) + 1", SqlTypeError),
    "division by zero": ("SELECT id / (id - 1) FROM orders", DataError),
    "a cast that cannot be": ("SELECT CAST(name AS INT) FROM orders", DataError),
    "overflow": ("SELECT CAST(9223372036854775807 AS BIGINT) + id FROM orders", DataError),
    "a Python function that raises": ("SELECT boom(id) FROM orders", UserCodeError),
}


def add_functions(session):
    """Defined here, and not in the module, they travel to the workers by value."""

    def boom(number):
        raise ValueError(f"boom {number}")

    def wait(number):
        time.sleep(0.2)
        return number

    session.udf("boom", boom, "int")
    session.udf("wait", wait, "bigint")


def outcome(call):
    """All that a user can see of an error."""
    with pytest.raises(WeirflowError) as caught:
        call()
    error = caught.value
    position = getattr(error, "position", None)
    return type(error), error.code, error.message, error.hint, position, getattr(error, "condition", None)


def bad_outcomes(session, folder):
    session.register("orders", [{"id": 1, "name": "a", "amount": 1.5}])

    def run(query):
        return outcome(lambda: session.sql(query).to_arrow())

    return {
        **{name: run(query) for name, (query, _) in BAD_QUERIES.items()},
        "unknown path": outcome(lambda: session.read_parquet(folder / "orders.parqet").to_arrow()),
        "unknown column of a frame": outcome(lambda: session.table("orders").select("amuont").to_arrow()),
        "unknown table by name": outcome(lambda: session.read_table("ordres").to_arrow()),
        "drop of an unknown table": outcome(lambda: session.drop("ordres")),
        "view exists": run("CREATE TEMPORARY VIEW orders AS SELECT 1"),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "orders.parquet").touch()
    return folder


@pytest.fixture(scope="module")
def embedded(own_spark, connect_server, folder):
    """What local Spark says to the bad queries, and to a Connect session beside it."""
    own_spark()
    with Session.embedded(cores=2, driver_memory="1g") as local:
        add_functions(local)
        outcomes = bad_outcomes(local, folder)
        with Session.distributed(connect_server.url, token=connect_server.token) as beside:
            outcomes["Connect beside local Spark"] = outcome(lambda: beside.sql("SELECT 1"))
    return outcomes


@pytest.fixture(scope="module")
def session(embedded, connect_server):
    with Session.distributed(connect_server.url, token=connect_server.token) as opened:
        add_functions(opened)
        yield opened


@pytest.fixture
def table(session):
    """``TABLE`` under the name ``t``."""
    return session.register("t", TABLE)


# Rows in and out


def test_rows_of_every_type_come_back_as_they_were(session):
    rows = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            "d": pa.array([Decimal("-1.10"), None], pa.decimal128(20, 2)),
            "t": pa.array([-1, None], pa.timestamp("us", "UTC")),
            "day": pa.array([0, None], pa.date32()),
            "b": pa.array([b"\x00\xff", None], pa.binary()),
            "x": pa.array([float("-inf"), None], pa.float64()),
            "many": pa.array([[1, None], None], pa.list_(pa.field("element", pa.int16()))),
            "one": pa.array([{"s": "é"}, None], pa.struct([("s", pa.string())])),
        }
    )
    assert session.from_arrow(rows).to_arrow().equals(rows)


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        pl.from_arrow(TABLE),
        pd.DataFrame({"a": [1, 2, 2], "b": ["x", "é", None]}),
        TABLE.to_pylist(),
    ],
    ids=lambda data: f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}",
)
def test_any_table_can_be_registered(session, data):
    session.register("given", data)
    assert session.sql("SELECT * FROM given").to_arrow().equals(TABLE)


def test_batches_arrive_one_by_one_in_order(session):
    frame = session.sql("SELECT id FROM range(0, 100000, 1, 4)")
    batches = list(frame.to_batches())
    assert len(batches) > 4
    assert pa.Table.from_batches(batches).column("id").to_pylist() == list(range(100_000))


def test_an_iterator_that_is_closed_stops_its_query(session):
    batches = session.sql("SELECT wait(id) AS n FROM range(0, 400, 1, 400)").to_batches()
    assert next(batches).to_pylist() == [{"n": 0}]
    (operation,) = session.operations
    for _ in range(100):
        if operation.progress.done > 0:
            break
        next(batches)
    assert 0 < operation.progress.done < 400
    assert (operation.description, operation.progress.total) == ("to_batches", 400)
    batches.close()
    assert list(session.operations) == []
    assert_slots_free(session)


def test_other_libraries_read_a_frame_as_arrow(session, table):
    assert pa.table(table).equals(TABLE)
    assert pl.DataFrame(table).rows() == [(1, "x"), (2, "é"), (2, None)]
    empty = pa.table(session.sql("SELECT * FROM t WHERE a > 9"))
    assert (empty.num_rows, empty.schema) == (0, TABLE.schema)


def test_pyspark_methods_work_on_frames(session, table):
    assert isinstance(table, pyspark.sql.DataFrame)
    other = session.from_arrow(pa.table({"a": pa.array([2], pa.int64()), "c": ["two"]}))
    found = (
        table.filter(F.col("a") > 1)
        .join(other, "a", "left")
        .withColumn("d", F.concat_ws("-", F.col("c"), table.b))
        .groupBy("d")
        .agg(F.sum("a").alias("total"))
        .orderBy("d")
    )
    assert type(found) is type(table)
    assert [tuple(row) for row in found.collect()] == [("two", 2), ("two-é", 2)]
    assert [row.a for row in found.select(F.col("total").alias("a")).toLocalIterator()] == [2, 2]


def test_python_functions_run_on_the_server(session, connect_server, table):
    double = session.udf("double", lambda number: 2 * number, "bigint")
    assert session.sql("SELECT double(a) AS n FROM t").to_arrow().to_pydict() == {"n": [2, 4, 4]}
    assert table.select(double("a").alias("n")).to_arrow().to_pydict() == {"n": [2, 4, 4]}
    daemon = table.limit(1).mapInArrow(lambda _: [pa.RecordBatch.from_pydict({"pid": [os.getppid()]})], "pid bigint")
    assert daemon.first().pid in descendants(connect_server.process.pid)


def test_files_are_written_and_read(session, table, tmp_path):
    path = tmp_path / "out"
    table.write_parquet(path, partition_by=["a"])
    with pytest.raises(AlreadyExists, match=str(path)):
        table.write_parquet(path)
    table.write_parquet(path, mode="append", partition_by=["a"])
    read = session.read_parquet(path, schema="b string, a bigint")
    expected = sorted([(1, "x"), (2, "é"), (2, "")] * 2)
    assert sorted((row["a"], row["b"] or "") for row in read.to_arrow().to_pylist()) == expected


def test_names_are_listed_and_dropped(session):
    session.register("short_lived", TABLE)
    assert "short_lived" in session.tables()
    session.drop("short_lived")
    assert "short_lived" not in session.tables()


def test_parameters_are_values_and_not_text(session):
    hostile = "x' OR '1'='1"
    assert session.sql("SELECT :a AS a, :b AS b", {"a": 1, "b": hostile}).first() == (1, hostile)
    assert session.sql("SELECT ? AS a, ? AS b", [None, Decimal("1.5")]).first() == (None, Decimal("1.5"))


def test_plans_are_explained(session, table):
    query = "SELECT b, count(*) FROM t GROUP BY b"
    assert session.explain(query, "logical").startswith("== Analyzed Logical Plan ==\nb: string, count(1): bigint")
    assert "Exchange hashpartitioning(b#" in session.explain(query, "physical")
    stages = session.explain(query, "stages").splitlines()
    assert stages[:3] == [
        "===============Stage 0 (partitions=2)===============",
        "HashAggregate(keys=[b], functions=[count(1)])",
        "  ExchangeRead: stage=1, hashpartitioning(b, 2)",
    ]
    assert "Exchange hashpartitioning(b, 2), ENSURE_REQUIREMENTS" in stages


def test_describe_says_where_and_not_with_which_token(session, connect_server):
    shown = str(session.describe())
    assert f"{pyspark.__version__} at sc://localhost:{connect_server.port}" in shown
    assert connect_server.token not in f"{shown} {session.describe()!r} {session!r} {session.settings!r}"


# Errors


@pytest.mark.parametrize("name", BAD_QUERIES)
def test_a_bad_query_is_a_typed_error(embedded, name):
    assert embedded[name][0] is BAD_QUERIES[name][1]


def test_errors_are_those_of_local_spark(session, embedded, folder):
    expected = {name: found for name, found in embedded.items() if name != "Connect beside local Spark"}
    assert bad_outcomes(session, folder) == expected


def test_errors_say_where_and_what_instead(session, embedded, folder):
    found = bad_outcomes(session, folder)

    def where_and_hint(name):
        _, _, _, hint, position, _ = found[name]
        return (position and (position.line, position.column), hint)

    assert where_and_hint("unknown table") == ((2, 8), "did you mean 'orders'?")
    assert where_and_hint("unknown column") == ((1, 8), "did you mean 'amount'?")
    assert where_and_hint("unknown function") == ((2, 8), None)
    assert where_and_hint("unknown path") == (None, "did you mean 'orders.parquet'?")
    assert found["unknown path"][0] is PathNotFound
    assert found["unknown column of a frame"][3] == "did you mean 'amount'?"
    assert "ValueError: boom 1" in found["a Python function that raises"][2]


# Stopping


def assert_slots_free(session, within=8.0):
    """A query gets the server's slots at once; a Python worker may take its two seconds to be killed."""
    assert session.sql_with_timeout(QUICK, within * 1000).to_arrow().to_pylist() == [{"total": 499500}]


@pytest.mark.parametrize("query", [LONG, LONG_PYTHON], ids=["JVM", "Python"])
def test_a_deadline_stops_the_query(session, query):
    begin = time.monotonic()
    with pytest.raises(OperationTimeout) as caught:
        session.sql_with_timeout(query, 1000)
    assert 1.0 <= time.monotonic() - begin < 10.0
    wait_until(lambda: not list(session.operations), 20.0, "stopped")  # a worker of Python's takes a while to end
    assert session.operations.get(caught.value.operation_id).state is OperationState.TIMED_OUT
    assert_slots_free(session)


def test_a_query_within_its_deadline_gives_its_rows(session):
    frame = session.sql_with_timeout(QUICK, 60_000)
    assert frame.to_arrow().to_pydict() == {"total": [499500]}
    assert frame.withColumn("more", frame.total + 1).first() == (499500, 499501)


def test_another_thread_sees_progress_and_cancels(session):
    job = session.submit(LONG_PYTHON)
    wait_until(lambda: job.progress.done > 0, 30.0, "making progress")
    assert (job.state, job.progress.total) == (OperationState.RUNNING, 400)
    assert [operation.id for operation in session.operations] == [job.id]
    canceller = threading.Thread(target=session.operations.cancel, args=(job.id,))
    begin = time.monotonic()
    canceller.start()
    with pytest.raises(OperationCancelled) as caught:
        job.result(30.0)
    canceller.join()
    assert time.monotonic() - begin < 10.0
    assert (caught.value.operation_id, job.state) == (job.id, OperationState.CANCELLED)
    assert list(session.operations) == []
    assert_slots_free(session)


def test_a_query_of_this_thread_can_be_cancelled_by_another(session):
    def cancel_soon():
        wait_until(lambda: len(session.operations) == 1, 10.0, "running")
        (operation,) = session.operations
        wait_until(lambda: operation.progress.total > 0, 10.0, "on the server")
        session.operations.cancel(operation.id)

    frame = session.sql(LONG_PYTHON)
    canceller = threading.Thread(target=cancel_soon)
    canceller.start()
    with pytest.raises(OperationCancelled):
        frame.to_arrow()
    canceller.join()
    assert list(session.operations) == []


def test_only_the_cancelled_query_stops(session):
    doomed = session.submit(LONG_PYTHON)
    # Spark may lose a job that is cancelled in the very moment it is submitted.
    wait_until(lambda: doomed.progress.done > 0, 30.0, "making progress")
    kept = session.submit("SELECT sum(wait(id)) AS total FROM range(0, 10, 1, 2)")
    doomed.cancel()
    with pytest.raises(OperationCancelled):
        doomed.result(30.0)
    assert kept.result(60.0).to_pydict() == {"total": [45]}


def test_an_unknown_operation_cannot_be_cancelled(session):
    with pytest.raises(OperationUnknown, match="nobody"):
        session.operations.cancel("nobody")


def test_where_tasks_ran_is_not_known_over_connect(session):
    job = session.submit(QUICK)
    job.result(30.0)
    for ask in (job.assignments, job.explain):
        with pytest.raises(UnsupportedError, match="Spark Connect") as caught:
            ask()
        assert "spark://" in caught.value.hint


# Opening and closing


@contextlib.contextmanager
def refused(error, match, within=ENDPOINT_SECONDS):
    """Raises ``error`` in time, starts no Spark of its own, and shows no token."""
    jvms = java_children(os.getpid())
    begin = time.monotonic()
    with pytest.raises(error, match=match) as caught:
        yield
    assert time.monotonic() - begin < within
    assert java_children(os.getpid()) <= jvms
    assert WRONG not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}"


@pytest.mark.parametrize(("token", "match"), [(WRONG, "refused the token"), (None, "none was given")])
def test_a_wrong_or_missing_token_is_refused(connect_server, token, match):
    with Session.distributed(connect_server.url, token=token) as session:
        with refused(AuthenticationFailed, match):
            session.sql("SELECT 1")
        assert "not started" in session.describe().spark


def test_a_dead_endpoint_is_reported(session):
    with (
        Session.distributed(f"sc://localhost:{dead_port()}", token=WRONG) as dead,
        refused(EndpointUnreachable, "onnection refused"),
    ):
        dead.sql("SELECT 1")


def test_a_hanging_endpoint_is_given_up_on(session):
    with HangingEndpoint() as endpoint:
        address = f"sc://localhost:{endpoint.port}"
        with (
            Session.distributed(address, token=WRONG, connect_timeout=2.0) as hanging,
            refused(EndpointUnreachable, "no answer within 2 s"),
        ):
            hanging.sql("SELECT 1")
        assert endpoint.connections > 0


@pytest.mark.parametrize(
    "setting",
    [{"packages": ["kafka"]}, {"cores": 2}, {"driver_memory": "1g"}, {"worker_python": "/usr/bin/python3"}],
    ids=lambda setting: next(iter(setting)),
)
def test_settings_of_a_driver_are_refused(session, setting):
    """Before the endpoint is asked, where nothing listens."""
    with (
        Session.distributed(f"sc://localhost:{dead_port()}", **setting) as unusable,
        refused(UnsupportedError, next(iter(setting))),
    ):
        unusable.sql("SELECT 1")


def test_connect_beside_local_spark_is_a_conflict(embedded):
    kind, code, message, *_ = embedded["Connect beside local Spark"]
    assert (kind, code) == (SessionConflict, "SESSION_CONFLICT")
    assert "cannot mix it with a Spark Connect session" in message


def test_local_spark_beside_connect_is_a_conflict(session):
    session.sql("SELECT 1")
    with (
        Session.embedded(cores=2) as local,
        refused(SessionConflict, "Spark Connect session open"),
    ):
        local.sql("SELECT 1")
    assert session.sql(QUICK).to_arrow().to_pylist() == [{"total": 499500}]


def test_sessions_on_one_server_do_not_see_each_others_names(session, connect_server):
    session.register("mine", TABLE)
    with Session.distributed(connect_server.url, token=connect_server.token) as other:
        assert "mine" not in other.tables()
    assert "mine" in session.tables()


def test_close_stops_what_runs_and_leaves_no_thread(session, connect_server):
    threads = set(threading.enumerate())
    with Session.distributed(connect_server.url, token=connect_server.token) as closing:
        job = closing.submit(LONG)
        wait_until(lambda: job.progress.total > 0, 20.0, "on the server")
        begin = time.monotonic()
    assert time.monotonic() - begin < 20.0
    with pytest.raises(OperationCancelled):
        job.result(0.0)
    with pytest.raises(SessionClosed):
        closing.sql("SELECT 1")
    wait_until(lambda: set(threading.enumerate()) <= threads, 5.0, "free of new threads")
    assert_slots_free(session)
