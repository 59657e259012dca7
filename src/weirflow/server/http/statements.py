"""SQL, and the operations that it becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.errors import ConfigError, OperationError, ResultTooLarge, UnsupportedError, WeirflowError
from weirflow.server.access.audit import statement_shape
from weirflow.server.http.calls import Answer, Call, answer_json, answer_rows, seconds_of, text_of
from weirflow.types import OperationState

if TYPE_CHECKING:
    from weirflow.session.operation import Operation
    from weirflow.spark.frames.frame import DataFrame

_LONGEST_WAIT = 600


def run_sql(call: Call) -> Answer:
    """Run a statement and return its rows, up to a limit of bytes; larger results are fetched over Flight."""
    sql, params, timeout = _statement(call)
    return answer_rows(call, _rows(call, sql, params, timeout))


def submit_sql(call: Call) -> Answer:
    """Run a statement in the background."""
    sql, params, timeout = _statement(call)
    statements = call.parts.statements
    started = statements.submit(call.caller, sql, params, timeout=timeout, key=None)
    return answer_json(_operation(statements.operation(call.caller, started)), 202)


def list_operations(call: Call) -> Answer:
    """What runs: one's own operations, and for operators all."""
    return answer_json({"operations": [_operation(one) for one in call.parts.statements.operations(call.caller)]})


def describe_operation(call: Call) -> Answer:
    """One operation: its state, how far it is, and which of its tasks ran where."""
    operation = _found(call)
    return answer_json({**_operation(operation), "error": _error(operation), "placement": _placement(operation)})


def operation_result(call: Call) -> Answer:
    """The rows of a statement that was submitted; waits up to ``?wait=`` seconds for its end."""
    operation = _found(call)
    if not operation.wait(min(call.number("wait") or 0, _LONGEST_WAIT)):
        return answer_json(_operation(operation), 202)
    spool, statements = call.parts.spool, call.parts.statements
    manifest = statements.result(call.caller, operation.id)
    most = call.coordinator.limits.of(call.caller).result_bytes
    if manifest.size > most:
        raise _too_large(most)
    tables = [spool.fetch(call.caller.key, ticket).read_all() for ticket in spool.tickets(manifest)]
    return answer_rows(call, pa.concat_tables([manifest.columns.empty_table(), *tables]))


def cancel_operation(call: Call) -> Answer:
    """Stop an operation, one's own or, as an operator, anybody's."""
    return answer_json({"was_running": call.parts.statements.cancel(call.caller, call.path["operation"])})


def describe_session(call: Call) -> Answer:
    """Where the server's Session runs, and what it keeps where."""
    info = call.coordinator.describe(call.caller)
    return answer_json(
        {
            "placement": info.placement.value,
            "profile": info.profile.value,
            "spark": info.spark,
            "checkpoints": info.stores.checkpoints,
            "metadata": info.stores.metadata,
            "catalogs": [str(one) for one in info.catalogs],
        }
    )


def collected(frame: DataFrame, most: int) -> pa.Table:
    """The rows of a frame, if they have no more bytes than that; they are read in batches, so no more are held."""
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in frame.to_batches():
        size += batch.nbytes
        if size > most:
            raise _too_large(most)
        batches.append(batch)
    from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark

    return pa.Table.from_batches(batches, batches[0].schema if batches else frame_schema(frame.spark))


def _too_large(most: int) -> ResultTooLarge:
    return ResultTooLarge(
        f"The result has more than {most:,} bytes.",
        hint="add a LIMIT, or fetch it over Arrow Flight, whose results may have any size",
    )


def _rows(call: Call, sql: str, params: Any, timeout: float | None) -> pa.Table:
    coordinator = call.coordinator
    outcome = coordinator.statement(call.caller, sql, params, timeout=timeout, started=call.started)
    if outcome.rows is not None:
        return outcome.rows
    frame = outcome.frame
    assert frame is not None
    most = coordinator.limits.of(call.caller).result_bytes
    return coordinator.run(
        call.caller, statement_shape(sql), lambda: collected(frame, most), timeout=timeout, started=call.started
    )


def _statement(call: Call) -> tuple[str, Any, float | None]:
    body = call.object("sql", "params", "timeout")
    params = body.get("params")
    if params is not None and not isinstance(params, list | dict):
        raise ConfigError("'params' in the body must be a list for ? markers, or an object for :name markers.")
    return text_of(body, "sql"), params, seconds_of(body)


def _found(call: Call) -> Operation:
    return call.parts.statements.operation(call.caller, call.path["operation"])


def _operation(operation: Operation) -> dict[str, Any]:
    progress = operation.progress
    return {
        "id": operation.id,
        "description": operation.description,
        "state": operation.state.value,
        "seconds": round(operation.seconds, 3),
        "tasks_done": progress.done,
        "tasks": progress.total,
    }


def _error(operation: Operation) -> dict[str, Any] | None:
    error = operation.error
    if error is None:
        return None
    if isinstance(error, WeirflowError):
        return {"code": error.code, "message": error.message, "hint": error.hint}
    return {"code": "INTERNAL_ERROR", "message": type(error).__name__, "hint": None}


def _placement(operation: Operation) -> dict[str, str | None]:
    """Planned stages, and the tasks as they ran, in one line each as ``explain`` and ``render_assignments`` have it."""
    from weirflow.spark.jobs.assignments import render_assignments  # noqa: PLC0415 - beside what talks to Spark

    actual: str | None = None
    planned: str | None = None
    try:
        actual = render_assignments(operation.assignments()) or None
        if operation.state is not OperationState.RUNNING:
            planned = operation.explain()
    except (UnsupportedError, OperationError):
        pass
    return {"planned": planned, "actual": actual}
