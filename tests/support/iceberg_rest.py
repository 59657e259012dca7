"""Iceberg's own REST catalog server for tests, on loopback, and a door before it that asks for tokens."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pyspark
from support.kafka import dying_with_parent, free_ports
from support.processes import wait_until

from weirflow.spark.jars.artifacts import Artifact, Coordinate, Dependencies
from weirflow.spark.jars.cache import JarCache
from weirflow.spark.jars.packages import resolve_jars

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAVEN = "https://repo1.maven.org/maven2/org/apache/iceberg"
# Ivy's coordinates have no classifiers, so these are fetched by name.
_CLASSIFIED = (
    "iceberg-open-api/1.11.0/iceberg-open-api-1.11.0-test-fixtures.jar",
    "iceberg-core/1.11.0/iceberg-core-1.11.0-tests.jar",
)
_ARTIFACTS = tuple(
    Artifact(Coordinate.parse(coordinate), Dependencies.ALL)
    for coordinate in (
        "org.apache.iceberg:iceberg-core:1.11.0",
        "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.4",
        "org.eclipse.jetty.compression:jetty-compression-server:12.1.4",
        "org.eclipse.jetty.compression:jetty-compression-gzip:12.1.4",
        "org.xerial:sqlite-jdbc:3.50.3.0",
    )
)
_SHIPPED = Path(pyspark.__file__).parent / "jars"
TOKEN = "canary-token-that-no-message-may-repeat"
CLIENT = "ann:canary-of-ann-that-no-message-may-repeat"


@contextlib.contextmanager
def iceberg_rest_server() -> Iterator[str]:
    """A server whose tables are in a folder of its own; its address is given."""
    java = shutil.which("java")
    assert java is not None
    folder = Path(tempfile.mkdtemp(prefix="weirflow-rest-"))
    (port,) = free_ports(1)
    environment = {
        **os.environ,
        "CATALOG_WAREHOUSE": str(folder / "warehouse"),
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
        "CATALOG_REST_PORT": str(port),
    }
    jars = os.pathsep.join(map(str, _jars(Path(java))))
    options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command = dying_with_parent([java, *options, "-cp", jars, "org.apache.iceberg.rest.RESTCatalogServer"])
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(address, child, folder / "log"), 60.0, "the REST catalog up")
        yield address
    finally:
        child.kill()
        child.wait()
        shutil.rmtree(folder)


@contextlib.contextmanager
def guarded(server: str) -> Iterator[str]:
    """A door to a server that lets in who has ``TOKEN``, and gives it to ``CLIENT``."""

    class Door(BaseHTTPRequestHandler):
        def _pass(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path.endswith("/v1/oauth/tokens"):
                return self._give_token(content)
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return self._answer(401, b'{"error": {"message": "who are you", "type": "NotAuthorized", "code": 401}}')
            headers = {"Content-Type": self.headers.get("Content-Type") or "application/json"}
            request = urllib.request.Request(server + self.path, content or None, headers, method=self.command)
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    self._answer(answer.status, answer.read())
            except urllib.error.HTTPError as error:
                self._answer(error.code, error.read())

        def _give_token(self, content: bytes) -> None:
            form = {name: values[0] for name, values in parse_qs(content.decode()).items()}
            if f"{form.get('client_id')}:{form.get('client_secret')}" != CLIENT:
                return self._answer(401, b'{"error": "invalid_client", "error_description": "no such client"}')
            text = f'{{"access_token": "{TOKEN}", "token_type": "bearer", "expires_in": 3600}}'
            return self._answer(200, text.encode())

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_HEAD = do_DELETE = _pass  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as door:
        threading.Thread(target=door.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{door.server_port}"
        finally:
            door.shutdown()


def _answers(address: str, child: subprocess.Popen[bytes], log: Path) -> bool:
    assert child.poll() is None, log.read_text(errors="replace")[-2000:]
    try:
        with urllib.request.urlopen(f"{address}/v1/config", timeout=5):
            return True
    except OSError:
        return False


def jars_of(*packages: str) -> list[Path]:
    """The jars of connectors, for a Spark that is not started by a Session."""
    java, ivy_jar = Path(shutil.which("java") or "java"), next(_SHIPPED.glob("ivy-*.jar"))
    return resolve_jars(packages, spark_version=pyspark.__version__, cache=_cache(), java=java, ivy_jar=ivy_jar)


def _cache() -> Path:
    return Path(os.environ.get("WEIRFLOW_CACHE_DIR") or Path.home() / ".cache" / "weirflow")


def _jars(java: Path) -> list[Path]:
    home, cache = _SHIPPED, _cache()
    fetched = JarCache(cache, java, next(home.glob("ivy-*.jar"))).get(_ARTIFACTS)
    shipped = [
        jar for name in ("hadoop-client-", "slf4j-api-", "commons-logging-") for jar in home.glob(f"{name}*.jar")
    ]
    return [*(_fetched(cache / "test-jars", path) for path in _CLASSIFIED), *fetched, *shipped]


def _fetched(folder: Path, path: str) -> Path:
    place = folder / path.rpartition("/")[2]
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = place.with_suffix(f".{os.getpid()}")
        with urllib.request.urlopen(f"{_MAVEN}/{path}", timeout=60) as answer:
            part.write_bytes(answer.read())
        part.replace(place)
    return place
