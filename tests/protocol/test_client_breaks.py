"""Connections that break, servers that do not answer: deadlines, ticks whose answer is lost, watches that go on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.server import eventually, make_token, served

from weirflow import RemoteSession, Session
from weirflow.errors import AuthenticationFailed, ConfigError, EndpointUnreachable, HistoryGone, SessionClosed

if TYPE_CHECKING:
    from pathlib import Path


class Proxy:
    """Between a client and a server: cuts connections, swallows answers, or refuses to connect."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.mute = threading.Event()
        self.refusing = threading.Event()
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"weirflow://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Break all connections, as a host does that is gone."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for one in pair:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.refusing.is_set():
                near.close()
                continue
            self.connections += 1
            far = socket.create_connection(("127.0.0.1", self._port))
            self._pairs.append((near, far))
            threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, True), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not (answers and self.mute.is_set()):
                    target.sendall(data)


@pytest.fixture(scope="module")
def server():
    with served(flight="127.0.0.1:0", http="off") as server:
        yield server


@pytest.fixture
def proxy(server) -> Iterator[Proxy]:
    proxy = Proxy(int(server.flight_url.rpartition(":")[2]))
    yield proxy
    proxy.close()


@pytest.fixture
def flow(server, proxy, request):
    with RemoteSession(proxy.url, retry_timeout=20) as session:
        flow = session.flow(f"flow {abs(hash(request.node.nodeid))}")
        flow.register_source("bag", "x BIGINT")
        flow.register_view("all", "SELECT x FROM bag", mode="incremental")
        yield flow


def test_a_tick_whose_answer_is_lost_is_done_once(proxy, flow):
    flow.tick("bag", [{"x": 0}])
    proxy.mute.set()
    before = flow._backend._connection

    def cut_when_done() -> None:
        eventually(lambda: there.epoch == 2)
        proxy.mute.clear()
        proxy.cut()

    with RemoteSession(f"weirflow://127.0.0.1:{proxy._port}") as direct:
        there = direct.flow(flow.name)
        assert there.epoch == 1
        cutting = threading.Thread(target=cut_when_done)
        cutting.start()
        done = flow.tick("bag", [{"x": 1}])
        cutting.join()
        assert (done.epoch, done.replayed) == (2, True)
        assert there.epoch == 2
        assert sorted(there.snapshot("all")["x"].to_pylist()) == [0, 1]
    assert flow._backend._connection is before


def test_a_tick_that_did_not_arrive_is_sent_again(proxy, flow):
    proxy.refusing.set()
    proxy.cut()
    threading.Timer(0.5, proxy.refusing.clear).start()
    done = flow.tick("bag", [{"x": 1}])
    assert (done.epoch, done.replayed) == (1, False)


def test_what_may_not_be_repeated_is_not(proxy, flow):
    proxy.refusing.set()
    proxy.cut()
    with pytest.raises(EndpointUnreachable, match="Whether the call was done is not known"):
        flow.refresh_view("all")


def test_calls_give_up_after_a_while(server, proxy):
    with RemoteSession(proxy.url, retry_timeout=0.5) as session:
        flow = session.flow("patience")
        proxy.refusing.set()
        proxy.cut()
        began = time.monotonic()
        with pytest.raises(EndpointUnreachable):
            _ = flow.epoch
        assert time.monotonic() - began < 10


def test_a_watch_goes_on_without_a_gap_or_a_repeat(proxy, flow):
    with flow.watch_output("all") as watch:
        seen: list[tuple[int, list[int]]] = []
        done = threading.Event()

        def write() -> None:
            for number in range(1, 61):
                flow.tick("bag", [{"x": number}])
                if number % 12 == 0:
                    proxy.cut()
            done.set()

        writing = threading.Thread(target=write)
        writing.start()
        while len(seen) < 60:
            epoch, delta = watch.get(30)
            seen.append((epoch, [row["x"] for row, _ in delta]))
        writing.join()
    assert seen == [(number, [number]) for number in range(1, 61)]
    assert proxy.connections >= 4


def test_a_watch_of_a_quiet_view_does_not_lose_its_place(server, proxy):
    with RemoteSession(proxy.url, retry_timeout=20) as session:
        flow = session.flow("quiet", history=3)
        flow.register_source("bag", "x BIGINT")
        flow.register_view("rare", "SELECT x FROM bag WHERE x > 100", mode="incremental")
        with flow.watch_output("rare") as watch:
            for number in range(20):
                flow.tick("bag", [{"x": number}])
            eventually(lambda: watch._stream.epoch == 20)
            proxy.cut()
            flow.tick("bag", [{"x": 101}])
            assert watch.get(20)[0] == 21


