"""Ticks: small ones in a message, large ones as a stream, and rows for a table of Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weirflow.ivm.flow.position import Position
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.server.access.caller import Caller, Right
from weirflow.wire.arrow import WEIGHT, unpack_rows
from weirflow.wire.calls import form
from weirflow.wire.messages import Place, Put, Summary, Tick

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.flow.flow import Flow
    from weirflow.server.coordinator import Coordinator


def tick(coordinator: Coordinator, caller: Caller, asked: Tick) -> Summary:
    """A tick of small deltas."""
    names = ", ".join(sorted(asked.deltas))
    with coordinator.work(caller, Right.WRITE, "tick", flow=asked.flow, detail=names):
        flow = coordinator.flow(asked.flow)
        deltas = {source: delta_of(unpack_rows(packed)) for source, packed in asked.deltas.items()}
        return _ticked(flow, deltas, asked.token, asked.timeout, asked.position)


def put(coordinator: Coordinator, caller: Caller, asked: Put, rows: pa.Table) -> Summary:
    """A tick of one source whose rows came as a stream."""
    with coordinator.work(caller, Right.WRITE, "tick", flow=asked.flow, detail=asked.source):
        flow = coordinator.flow(asked.flow)
        return _ticked(flow, {asked.source: delta_of(rows)}, asked.token, asked.timeout, asked.position)


def delta_of(rows: pa.Table) -> Any:
    """Rows as ``Flow.tick`` takes them: a delta if their last column is that of weights."""
    if not rows.num_columns or rows.schema.names[-1] != WEIGHT:
        return rows
    batches = rows.combine_chunks().to_batches()
    return DeltaBatch.from_weighted(batches[0] if len(batches) == 1 else rows)


def _ticked(
    flow: Flow, deltas: Mapping[str, Any], token: str | None, timeout: float | None, position: Place | None
) -> Summary:
    if position is None:
        return form(flow.tick(deltas, token=token, timeout=timeout), Summary)
    place = Position(position.stream, position.origin, position.at, position.after)
    return form(flow.feed(deltas, position=place, timeout=timeout), Summary)
