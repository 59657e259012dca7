"""What a server starts again after its end: the sinks and jobs that it was told to have, as documents."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from weirflow.errors import AlreadyExists, ConfigError, StreamNotFound, WeirflowError

if TYPE_CHECKING:
    from weirflow.flows.registry import Flow
    from weirflow.ivm.flow.sinks.sink import Sink
    from weirflow.metadata.store import Metadata
    from weirflow.session.session import Session

_log = logging.getLogger(__name__)

_SINKS = "server/sink/"
_JOBS = "server/job/"


@dataclass(frozen=True)
class SinkOrder:
    """A sink as it was asked for; see ``Flow.sink``."""

    flow: str
    view: str
    name: str
    to: str | None = None
    table: str | None = None
    mode: str = "changelog"
    key: tuple[str, ...] = ()
    every: int | str = 1
    on_failure: str = "keep"

    def make(self, flow: Flow) -> Sink:
        """The sink, which goes on where it was."""
        return flow.sink(
            self.view,
            self.to,
            table=self.table,
            mode=self.mode,
            key=list(self.key) or None,
            name=self.name,
            every=self.every,
            on_failure=self.on_failure,
        )


@dataclass(frozen=True)
class JobOrder:
    """Streaming queries in a process of their own, as they were asked for: where the function is that starts them."""

    name: str
    function: str


class Kept:
    """The sinks that a server has open, and the jobs that it looks after."""

    def __init__(self, store: Metadata) -> None:
        self._documents = store.documents
        self._sinks: dict[tuple[str, str], tuple[SinkOrder, Sink]] = {}

    # Sinks

    def add_sink(self, order: SinkOrder, flow: Flow) -> Sink:
        """Make a sink, and again at each start; ``AlreadyExists`` if the flow has one of this name."""
        key = (order.flow, order.name)
        name = _SINKS + "/".join(key)
        if self._documents.get(name) is not None:
            raise AlreadyExists(f"The flow {order.flow!r} has a sink {order.name!r}.", hint="choose another name")
        sink = order.make(flow)
        try:
            self._documents.put(name, {**asdict(order), "key": list(order.key)}, expected_version=0)
        except BaseException:
            sink.close()
            raise
        self._sinks[key] = (order, sink)
        return sink

    def sinks(self, flow: str) -> list[tuple[SinkOrder, Sink]]:
        """The sinks of a flow, by name."""
        return [self._sinks[key] for key in sorted(self._sinks) if key[0] == flow]

    def drop_sink(self, flow: str, name: str) -> None:
        """End a sink, and make it no more; what it has written stays."""
        found = self._documents.get(f"{_SINKS}{flow}/{name}")
        if found is None:
            raise ConfigError(f"The flow {flow!r} has no sink {name!r}.")
        self._documents.delete(found.name, expected_version=found.version)
        _, sink = self._sinks.pop((flow, name), (None, None))
        if sink is not None:
            sink.close()

    # Jobs

    def add_job(self, session: Session, order: JobOrder) -> list[str]:
        """Start a job, and again whenever a start of the server finds it not running; returns its queries."""
        started = session.streams.detach(order.function, name=order.name)
        name = _JOBS + order.name
        known = self._documents.get(name)
        self._documents.put(name, asdict(order), expected_version=known.version if known else 0)
        return [one.name for one in (started if isinstance(started, list) else [started])]

    def forget_job(self, name: str) -> None:
        """Start a job no more, if it is one of these."""
        found = self._documents.get(_JOBS + name)
        if found is not None:
            self._documents.delete(found.name, expected_version=found.version)

    # Starting

    def start_sinks(self, flow: Flow) -> list[WeirflowError]:
        """Make the sinks of a flow that were there; returns what went wrong with some."""
        wrong: list[WeirflowError] = []
        for document in self._documents.list(f"{_SINKS}{flow.name}/"):
            order = SinkOrder(**{**document.value, "key": tuple(document.value["key"])})
            try:
                self._sinks[(order.flow, order.name)] = (order, order.make(flow))
            except WeirflowError as error:
                _log.error("the sink %s of %s could not be made: %s", order.name, order.flow, error)
                wrong.append(error)
        return wrong

    def start_jobs(self, session: Session) -> list[WeirflowError]:
        """Start the jobs that do not run; returns what went wrong with some."""
        wrong: list[WeirflowError] = []
        for document in self._documents.list(_JOBS):
            order = JobOrder(**document.value)
            try:
                if not _runs(session, order.name):
                    session.streams.detach(order.function, name=order.name)
            except WeirflowError as error:
                _log.error("the job %s could not be started: %s", order.name, error)
                wrong.append(error)
        return wrong


def _runs(session: Session, job: str) -> bool:
    try:
        return any(one.active for one in session.streams.detached() if one.job == job)
    except StreamNotFound:
        return False
