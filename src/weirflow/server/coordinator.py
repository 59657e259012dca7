"""``Coordinator``: the one place through which every door of a server reaches its Session."""

from __future__ import annotations

import contextvars
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import pyarrow as pa

from weirflow.errors import (
    ConfigError,
    FlowNotFound,
    ServerBusy,
    ServerDraining,
    StreamNotFound,
    TableNotFound,
    WeirflowError,
    did_you_mean,
)
from weirflow.server.access.audit import AuditLog, statement_shape
from weirflow.server.access.caller import Caller, Right
from weirflow.server.access.limits import Limits, Slots
from weirflow.server.access.statements import Classifier
from weirflow.server.measures import Measures
from weirflow.sql.statements.kinds import About, StatementKind, kind_of
from weirflow.sql.statements.parameters import markers_of

if TYPE_CHECKING:
    from weirflow.flows.host import Params
    from weirflow.flows.registry import Flow, FlowRegistry
    from weirflow.server.access.gate import Gate
    from weirflow.session.operation import Operation
    from weirflow.session.session import Session, SessionInfo
    from weirflow.spark.frames.frame import DataFrame
    from weirflow.sql.statements.relation_name import RelationName
    from weirflow.streaming.detached.query import DetachedQuery
    from weirflow.streaming.query.handle import StreamingQuery

    Query: TypeAlias = StreamingQuery | DetachedQuery

T = TypeVar("T")

_DRAIN_RETRY_SECONDS = 5.0
_START_RETRY_SECONDS = 0.5
_OPERATIONS_REMEMBERED = 10_000
_TELLING = (FlowNotFound, TableNotFound)
"""Errors whose hints say what there is instead, of whomever it is."""

_around: contextvars.ContextVar[Work | None] = contextvars.ContextVar("weirflow_server_work", default=None)


@contextmanager
def _inside(work: Work) -> Iterator[None]:
    """Have what this thread does in the block be a part of a request."""
    token = _around.set(work)
    try:
        yield
    finally:
        _around.reset(token)


@dataclass
class Work:
    """One request that is under way.

    Attributes:
        id: counts the requests of this server.
        caller: who asks.
        what: what for, in a word or two, such as ``tick`` or ``sql``.
        flow: the flow that it is about, if it is about one.
        detail: what else the audit log is to say of it; no secret, and no value.
        lasting: whether it goes on for as long as its caller wants, as a watch does.
    """

    id: int
    caller: Caller
    what: str
    flow: str | None = None
    detail: str = ""
    lasting: bool = False
    started: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Outcome:
    """What a statement came to: rows, or a frame of Spark's that nobody has computed yet.

    Attributes:
        schema: the columns of the result.
        rows: the result of a statement about flows, catalogs or materialized views, which has happened; else None.
        frame: the result of one of Spark's; a command has happened by now, a query has not begun. Else None.
        is_query: whether the statement can only read.
    """

    schema: pa.Schema
    rows: pa.Table | None
    frame: DataFrame | None
    is_query: bool


@dataclass(frozen=True)
class Prepared:
    """What is known of a statement before it is run.

    Attributes:
        sql: the statement.
        schema: the columns of its result; None if they are known only when it has run, which is so for commands.
        parameters: its markers in order: names of ``:name``, and ``?1``, ``?2``, ... for each ``?``.
        is_query: whether it can only read.
    """

    sql: str
    schema: pa.Schema | None
    parameters: tuple[str, ...]
    is_query: bool


