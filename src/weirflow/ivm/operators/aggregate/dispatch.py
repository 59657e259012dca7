"""Which way an aggregate call follows its group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.errors import NotIncremental, Reason
from weirflow.ivm.operators.aggregate.collected import CollectCall
from weirflow.ivm.operators.aggregate.extreme import EXTREMES, OF_PARTS, ExtremeCall
from weirflow.ivm.operators.aggregate.functions import LinearCall, TouchedCall, is_linear, linear_function
from weirflow.ivm.operators.aggregate.listed import ListCall
from weirflow.ivm.operators.aggregate.mode import ModeCall
from weirflow.ivm.operators.aggregate.percentiles import DistinctPercentile
from weirflow.ivm.operators.aggregate.ranked import PercentileCall
from weirflow.ivm.operators.aggregate.recompute import FOLDS, FoldCall
from weirflow.ivm.operators.aggregate.sketches.bitmaps import BITMAPS_OF_PARTS, BitmapCall
from weirflow.ivm.operators.aggregate.sketches.count_min import CountMinSketch
from weirflow.ivm.operators.aggregate.sketches.hyperloglog import DistinctEstimate
from weirflow.ivm.operators.aggregate.vector_average import VectorAverage
from weirflow.sql.expr import AggregateCall, Call, Expr, Literal
from weirflow.sql.traverse import map_order

if TYPE_CHECKING:
    import pyarrow as pa


def make_call(
    call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]
) -> LinearCall | TouchedCall:
    """The call ready to run; what it needs evaluated is appended to ``expressions``.

    Raises ``NotIncremental`` for a function without a delta rule that is proven.
    """
    call = _guarded(call)
    if is_linear(call):
        return LinearCall(call, key_types, expressions)
    if call.function in EXTREMES:
        return ExtremeCall(call, key_types, expressions)
    if call.function in _OWN:
        return _OWN[call.function](call, key_types, expressions)
    if call.function in FOLDS:
        return FoldCall(call, key_types, expressions)
    raise NotIncremental(
        f"The aggregate {call.function} is not proven to equal Spark's.",
        reason=Reason.FUNCTION_NOT_PROVEN,
        position=call.position,
    )


def _percentile(call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> TouchedCall:
    return (DistinctPercentile if call.distinct else PercentileCall)(call, key_types, expressions)


def _collected(call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> TouchedCall:
    kind = CollectCall if CollectCall.takes(call.arguments[0].type) else FoldCall
    return kind(call, key_types, expressions)


_OWN: dict[str, Callable[[AggregateCall, Sequence[pa.DataType], list[Expr]], TouchedCall]] = {
    "collect_list": _collected,
    "collect_set": _collected,
    "mode": ModeCall,
    "listagg": ListCall,
    "percentile": _percentile,
    "percentile_disc": _percentile,
    "approx_count_distinct": DistinctEstimate,
    "count_min_sketch": CountMinSketch,
    "vector_avg": VectorAverage,
    **dict.fromkeys(("bitmap_construct_agg", "bitmap_or_agg", "bitmap_and_agg"), BitmapCall),
}


def is_of_parts(call: AggregateCall) -> bool:
    """Whether the function gives for all rows what it gives for what it gave for parts of them."""
    return linear_function(call).of_parts if is_linear(call) else call.function in OF_PARTS | BITMAPS_OF_PARTS


def _guarded(call: AggregateCall) -> AggregateCall:
    """The call with arguments and order evaluated only for rows that its FILTER lets pass: others must not raise."""
    if call.filter is None:
        return call
    condition = call.filter
    shares = call.arguments[1:2] if _OWN.get(call.function) is _percentile else ()

    def guarded(expr: Expr) -> Expr:
        if not isinstance(expr, Call) or expr in shares:
            return expr
        return Call("case", (condition, expr, Literal(None, expr.type)), expr.type, expr.position)

    arguments = tuple(guarded(argument) for argument in call.arguments)
    return replace(call, arguments=arguments, order_by=map_order(call.order_by, guarded))
