"""What a job writes down about itself: what runs in it, where it is reached, and how its queries ended."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads it
from typing import TYPE_CHECKING, Any

import msgspec

from weirflow import errors
from weirflow.checkpoint.sealed import FORMAT, refused, seal, unseal
from weirflow.errors import QueryError, SessionError, WeirflowError
from weirflow.streaming.detached.wire import UNNUMBERED
from weirflow.streaming.query.handle import QueryInfo, QueryStatus
from weirflow.streaming.query.progress import QueryProgress
from weirflow.types import QueryState

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.streaming.detached.supervised import SupervisedQuery


# How records begin that an earlier version wrote, without a checksum.
_INDENTED = b"{\n"

_PLAIN = (str, int, float, bool, type(None))


class ErrorRecord(msgspec.Struct, frozen=True):
    """An error: the name of its class, its message and hint, and what else it carries."""

    kind: str
    message: str
    hint: str | None
    more: dict[str, Any]

    @classmethod
    def of(cls, error: WeirflowError) -> ErrorRecord:
        """What can be written down of an error; its cause cannot."""
        more = {name: value for name, value in vars(error).items() if name not in ("message", "hint")}
        plain = {name: value if isinstance(value, _PLAIN) else None for name, value in more.items()}
        return cls(type(error).__name__, error.message, error.hint, plain)

    def error(self) -> WeirflowError:
        """The error again; of a class that this version does not have, a ``QueryError``."""
        kind = getattr(errors, self.kind, None)
        if not (isinstance(kind, type) and issubclass(kind, WeirflowError)):
            return QueryError(self.message, hint=self.hint)
        error: WeirflowError = kind.__new__(kind)
        WeirflowError.__init__(error, self.message, hint=self.hint)
        vars(error).update(self.more)
        return error


class QueryEnd(msgspec.Struct, frozen=True):
    """How a query ended."""

    state: QueryState
    run_id: str
    restarts: int
    failure: ErrorRecord | None
    last: dict[str, Any] | None

    @property
    def error(self) -> WeirflowError | None:
        """What ended it; None if it was stopped or is done."""
        return self.failure.error() if self.failure else None

    @property
    def progress(self) -> QueryProgress | None:
        """Its last batch, as far as it is known."""
        return QueryProgress.from_json(msgspec.json.encode(self.last).decode()) if self.last else None

    @property
    def status(self) -> QueryStatus:
        """The same for whoever asks a query."""
        return QueryStatus(self.state, self.failure.message if self.failure else "")


class QueryRecord(msgspec.Struct, frozen=True):
    """A query of a job; without an end it runs, or its process was killed."""

    info: QueryInfo
    run_id: str
    end: QueryEnd | None = None


class JobRecord(msgspec.Struct, frozen=True):
    """A job and its queries.

    Attributes:
        job: its name.
        pid: its process.
        host: the machine it runs on.
        started: when it started.
        socket: where it listens.
        queries: what runs in it, in the order in which its function returned them.
        protocol: how it talks to clients.
        version: the version of Weirflow that it runs under, if it says so.
    """

    job: str
    pid: int
    host: str
    started: datetime
    socket: str
    queries: list[QueryRecord]
    format: int = FORMAT
    protocol: int = UNNUMBERED
    version: str | None = None

    def query(self, name: str) -> QueryRecord | None:
        """The query of this name."""
        return next((query for query in self.queries if query.info.name == name), None)


def read_record(content: bytes, where: str, hint: str) -> JobRecord:
    """From its file; ``StorageError`` with this hint for what is damaged or none."""
    if not content.startswith(_INDENTED):
        return unseal(content, JobRecord, where, hint)
    try:
        return msgspec.json.decode(content, type=JobRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise refused(where, str(error), hint) from error


def write_record(record: JobRecord) -> bytes:
    """Its file."""
    return seal(record)


def recorded(query: SupervisedQuery) -> QueryRecord:
    """What there is to write down about a query now."""
    if query.active:
        return QueryRecord(query.describe(), query.run_id)
    error, last = query.exception, query.last_progress()
    failure = ErrorRecord.of(error) if error else None
    end = QueryEnd(query.status().state, query.run_id, query.restarts, failure, last.raw if last else None)
    return QueryRecord(query.describe(), query.run_id, end)


def killed(query: QueryRecord, job: str, log: Path) -> QueryEnd:
    """The end of a query whose process could not write down how it ended."""
    error = SessionError(
        f"The process of the job {job!r} was ended from outside, by kill -9, for want of memory or with the machine, "
        f"and its query {query.info.name!r} with it.",
        hint=f"see the log at {log}; detach it again, and it continues from its checkpoint",
    )
    return QueryEnd(QueryState.FAILED, query.run_id, 0, ErrorRecord.of(error), None)
