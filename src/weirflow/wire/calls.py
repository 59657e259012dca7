"""``METHODS``: what can be called on a server beside ticks, statements and fetching rows, with the forms it has.

Each method has a struct of arguments and a type of answer. A server has one handler for each of them, and ``form``
makes an answer of what the Session or flow returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 - read when messages are
from typing import Any, Generic, TypeVar

import msgspec

from weirflow.errors import ConfigError, did_you_mean
from weirflow.wire.errors import Failure  # noqa: TC001 - read when messages are
from weirflow.wire.messages import Call, Message, Place, Statement, Summary, pack, unpack

A = TypeVar("A", bound=Message)
R = TypeVar("R")


# Forms


class SettingsForm(Message, frozen=True):
    """``SqlSettings``."""

    time_zone: str = "UTC"
    ansi: bool = True
    case_sensitive: bool = False
    timestamp_ntz: bool = False


class LatenessForm(Message, frozen=True):
    """``Lateness``."""

    column: str
    delay: str
    keep: bool = True


class SourceForm(Message, frozen=True):
    """``Source``; the schema is packed."""

    name: str
    schema: bytes
    key: tuple[str, ...] = ()
    dedup: int = 0
    lateness: LatenessForm | None = None


class ViewForm(Message, frozen=True):
    """``View`` and its name, without what only the process that runs it needs."""

    name: str
    sql: str
    mode: str = "auto"
    stored: bool = True
    forced: bool = False


class PlanForm(Message, frozen=True):
    """``EvolutionPlan``."""

    kept: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class FlowStatus(Message, frozen=True):
    """What a flow is like now; see ``FlowBackend`` for each of them. It is known without Spark."""

    name: str
    epoch: int
    partitions: int = 1
    capabilities: tuple[str, ...] = ()
    pending: bool = False
    waiting: dict[str, str] = msgspec.field(default_factory=dict)
    readable: tuple[str, ...] = ()
    clock: datetime | None = None
    clock_kind: str = "system"
    follows_clock: bool = False
    identity: str = ""


class FlowRow(Message, frozen=True):
    """A flow in a list."""

    name: str
    epoch: int
    partitions: int = 1
    sources: tuple[str, ...] = ()
    views: tuple[str, ...] = ()


class RelationForm(Message, frozen=True):
    """``RelationInfo``."""

    name: str
    kind: str
    rows: int | None
    reads: tuple[str, ...] = ()
    settings: SettingsForm | None = None


class FlowInfoForm(Message, frozen=True):
    """``FlowInfo``."""

    name: str
    runs: str
    kept: str
    epoch: int
    nbytes: int
    relations: tuple[RelationForm, ...] = ()
    clock: str | None = None


class GaugesForm(Message, frozen=True):
    """``FlowGauges``; shards are rows of stage, shard, rows and seconds."""

    epoch: int = 0
    state_bytes: int = 0
    view_bytes: dict[str, int] = msgspec.field(default_factory=dict)
    waiting: dict[str, int] = msgspec.field(default_factory=dict)
    log_bytes: int | None = None
    shards: tuple[tuple[int, int, int, float], ...] = ()
    recall: dict[str, float] = msgspec.field(default_factory=dict)


class OperationForm(Message, frozen=True):
    """``Operation``: what it is and how far; ``key`` is the client's, if it gave one."""

    id: str
    description: str
    state: str
    seconds: float = 0.0
    done: int = 0
    total: int = 0
    note: str = ""
    key: str | None = None
    error: Failure | None = None


class StreamForm(Message, frozen=True):
    """A streaming query: what it is, where in its life, and the last batch as Spark describes it, in JSON."""

    name: str
    id: str
    run_id: str = ""
    state: str = "running"
    message: str = ""
    restarts: int = 0
    description: str = ""
    progress: str | None = None
    error: Failure | None = None


