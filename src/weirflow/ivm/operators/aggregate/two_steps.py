"""Aggregates in two steps: each shard adds up its own rows, then those of equal keys meet.

So a key with very many rows in a delta is work for all shards, and what travels is a row for each key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.ivm.operators.aggregate.dispatch import is_of_parts
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.aggregate.partial import FinalAggregate, PartialAggregate, has_parts
from weirflow.ivm.operators.map import Project
from weirflow.sql.expr import AggregateCall, Call, Column, Expr, Literal

if TYPE_CHECKING:
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.operators.operator import Operator

_BIGINT = pa.int64()
_WIDE = pa.decimal128(20, 0)
_SUMS = pa.decimal128(30, 0)
"""Sums of 64-bit integers on a shard may leave 64 bits where the sum of all does not."""
_TOTAL = pa.decimal128(38, 0)
_SUM_CASTS = {"sum": "cast", "try_sum": "try_cast"}
"""What makes a BIGINT of the total."""


@dataclass(frozen=True)
class TwoSteps:
    """What runs on each shard, what runs where rows of equal keys meet, and what makes the result if that does not."""

    local: Aggregate
    final: Aggregate
    output: Project | None = None


def two_steps(whole: Aggregate) -> TwoSteps | None:
    """The steps; None if a call needs all rows of a group together, as DISTINCT does."""
    if has_parts(whole.calls):
        return TwoSteps(PartialAggregate(whole.keys, whole.calls), FinalAggregate(whole.keys, whole.calls))
    keys = tuple(Column(place, "", key.type) for place, key in enumerate(whole.keys))
    # With a key, even if it is always the same, a shard without rows has no row.
    local_keys = whole.keys or (Literal(0, pa.int32()),)
    parts = []
    for place, call in enumerate(whole.calls):
        partial = Column(len(local_keys) + place, "", _partial_type(call))
        part = _parts(call, partial, Column(len(keys) + place, "", _final_type(call)))
        if part is None:
            return None
        parts.append(part)
    local, final, output = zip(*parts, strict=True)
    return TwoSteps(Aggregate(local_keys, local), Aggregate(keys, final), Project((*keys, *output)))


def _parts(call: AggregateCall, partial: Column, total: Column) -> tuple[AggregateCall, AggregateCall, Expr] | None:
    if call.distinct or call.order_by:
        return None
    if call.function == "count":
        none = Literal(0, _BIGINT)
        return call, AggregateCall("sum", (partial,), _BIGINT), Call("coalesce", (total, none), _BIGINT)
    if call.function in _SUM_CASTS and pa.types.is_integer(call.arguments[0].type):
        wide = Call("cast", call.arguments, _WIDE)
        local = replace(call, function="sum", arguments=(wide,), type=_SUMS)
        fitted = Call(_SUM_CASTS[call.function], (total,), call.type, call.position)
        return local, AggregateCall("sum", (partial,), _TOTAL), fitted
    if is_of_parts(call):
        return call, AggregateCall(call.function, (partial,), call.type), total
    return None


def _partial_type(call: AggregateCall) -> pa.DataType:
    return _SUMS if call.function in _SUM_CASTS else call.type


def _final_type(call: AggregateCall) -> pa.DataType:
    return _TOTAL if call.function in _SUM_CASTS else call.type


def of_parts(whole: Operator, runs: Sequence[Sequence[Run]]) -> list[Sequence[Run]]:
    """The state of an aggregate, of what the local steps on all shards together hold; it is the aggregate's, too, then.

    ``runs`` are those of each state of the local step.
    """
    assert isinstance(whole, Aggregate)
    steps = two_steps(whole)
    assert steps is not None
    steps.local.adopt(runs)
    whole.adopt_parts(steps.local)
    return [state.runs for state in whole.states]
