import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import psutil
import pytest
from pyspark.sql import Row, functions
from support.connect import ConnectServer
from support.hang import HangingEndpoint, dead_port
from support.processes import wait_until

from weirflow import Session
from weirflow.errors import AuthenticationFailed, ConfigError, EndpointUnreachable
from weirflow.spark.launch.connect import MODE_FLAG, close_connect, connect

WRONG = "canary-wrong-token"
LIMIT_SECONDS = 15.0


@contextmanager
def refused(error, match, within=LIMIT_SECONDS):
    """The block raises ``error`` in time, leaving no thread and no connection, and never shows the token."""
    threads = set(threading.enumerate())
    sockets = _client_sockets()
    begin = time.monotonic()
    with pytest.raises(error, match=match) as caught:
        yield
    assert time.monotonic() - begin < within
    assert WRONG not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}"
    assert MODE_FLAG not in os.environ
    wait_until(lambda: set(threading.enumerate()) <= threads, 5.0, "free of new threads")
    wait_until(lambda: _client_sockets() <= sockets, 5.0, "free of new connections")


def _client_sockets():
    connections = psutil.Process().net_connections("tcp")
    # The other end of a hanging endpoint's connections is in this process too.
    return {c.laddr for c in connections if c.status == "ESTABLISHED" and c.raddr and c.laddr.port > c.raddr.port}


@pytest.fixture
def session(connect_server):
    opened = connect(connect_server.url, connect_server.token)
    yield opened
    close_connect(opened)


def test_the_right_token_opens_a_session(session):
    assert session.sql("select 1 as one").collect() == [Row(one=1)]


def test_a_loopback_address_takes_the_token_without_tls(connect_server):
    session = connect(f"sc://127.0.0.1:{connect_server.port}", connect_server.token)
    try:
        assert session.range(3).collect() == [Row(id=0), Row(id=1), Row(id=2)]
    finally:
        close_connect(session)


def test_functions_build_connect_columns_while_a_session_is_open(connect_server):
    first = connect(connect_server.url, connect_server.token)
    second = connect(connect_server.url, connect_server.token)
    close_connect(first)
    try:
        assert second.range(1).select((functions.col("id") + 1).alias("n")).collect() == [Row(n=1)]
    finally:
        close_connect(second)
    assert MODE_FLAG not in os.environ


def test_a_flag_that_was_set_before_stays(connect_server, monkeypatch):
    monkeypatch.setenv(MODE_FLAG, "1")
    close_connect(connect(connect_server.url, connect_server.token))
    assert os.environ[MODE_FLAG] == "1"


def test_each_session_is_separate(session, connect_server):
    other = connect(connect_server.url, connect_server.token)
    try:
        session.sql("create or replace temporary view mine as select 1")
        assert "mine" not in [table.name for table in other.catalog.listTables()]
    finally:
        close_connect(other)


def test_a_clone_carries_the_token(session):
    clone = session.cloneSession()
    try:
        assert clone.range(1).collect() == [Row(id=0)]
    finally:
        clone.client.close()  # PySpark 4.1's clone has no working stop()
        clone.client.close = lambda: None  # its finalizer would close again, in a thread that closing waits for


def test_close_releases_the_session_and_leaves_no_thread(connect_server):
    threads = set(threading.enumerate())
    session = connect(connect_server.url, connect_server.token)
    session.range(100).collect()
    close_connect(session)
    close_connect(session)
    assert session.is_stopped
    assert type(session).getActiveSession() is None
    wait_until(lambda: set(threading.enumerate()) <= threads, 5.0, "free of new threads")


def test_no_thread_is_left_while_somebody_holds_an_error(connect_server):
    threads = set(threading.enumerate())
    session = connect(connect_server.url, connect_server.token)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO") as held:
        session.sql("select 1 / id from range(1)").collect()
    close_connect(session)
    wait_until(lambda: set(threading.enumerate()) <= threads, 5.0, "free of new threads")
    assert held.tb is not None


def test_a_closed_session_is_forgotten_before_the_process_ends(connect_server):
    session = connect(connect_server.url, connect_server.token)
    session.range(1).collect()
    close_connect(session)
    client = weakref.ref(session.client)
    del session
    gc.collect()
    assert client() is None


def test_the_finalizer_of_a_closed_session_has_nothing_to_close(connect_server):
    """It may run in a thread that closing waits for: the process would hang."""
    session = connect(connect_server.url, connect_server.token)
    close_connect(session)
    session.client._channel = None
    session.client.close()  # what the finalizer calls


def test_a_wrong_token_is_refused(connect_server):
    with refused(AuthenticationFailed, match="refused the token"):
        connect(connect_server.url, WRONG)


def test_no_token_is_refused(connect_server, monkeypatch):
    # PySpark would pick this up by itself.
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", connect_server.token)
    with refused(AuthenticationFailed, match="none was given"):
        connect(connect_server.url, None)


