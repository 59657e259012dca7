"""``StreamingQueryManager``: the streaming queries of a Session, and who is told about them."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from weirflow.arguments import Folder, Name, Seconds, Uri, checked
from weirflow.errors import AlreadyExists, StreamNotFound, WeirflowError, did_you_mean
from weirflow.streaming.detached.jobs import DetachedJobs, place_of_jobs
from weirflow.streaming.query.events import EventBus
from weirflow.streaming.query.listeners import require_listening
from weirflow.streaming.query.run import STOP_SECONDS, EndedRun, QueryRun
from weirflow.streaming.query.starting import adopt_query, start_query
from weirflow.streaming.savepoints.saver import savepoints_of

if TYPE_CHECKING:
    import os

    from weirflow.streaming.detached.query import DetachedQuery
    from weirflow.streaming.frame import StreamingDataFrame
    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.query.handle import StreamingQuery
    from weirflow.streaming.query.listeners import StreamingQueryListener
    from weirflow.streaming.query.progress import QueryProgress
    from weirflow.streaming.query.spec import QuerySpec
    from weirflow.streaming.savepoints.named import QuerySavepoints

_REMEMBERED = 100


class StreamingQueryManager:
    """The queries that a Session has started, by name and id; ``session.streams`` is the Session's."""

    def __init__(self, host: StreamHost) -> None:
        self._host = host
        self._changed = threading.Condition()
        self._starting = 0
        self._runs: dict[str, QueryRun] = {}
        self._ended: deque[EndedRun] = deque(maxlen=_REMEMBERED)
        self._handles: weakref.WeakValueDictionary[str, StreamingQuery] = weakref.WeakValueDictionary()
        self._bus = EventBus(lambda: host.spark, self)

    def frame(self, native: Any) -> StreamingDataFrame:
        """A native streaming frame as ours."""
        from weirflow.streaming.frame import StreamingDataFrame  # noqa: PLC0415 - imports pyspark

        return StreamingDataFrame(native, self._host.runner)

    def hosted(self, function: Any, columns: Sequence[str], event_time: str | None) -> Any:
        """A process function as Spark's tasks run it; see ``StreamHost``."""
        return self._host.hosted(function, columns, event_time)

    def broadcast_hosted(self, function: Any, columns: Sequence[str], event_time: str | None) -> Any:
        """A function with a broadcast input as Spark's tasks run it; see ``StreamHost``."""
        return self._host.broadcast_hosted(function, columns, event_time)

    def co_hosted(self, function: Any, event_time: tuple[str | None, str | None]) -> Any:
        """A function of two inputs as Spark's tasks run it; see ``StreamHost``."""
        return self._host.co_hosted(function, event_time)

    @property
    def active(self) -> list[StreamingQuery]:
        """The queries that run, or are about to be started again; oldest first."""
        handles = [self._handles.get(query_id) for query_id in list(self._runs)]
        return [query for query in handles if query is not None]

    @checked
    def get(self, name: Name, at: Folder | None = None) -> StreamingQuery | DetachedQuery:
        """The running query of this name or id, also one that another client of the same server session has started.

        The handle of such a query does not stop it when it is dropped. A detached query is found by its name, its id
        or its job's name, also after its end.

        Args:
            name: the query's name or id.
            at: the folder of detached jobs; by default the one under the Session's path.

        Raises:
            StreamNotFound: none is.
        """
        for query in self.active:
            if name in (query.name, query.id):
                return query
        jobs = self._jobs(at) if at is not None or self._host.settings.path is not None else None
        if jobs is not None and (detached := jobs.named(name)):
            if len({one.name for one in detached}) > 1:
                raise StreamNotFound(
                    f"The job {name!r} has several queries.",
                    hint=f"get one of {', '.join(one.name for one in detached)}",
                )
            return detached[0]
        natives = self._natives()
        for native in natives:
            if name in (native.name, str(native.id)):
                query = adopt_query(native, self._began, self._over)
                self._handles[query.id] = query
                return query
        known = [native.name for native in natives if native.name is not None]
        known += [one.name for one in jobs.queries()] if jobs is not None else []
        none = "none runs" if jobs is not None else "none is running here; pass at= to look for detached queries"
        raise StreamNotFound(
            f"No running streaming query has the name or id {name!r}.",
            hint=did_you_mean(name, known) or (f"there are {', '.join(known)}" if known else none),
        )

    @overload
    def detach(
        self,
        function: Callable[[Any], StreamingQuery],
        name: str | None = None,
        at: str | os.PathLike[str] | None = None,
    ) -> DetachedQuery: ...

    @overload
    def detach(
        self,
        function: Callable[[Any], Sequence[StreamingQuery]],
        name: str | None = None,
        at: str | os.PathLike[str] | None = None,
    ) -> list[DetachedQuery]: ...

    @overload
    def detach(
        self, function: str, name: str | None = None, at: str | os.PathLike[str] | None = None
    ) -> DetachedQuery | list[DetachedQuery]: ...

    @checked
    def detach(
        self,
        function: Callable[[Any], StreamingQuery | Sequence[StreamingQuery]] | Name,
        name: Name | None = None,
        at: Folder | None = None,
    ) -> DetachedQuery | list[DetachedQuery]:
        """Run queries in a process of their own, a *job*, which outlives this one and is found again by name.

        The function is called there, with a Session of the same settings, and returns the queries it has started: one,
        or several in a list. This waits until it has. The job ends when all its queries have; what has ended is
        started again by another ``detach`` under its name, and goes on from its checkpoint.

        Args:
            function: takes a Session; one of a script or notebook is sent as a copy, one of a module by name. Or where
                it is: ``file.py:function`` or ``module:function``.
            name: the job's name; by default the function's.
            at: the folder of jobs, on this machine; by default ``jobs`` under the Session's path.

        Raises:
            AlreadyExists: a job of this name runs.
            ConfigError: there is no place for jobs, the name cannot be one, or the function cannot be sent or
                returns no query; nothing runs.
            UserCodeError: the function raised; nothing runs. Errors of Weirflow's and Spark's are raised as such.
        """
        return self._jobs(at).start(function, name, self._host.settings)

    @checked
    def detached(self, at: Folder | None = None) -> list[DetachedQuery]:
        """The queries of all jobs at a place, running and ended, by the names of their jobs; see ``detach``."""
        return self._jobs(at).queries()

    @checked
    def await_any(self, timeout: Seconds | None = None) -> StreamingQuery | None:
        """Wait until one of the queries that run now has ended, and return it; None after ``timeout`` seconds.

        It raises nothing: ask the query for its ``exception``. None also if no query runs.
        """
        waiting = self.active
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while waiting:
                for query in waiting:
                    if query.id not in self._runs:
                        return query
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    break
                self._changed.wait(left)
        return None

    @checked
    def add_listener(self, listener: StreamingQueryListener) -> None:
        """Tell a listener about all queries of the Session from now on; see ``StreamingQueryListener``.

        Raises:
            ConfigError: it overrides none of the methods.
        """
        require_listening(listener)
        self._bus.add(listener)

    @checked
    def remove_listener(self, listener: StreamingQueryListener) -> None:
        """Tell it no more, after what has happened so far."""
        self._bus.remove(listener)

    @checked
    def savepoints(self, at: Uri | None = None) -> QuerySavepoints:
        """The savepoints of queries at a place: list, copy, restore and delete them.

        Args:
            at: a folder or storage URI; by default where the Session's profile keeps checkpoints.
        """
        return savepoints_of(self._host, None if at is None else str(at))

    def stop_all(self) -> None:
        """Stop every query, each after its batch."""
        for run in list(self._runs.values()):
            run.stop()

    def close(self) -> None:
        """Stop every query, and end all threads but those of listeners that block."""
        self.stop_all()
        self._bus.close()

    def start(self, spec: QuerySpec) -> StreamingQuery:
        """Start what a writer was told; what cannot be is refused before anything is started."""
        if spec.name is not None and any(query.name == spec.name for query in self.active):
            raise AlreadyExists(
                f"A query called {spec.name!r} is already running.", hint="stop it first, or choose another query_name"
            )
        with self._changed:
            self._starting += 1
        try:
            query = start_query(spec, self._host, self._began, self._over)
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify_all()
        self._handles[query.id] = query
        return query

    def outcome(self, run_id: str) -> tuple[WeirflowError | None, bool] | None:
        """How a start of a query ended, for events: the error, and whether it is started again; None if not ours."""
        with self._changed:
            self._changed.wait_for(lambda: self._owner(run_id) is not None or not self._starting, STOP_SECONDS)
            run = self._owner(run_id)
        if isinstance(run, EndedRun):
            return run.outcomes.get(run_id)
        return None if run is None else run.outcome(run_id)

    def known(self, run_id: str) -> tuple[str | None, QueryProgress | None] | None:
        """The name of the query of a start, and its last batch, for events; None if it is not ours."""
        with self._changed:
            run = self._owner(run_id)
        if isinstance(run, EndedRun):
            return run.name, run.last
        return None if run is None else (run.name, run.last())

    def _jobs(self, at: str | os.PathLike[str] | None) -> DetachedJobs:
        return DetachedJobs(place_of_jobs(self._host.settings, at))

    def _natives(self) -> list[Any]:
        """The queries that Spark knows; none if there is no Spark, and none is started to look."""
        if not self._host.spark_runs:
            return []
        return self._host.run("list streams", lambda: list(self._host.spark.streams.active))

    def _owner(self, run_id: str) -> QueryRun | EndedRun | None:
        found = next((run for run in self._runs.values() if run.had(run_id)), None)
        return found or next((run for run in self._ended if run_id in run.outcomes), None)

    def _began(self, run: QueryRun) -> None:
        with self._changed:
            self._runs[run.id] = run
            self._changed.notify_all()

    def _over(self, run: QueryRun) -> None:
        remembered = run.remembered()
        with self._changed:
            self._runs.pop(run.id, None)
            self._ended.append(remembered)
            self._changed.notify_all()
