"""Streaming queries and their savepoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from weirflow.server.http.calls import Answer, Call, answer_json, text_of
from weirflow.server.kept import JobOrder

if TYPE_CHECKING:
    from weirflow.streaming.detached.query import DetachedQuery
    from weirflow.streaming.query.handle import StreamingQuery
    from weirflow.streaming.query.progress import QueryProgress
    from weirflow.streaming.savepoints.named import QuerySavepoint

    Query: TypeAlias = StreamingQuery | DetachedQuery


def list_streams(call: Call) -> Answer:
    """The streaming queries of the server, and those of its jobs."""
    return answer_json({"streams": [_short(one) for one in call.coordinator.streams(call.caller)]})


def start_stream(call: Call) -> Answer:
    """Start queries in a process of their own, and again after a crash; ``function`` is as file.py:name."""
    body = call.object("function", "name")
    function = text_of(body, "function")
    name = text_of(body, "name", needed=False) or function.rpartition(":")[2]
    return answer_json({"streams": call.parts.kept.add_job(call.coordinator.session, JobOrder(name, function))}, 201)


def describe_stream(call: Call) -> Answer:
    """One query: what it reads and writes, its state, and what its last batch did."""
    query = _found(call)
    info = query.describe()
    progress = query.last_progress()
    error = query.exception
    return answer_json(
        {
            **_short(query),
            "sink": info.sink,
            "trigger": info.trigger,
            "delivery": info.delivery.value,
            "checkpoint": info.checkpoint,
            "restarts": query.restarts,
            "error": None if error is None else {"code": error.code, "message": error.message, "hint": error.hint},
            "progress": None if progress is None else progress_json(progress),
        }
    )


def stop_stream(call: Call) -> Answer:
    """Stop a query after its batch; a job of the server's is not started again."""
    call.object()
    query = _found(call)
    query.stop()
    call.parts.kept.forget_job(getattr(query, "job", query.name))
    return answer_json(_short(query))


def make_savepoint(call: Call) -> Answer:
    """Make a savepoint of a query, under a name."""
    name = text_of(call.object("name"), "name")
    return answer_json(_savepoint(_found(call).savepoint(name)), 201)


def list_savepoints(call: Call) -> Answer:
    """The savepoints that the Session's profile keeps."""
    found = call.coordinator.session.streams.savepoints().list()
    return answer_json({"savepoints": [_savepoint(one) for one in found if _is_seen(call, one)]})


def drop_savepoint(call: Call) -> Answer:
    """Delete a savepoint."""
    kept, name = call.coordinator.session.streams.savepoints(), call.path["savepoint"]
    if "*" in call.caller.flows or any(one.name == name and _is_seen(call, one) for one in kept.list()):
        kept.delete(name)  # those of others are not there, and to delete what is not there is no error
    return Answer(b"", status=204)


def progress_json(progress: QueryProgress) -> dict[str, Any]:
    """What a batch did."""
    watermark = progress.watermark
    return {
        "batch": progress.batch,
        "trigger": progress.trigger.isoformat(),
        "input_rows": progress.input_rows,
        "output_rows": progress.output_rows,
        "input_rows_per_second": progress.input_rows_per_second,
        "processed_rows_per_second": progress.processed_rows_per_second,
        "watermark": None if watermark is None else watermark.isoformat(),
        "late_rows": progress.late_rows,
        "state_rows": progress.state_rows,
        "state_bytes": progress.state_bytes,
        "duration_ms": progress.duration_ms,
    }


def _found(call: Call) -> Query:
    return call.coordinator.stream(call.caller, call.path["stream"])


def _short(query: Query) -> dict[str, Any]:
    status = query.status()
    job = getattr(query, "job", None)
    return {"name": query.name, "id": query.id, "job": job, "state": status.state.value, "message": status.message}


def _is_seen(call: Call, savepoint: QuerySavepoint) -> bool:
    """Whether a savepoint may be told of: the name of a query that feeds a flow begins with the flow's."""
    flow, _, source = savepoint.query.partition("/")
    return not source or call.caller.sees_flow(flow)


def _savepoint(savepoint: QuerySavepoint) -> dict[str, Any]:
    return {
        "name": savepoint.name,
        "query": savepoint.query,
        "batch": savepoint.batch,
        "bytes": savepoint.size,
    }
