"""Standalone masters that cannot be used: a typed error within seconds, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time

import pytest
from support.hang import HangingEndpoint, dead_port
from support.processes import java_children, wait_until

from weirflow import Session
from weirflow.errors import AuthenticationFailed, ConfigError, EndpointUnreachable

WRONG = "canary-wrong-secret"
LIMIT_SECONDS = 15.0
SLOWLY = 60.0
"""A master that has just started may take its time on a busy machine."""

pytestmark = pytest.mark.usefixtures("exclusive_spark")


@pytest.fixture
def refused(monkeypatch, tmp_path):
    @contextlib.contextmanager
    def refused(error, match, limit=LIMIT_SECONDS):
        """Raises ``error`` in time, shows no secret, and leaves no JVM, thread or temporary file."""
        jvms, threads = java_children(os.getpid()), set(threading.enumerate())
        begin = time.monotonic()
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(tmp_path))
            with pytest.raises(error, match=match) as caught:
                yield
        assert time.monotonic() - begin < limit
        shown = f"{caught.value} {caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}"
        assert WRONG not in shown
        assert java_children(os.getpid()) <= jvms  # one that an earlier test started may end meanwhile
        assert list(tmp_path.iterdir()) == []
        wait_until(lambda: set(threading.enumerate()) <= threads, 5.0, "free of new threads")

    return refused


@pytest.mark.campaign
def test_a_wrong_or_missing_secret_is_refused_and_the_same_process_can_use_the_cluster_then(cluster, refused):
    for token in (WRONG, None):
        with (
            Session.distributed(cluster.url, token=token, connect_timeout=SLOWLY, driver_memory="512m") as session,
            refused(AuthenticationFailed, "refused the token", SLOWLY),
        ):
            session.sql("SELECT 1")
    with Session.distributed(
        cluster.url, token=cluster._secret, connect_timeout=SLOWLY, driver_memory="512m"
    ) as session:
        assert session.sql("SELECT 1 AS one").columns == ["one"]


def test_a_dead_endpoint_is_reported_before_a_jvm_starts(refused, monkeypatch):
    monkeypatch.setattr("weirflow.spark.engine.acquire_driver", None)
    with (
        Session.distributed(f"spark://127.0.0.1:{dead_port()}", token=WRONG) as session,
        refused(EndpointUnreachable, "connection refused"),
    ):
        session.sql("SELECT 1")


@pytest.mark.parametrize(
    ("token", "timeout"),
    [pytest.param(WRONG, None, id="secret"), pytest.param(None, 5.0, id="open", marks=pytest.mark.campaign)],
)
def test_a_hanging_endpoint_is_given_up_on(refused, token, timeout):
    with HangingEndpoint() as endpoint:
        address = f"spark://127.0.0.1:{endpoint.port}"
        with (
            Session.distributed(address, token=token, connect_timeout=timeout, driver_memory="512m") as session,
            refused(EndpointUnreachable, "No Spark master answered"),
        ):
            session.sql("SELECT 1")
        assert endpoint.connections > 1


def test_a_spark_connect_server_is_no_master(connect_server, refused):
    address = f"spark://127.0.0.1:{connect_server.port}"
    with (
        Session.distributed(address, token=WRONG, driver_memory="512m") as session,
        refused((AuthenticationFailed, EndpointUnreachable), str(connect_server.port)),
    ):
        session.sql("SELECT 1")


def test_a_secret_in_the_address_is_refused():
    with pytest.raises(ConfigError) as caught, Session.distributed(f"spark://{WRONG}@127.0.0.1:7077") as session:
        session.sql("SELECT 1")
    assert WRONG not in str(caught.value)
