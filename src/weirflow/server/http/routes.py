"""Every route of HTTP in one table: what it needs, and who answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.server.access.caller import Right
from weirflow.server.http import flows, nodes, relations, statements, streams

if TYPE_CHECKING:
    from weirflow.server.http.calls import Answer, Call

_FLOW = "/v1/flows/{flow}"
_SOURCE = _FLOW + "/sources/{source}"
_VIEW = _FLOW + "/views/{view}"
_SINK = _FLOW + "/sinks/{sink}"
_STREAM = "/v1/streams/{stream:path}"
_OPERATION = "/v1/operations/{operation}"


@dataclass(frozen=True)
class Route:
    """One route.

    Attributes:
        method: of HTTP.
        path: with its parameters in braces; one that is called ``flow`` is the flow that the request is about.
        right: what the caller needs.
        what: what errors and the audit log call it.
        handler: answers it, in a thread.
        body: the members that its body may have; None if it is something else.
        has_rows: whether the answer is rows, which Arrow can be asked for.
        returns: the status of success.
    """

    method: str
    path: str
    right: Right
    what: str
    handler: Callable[[Call], Answer]
    body: tuple[str, ...] | None = ()
    has_rows: bool = False
    returns: int = 200


_READ, _WRITE, _OPERATE, _ADMIN = Right.READ, Right.WRITE, Right.OPERATE, Right.ADMIN

ROUTES: tuple[Route, ...] = (
    Route("GET", "/v1/session", _READ, "describe the session", statements.describe_session),
    Route("POST", "/v1/sql", _READ, "run SQL", statements.run_sql, ("sql", "params", "timeout"), has_rows=True),
    # Flows
    Route("GET", "/v1/flows", _READ, "list flows", flows.list_flows),
    Route("PUT", _FLOW, _OPERATE, "make a flow", flows.make_flow, ("partitions",), returns=201),
    Route("GET", _FLOW, _READ, "describe a flow", flows.describe_flow),
    Route("GET", _FLOW + "/graph", _READ, "draw a flow", flows.graph),
    Route("GET", _FLOW + "/explain", _READ, "explain a flow", flows.explain),
    Route("POST", _FLOW + "/query", _READ, "query a flow", flows.query_flow, ("sql",), has_rows=True),
    Route("POST", _FLOW + "/ticks", _WRITE, "tick", relations.tick_flow, ("deltas", "token", "timeout")),
    Route("POST", _FLOW + "/advance", _WRITE, "advance the clock", flows.advance, ("timeout",)),
    Route("POST", _FLOW + "/retry", _WRITE, "retry a tick", flows.retry, ("timeout",)),
    Route("POST", _FLOW + "/discard", _WRITE, "discard a tick", flows.discard),
    Route("POST", _FLOW + "/checkpoints", _OPERATE, "save a flow", flows.checkpoint, ("uri",), returns=201),
    # Sources
    Route("GET", _FLOW + "/sources", _READ, "list sources", relations.list_sources),
    Route("GET", _SOURCE, _READ, "describe a source", relations.describe_source),
    Route(
        "PUT",
        _SOURCE,
        _OPERATE,
        "make a source",
        relations.make_source,
        ("schema", "key", "dedup", "lateness", "dimensions", "spread"),
        returns=201,
    ),
    Route("DELETE", _SOURCE, _OPERATE, "drop a source", relations.drop_source, returns=204),
    Route("GET", _SOURCE + "/rows", _READ, "read a source", relations.source_rows, has_rows=True),
    Route("POST", _SOURCE + "/ticks", _WRITE, "tick", relations.tick_source, None),
    # Views
    Route("GET", _FLOW + "/views", _READ, "list views", relations.list_views),
    Route("GET", _VIEW, _READ, "describe a view", relations.describe_view),
    Route(
        "PUT",
        _VIEW,
        _OPERATE,
        "make a view",
        relations.make_view,
        ("sql", "mode", "materialized", "replace"),
        returns=201,
    ),
    Route("DELETE", _VIEW, _OPERATE, "drop a view", relations.drop_view, returns=204),
    Route("POST", _VIEW + "/refresh", _OPERATE, "refresh a view", relations.refresh_view),
    Route("GET", _VIEW + "/rows", _READ, "read a view", relations.view_rows, has_rows=True),
    # Sinks
    Route("GET", _FLOW + "/sinks", _READ, "list sinks", flows.list_sinks),
    Route(
        "PUT",
        _SINK,
        _OPERATE,
        "make a sink",
        flows.make_sink,
        ("view", "to", "table", "mode", "key", "every", "on_failure"),
        returns=201,
    ),
    Route("DELETE", _SINK, _OPERATE, "drop a sink", flows.drop_sink, returns=204),
    # Operations
    Route("GET", "/v1/operations", _READ, "list operations", statements.list_operations),
    Route(
        "POST",
        "/v1/operations",
        _READ,
        "submit SQL",
        statements.submit_sql,
        ("sql", "params", "timeout"),
        returns=202,
    ),
    Route("GET", _OPERATION, _READ, "describe an operation", statements.describe_operation),
    Route("GET", _OPERATION + "/result", _READ, "fetch a result", statements.operation_result, has_rows=True),
    Route("DELETE", _OPERATION, _READ, "cancel an operation", statements.cancel_operation),
    # Streaming queries
    Route("GET", "/v1/streams", _READ, "list streams", streams.list_streams),
    Route("POST", "/v1/streams", _ADMIN, "start streams", streams.start_stream, ("function", "name"), returns=201),
    Route("GET", _STREAM, _READ, "describe a stream", streams.describe_stream),
    Route("POST", _STREAM + "/stop", _OPERATE, "stop a stream", streams.stop_stream),
    Route(
        "POST", _STREAM + "/savepoints", _OPERATE, "make a savepoint", streams.make_savepoint, ("name",), returns=201
    ),
    Route("GET", "/v1/savepoints", _READ, "list savepoints", streams.list_savepoints),
    Route("DELETE", "/v1/savepoints/{savepoint}", _OPERATE, "drop a savepoint", streams.drop_savepoint, returns=204),
    # Nodes
    Route("GET", "/v1/nodes", _READ, "list nodes", nodes.list_nodes),
    Route("POST", "/v1/nodes/{node:path}/drain", _OPERATE, "drain a node", nodes.drain_node, returns=202),
    Route("GET", "/v1/leases", _READ, "list leases", nodes.list_leases),
)