def test_tls_to_a_plain_server_is_explained(connect_server):
    with refused(EndpointUnreachable, match="over TLS"):
        connect(f"{connect_server.url}/;use_ssl=true", WRONG)


@pytest.mark.parametrize("token", [None, WRONG])
def test_a_dead_endpoint_is_reported_at_once(token):
    port = dead_port()
    with refused(EndpointUnreachable, match=f"sc://localhost:{port}.*onnection refused"):
        connect(f"sc://localhost:{port}", token)


@pytest.mark.parametrize("token", [None, WRONG])
@pytest.mark.parametrize("params", ["", "/;use_ssl=true"])
def test_a_hanging_endpoint_is_given_up_on(token, params):
    with HangingEndpoint() as endpoint:
        with refused(EndpointUnreachable, match="no answer within 2 s", within=5.0):
            connect(f"sc://127.0.0.1:{endpoint.port}{params}", token, timeout=2.0)
        assert endpoint.connections > 0


def test_the_default_deadline_holds():
    with HangingEndpoint() as endpoint, refused(EndpointUnreachable, match="no answer within 10 s"):
        connect(f"sc://localhost:{endpoint.port}", None)


def test_an_unknown_host_is_reported():
    with refused(EndpointUnreachable, match=r"no-such-host\.invalid"):
        connect("sc://no-such-host.invalid", None)


def test_a_web_server_is_no_spark():
    class Silent(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Silent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with refused(EndpointUnreachable, match="cannot be reached"):
                connect(f"sc://127.0.0.1:{server.server_port}", None)
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.campaign
def test_a_standalone_master_is_no_spark_connect(cluster):
    address = cluster.url.removeprefix("spark://")
    with refused(EndpointUnreachable, match="cannot be reached"):
        connect(f"sc://{address}", None, timeout=5.0)


@pytest.mark.parametrize(
    ("endpoint", "token", "timeout", "problem"),
    [
        ("spark://localhost:7077", None, 1.0, "not a Spark Connect endpoint"),
        ("sc://localhost", "", 1.0, "token is empty"),
        ("sc://localhost", f"{WRONG}\n", 1.0, "printable ASCII"),
        ("sc://localhost", f"{WRONG} ", 1.0, "printable ASCII"),
        ("sc://localhost", f"{WRONG}é", 1.0, "printable ASCII"),
        ("sc://example.com/;use_ssl=false", WRONG, 1.0, "unencrypted"),
        ("sc://localhost", None, 0, "above zero"),
        ("sc://localhost", None, float("inf"), "above zero"),
        ("sc://localhost", None, float("nan"), "above zero"),
    ],
)
def test_arguments_are_checked_before_anything_is_sent(endpoint, token, timeout, problem):
    with refused(ConfigError, match=problem):
        connect(endpoint, token, timeout)


@pytest.mark.campaign
def test_a_server_that_is_killed_is_a_typed_error_and_closing_takes_seconds():
    threads = set(threading.enumerate())
    with ConnectServer() as server, Session.distributed(server.url, token=server.token) as session:
        first, second = (connect(server.url, server.token) for _ in range(2))
        assert first.range(1).collect() == second.range(1).collect() == [Row(id=0)]
        job = session.submit("SELECT count(*) FROM range(0, 1000000000000, 1, 8) WHERE id % 7 = 3")
        wait_until(lambda: job.progress.total > 0, 30.0, "on the server")
        server.kill()
        killed = time.monotonic()
        # Both are mid-retry, in their own threads, when they are closed.
        lost = [threading.Thread(target=_ignore_errors, args=(s.range(1).collect,)) for s in (first, second)]
        for thread in lost:
            thread.start()
        begin = time.monotonic()
        close_connect(first)
        close_connect(second)
        assert time.monotonic() - begin < 20.0
        with pytest.raises(EndpointUnreachable, match="connection to the Spark Connect server failed"):
            job.result(60.0)
        assert time.monotonic() - killed < 45.0
        assert list(session.operations) == []
    for thread in lost:
        thread.join(5.0)
    wait_until(lambda: set(threading.enumerate()) <= threads, 5.0, "free of new threads")
    assert MODE_FLAG not in os.environ


def _ignore_errors(call):
    with suppress(Exception):  # only that it ends matters here
        call()


def test_a_missing_package_names_the_extra():
    program = (
        "import sys\n"
        "sys.modules['grpc'] = None\n"
        "from weirflow.errors import DependencyMissing\n"
        "try:\n"
        "    import weirflow.spark.launch.connect\n"
        "except DependencyMissing as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == (
        "[DEPENDENCY_MISSING] A Spark Connect endpoint (sc://) needs the optional part 'connect'.\n"
        "  hint: pip install 'weirflow[connect]'\n"
    )
