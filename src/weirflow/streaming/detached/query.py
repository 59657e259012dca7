"""``DetachedQuery``: the handle of a streaming query that runs in a process of its own."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from weirflow._version import __version__
from weirflow.arguments import Name, Seconds, Uri, checked
from weirflow.errors import EndpointUnreachable, SessionError, StreamNotFound, UnsupportedError, WeirflowError
from weirflow.streaming.detached.record import JobRecord, QueryEnd, QueryRecord, killed
from weirflow.streaming.detached.wire import COMMON, PROTOCOL, JobGone, NoAnswer, Question, Speaker, ask, other_protocol
from weirflow.streaming.query.run import STOP_SECONDS
from weirflow.streaming.query.shown import as_html, as_text

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from weirflow.streaming.detached.folder import JobFolder
    from weirflow.streaming.query.handle import QueryInfo, QueryStatus
    from weirflow.streaming.query.progress import QueryProgress
    from weirflow.streaming.savepoints.named import QuerySavepoint

T = TypeVar("T")

_ANSWER_SECONDS = 60.0
_GONE_SECONDS = 10.0
# A Spark that writes its archive of classes as it ends takes its time.
_EXIT_SECONDS = 150.0
_WAIT_SECONDS = 2.0
_POLL_SECONDS = 0.05


class DetachedQuery:
    """A query in a process of its own. It has the members of a ``StreamingQuery``, but only ``stop`` stops it.

    Whoever may read the job's folder can have this handle. After the job's end, it tells how the job ended. If the job
    is started again, the handle is good for the new start, too.

    Args:
        folder: the job's folder.
        name: the query's name.
    """

    def __init__(self, folder: JobFolder, name: str) -> None:
        self._folder = folder
        self._name = name

    @property
    def name(self) -> str:
        """Its name: ``query_name``, or a generated one."""
        return self._name

    @property
    def job(self) -> str:
        """The name of its job, which may have other queries, too."""
        return self._folder.name

    @property
    def log(self) -> Path:
        """The file with what the job's process prints."""
        return self._folder.log

    @property
    def id(self) -> str:
        """Unique, and the same whenever the query continues from its checkpoint."""
        return self.describe().query_id

    @property
    def run_id(self) -> str:
        """Unique for each start."""
        return self._ask("run_id", lambda end: end.run_id)

    @property
    def active(self) -> bool:
        """Whether it runs, or is about to be started again."""
        return self._ask("active", lambda _: False)

    def status(self) -> QueryStatus:
        """The query's state. A query whose process was killed has failed."""
        return self._ask("status", lambda end: end.status)

    def describe(self) -> QueryInfo:
        """What it writes, how often rows arrive, and where its progress is kept."""
        return self._recorded()[1].info

    def last_progress(self) -> QueryProgress | None:
        """What its last batch did; None before the first, with ``Trigger.continuous``, and if it was killed."""
        return self._ask("last_progress", lambda end: end.progress)

    @property
    def recent_progress(self) -> list[QueryProgress]:
        """The last hundred batches, oldest first, also from before a restart; after the job's end, the last one."""
        return self._ask("recent_progress", lambda end: [end.progress] if end.progress else [])

    @property
    def restarts(self) -> int:
        """How often its restart policy has started it again."""
        return self._ask("restarts", lambda end: end.restarts)

    @property
    def exception(self) -> WeirflowError | None:
        """The error that ended it, or for which it restarts; the job's log has the original. None if all is well."""
        return self._ask("exception", lambda end: end.error)

    @checked
    def await_termination(self, timeout: Seconds | None = None) -> bool:
        """Wait until it has ended, at most ``timeout`` seconds; returns whether it has. Raises what ended it."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _WAIT_SECONDS if deadline is None else min(max(deadline - time.monotonic(), 0.0), _WAIT_SECONDS)
            if self._ask("await_termination", _ended_well, timeout=left):
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False

    def process_all_available(self) -> None:
        """Wait until all rows that the sources have now are written. Raises the error if the query ends with one."""
        self._ask("process_all_available", _ended_well, patience=None)

    @checked
    def stop(self, within: Seconds = STOP_SECONDS) -> None:
        """End it after the current batch, for which it waits at most ``within`` seconds.

        Returns when the query has ended; for the last query of a job, when the process has ended. If an error had ended
        it before, that stays in ``exception``.

        Raises:
            SessionError: the query has ended, but the process has not.
        """
        self._ask("stop", lambda _: None, patience=within + _ANSWER_SECONDS, within=within)
        deadline = time.monotonic() + _EXIT_SECONDS
        while self._folder.running and not self._others_run():
            if time.monotonic() > deadline:
                raise SessionError(
                    f"The query {self.name!r} is stopped, but the process {self._recorded()[0].pid} of its job does "
                    f"not end.",
                    hint=f"see the log at {self.log}; a thread of its function may run on",
                )
            time.sleep(_POLL_SECONDS)

    @checked
    def savepoint(self, name: Name, to: Uri | None = None) -> QuerySavepoint:
        """Save state and positions of the last committed batch under a name. The query keeps running.

        Args:
            name: the name of the savepoint.
            to: a folder or storage URI, as the job's process knows it; by default where its Session's profile
                keeps checkpoints.

        Raises:
            ObjectExists: there is a savepoint of that name; it is untouched.
            StreamRefused: nothing is committed yet, or the query has no batches.
            StorageError: the storage failed; the savepoint is not there.
            UnsupportedError: the query has ended.
        """
        place = None if to is None else str(to)
        saved: QuerySavepoint = self._ask("savepoint", self._refuse("be saved"), patience=None, name=name, to=place)
        return saved

    def memory_batches(self) -> list[pa.RecordBatch]:
        """What the memory sink holds now, as one or more record batches; it is gone when the job's process ends."""
        batches: list[pa.RecordBatch] = self._ask("memory_batches", self._refuse("give its rows"), patience=None)
        return batches

    def __repr__(self) -> str:
        try:
            return f"<DetachedQuery {self.name} {self.status().state}>"
        except (EndpointUnreachable, UnsupportedError):
            return f"<DetachedQuery {self.name}, whose state is not known>"

    def __str__(self) -> str:
        status = self.status()
        return as_text(self.name, status.state, status.message, self.last_progress())

    def _repr_html_(self) -> str:
        """The query and its last batches as an HTML table, for notebooks."""
        return as_html(self.name, self.status().state, self.recent_progress)

    def _ask(
        self, member: str, ended: Callable[[QueryEnd], T], *, patience: float | None = _ANSWER_SECONDS, **arguments: Any
    ) -> T:
        """What the job answers; if it has ended, what there is to say of a query that ended so."""
        deadline = time.monotonic() + _GONE_SECONDS
        while True:
            running = self._folder.running  # asked before the record is read, which is written before the end
            job, query = self._recorded()
            if not running:
                return ended(query.end or killed(query, self.job, self.log))
            self._require_here(job)
            if job.protocol != PROTOCOL and member not in COMMON:
                if query.end is not None:
                    return ended(query.end)
                runs, client = Speaker(job.protocol, job.version), Speaker(PROTOCOL, __version__)
                raise other_protocol(f"The job {self.job!r}", runs, client)
            try:
                key = self._folder.key()
                answer: T = ask(job.socket, key, Question(self._name, member, arguments, PROTOCOL), patience)
            except (FileNotFoundError, JobGone):  # it ends, or another one starts
                _, query = self._recorded()
                if query.end is not None:
                    return ended(query.end)
                if time.monotonic() > deadline:
                    raise self._silent(job) from None
                time.sleep(_POLL_SECONDS)
            except NoAnswer:
                raise self._silent(job) from None
            else:
                return answer

    def _recorded(self) -> tuple[JobRecord, QueryRecord]:
        job = self._folder.record()
        query = job.query(self._name) if job else None
        if job is None or query is None:
            raise StreamNotFound(
                f"The job {self.job!r} at {self._folder.path.parent} has no query called {self._name!r} any more.",
                hint="its folder was removed, or another function was started under its name",
            )
        return job, query

    def _others_run(self) -> bool:
        job, own = self._recorded()
        return own.end is not None and any(query.end is None for query in job.queries)

    def _require_here(self, job: JobRecord) -> None:
        if job.host != socket.gethostname():
            raise UnsupportedError(
                f"The job {self.job!r} runs on {job.host}, and this is {socket.gethostname()}.",
                hint="talk to it there",
            )

    def _silent(self, job: JobRecord) -> EndpointUnreachable:
        return EndpointUnreachable(
            f"The process {job.pid} of the job {self.job!r} runs, but does not answer.",
            hint=f"see the log at {self.log}; kill -TERM {job.pid} stops its queries after their batches and ends it",
        )

    def _refuse(self, act: str) -> Callable[[QueryEnd], Any]:
        def refuse(end: QueryEnd) -> None:
            raise UnsupportedError(
                f"The query {self.name!r} has {end.state} and its process has ended: it cannot {act} any more.",
                hint="detach it again, and it continues from its checkpoint",
            )

        return refuse


def _ended_well(end: QueryEnd) -> bool:
    """True of a query that was stopped or is done; raises what ended another one."""
    if end.error is not None:
        raise end.error
    return True