def test_a_watch_does_not_go_on_with_another_flow_of_that_name(server, proxy, flow):
    flow.tick("bag", [{"x": 1}])
    with flow.watch_output("all") as watch:
        proxy.refusing.set()
        proxy.cut()
        home = server.coordinator.session
        home.flow(flow.name).close()
        other = home.flow(flow.name)
        other.register_source("bag", "x BIGINT")
        other.register_view("all", "SELECT x FROM bag", mode="incremental")
        for number in range(5):
            other.tick("bag", [{"x": number}])
        proxy.refusing.clear()
        with pytest.raises(HistoryGone, match="another one"):
            watch.get(20)


def test_a_watch_tells_when_its_server_is_gone_for_good(server, proxy):
    with RemoteSession(proxy.url, retry_timeout=0.3) as session:
        flow = session.flow("gone")
        flow.register_source("bag", "x BIGINT")
        flow.register_view("all", "SELECT x FROM bag", mode="incremental")
        with flow.watch_output("all") as watch:
            proxy.refusing.set()
            proxy.cut()
            with pytest.raises(EndpointUnreachable):
                watch.get(20)


# Connecting


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    began = time.monotonic()
    with (
        RemoteSession(f"weirflow://127.0.0.1:{port}", connect_timeout=0.5) as session,
        pytest.raises(EndpointUnreachable, match=f"127.0.0.1:{port}"),
    ):
        session.flows()
    assert time.monotonic() - began < 10


def test_somebody_listens_and_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with (
            RemoteSession(f"weirflow://127.0.0.1:{silent.getsockname()[1]}", connect_timeout=0.5) as session,
            pytest.raises(EndpointUnreachable),
        ):
            session.flows()
        assert time.monotonic() - began < 10


def test_what_is_closed_stays_closed(server):
    session = RemoteSession(server.flight_url)
    flow = session.flow("closing")
    session.close()
    session.close()
    for call in (session.flows, lambda: session.flow("other"), lambda: session.sql("SHOW TABLES")):
        with pytest.raises(SessionClosed):
            call()
    assert flow.closed


@pytest.mark.parametrize(
    "endpoint",
    [
        "weirflow://",
        "weirflow://host:0",
        "weirflow://host:99999",
        "weirflow://user:secret@host",
        "weirflow://host/path",
    ],
)
def test_addresses_that_cannot_be_read(endpoint):
    with pytest.raises(ConfigError, match="cannot be read") as refused:
        Session.distributed(endpoint)
    assert "secret" not in str(refused.value)


def test_tokens(tmp_path):
    token = make_token(tmp_path / "data", "admin")
    with served(tmp_path / "data", flight="127.0.0.1:0", http="off") as server:
        for wrong in (None, "wf_no_token", token[:-1]):
            with RemoteSession(server.flight_url, wrong) as session, pytest.raises(AuthenticationFailed):
                session.flows()
        with RemoteSession(server.flight_url, token) as session:
            assert session.describe().caller == "test"
            assert token not in repr(session)
        with pytest.raises(ConfigError, match="invalid characters, or too many"):
            RemoteSession(server.flight_url, "wf_\n")


CHILD = """
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "starlette", "uvicorn", "joserfc", "google"):
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Refusing())
from weirflow import Session

with Session.distributed(sys.argv[1]) as session:
    flow = session.flow("java free")
    flow.register_source("bag", "x BIGINT")
    flow.register_view("all", "SELECT x FROM bag", mode="incremental")
    with flow.watch_output("all") as watch:
        flow.tick("bag", [{"x": 1}, {"x": 2}])
        epoch, delta = watch.get(30)
    print(epoch, sorted(row["x"] for row, _ in delta), flow.snapshot("all").num_rows)
    print(flow.sql("SELECT sum(x) AS s FROM all").to_pylist() if sys.argv[2:] else "")
assert "pyspark" not in sys.modules
"""


def test_a_client_needs_neither_java_nor_pyspark(server, tmp_path):
    (tmp_path / "bin").mkdir()
    environment = {"PATH": str(tmp_path / "bin"), "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, server.flight_url],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "1 [1, 2] 2"


def test_tls(tmp_path):
    certificate, key = _certificate(tmp_path)
    token = make_token(tmp_path / "data", "admin")
    with served(
        tmp_path / "data", flight="127.0.0.1:0", http="off", tls_certificate=certificate, tls_key=key
    ) as server:
        port = server.flight_url.rpartition(":")[2]
        with RemoteSession(f"weirflow+tls://localhost:{port}", token, root_certificates=certificate) as session:
            assert session.describe().caller == "test"
        with (
            RemoteSession(f"weirflow+tls://localhost:{port}", token, connect_timeout=1) as session,
            pytest.raises(EndpointUnreachable),
        ):
            session.flows()
    with pytest.raises(ConfigError, match="does not ask for"):
        RemoteSession("weirflow://localhost", root_certificates=certificate)


def _certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "key.pem").chmod(0o600)
    return folder / "cert.pem", folder / "key.pem"