class SavepointForm(Message, frozen=True):
    """A savepoint of a streaming query: what it is called, and where it is."""

    name: str
    uri: str


class NodeForm(Message, frozen=True):
    """A node of the cluster; ``info`` is what it told about itself."""

    id: str
    address: str
    state: str
    joined: datetime
    age: float
    info: dict[str, Any] = msgspec.field(default_factory=dict)


class HelloForm(Message, frozen=True):
    """Who answers, and as whom the caller is known; answered at once, whatever the server is doing."""

    version: str
    protocol: int
    caller: str = ""
    role: str = ""


class ServerForm(Message, frozen=True):
    """The Session that a server has, described for people."""

    version: str
    protocol: int
    placement: str
    profile: str
    description: str
    caller: str = ""
    role: str = ""


# Arguments


class Nothing(Message, frozen=True):
    """No arguments."""


class OfName(Message, frozen=True):
    """The name of a source, view, stream or the like."""

    name: str


class OfView(Message, frozen=True):
    """A view, or all of them."""

    view: str | None = None


class WithTimeout(Message, frozen=True):
    """Seconds that something may take."""

    timeout: float | None = None


class OfToken(Message, frozen=True):
    """The token of a tick."""

    token: str


class DefineSource(Message, frozen=True):
    """A source to be declared, and how its rows are spread over shards."""

    source: SourceForm
    spread: str | None = None


class DefineView(Message, frozen=True):
    """A view to be declared or replaced."""

    view: ViewForm


class Advance(Message, frozen=True):
    """A moment to bring the clock to; None for the system's time."""

    to: datetime | None = None
    timeout: float | None = None
    keep: bool = True


class IsDue(Message, frozen=True):
    """A moment, in microseconds since 1970."""

    moment: int


class TooLate(Message, frozen=True):
    """Packed rows for a source."""

    source: str
    rows: bytes


class ExplainQuery(Message, frozen=True):
    """A query, and the mode that a view of it would have."""

    sql: str
    mode: str = "auto"


class Save(Message, frozen=True):
    """Where to save a flow; None for its own place."""

    uri: str | None = None
    full: bool = False


class Restore(Message, frozen=True):
    """A checkpoint to go on from."""

    uri: str
    epoch: int | None = None


class Plan(Message, frozen=True):
    """The sources and views of another flow."""

    sources: tuple[SourceForm, ...] = ()
    views: tuple[ViewForm, ...] = ()


class Rescale(Message, frozen=True):
    """How many shards, and how some sources are spread over them."""

    partitions: int
    spread: dict[str, str] = msgspec.field(default_factory=dict)


class CreateFlow(Message, frozen=True):
    """A flow to be made: its name, its shards, and options as ``Session.flow`` takes them."""

    name: str
    partitions: int | None = None
    options: dict[str, Any] = msgspec.field(default_factory=dict)


class Explain(Message, frozen=True):
    """A query for Spark to explain, with packed parameters."""

    sql: str
    mode: str = "physical"
    params: bytes | None = None


class OfOperation(Message, frozen=True):
    """An operation by its id or key, and how many seconds to wait for its end."""

    operation: str
    wait: float = 0.0


class StopStream(Message, frozen=True):
    """A streaming query to be stopped, by name or id."""

    name: str
    within: float | None = None


class SaveStream(Message, frozen=True):
    """A savepoint to be made of a streaming query."""

    name: str
    savepoint: str
    to: str | None = None


# Methods


@dataclass(frozen=True)
class Method(Generic[A, R]):
    """What can be called.

    Attributes:
        name: what it is called by.
        arguments: the struct of its arguments.
        answer: the type of its answer.
        of_flow: whether it is one of a flow's; others are the Session's.
        repeats: whether calling it again, after an answer that was lost, does no harm.
    """

    name: str
    arguments: type[A]
    answer: Any
    of_flow: bool = True
    repeats: bool = True

    def ask(self, arguments: A, flow: str | None = None) -> bytes:
        """The call, as it is sent."""
        return pack(Call(self.name, msgspec.Raw(pack(arguments)), flow))

    def read_arguments(self, call: Call) -> A:
        """The arguments of a call; ``ConfigError`` if they are others than the method's."""
        return unpack(bytes(call.arguments), self.arguments)

    def read_answer(self, content: bytes) -> R:
        """The answer; ``ConfigError`` if the bytes are none."""
        answer: R = unpack(content, self.answer)
        return answer


