"""``RemoteSession``: a Session on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from weirflow.arguments import AtMost, Folder, Lifetime, MoreThan, Name, NotEmpty, Seconds, Secret, Shards, Sql, checked
from weirflow.client.address import parse_address
from weirflow.client.backend import RemoteBackend
from weirflow.client.connection import Connection
from weirflow.client.flow import RemoteFlow
from weirflow.client.operations import RemoteOperation, RemoteOperations
from weirflow.client.result import RemoteResult
from weirflow.client.streams import RemoteStreams
from weirflow.errors import ConfigError, FlowNotFound, TableNotFound, UnsupportedError, did_you_mean
from weirflow.ivm.flow.outputs.subscription import Subscription
from weirflow.sql.statements.kinds import About, kind_of
from weirflow.sql.statements.parameters import with_literals
from weirflow.sql.statements.subscribe import read_subscribe
from weirflow.types import ExplainMode, one_of
from weirflow.wire import calls
from weirflow.wire.arrow import pack_params
from weirflow.wire.messages import Statement

if TYPE_CHECKING:
    from weirflow.sql.statements.relation_name import RelationName
    from weirflow.wire.calls import FlowRow, NodeForm

Params = Mapping[str, Any] | Sequence[Any]
"""Values for the parameter markers of a statement."""

_LONGEST_TOKEN = 7000  # servers take 8 kB of headers
_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class ServerInfo:
    """A server, as it describes itself.

    Attributes:
        address: where it is.
        version: of Weirflow there.
        placement: of its Session.
        profile: of its Session.
        caller: whose token it is.
        role: what the token is for.
        description: its Session, for people.
    """

    address: str
    version: str
    placement: str
    profile: str
    caller: str
    role: str
    description: str

    def __str__(self) -> str:
        who = f" as {self.caller} ({self.role})" if self.caller else ""
        return f"{'server':<12} {self.address}, Weirflow {self.version}{who}\n{self.description}"


@checked
class RemoteSession:
    """A Session whose work is done by a server: SQL, flows, streaming queries and operations.

    It needs neither Java nor pyspark. It does not connect before the first call, which fails within ``connect_timeout``
    seconds if the server cannot be used. If the connection breaks, calls that are safe to repeat are made again, ticks
    with their token, and watches continue where they were.

    >>> from weirflow import RemoteSession
    >>> with RemoteSession("weirflow://localhost:8815", token="wf_…") as session:  # doctest: +SKIP
    ...     session.flow("shop").snapshot("totals")

    Args:
        endpoint: ``weirflow://host:port``, or ``weirflow+tls://host:port``.
        token: the bearer token; None for a server that needs none.
        connect_timeout: seconds until the first answer.
        retry_timeout: for how many seconds calls are repeated while the connection is broken.
        root_certificates: a PEM file of the certificates that TLS trusts; None for the system's.
    """

    def __init__(
        self,
        endpoint: Annotated[str, NotEmpty()],
        token: Annotated[str, Secret()] | None = None,
        *,
        connect_timeout: Seconds = 10.0,
        retry_timeout: Seconds = 30.0,
        root_certificates: Folder | None = None,
    ) -> None:
        address = parse_address(endpoint)
        if root_certificates is not None and not address.tls:
            raise ConfigError("Certificates are for TLS, which the address does not ask for.", hint="weirflow+tls://…")
        if token is not None and not _is_token(token):
            raise ConfigError(
                "This is not a token: it has invalid characters, or too many.",
                hint="pass it as `weirflow tokens` showed it",
            )
        roots = None if root_certificates is None else _read_file(Path(root_certificates))
        self._connection = Connection(
            address, token, connect_seconds=connect_timeout, retry_seconds=retry_timeout, root_certificates=roots
        )
        self._flows: dict[str, RemoteFlow] = {}

    def close(self) -> None:
        """End watches and close the connection; what runs on the server continues. Closing twice does nothing."""
        for flow in list(self._flows.values()):
            flow.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteSession {self._connection.address} {'closed' if self._connection.closed else 'open'}>"

    # SQL

    def sql(self, query: Sql, params: Params | None = None, *, timeout: Lifetime | None = None) -> RemoteResult:
        """The result of a statement. A query runs when you ask for its rows, anything else at once.

        ``SUBSCRIBE TO view`` has no end, and returns what ``subscribe`` does.

        Args:
            query: any statement that a Session understands.
            params: values for ``:name`` markers (a mapping) or ``?`` markers (a sequence).
            timeout: after how many seconds the server stops it, with ``OperationTimeout``.
        """
        kind = kind_of(query)
        if kind.about is About.SUBSCRIPTION:
            followed: Any = self.subscribe(query, params)
            return followed  # type: ignore[no-any-return]  # who writes SUBSCRIBE knows what it returns
        is_query = kind.about is About.QUERY
        result = RemoteResult.of_statement(self._connection, query, params, timeout, repeats=is_query)
        return result if is_query else result.run()

    def sql_with_timeout(
        self, query: Sql, timeout_ms: Annotated[float, MoreThan(0), AtMost(10**12)], params: Params | None = None
    ) -> RemoteResult:
        """Run a statement now; at the deadline the server stops it and ``OperationTimeout`` is raised."""
        is_query = kind_of(query).about is About.QUERY
        return RemoteResult.of_statement(self._connection, query, params, timeout_ms / 1000, repeats=is_query).run()

    def submit(
        self, query: Annotated[Sql, NotEmpty()], params: Params | None = None, *, timeout: Lifetime | None = None
    ) -> RemoteOperation:
        """Run a statement on the server in the background; it continues if this process ends.

        The returned operation has its state, progress, ``cancel()`` and ``result()``. You can find it again by its id.
        """
        asked = Statement(query, pack_params(params), timeout)
        return RemoteOperation(self._connection, self._connection.call("submit", asked))

    def subscribe(self, query: Sql, params: Params | None = None) -> Subscription:
        """The changes of a view, for as long as you read them; after a broken connection it continues where it was.

        Args:
            query: ``SUBSCRIBE TO view [AS OF epoch] [WITH (SNAPSHOT = false, PROGRESS = true, UPSERT = (key))]``.
            params: values for the markers in it.
        """
        if kind_of(query).about is not About.SUBSCRIPTION:
            raise ConfigError("This statement does not begin with SUBSCRIBE TO.", hint="use sql() for other statements")
        wanted = read_subscribe(query if params is None else with_literals(query, params).text)
        flow, view = self._view(wanted.name)
        return Subscription.of(
            flow, view, as_of=wanted.as_of, snapshot=wanted.snapshot, progress=wanted.progress, upsert=wanted.upsert
        )

    def explain(self, query: Sql, mode: ExplainMode | str = ExplainMode.PHYSICAL, params: Params | None = None) -> str:
        """How Spark would run a query: its ``logical`` or ``physical`` plan, or the ``stages`` that it consists of."""
        chosen = one_of(ExplainMode, mode, "No explain mode is called")
        return str(self._connection.call("explain_sql", calls.Explain(query, chosen, pack_params(params))))

    # What the server has

    def flow(self, name: Name = "flow", *, partitions: Shards | None = None, **options: Any) -> RemoteFlow:
        """The flow with this name. It is created if there is none and the token may create one.

        Args:
            name: the name of the flow.
            partitions: over how many Spark tasks a new flow is spread.
            options: options of ``Session.flow`` that are plain values.
        """
        known = self._flows.get(name)
        if known is not None and not known.closed and partitions is None and not options:
            return known
        for option, value in options.items():
            if not isinstance(value, _PLAIN):
                raise UnsupportedError(
                    f"The option {option!r} of a flow on a server must be a plain value.",
                    hint="set it up on the server",
                )
        if partitions is None and not options:
            try:
                status = self._connection.call("status", flow=name)
            except FlowNotFound:
                status = self._connection.call("create_flow", calls.CreateFlow(name))
        else:
            status = self._connection.call("create_flow", calls.CreateFlow(name, partitions, options))
        flow = self._flows[name] = RemoteFlow(RemoteBackend(self._connection, status))
        return flow

    def flows(self) -> tuple[FlowRow, ...]:
        """The flows that the token may see."""
        found: tuple[FlowRow, ...] = self._connection.call("flows")
        return found

    @property
    def streams(self) -> RemoteStreams:
        """The streaming queries of the server."""
        return RemoteStreams(self._connection)

    @property
    def operations(self) -> RemoteOperations:
        """What runs on the server, as far as the token may see it."""
        return RemoteOperations(self._connection)

    def operation_registry(self) -> RemoteOperations:
        """The same as ``operations``, as a method."""
        return self.operations

    def nodes(self) -> tuple[NodeForm, ...]:
        """The nodes around the server, by their heartbeats."""
        found: tuple[NodeForm, ...] = self._connection.call("nodes")
        return found

    def metrics(self) -> str:
        """What the server's flows have done and hold, in Prometheus' text format."""
        return str(self._connection.call("server_metrics"))

    def describe(self) -> ServerInfo:
        """The server: versions, whose token this is, and where it keeps what."""
        said = self._connection.call("server")
        return ServerInfo(
            str(self._connection.address),
            said.version,
            said.placement,
            said.profile,
            said.caller,
            said.role,
            said.description,
        )

    def _view(self, name: RelationName) -> tuple[RemoteFlow, str]:
        """The flow that has a view, and how it spells the name."""
        flows = [one for one in self.flows() if name.flow is None or one.name.casefold() == name.flow.casefold()]
        found = [(flow.name, view) for flow in flows for view in flow.views if view.casefold() == name.name.casefold()]
        if len(found) == 1:
            return self.flow(found[0][0]), found[0][1]
        if found:
            choices = " or ".join(f"{flow}.{view}" for flow, view in found)
            raise ConfigError(f"Several flows have a view {name.name!r}.", hint=f"say which: {choices}")
        known = [f"{flow.name}.{view}" if name.flow else view for flow in self.flows() for view in flow.views]
        raise TableNotFound(f"No flow has a view {str(name)!r}.", hint=did_you_mean(str(name), known))


def _is_token(token: str) -> bool:
    """Whether a text can be sent as a bearer token."""
    return 0 < len(token) <= _LONGEST_TOKEN and token.isascii() and token.isprintable() and " " not in token


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"The certificates in {path} cannot be read: {error.strerror or error}.") from None
