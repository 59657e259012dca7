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
from contextlib import closing
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
from weirflow.streaming.detached.supervised import SupervisedQuery
from weirflow.streaming.detached.wire import PROTOCOL, answer, refusal
from weirflow.streaming.query.handle import StreamingQuery
from weirflow.streaming.query.restart import RestartPolicy

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
    with closing(_Spark(order)) as spark:
        queries = [SupervisedQuery(query, spark.is_lost) for query in spark.start()]
        scratch = Scratch()
        try:
            _serve(folder, scratch.path / _SOCKET, queries, report, _Keeper(queries, spark, ending))
        finally:
            scratch.close()
    _log.info("ended")


class _Spark:
    """The Session that the queries of the job run in, one after the other if it is lost."""

    def __init__(self, order: JobOrder) -> None:
        self._order = order
        self._function = order.loaded()
        self._session: Session | None = None

    def start(self) -> list[StreamingQuery]:
        """Open a Session, and have the function start its queries."""
        self._session = Session(**self._order.settings)
        return _started(self._function, self._session, self._order.described)

    def is_lost(self) -> bool:
        """Whether nothing can run in the Session any more."""
        from weirflow.spark.streaming.query import is_gone  # noqa: PLC0415 - imports pyspark

        return self._session is None or is_gone(self._session.spark)

    def close(self) -> None:
        """Close the Session, if there is one."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def start_again(self, queries: Sequence[SupervisedQuery]) -> None:
        """Have the queries go on in another Session; raises what hinders that."""
        try:
            self.close()
        except WeirflowError as error:
            _log.info("closing what was lost: %s", error)
        started = {query.name: query for query in self.start()}
        gone = [query.name for query in queries if query.name not in started]
        if gone:
            raise ConfigError(
                f"The function {self._order.described} did not start the query {gone[0]!r} again.",
                hint="give queries names that are the same each time: query_name(...)",
            )
        for query in queries:
            query.go_on(started[query.name])


def _serve(
    folder: JobFolder,
    address: Path,
    queries: Sequence[SupervisedQuery],
    report: _Report,
    keeper: _Keeper,
) -> None:
    """Have the queries found and talked to until they have ended."""
    key = secrets.token_bytes(_KEY_BYTES)
    server = JobServer(address, key, queries)
    try:
        keeper.ending.starting = False
        folder.write_key(key)
        record = _Record(folder, str(address), queries)
        report.started([query.name for query in queries])
        keeper.supervise(record, folder)
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
            f"The function {described} returned {made!r}, which is not a streaming query.",
            hint="return what write_stream()....start() returns, or several of them in a list",
        )
    return queries


class _Record:
    """Keeps the job's record as its queries end."""

    def __init__(self, folder: JobFolder, address: str, queries: Sequence[SupervisedQuery]) -> None:
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


class _Keeper:
    """Watches the queries until all have ended for good, and has them go on elsewhere if Spark is gone.

    Attributes:
        ending: how the job is told to end.
    """

    def __init__(self, queries: Sequence[SupervisedQuery], spark: _Spark, ending: _Ending) -> None:
        self.ending = ending
        self._queries = queries
        self._spark = spark

    def supervise(self, record: _Record, folder: JobFolder) -> None:
        """Return when all queries have ended for good; meanwhile the log does not grow without end."""
        seen: dict[str, WeirflowError | None] = {}
        while any(query.active for query in self._queries):
            if self.ending.asked.wait(_LOOK_SECONDS):
                _log.info("stopping: SIGTERM")
                for query in self._queries:
                    query.stop()
            for query in self._queries:
                query.look()
            _log_errors(self._queries, seen)
            if all(query.ended for query in self._queries) and any(query.is_lost for query in self._queries):
                self._start_again()
            record.update()
            if folder.rotate_log():
                _print_to(folder.log)
        _log_errors(self._queries, seen)
        record.update()
        for query in self._queries:
            _log.info("%s: %s", query.name, query.status().state)

    def _start_again(self) -> None:
        """Have the queries go on in another Session, as long as the policies of all allow."""
        while not self.ending.asked.is_set():
            delays = [query.delay() for query in self._queries if query.is_lost]
            failed = [query for query in self._queries if query.exception is not None]
            if None in delays or len(failed) > len(delays):
                break
            _log.info("Spark is gone; the queries continue in another Session")
            if self.ending.asked.wait(max(delay for delay in delays if delay is not None)):
                break
            try:
                self._spark.start_again(self._queries)
            except WeirflowError as error:
                _log.error("the queries could not be started again", exc_info=error)
                if not RestartPolicy().is_transient(error) and not isinstance(error, SessionError):
                    self._give_up(error)
                    return
            else:
                _log.info("the queries run again")
                return
        self._give_up(None)

    def _give_up(self, error: WeirflowError | None) -> None:
        for query in self._queries:
            if query.is_lost:
                query.give_up(error)


def _print_to(log: Path) -> None:
    """Have standard output and standard error go to a file."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)


def _log_errors(queries: Sequence[SupervisedQuery], seen: dict[str, WeirflowError | None]) -> None:
    for query in queries:
        error = query.exception
        if error is not None and error is not seen.get(query.id):
            seen[query.id] = error
            _log.error("%s failed", query.name, exc_info=error)


if __name__ == "__main__":
    main()