_flow: tuple[Method[Any, Any], ...] = (
    Method("status", Nothing, FlowStatus),
    Method("settings", Nothing, SettingsForm),
    Method("sources", Nothing, tuple[SourceForm, ...]),
    Method("views", Nothing, tuple[ViewForm, ...]),
    Method("schema", OfName, bytes),
    Method("describe", Nothing, FlowInfoForm),
    Method("explain", OfView, str),
    Method("explain_query", ExplainQuery, str),
    Method("metrics", Nothing, str),
    Method("gauges", Nothing, GaugesForm | None),
    Method("position", OfName, Place | None),
    Method("epoch_of", OfToken, int | None),
    Method("is_due", IsDue, bool),
    Method("too_late", TooLate, int),
    Method("define_source", DefineSource, None),
    Method("define_view", DefineView, None),
    Method("replace_view", DefineView, PlanForm, repeats=False),
    Method("refresh_view", OfName, PlanForm, repeats=False),
    Method("force_diff", OfView, None),
    Method("drop", OfName, None, repeats=False),
    Method("retry", WithTimeout, Summary, repeats=False),
    Method("discard", Nothing, None, repeats=False),
    Method("advance", Advance, Summary, repeats=False),
    Method("save", Save, str),
    Method("restore", Restore, PlanForm, repeats=False),
    Method("plan", Plan, PlanForm),
    Method("rescale", Rescale, None, repeats=False),
)
_session: tuple[Method[Any, Any], ...] = (
    Method("hello", Nothing, HelloForm, of_flow=False),
    Method("server", Nothing, ServerForm, of_flow=False),
    Method("flows", Nothing, tuple[FlowRow, ...], of_flow=False),
    Method("create_flow", CreateFlow, FlowStatus, of_flow=False),
    Method("explain_sql", Explain, str, of_flow=False),
    Method("submit", Statement, OperationForm, of_flow=False, repeats=False),
    Method("operations", Nothing, tuple[OperationForm, ...], of_flow=False),
    Method("operation", OfOperation, OperationForm, of_flow=False),
    Method("cancel", OfOperation, bool, of_flow=False),
    Method("streams", Nothing, tuple[StreamForm, ...], of_flow=False),
    Method("stream", OfName, StreamForm, of_flow=False),
    Method("stop_stream", StopStream, StreamForm, of_flow=False),
    Method("save_stream", SaveStream, SavepointForm, of_flow=False, repeats=False),
    Method("nodes", Nothing, tuple[NodeForm, ...], of_flow=False),
    Method("server_metrics", Nothing, str, of_flow=False),
)
METHODS: Mapping[str, Method[Any, Any]] = {one.name: one for one in (*_flow, *_session)}
"""All of them, by name."""


def method_of(call: Call) -> Method[Any, Any]:
    """The method that is called; ``ConfigError`` if there is none, or if it is not one of what it is called on."""
    method = METHODS.get(call.method)
    if method is None:
        raise ConfigError(f"A server has no method {call.method!r}.", hint=did_you_mean(call.method, METHODS))
    if method.of_flow != (call.flow is not None):
        raise ConfigError(f"The method {call.method!r} is one of {'a flow' if method.of_flow else 'the Session'}.")
    return method


def form(value: object, kind: type[R]) -> R:
    """An object of the same attributes as a form: ``StepSummary`` for ``Summary``, and the like."""
    return msgspec.convert(value, kind, from_attributes=True)
