"""Flows: listed, made, described; their sinks and checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError
from weirflow.server.access.caller import Right
from weirflow.server.http.calls import Answer, Call, answer_json, answer_rows, seconds_of, text_of
from weirflow.server.kept import SinkOrder

if TYPE_CHECKING:
    from weirflow.flows.registry import Flow
    from weirflow.ivm.flow.describe import RelationInfo


def list_flows(call: Call) -> Answer:
    """The flows that the token is for."""
    return answer_json({"flows": [_short(flow) for flow in call.coordinator.flows(call.caller)]})


def make_flow(call: Call) -> Answer:
    """Make a flow, or find that it is there."""
    body = call.object("partitions")
    partitions = body.get("partitions")
    if partitions is not None and (isinstance(partitions, bool) or not isinstance(partitions, int)):
        raise ConfigError("'partitions' in the body must be a whole number.")
    call.coordinator.make_flow(call.path["flow"], partitions)
    return describe_flow(call, status=201)


def describe_flow(call: Call, status: int = 200) -> Answer:
    """What a flow is made of, and how far it is."""
    flow = call.flow
    info = flow.describe()
    relations = [_relation(one) for one in info.relations]
    described = {**_short(flow), "runs": info.runs, "kept": info.kept, "state_bytes": info.nbytes, "clock": info.clock}
    return answer_json({**described, "waiting": flow.waiting, "relations": relations}, status)


def graph(call: Call) -> Answer:
    """The flow as a graph: Mermaid text, or a picture with ``?format=svg``."""
    form = call.query.get("format", "mermaid")
    found = call.flow.graph()
    if form == "svg":
        return Answer(found.svg.encode(), "image/svg+xml")
    if form != "mermaid":
        raise ConfigError(f"?format= is {form[:50]!r}; it must be mermaid or svg.")
    return Answer(found.mermaid.encode(), "text/plain; charset=utf-8")


def explain(call: Call) -> Answer:
    """How the flow, or one of its sources and views, is maintained."""
    return Answer(call.flow.explain(call.query.get("view")).encode(), "text/plain; charset=utf-8")


def query_flow(call: Call) -> Answer:
    """Run a query over the flow's sources and views, where the flow runs."""
    sql = text_of(call.object("sql"), "sql")
    flow = call.flow
    call.coordinator.check_query(call.caller, sql, flow.name)
    return answer_rows(call, flow.sql(sql))


def advance(call: Call) -> Answer:
    """Let time pass: bring the flow's clock to the system's time."""
    body = call.object("timeout")
    return answer_json(summary(call.flow.advance(timeout=seconds_of(body))))


def retry(call: Call) -> Answer:
    """Run the tick again that failed and waits."""
    body = call.object("timeout")
    return answer_json(summary(call.flow.retry(timeout=seconds_of(body))))


def discard(call: Call) -> Answer:
    """Give up the tick that failed and waits."""
    call.object()
    call.flow.discard()
    return answer_json({"pending": False})


def checkpoint(call: Call) -> Answer:
    """Save the flow: at its own place, or, as an admin, at a URI."""
    uri = text_of(call.object("uri"), "uri", needed=False)
    if uri is not None:
        call.caller.require(Right.ADMIN, "write to a place of their own")
    return answer_json({"checkpoint": call.flow.checkpoint(uri)}, 201)


def list_sinks(call: Call) -> Answer:
    """The sinks that the server keeps for a flow."""
    return answer_json({"sinks": [_sink(*one) for one in call.parts.kept.sinks(call.flow.name)]})


def make_sink(call: Call) -> Answer:
    """Write the deltas of a view to a table, or, as an admin, to a folder or URI; again after each start."""
    body = call.object("view", "to", "table", "mode", "key", "every", "on_failure")
    if body.get("to") is not None:
        call.caller.require(Right.ADMIN, "write to a place of their own")
    table = text_of(body, "table", needed=False)
    if table is not None:
        call.coordinator.require_table(call.caller, table)
    key = body.get("key", [])
    if not isinstance(key, list) or not all(isinstance(one, str) for one in key):
        raise ConfigError("'key' in the body must be a list of the names of columns.")
    flow = call.flow
    every = body.get("every", 1)
    if isinstance(every, bool) or not isinstance(every, int | str):
        raise ConfigError("'every' in the body must be a number of epochs, or a time such as '5 seconds'.")
    order = SinkOrder(
        flow.name,
        text_of(body, "view"),
        call.path["sink"],
        text_of(body, "to", needed=False),
        table,
        text_of(body, "mode", needed=False) or "changelog",
        tuple(key),
        every,
        text_of(body, "on_failure", needed=False) or "keep",
    )
    return answer_json(_sink(order, call.parts.kept.add_sink(order, flow)), 201)


def drop_sink(call: Call) -> Answer:
    """End a sink; what it has written stays."""
    call.parts.kept.drop_sink(call.flow.name, call.path["sink"])
    return Answer(b"", status=204)


def summary(done: Any) -> dict[str, Any]:
    """What a tick did."""
    return {
        "epoch": done.epoch,
        "rows_in": done.rows_in,
        "rows_out": done.rows_out,
        "duration_ms": round(done.duration_ms, 3),
        "views": dict(done.views),
        "late": done.late,
        "dropped": done.dropped,
        "replayed": done.replayed,
    }


def _short(flow: Flow) -> dict[str, Any]:
    return {
        "name": flow.name,
        "epoch": flow.epoch,
        "partitions": flow.partitions,
        "pending": flow.pending,
        "sources": list(flow.sources),
        "views": list(flow.views),
    }


def _relation(one: RelationInfo) -> dict[str, Any]:
    return {"name": one.name, "kind": one.kind, "rows": one.rows, "reads": list(one.reads)}


def _sink(order: SinkOrder, sink: Any) -> dict[str, Any]:
    wrong = sink.error.message if sink.error is not None else None
    return {
        "name": order.name,
        "view": order.view,
        "to": order.to,
        "table": order.table,
        "mode": order.mode,
        "position": sink.position,
        "error": wrong,
    }
