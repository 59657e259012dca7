"""The process of a detached job: a Session of its own, the queries in it, and the server that clients talk to.

Started by ``weirflow.streaming.detached.start`` as ``python -m weirflow.session.job <folder>``. Its order comes by
standard input, its report goes to standard output, and then both are closed. SIGTERM stops the queries after their
batches and ends the process.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec

from weirflow._version import __version__
from weirflow.errors import ConfigError, SessionError, WeirflowError
from weirflow.session.session import Session
from weirflow.spark.launch.scratch import Scratch
from weirflow.streaming.detached.folder import JobFolder
from weirflow.streaming.detached.jobs import already_runs
from weirflow.streaming.detached.order import JobOrder, raised_by
from weirflow.streaming.detached.record import JobRecord, killed, recorded
from weirflow.streaming.detached.server import JobServer
from weirflow.streaming.detached.start import CANCEL
from weirflow.streaming.detached.wire import PROTOCOL, answer, refusal
from weirflow.streaming.query.handle import StreamingQuery

_log = logging.getLogger("weirflow.job")

_LOOK_SECONDS = 0.1
_SOCKET = "socket"
_KEY_BYTES = 32


class _Ended(BaseException):
    """The job is to end while its function still runs."""


class _Ending:
    """Hears SIGTERM: it interrupts the function that starts the queries, and ends the wait for them."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.starting = True
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, _signal: int, _frame: Any) -> None:
        first = not self.asked.is_set()
        self.asked.set()
        if first and self.starting:
            raise _Ended

    def obey(self, orders: Connection) -> None:
        """Have the client's wish to cancel end the job; a client that is gone has none."""

        def listen() -> None:
            try:
                wish = orders.recv_bytes()
            except (EOFError, OSError):
                return
            if wish == CANCEL:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

        threading.Thread(target=listen, name="weirflow-job-orders", daemon=True).start()


class _Report:
    """Tells the client, once, how the start went. A client that is gone is told nothing."""

    def __init__(self, descriptor: int) -> None:
        self._client = Connection(descriptor, readable=False)

    def started(self, names: list[str]) -> None:
        self._send(answer(names))
        self._client.close()

    def failed(self, error: WeirflowError) -> None:
        """The pipe stays open until the kernel has ended the process, which is what the client waits for."""
        os.dup(self._client.fileno())
        self._send(refusal(error))

    def _send(self, outcome: bytes) -> None:
        try:
            self._client.send_bytes(outcome)
        except OSError:
            _log.info("the client is gone")


def main() -> None:
    """Run the job that standard input orders, and exit: with 0 once its queries have ended, with 1 if none started."""
    orders, report = Connection(os.dup(0), writable=False), _Report(os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)  # the log
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a file's
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    _log.setLevel(logging.INFO)
    place = Path(sys.argv[1])
    folder = JobFolder(place.parent, place.name)
    try:
        order = JobOrder.from_bytes(orders.recv_bytes())
    except EOFError:
        sys.exit("The client has ended before its order was complete.")
    ending = _Ending()
    ending.obey(orders)
    try:
        _run(folder, order, report, ending)
    except _Ended:
        _log.info("ended before the queries ran")
        report.failed(SessionError(f"The job {folder.name!r} was ended while its queries were started."))
        sys.exit(1)
    except WeirflowError as error:
        if not ending.starting:
            raise  # into the log: what ends may fail as it does
        _log.info("not started: %s", error)
        report.failed(error)
        sys.exit(1)


def _run(folder: JobFolder, order: JobOrder, report: _Report, ending: _Ending) -> None:
    lock = folder.lock()
    if lock is None:
        raise already_runs(folder)
    _log.info("process %d runs %s", os.getpid(), order.described)
    _settle(folder)
    function = order.loaded()
    with Session(**order.settings) as session:
        queries = _started(function, session, order.described)
        scratch = Scratch()
        try:
            _serve(folder, scratch.path / _SOCKET, queries, report, ending)
        finally:
            scratch.close()
    _log.info("ended")


def _serve(
    folder: JobFolder, address: Path, queries: Sequence[StreamingQuery], report: _Report, ending: _Ending
) -> None:
    """Have the queries found and talked to until they have ended."""
    key = secrets.token_bytes(_KEY_BYTES)
    server = JobServer(address, key, queries)
    try:
        ending.starting = False
        folder.write_key(key)
        record = _Record(folder, str(address), queries)
        report.started([query.name for query in queries])
        _supervise(queries, record, ending, folder)
    finally:
        server.close()
        folder.remove_key()


def _settle(folder: JobFolder) -> None:
    """Write down the end of queries whose process could not, now that it is known to be gone."""
    record = folder.record()
    if record is not None and any(query.end is None for query in record.queries):
        queries = [
            query if query.end else msgspec.structs.replace(query, end=killed(query, folder.name, folder.log))
            for query in record.queries
        ]
        folder.write(msgspec.structs.replace(record, queries=queries))


def _started(function: Callable[[Any], Any], session: Session, described: str) -> list[StreamingQuery]:
    try:
        made = function(session)
    except (_Ended, WeirflowError):
        raise
    except BaseException as error:
        from weirflow.spark.errors import translate  # noqa: PLC0415 - imports pyspark

        raise translate(error) or raised_by(f"The function {described} raised", error) from error
    queries = list(made) if isinstance(made, list | tuple) else [made]
    if not queries or not all(isinstance(query, StreamingQuery) for query in queries):
        raise ConfigError(
            f"The function {described} returned {made!r}, which is no streaming query.",
            hint="return what write_stream()....start() returns, or several of them in a list",
        )
    return queries


class _Record:
    """Keeps the job's record as its queries end."""

    def __init__(self, folder: JobFolder, address: str, queries: Sequence[StreamingQuery]) -> None:
        self._folder = folder
        self._queries = queries
        self._record = JobRecord(
            job=folder.name,
            pid=os.getpid(),
            host=socket.gethostname(),
            started=datetime.now(UTC),
            socket=address,
            queries=[recorded(query) for query in queries],
            protocol=PROTOCOL,
            version=__version__,
        )
        folder.write(self._record)

    def update(self) -> None:
        """Write down the ends that are new."""
        ended = [not query.active for query in self._queries]
        if ended != [known.end is not None for known in self._record.queries]:
            self._record = msgspec.structs.replace(self._record, queries=[recorded(query) for query in self._queries])
            self._folder.write(self._record)


def _supervise(queries: Sequence[StreamingQuery], record: _Record, ending: _Ending, folder: JobFolder) -> None:
    """Return when all queries have ended for good; meanwhile the log does not grow without end."""
    seen: dict[str, WeirflowError | None] = {}
    while any(query.active for query in queries):
        if ending.asked.wait(_LOOK_SECONDS):
            _log.info("stopping: SIGTERM")
            for query in queries:
                query.stop()
        _log_errors(queries, seen)
        record.update()
        if folder.rotate_log():
            _print_to(folder.log)
    _log_errors(queries, seen)
    record.update()
    for query in queries:
        _log.info("%s: %s", query.name, query.status().state)


def _print_to(log: Path) -> None:
    """Have standard output and standard error go to a file."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)


def _log_errors(queries: Sequence[StreamingQuery], seen: dict[str, WeirflowError | None]) -> None:
    for query in queries:
        error = query.exception
        if error is not None and error is not seen.get(query.id):
            seen[query.id] = error
            _log.error("%s failed", query.name, exc_info=error)


if __name__ == "__main__":
    main()
