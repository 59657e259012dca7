"""An aggregate without keys in two steps: one row of each shard, then of these one row on one shard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.map import Project
from weirflow.sql.expr import AggregateCall, Call, Column, Expr, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

_BIGINT = pa.int64()
_WIDE = pa.decimal128(20, 0)
_SUMS = pa.decimal128(30, 0)
"""Sums of 64-bit integers on a shard may leave 64 bits where the sum of all does not."""
_TOTAL = pa.decimal128(38, 0)
_AGAIN = ("min", "max", "bool_and", "bool_or")
"""Functions of what they give for parts."""


@dataclass(frozen=True)
class TwoSteps:
    """What runs on each shard, on one of them, and what makes the result of that."""

    local: Aggregate
    final: Aggregate
    output: Project


def two_steps(calls: Sequence[AggregateCall]) -> TwoSteps | None:
    """The steps; None if a call needs all rows together, as exact sums of doubles and DISTINCT do."""
    parts = []
    for place, call in enumerate(calls):
        part = _parts(call, Column(1 + place, "", _partial_type(call)), Column(place, "", _final_type(call)))
        if part is None:
            return None
        parts.append(part)
    local, final, output = zip(*parts, strict=True)
    # With a key, even if it is always the same, a shard without rows has no row.
    return TwoSteps(Aggregate((Literal(0, pa.int32()),), local), Aggregate((), final), Project(output))


def _parts(call: AggregateCall, partial: Column, total: Column) -> tuple[AggregateCall, AggregateCall, Expr] | None:
    if call.distinct or call.order_by:
        return None
    if call.function == "count":
        none = Literal(0, _BIGINT)
        return call, AggregateCall("sum", (partial,), _BIGINT), Call("coalesce", (total, none), _BIGINT)
    if call.function == "sum" and pa.types.is_integer(call.arguments[0].type):
        wide = Call("cast", call.arguments, _WIDE)
        local = replace(call, arguments=(wide,), type=_SUMS)
        return local, AggregateCall("sum", (partial,), _TOTAL), Call("cast", (total,), call.type, call.position)
    if call.function in _AGAIN:
        return call, AggregateCall(call.function, (partial,), call.type), total
    return None


def _partial_type(call: AggregateCall) -> pa.DataType:
    return _SUMS if call.function == "sum" else call.type


def _final_type(call: AggregateCall) -> pa.DataType:
    return _TOTAL if call.function == "sum" else call.type
