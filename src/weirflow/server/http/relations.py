"""Sources and views of a flow: declared, dropped, ticked, read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from weirflow.errors import ConfigError
from weirflow.ivm.flow.source import Lateness
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.rows.from_json import from_json_rows
from weirflow.server.http.calls import Answer, Call, answer_json, answer_rows, seconds_of, text_of
from weirflow.server.http.flows import summary
from weirflow.wire.arrow import WEIGHT

TOKEN_HEADER = "idempotency-key"  # noqa: S105 - the name of a header
"""What names a tick, so that the same one again does nothing."""

# Sources


def list_sources(call: Call) -> Answer:
    """The sources of a flow."""
    flow = call.flow
    return answer_json({"sources": [_source(call, name) for name in flow.sources]})


def describe_source(call: Call) -> Answer:
    """How a source was declared."""
    return answer_json(_source(call, call.path["source"]))


def make_source(call: Call) -> Answer:
    """Declare a source: ``schema`` as columns in SQL, ``key`` as a list of columns."""
    body = call.object("schema", "key", "dedup", "lateness", "dimensions", "spread")
    lateness = body.get("lateness")
    if lateness is not None and (not isinstance(lateness, dict) or set(lateness) != {"column", "delay"}):
        raise ConfigError("'lateness' in the body must have 'column' and 'delay'.")
    dedup = body.get("dedup", False)
    if not isinstance(dedup, int):
        raise ConfigError("'dedup' in the body must be true, false or a number of deltas.")
    call.flow.register_source(
        call.path["source"],
        text_of(body, "schema"),
        key=_names(body.get("key"), "key"),
        dedup=dedup,
        lateness=None if lateness is None else Lateness(lateness["column"], lateness["delay"]),
        dimensions=_dimensions(body.get("dimensions")),
        spread=text_of(body, "spread", needed=False),
    )
    return answer_json(_source(call, call.path["source"]), 201)


def drop_source(call: Call) -> Answer:
    """Remove a source that no view reads."""
    call.flow.source(call.path["source"])
    call.flow.drop(call.path["source"])
    return Answer(b"", status=204)


def source_rows(call: Call) -> Answer:
    """The rows of a source now, or with ``?epoch=`` after an earlier epoch."""
    call.flow.source(call.path["source"])
    return _rows(call, call.path["source"])


# Ticks


def tick_source(call: Call) -> Answer:
    """Apply rows to one source: a list of objects, or Arrow's streaming format; both may have weights in ``_weight``.

    The header ``Idempotency-Key`` names the tick: sent again, it does nothing and returns what it did.
    """
    flow, source = call.flow, call.path["source"]
    schema = flow.schema(flow.source(source).name)
    delta = _delta(call.arrow() if call.has_arrow else call.json(), schema, source)
    return answer_json(summary(flow.tick(source, delta, token=call.headers.get(TOKEN_HEADER))))


def tick_flow(call: Call) -> Answer:
    """Apply rows to several sources as one tick: ``deltas`` has a list of rows for each source."""
    body = call.object("deltas", "token", "timeout")
    deltas = body.get("deltas", {})
    if not isinstance(deltas, dict):
        raise ConfigError("'deltas' in the body must be an object with a list of rows for each source.")
    flow = call.flow
    made = {name: _delta(rows, flow.schema(flow.source(name).name), name) for name, rows in deltas.items()}
    token = text_of(body, "token", needed=False) or call.headers.get(TOKEN_HEADER)
    return answer_json(summary(flow.tick(made, token=token, timeout=seconds_of(body))))


# Views


def list_views(call: Call) -> Answer:
    """The views of a flow."""
    flow = call.flow
    return answer_json({"views": [_view(call, name) for name in flow.views]})


def describe_view(call: Call) -> Answer:
    """A view: its columns, and what it waits for."""
    _require_view(call)
    return answer_json(_view(call, call.path["view"]))


def make_view(call: Call) -> Answer:
    """Declare a view, or, with ``replace``, let it be another one."""
    body = call.object("sql", "mode", "materialized", "replace")
    given: dict[str, Any] = {
        "mode": text_of(body, "mode", needed=False) or "auto",
        "materialized": _truth(body, "materialized", default=True),
    }
    flow, name, sql = call.flow, call.path["view"], text_of(body, "sql")
    call.coordinator.check_query(call.caller, sql, flow.name)
    if _truth(body, "replace", default=False) and name in flow.views:
        flow.replace_view(name, sql, **given)
    else:
        flow.register_view(name, sql, **given)
    return answer_json(_view(call, name), 201)


def drop_view(call: Call) -> Answer:
    """Remove a view that no other reads."""
    _require_view(call)
    call.flow.drop(call.path["view"])
    return Answer(b"", status=204)


def refresh_view(call: Call) -> Answer:
    """Compute a view afresh from the rows of its sources."""
    call.object()
    _require_view(call)
    call.flow.refresh_view(call.path["view"])
    return answer_json({"epoch": call.flow.epoch})


def view_rows(call: Call) -> Answer:
    """The rows of a view now, or with ``?epoch=`` after an earlier epoch."""
    _require_view(call)
    return _rows(call, call.path["view"])


# Inner workings


def _rows(call: Call, name: str) -> Answer:
    flow, epoch = call.flow, call.number("epoch")
    if epoch is not None:
        return answer_rows(call, flow.snapshot(name, epoch=epoch), epoch=epoch)
    at, found = flow.snapshots([name])
    return answer_rows(call, found[name], epoch=at)


def _delta(rows: pa.Table | Any, schema: pa.Schema, source: str) -> Any:
    """Rows with weights as a delta; rows without them as they are, which are upserts where the source has a key."""
    if isinstance(rows, pa.Table):
        return DeltaBatch.from_weighted(rows, schema=schema) if WEIGHT in rows.schema.names else rows
    if not isinstance(rows, list):
        raise ConfigError(f"The rows of {source!r} must be a list of objects.")
    given = from_json_rows(rows, schema)
    if any(WEIGHT in row for row in given):
        return DeltaBatch.from_weighted([{WEIGHT: 1, **row} for row in given], schema=schema)
    return given or schema.empty_table()


def _source(call: Call, name: str) -> dict[str, Any]:
    source = call.flow.source(name)
    return {
        "name": source.name,
        "columns": [
            {"name": one.name, "type": str(one.type), "nullable": one.nullable} for one in call.flow.schema(source.name)
        ],
        "key": list(source.key or ()),
        "lateness": None
        if source.lateness is None
        else {"column": source.lateness.column, "delay": str(source.lateness.delay)},
        "dimensions": dict(source.dimensions),
    }


def _dimensions(given: Any) -> dict[str, int] | None:
    if given is not None and (not isinstance(given, dict) or any(type(one) is not int for one in given.values())):
        raise ConfigError("'dimensions' in the body must be an object of columns and whole numbers.")
    return given


def _view(call: Call, name: str) -> dict[str, Any]:
    flow = call.flow
    waits_for = flow.waiting.get(name)
    columns = [] if waits_for else [{"name": one.name, "type": str(one.type)} for one in flow.schema(name)]
    return {"name": name, "columns": columns, "waits_for": waits_for, "is_readable": name in flow.readable}


def _require_view(call: Call) -> None:
    if call.path["view"] not in call.flow.views:
        call.flow.schema(call.path["view"])  # which says what there is, and what it may have been meant
        raise ConfigError(f"{call.path['view']!r} is a source, not a view.")


def _names(value: Any, member: str) -> list[str] | None:
    if value is None:
        return None
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise ConfigError(f"{member!r} in the body must be a list of the names of columns.")
    return names


def _truth(body: dict[str, Any], member: str, *, default: bool) -> bool:
    value = body.get(member, default)
    if not isinstance(value, bool):
        raise ConfigError(f"{member!r} in the body must be true or false.")
    return value
