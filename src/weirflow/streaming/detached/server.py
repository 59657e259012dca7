"""``JobServer``: answers clients about the queries of a job, each in a thread of its own."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weirflow._version import __version__
from weirflow.errors import ConfigError, QueryError, StreamNotFound, UnsupportedError, WeirflowError
from weirflow.streaming.detached.wire import (
    COMMON,
    PROTOCOL,
    Question,
    Speaker,
    answer,
    hear,
    hurried,
    other_protocol,
    refusal,
)

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.streaming.detached.supervised import SupervisedQuery

_log = logging.getLogger(__name__)

_MEMBER_NAMES = """
active await_termination exception last_progress memory_batches process_all_available
recent_progress restarts run_id savepoint status stop
"""
MEMBERS = frozenset(_MEMBER_NAMES.split())
"""What clients may ask of a query."""

_LOOK_SECONDS = 0.2
_CLOSE_SECONDS = 10.0


class JobServer:
    """Listens until it is closed. A client that hangs or talks rubbish has its own thread and a deadline.

    Args:
        address: the socket to be made, in a folder that is the owner's alone.
        key: what clients have to know.
        queries: what may be asked about.

    Raises:
        ConfigError: the address is too long for the system.
    """

    def __init__(self, address: Path, key: bytes, queries: Sequence[SupervisedQuery]) -> None:
        self._key = key
        self._queries = {query.name: query for query in queries}
        self._closed = False
        self._clients: set[threading.Thread] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            self._listener.bind(str(address))
        except OSError as error:
            self._listener.close()
            raise ConfigError(
                f"The job cannot listen at {address}: {error}.", hint="let TMPDIR name a folder with a shorter path"
            ) from error
        self._listener.listen()
        self._listener.settimeout(_LOOK_SECONDS)
        self._thread = threading.Thread(target=self._accept, name="weirflow-job-server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no further questions, and wait some seconds for the answers to those that were asked."""
        self._closed = True
        self._thread.join()
        self._listener.close()
        end = time.monotonic() + _CLOSE_SECONDS
        for client in list(self._clients):
            client.join(max(end - time.monotonic(), 0))

    def _accept(self) -> None:
        while not self._closed:
            with contextlib.suppress(TimeoutError):
                client, _ = self._listener.accept()
                thread = threading.Thread(target=self._serve, args=(client,), name="weirflow-job-client", daemon=True)
                self._clients.add(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with hurried(client) as connection:
                connection.send_bytes(self._answer(hear(connection, self._key)))
        except Exception as error:  # noqa: BLE001 - strangers, rubbish, clients that were killed: theirs, not the job's
            _log.info("a client was not answered: %s: %s", type(error).__name__, error)
        finally:
            self._clients.discard(threading.current_thread())

    def _answer(self, question: Question) -> bytes:
        try:
            return answer(self._value(question))
        except WeirflowError as error:
            return refusal(error)
        except Exception as error:  # noqa: BLE001 - whatever Spark or a sink raises, the client is told
            _log.exception("%s of %s failed", question.member, question.query)
            return refusal(QueryError(f"{question.member} failed in the job: {type(error).__name__}: {error}"))

    def _value(self, question: Question) -> Any:
        query = self._queries.get(question.query)
        if query is None:
            raise StreamNotFound(f"The job has no query called {question.query!r}.")
        if question.member not in MEMBERS:
            raise UnsupportedError(f"A detached query has no {question.member!r}.")
        if question.protocol != PROTOCOL and question.member not in COMMON:
            job, client = Speaker(PROTOCOL, __version__), Speaker(question.protocol)
            raise other_protocol(f"The job of {question.query!r}", job, client)
        member = getattr(query, question.member)
        return member(**question.arguments) if callable(member) else member
