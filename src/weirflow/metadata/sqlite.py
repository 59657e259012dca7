"""Metadata in SQLite: a file for the processes of one machine, or memory for one process."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from weirflow.errors import MetadataError, UnsupportedError
from weirflow.forks import never_finalize, unforked
from weirflow.metadata.database import Database, opened_by_parent

if TYPE_CHECKING:
    from pathlib import Path

BUSY_SECONDS = 5.0
_OLDEST = (3, 35)  # the first with RETURNING
_PRIMARY_CODE = 0xFF  # extended result codes keep theirs in the low byte

_shared: dict[str, tuple[sqlite3.Connection, threading.Lock]] = {}
_shared_lock = threading.Lock()
_inherited: set[tuple[int, int]] = set()
"""Device and inode of the files that a parent had open when this process was forked from it.

SQLite takes the parent's locks for its own here, so that another connection to these files would have none.
"""


class SqliteDatabase(Database):
    """One connection and the lock that its users take turns by."""

    def __init__(
        self,
        uri: str,
        connection: sqlite3.Connection,
        turn: threading.Lock,
        *,
        shared: bool = False,
        file: tuple[int, int] | None = None,
    ) -> None:
        self._file = file
        self._connection = connection
        self._shared = shared
        super().__init__(uri, turn)

    def run(self, sql: str, values: Sequence[object] = (), *, repeatable: bool = True) -> list[tuple[Any, ...]]:
        """The rows that a statement returns, once it is committed. There is no connection that could be dropped."""
        del repeatable
        self._require_own()
        with self._turn, unforked():
            self._require_open()
            try:
                return self._connection.execute(sql, tuple(values)).fetchall()
            except sqlite3.Error as error:
                raise _failure(self.uri, error) from error

    @override
    def has_table(self, name: str) -> bool:
        return self.run("SELECT count(*) FROM sqlite_master WHERE name = ?", (name,)) != [(0,)]

    def create(self, statements: Sequence[str]) -> None:
        """Run statements as one transaction; other processes wait for their turn."""
        self._require_own()
        with self._turn, unforked():
            self._require_open()
            try:
                try:
                    self._connection.execute("BEGIN IMMEDIATE")
                    for statement in statements:
                        self._connection.execute(statement)
                    self._connection.execute("COMMIT")
                finally:
                    self._roll_back()
            except sqlite3.Error as error:
                raise _failure(self.uri, error) from error

    @override
    def close(self) -> None:
        if self._is_foreign:
            return
        with self._turn, unforked():
            self._closed = True
            if not self._shared:
                self._connection.close()

    @override
    def left_behind(self) -> None:
        self._is_foreign = True
        if not self._closed:
            never_finalize(self._connection)
            if self._file is not None:
                _inherited.add(self._file)

    @override
    def _require_open(self) -> None:
        super()._require_open()
        self._roll_back()

    def _roll_back(self) -> None:
        """End a transaction that an exception has left open."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def open_sqlite(path: Path) -> SqliteDatabase:
    """The database in a file, which is created with its folder if it is missing.

    It survives ``kill -9`` at any point and, as far as the disk keeps what it has synced, a loss of power. What is made
    is for its owner alone; a file or folder that was there keeps its mode.
    """
    uri = f"sqlite://{path}"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives the files beside it the mode that this one has.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        found = path.stat()
        file = (found.st_dev, found.st_ino)
        if file in _inherited:
            raise opened_by_parent(uri)
        connection = _connect(str(path))
    except (OSError, sqlite3.Error) as error:
        raise _failure(uri, error) from error
    try:
        with unforked():
            _write_ahead(connection)
    except sqlite3.Error as error:
        connection.close()
        raise _failure(uri, error) from error
    except BaseException:
        connection.close()
        raise
    return SqliteDatabase(uri, connection, threading.Lock(), file=file)


def open_memory(name: str) -> SqliteDatabase:
    """The database of that name, which lives until the process ends; without a name, a new one of its own."""
    uri = f"memory://{name}"
    if not name:
        return SqliteDatabase(uri, _connect(":memory:"), threading.Lock())
    with _shared_lock:
        if name not in _shared:
            _shared[name] = (_connect(":memory:"), threading.Lock())
        connection, turn = _shared[name]
    return SqliteDatabase(uri, connection, turn, shared=True)


def _forget_shared() -> None:
    """A child's memory is its own: what its parent shares by name is not there."""
    global _shared_lock  # noqa: PLW0603 - another thread of the parent may have held it
    for connection, _ in _shared.values():
        never_finalize(connection)
    _shared.clear()
    _shared_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_shared)


def _connect(database: str) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < _OLDEST:
        raise UnsupportedError(
            f"Metadata in SQLite needs SQLite 3.35 or newer; this Python has {sqlite3.sqlite_version}.",
            hint="use a newer Python, or a postgresql:// database",
        )
    with unforked():
        connection = sqlite3.connect(database, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        # SQLite's own clock has milliseconds, too coarse for a lease that must not begin before another ends.
        connection.create_function("clock", 0, time.time)
        return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    end = time.monotonic() + BUSY_SECONDS
    # Changing the mode does not wait for others that do the same.
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY_CODE != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            break
    # With less, a loss of power could take a token back.
    connection.execute("PRAGMA synchronous=FULL")


def _failure(uri: str, error: Exception) -> MetadataError:
    busy = isinstance(error, sqlite3.OperationalError) and (
        getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE == sqlite3.SQLITE_BUSY
    )
    if busy:
        return MetadataError(
            f"The metadata at {uri} was locked by another process for {BUSY_SECONDS:g} s.",
            uri=uri,
            hint="look for a suspended process, and try again",
        )
    return MetadataError(
        f"The metadata at {uri} cannot be used: {error}.",
        uri=uri,
        hint="it must be a SQLite file on a local disk, in a folder that this process may write",
    )
