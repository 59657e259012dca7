"""Spark's window functions as ours."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from weirflow.sql.expr import Call, Expr, Frame, FrameUnit, Literal, SortKey, WindowCall
from weirflow.sql.functions.aggregates.frames import over_frame
from weirflow.sql.functions.rules import result_type
from weirflow.sql.functions.windows import RANKING, offset_arguments
from weirflow.sql.resolved.aggregates import read_aggregate
from weirflow.sql.resolved.reading import Scope, read_all, read_expression, read_order, refused
from weirflow.sql.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, is_integral
from weirflow.sql.zoned import frame_there

if TYPE_CHECKING:
    from weirflow.sql.resolved.node import Node

_RANKING = {
    "RowNumber": "row_number",
    "Rank": "rank",
    "DenseRank": "dense_rank",
    "PercentRank": "percent_rank",
    "CumeDist": "cume_dist",
    "NTile": "ntile",
}
_OFFSET = {"Lag": "lag", "Lead": "lead"}
_OFFSET_FIELD = {"lag": "inputOffset", "lead": "offset"}
_VALUES = {"first": "first_value", "last": "last_value", "any_value": "first_value"}
_UNITS = {"RowFrame": FrameUnit.ROWS, "RangeFrame": FrameUnit.RANGE}


def read_window(node: Node, scope: Scope) -> WindowCall:
    """A ``WindowExpression``, under the alias that names its column."""
    node.ignore("name", "exprId", "qualifier", "explicitMetadata", "nonInheritableMetadataKeys")
    expression = node.child("child")
    function, spec = expression.child("windowFunction"), expression.child("windowSpec")
    partition = read_all(spec.children_of("partitionSpec"), scope)
    order = read_order(spec.children_of("orderSpec"), scope)
    call = _called(function, spec, partition, order, scope)
    for one in (function, spec, expression, node):
        one.finish()
    return call


def _called(
    function: Node, spec: Node, partition: tuple[Expr, ...], order: tuple[SortKey, ...], scope: Scope
) -> WindowCall:
    if function.kind in _RANKING:
        name = _RANKING[function.kind]
        spec.ignore("frameSpecification")  # theirs is given
        given = read_all([function.child("buckets")], scope) if name == "ntile" else ()
        function.ignore("children")  # the order, once more
        arguments = RANKING[name].arguments(given, None)
        return WindowCall(name, arguments, result_type(RANKING[name].result, arguments), partition, order, None)
    if function.kind in _OFFSET:
        name = _OFFSET[function.kind]
        spec.ignore("frameSpecification")
        given = read_all([function.child(part) for part in ("input", _OFFSET_FIELD[name], "default")], scope)
        arguments = offset_arguments(name, given, None)
        return WindowCall(name, arguments, arguments[0].type, partition, order, None, function.value("ignoreNulls"))
    frame = _frame(spec.child("frameSpecification"), order, scope)
    if function.kind == "NthValue":
        given = read_all([function.child("input"), function.child("offset")], scope)
        ignore = function.value("ignoreNulls")
        return WindowCall("nth_value", given, given[0].type, partition, order, frame, ignore)
    if function.kind != "AggregateExpression":
        raise refused(function)
    inner = function.child("aggregateFunction")
    if inner.kind in ("First", "Last", "AnyValue"):
        ignore = inner.value("ignoreNulls")
        arguments = (read_expression(inner.child("child"), scope),)
        if function.has("filter") or function.value("isDistinct"):
            raise refused(function)
        function.ignore("mode", "resultId")
        inner.finish()
        name = _VALUES[{"First": "first", "Last": "last", "AnyValue": "any_value"}[inner.kind]]
        return WindowCall(name, arguments, arguments[0].type, partition, order, frame, ignore)
    call = over_frame(read_aggregate(function, scope, ordered=bool(order)))
    if call is None:
        raise refused(function)
    return WindowCall(call.function, call.arguments, call.type, partition, order, frame)


def _frame(node: Node, order: tuple[SortKey, ...], scope: Scope) -> Frame:
    if node.kind != "SpecifiedWindowFrame":
        raise refused(node)
    unit = _UNITS[node.value("frameType")]
    lower, upper = (_bound(node.child(name), unit, order, scope) for name in ("lower", "upper"))
    node.finish()
    return frame_there(Frame(unit, lower, upper), order, scope.zone)


def _bound(node: Node, unit: FrameUnit, order: tuple[SortKey, ...], scope: Scope) -> int | None:
    if node.kind in ("UnboundedPreceding$", "UnboundedFollowing$"):
        return None
    if node.kind == "CurrentRow$":
        return 0
    value = _constant(read_expression(node, scope), node)
    if unit is FrameUnit.ROWS and isinstance(value, int):
        return value
    kind = order[0].expr.type
    if isinstance(value, timedelta) and kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return value // timedelta(microseconds=1)
    if isinstance(value, timedelta) and kind == DATE and not value % timedelta(days=1):
        return value // timedelta(days=1)
    if is_integral(kind) and not scope.ansi:  # a bound that does not fit would wrap around
        raise refused(node)
    if isinstance(value, int) and (is_integral(kind) or kind == DATE):
        return value
    raise refused(node)


def _constant(expr: Expr, node: Node) -> object:
    """The value of a literal, which Spark may have negated or cast."""
    if isinstance(expr, Literal):
        return expr.value
    if isinstance(expr, Call) and expr.function in ("negate", "wrapping_negate", "cast"):
        inner = _constant(expr.arguments[0], node)
        if isinstance(inner, int | timedelta):
            return inner if expr.function == "cast" else -inner
    raise refused(node)