class Coordinator:
    """Owns a Session for a server. All methods may be called from any thread.

    Args:
        session: the Session; who made the coordinator closes it.
        gate: knows callers by their tokens.
        limits: what each token may have.
        audit: where requests are written down.
        ready: whether requests are taken at once, or when ``ready`` is set.
    """

    def __init__(
        self,
        session: Session,
        gate: Gate,
        *,
        limits: Limits | None = None,
        audit: AuditLog | None = None,
        ready: bool = True,
    ) -> None:
        self.session = session
        self.gate = gate
        self.limits = limits or Limits()
        self.audit = audit or AuditLog()
        self.measures = Measures()
        self.ready = threading.Event()
        """Set when everything that was there has been opened again; nothing is taken before."""
        self.draining = threading.Event()
        """Set when nothing new is taken any more; watches end then."""
        if ready:
            self.ready.set()
        self._slots = Slots(self.limits)
        self._classifier = Classifier(session)
        self._numbers = itertools.count(1)
        self._lock = threading.Condition()
        self._under_way: dict[int, Work] = {}
        self._owners: dict[str, str] = {}

    # Requests

    @contextmanager
    def work(
        self,
        caller: Caller,
        right: Right,
        what: str,
        *,
        flow: str | None = None,
        detail: str = "",
        lasting: bool = False,
    ) -> Iterator[Work]:
        """Around every request, in every door: who may not, or not now, is refused; how it ended is written down.

        A request inside another one, on the same thread, is a part of it: its rights are checked, and that is all.

        Args:
            caller: who asks.
            right: what it needs.
            what: what it is, in a word or two, for errors and the audit log.
            flow: the flow it is about.
            detail: what else the audit log is to say: the names of sources and views, the shape of a statement. No
                secret, and no value of a row.
            lasting: whether it goes on for as long as its caller wants, as a watch does. It has to end by itself when
                ``draining`` is set.

        Raises:
            NotAllowed: the role is too low, or the flow is not one of the caller's.
            ServerBusy: the caller has too much under way.
            ServerDraining: the server is about to end.
        """
        outer = _around.get()
        if outer is not None and outer.caller is caller:
            caller.require(right, what, flow=flow)
            outer.flow = outer.flow or flow
            outer.detail = outer.detail or detail
            yield outer
            return
        work = Work(next(self._numbers), caller, what, flow, detail, lasting)
        code, counted = "OK", False
        try:
            caller.require(right, what, flow=flow)
            with self._slots.taken(caller, lasting=lasting), self._listed(work):
                self.measures.begun(lasting=lasting)
                counted = True
                if lasting:  # a stream is read by whoever comes, in any thread
                    yield work
                else:
                    with _inside(work):
                        yield work
        except WeirflowError as error:
            code = error.code
            if isinstance(error, _TELLING) and "*" not in caller.flows:
                error.hint = None
            raise
        except GeneratorExit:  # a stream whose reader has had enough
            raise
        except BaseException as error:
            code = type(error).__name__
            raise
        finally:
            spent = time.monotonic() - work.started
            self.measures.ended(what, code, spent, lasting=lasting, counted=counted)
            self.audit.write(caller, what, flow=work.flow, detail=work.detail, code=code, milliseconds=spent * 1000)

    @contextmanager
    def _listed(self, work: Work) -> Iterator[None]:
        with self._lock:
            if self.draining.is_set():
                raise ServerDraining(
                    "The server is about to end, and accepts no new requests.",
                    retry_after=_DRAIN_RETRY_SECONDS,
                    hint="send the same request again in a few seconds, to the server that replaces it",
                )
            if not self.ready.is_set():
                raise ServerBusy(
                    "The server is starting, and still opens its flows.",
                    retry_after=_START_RETRY_SECONDS,
                    hint="try again",
                )
            self._under_way[work.id] = work
        try:
            yield
        finally:
            with self._lock:
                del self._under_way[work.id]
                self._lock.notify_all()

    @property
    def under_way(self) -> tuple[Work, ...]:
        """The requests that are under way."""
        with self._lock:
            return tuple(self._under_way.values())

    def drain(self, seconds: float) -> bool:
        """Refuse what is new, and wait for what is under way; whether all of it has ended in time.

        Watches are told to end, by ``draining``, and waited for as well.
        """
        with self._lock:
            self.draining.set()
            return self._lock.wait_for(lambda: not self._under_way, seconds)

    # Flows

    @property
    def _registry(self) -> FlowRegistry:
        return self.session._flows_sql().flows  # noqa: SLF001 - the server stands for its Session

    def flow(self, name: str) -> Flow:
        """The flow of this name, opened if the Session keeps it; ``FlowNotFound`` if there is none.

        Whether the caller may have it is ``work``'s to say.
        """
        found = self._registry.named(name)
        if found is None:
            known = [flow.name for flow in self._registry.opened]
            raise FlowNotFound(
                f"There is no flow {name!r}.", hint=did_you_mean(name, known) or "`CREATE FLOW name` makes one"
            )
        return found

    def flows(self, caller: Caller) -> list[Flow]:
        """The flows that a caller may see, by name; those that the Session keeps are opened."""
        self.open_flows()  # those that cannot be opened are not listed, and say why when they are asked for
        seen = (flow for flow in self._registry.opened if caller.sees_flow(flow.name))
        return sorted(seen, key=lambda flow: flow.name)

    def make_flow(self, name: str, partitions: int | None) -> Flow:
        """The flow of this name, made if there is none; see ``Session.flow``."""
        found = self._registry.named(name)
        if found is not None and partitions in (None, found.partitions):
            return found
        return self._registry.open(name, partitions=partitions)

    def opened_flows(self) -> tuple[Flow, ...]:
        """The flows that are open, of whomever."""
        return self._registry.opened

    def open_flows(self) -> dict[str, WeirflowError]:
        """Open all flows that the Session keeps; returns what went wrong with some."""
        wrong: dict[str, WeirflowError] = {}
        for name in self._registry.kept:
            try:
                self._registry.named(name)
            except WeirflowError as error:
                wrong[name] = error
        return wrong

    def relation(self, caller: Caller, name: RelationName) -> tuple[Flow, str] | None:
        """The flow of the caller's that has a source or view, and how it spells the name; None if none has it."""
        return self._registry.find(name, caller.sees_flow)

    def describe(self, caller: Caller) -> SessionInfo:
        """Where the Session runs, and which catalogs it has of those that a caller may see."""
        info = self.session.describe()
        return replace(info, catalogs=tuple(one for one in info.catalogs if caller.sees_catalog(one.name)))

    # Streaming queries

    def streams(self, caller: Caller) -> list[Query]:
        """The streaming queries of the server and of its jobs, but for those that feed flows which are not theirs."""
        here: list[Query] = list(self.session.streams.active)
        with suppress(ConfigError):  # there is no folder of jobs
            here += self.session.streams.detached()
        return [one for one in here if "/" not in one.name or caller.sees_flow(one.name.partition("/")[0])]

    def stream(self, caller: Caller, name: str) -> Query:
        """The streaming query of this name or id.

        Raises:
            StreamNotFound: there is none.
            NotAllowed: it feeds, or would by its name feed, a flow that is not the caller's.
        """
        if "/" in name:
            caller.require(Right.READ, "see a stream", flow=name.partition("/")[0])
        found = self.session.streams.get(name)
        if "/" in found.name and not caller.sees_flow(found.name.partition("/")[0]):
            raise StreamNotFound(f"No streaming query is called {name!r}.")
        return found

    # Statements

    def check_query(self, caller: Caller, sql: str, flow: str | None = None, own: Iterable[str] = ()) -> None:
        """Refuse a query of a view of a flow, or over one, that reads or does what the caller may not.

        It may read what comes with it, by names of its ``own``.
        """
        self._classifier.check_query(caller, sql, flow, own)

    def require_table(self, caller: Caller, table: str) -> None:
        """Refuse a table of Spark's, by its name, whose catalog is not one of the caller's."""
        self._classifier.require_table(caller, table)

    def statement(
        self,
        caller: Caller,
        sql: str,
        params: Params | None = None,
        *,
        timeout: float | None = None,
        started: Callable[[Operation], None] | None = None,
    ) -> Outcome:
        """Run a statement, but for a query, which is made ready: the rows of its ``frame`` are for the door to compute.

        Args:
            caller: who asks; what the statement does, and what it reads, must be theirs to do and read.
            sql: one statement.
            params: values for its markers.
            timeout: the seconds it may take, if that is less than the limit.
            started: given the operation as soon as there is one, so that it can be cancelled.

        Raises:
            NotAllowed: the caller may not do this, or not read that.
        """
        kind = kind_of(sql)
        with self.work(caller, Right.READ, "run SQL", detail=statement_shape(sql)):
            if kind.about is About.QUERY:
                answer = self._query(caller, sql, kind, params)
            else:
                inspection = self._classifier.check(caller, sql, kind, params)
                answer = self.run(
                    caller,
                    statement_shape(sql),
                    lambda: self.session._answer(sql, kind, params, inspection),  # noqa: SLF001 - before it is a frame
                    timeout=timeout,
                    started=started,
                )
            return self._outcome(answer, kind)

    def prepare(self, caller: Caller, sql: str) -> Prepared:
        """What is known of a statement without running it; raises what ``statement`` would as far as that is known."""
        kind = kind_of(sql)
        with self.work(caller, Right.READ, "prepare SQL", detail=statement_shape(sql)):
            markers = markers_of(sql)
            if kind.about is not About.QUERY:
                self._classifier.check(caller, sql, kind, None)
                return Prepared(sql, None, markers, is_query=False)
            named = any(not marker.startswith("?") for marker in markers)
            nulls: Params | None = dict.fromkeys(markers) if named else [None] * len(markers) or None
            outcome = self._outcome(self._query(caller, sql, kind, nulls), kind)
            return Prepared(sql, outcome.schema, markers, is_query=True)

    def _query(self, caller: Caller, sql: str, kind: StatementKind, params: Params | None) -> pa.Table | DataFrame:
        """A query that may be run, and has not been."""
        inspection = self._classifier.check(caller, sql, kind, params)
        return self.session._answer(sql, kind, params, inspection)  # noqa: SLF001 - the part before Spark's frames

    def _outcome(self, answer: pa.Table | DataFrame, kind: StatementKind) -> Outcome:
        is_query = kind.about is About.QUERY
        if isinstance(answer, pa.Table):
            return Outcome(answer.schema, answer, None, is_query)
        from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark

        with self.session._translated():  # noqa: SLF001 - Spark may have to look at the query
            return Outcome(frame_schema(answer.spark), None, answer, is_query)

    # Operations

    def run(
        self,
        caller: Caller,
        description: str,
        call: Callable[[], T],
        *,
        timeout: float | None = None,
        started: Callable[[Operation], None] | None = None,
    ) -> T:
        """Run a call as an operation of the caller's: listed, stopped when its time is over, and cancelled by its id.

        Args:
            caller: whose it is.
            description: what it does, without values.
            call: the work.
            timeout: the seconds it may take, if that is less than the limit.
            started: given the operation before the wait for it begins.

        Raises:
            OperationTimeout: its time is over.
            OperationCancelled: somebody has cancelled it.
        """
        context = contextvars.copy_context()

        def begun(operation: Operation) -> None:
            self.own(caller, operation)
            if started is not None:
                started(operation)

        return self.session.operations.run_with_timeout(
            description, lambda: context.run(call), self.limits.of(caller).seconds(timeout), started=begun
        )

    def own(self, caller: Caller, operation: Operation) -> None:
        """Note whose an operation is."""
        with self._lock:
            self._owners[operation.id] = caller.key
            while len(self._owners) > _OPERATIONS_REMEMBERED:
                del self._owners[next(iter(self._owners))]

    def owns(self, caller: Caller, operation_id: str) -> bool:
        """Whether an operation is a caller's, or the caller may operate all of them."""
        with self._lock:
            is_own = self._owners.get(operation_id) == caller.key
        return is_own or caller.role.has(Right.OPERATE)

    def cancel(self, caller: Caller, operation_id: str) -> bool:
        """Cancel an operation; whether it ran. Those of others take the right to operate.

        Raises:
            OperationUnknown: there is none of this id.
        """
        with self.work(caller, Right.READ, "cancel an operation", detail=operation_id):
            if not self.owns(caller, operation_id):
                caller.require(Right.OPERATE, "cancel what others run")
            operation = self.session.operations.get(operation_id)
            is_running = not operation.wait(0)
            operation.cancel()
            return is_running
