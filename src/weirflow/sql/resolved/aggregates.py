"""Spark's aggregates as ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.sql.expr import AggregateCall, Expr, Literal
from weirflow.sql.functions.aggregates.pivots import picked
from weirflow.sql.functions.aggregates.regression import VALUE_DISTINCT, in_other_words
from weirflow.sql.functions.aggregates.signatures import AGGREGATES, has_mode
from weirflow.sql.functions.aggregates.sketches import distinct_estimate, is_count_min
from weirflow.sql.functions.aggregates.undetermined import undetermined
from weirflow.sql.functions.collections import struct_field
from weirflow.sql.functions.modes import EvalMode, aggregate_in
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.resolved.eval_mode import eval_mode
from weirflow.sql.resolved.functions import Function
from weirflow.sql.resolved.reading import Scope, read_all, read_expression, read_order, refused
from weirflow.sql.resolved.types import literal
from weirflow.sql.types import BIGINT, BINARY, BOOLEAN, DOUBLE, INT, STRING, is_integral

if TYPE_CHECKING:
    from weirflow.sql.resolved.node import Node

_BUFFERS = ("mutableAggBufferOffset", "inputAggBufferOffset")
_SPREAD = {"nullOnDivideByZero": True}

AGGREGATE_CLASSES: dict[str, Function] = {
    "Sum": Function("sum", ("child",), mode="evalContext"),
    "Average": Function("avg", ("child",), mode="evalMode"),
    "Min": Function("min", ("child",)),
    "Max": Function("max", ("child",)),
    "MaxBy": Function("max_by", ("valueExpr", "orderingExpr")),
    "MinBy": Function("min_by", ("valueExpr", "orderingExpr")),
    "StddevSamp": Function("stddev_samp", ("child",), settings=_SPREAD),
    "StddevPop": Function("stddev_pop", ("child",), settings=_SPREAD),
    "VarianceSamp": Function("var_samp", ("child",), settings=_SPREAD),
    "VariancePop": Function("var_pop", ("child",), settings=_SPREAD),
    "Skewness": Function("skewness", ("child",), settings=_SPREAD),
    "Kurtosis": Function("kurtosis", ("child",), settings=_SPREAD),
    "Corr": Function("corr", ("x", "y"), settings=_SPREAD),
    "CovPopulation": Function("covar_pop", ("left", "right"), settings=_SPREAD),
    "CovSample": Function("covar_samp", ("left", "right"), settings=_SPREAD),
    "RegrCount": Function("regr_count", ("left", "right")),
    "RegrAvgX": Function("regr_avgx", ("left", "right")),
    "RegrAvgY": Function("regr_avgy", ("left", "right")),
    "RegrSXX": Function("regr_sxx", ("left", "right")),
    "RegrSYY": Function("regr_syy", ("left", "right")),
    "RegrSXY": Function("regr_sxy", ("y", "x")),
    "RegrSlope": Function("regr_slope", ("left", "right")),
    "RegrIntercept": Function("regr_intercept", ("left", "right")),
    "RegrR2": Function("regr_r2", ("y", "x")),
    "BoolAnd": Function("bool_and", ("child",)),
    "BoolOr": Function("bool_or", ("child",)),
    "CollectList": Function("collect_list", ("child",), settings={"ignoreNulls": True}, ignored=_BUFFERS),
    "CollectSet": Function("collect_set", ("child",), settings={"ignoreNulls": True}, ignored=_BUFFERS),
    "BitmapConstructAgg": Function("bitmap_construct_agg", ("child",), ignored=_BUFFERS),
    "BitmapOrAgg": Function("bitmap_or_agg", ("child",), ignored=_BUFFERS),
    "BitmapAndAgg": Function("bitmap_and_agg", ("child",), ignored=_BUFFERS),
    "BitAndAgg": Function("bit_and", ("child",)),
    "BitOrAgg": Function("bit_or", ("child",)),
    "BitXorAgg": Function("bit_xor", ("child",)),
}
"""By Spark's class; ``count``, ``first`` and their like are read one by one."""


_FIRSTS = {"First": "first", "Last": "last", "AnyValue": "any_value"}
_PERCENTILES = {
    "Percentile": ("child", "percentageExpression", "frequencyExpression"),
    "PercentileCont": ("left", "right"),
    "PercentileDisc": ("child", "percentageExpression"),
    "Median": ("child",),
}
_PLAIN = 2
"""Arguments of a percentile of plain values."""


def read_picked(node: Node, scope: Scope) -> tuple[AggregateCall, ...] | None:
    """What PIVOT picks of the groups, for each value; None if the node is another aggregate."""
    function = node.child("aggregateFunction")
    if function.kind != "PivotFirst":
        return None
    column, result = (read_expression(function.child(name), scope) for name in ("pivotColumn", "valueColumn"))
    of: tuple[Expr, ...] = (column,)
    if pa.types.is_struct(column.type):
        of = tuple(struct_field(column, field.name, None) for field in column.type)
    values = function.value("pivotColumnValues")
    if len(set(values)) < len(values) or node.has("filter") or node.value("isDistinct"):
        raise refused(node)
    function.ignore(*_BUFFERS)
    node.ignore("mode", "resultId")
    function.finish()
    node.finish()
    return tuple(
        picked(result, of, tuple(literal(part, one.type) for part, one in zip(value, of, strict=True)))
        for value in values
    )


def read_aggregate(node: Node, scope: Scope, *, ordered: bool = False) -> AggregateCall:
    """An ``AggregateExpression``: a function over the rows of a group, which may come in an order by themselves."""
    function = node.child("aggregateFunction")
    distinct = node.value("isDistinct")
    condition = read_expression(node.value("filter"), scope) if node.has("filter") else None
    if node.value("mode") != "Complete":
        raise refused(node)
    node.ignore("resultId")
    call = _called(function, scope, distinct=distinct, condition=condition)
    function.finish()
    node.finish()
    if call.function == "listagg" and not call.order_by and not ordered:
        raise undetermined("listagg", None)
    return call


def _called(node: Node, scope: Scope, *, distinct: bool, condition: Expr | None) -> AggregateCall:
    read = _READERS.get(node.kind)
    if read is not None:
        call = read(node, scope, condition)
        if distinct and node.kind == "CountIf":
            raise refused(node)
        is_rows = call.function == "count" and not call.arguments
        return replace(call, distinct=distinct, arguments=(_ONE,) if distinct and is_rows else call.arguments)
    found = AGGREGATE_CLASSES.get(node.kind)
    if found is None:
        raise refused(node)
    arguments = read_all([node.child(name) for name in found.arguments], scope)
    for name, wanted in found.settings.items():
        if node.value(name, wanted) != wanted:
            raise refused(node)
    node.ignore(*found.ignored)
    typed, kind = AGGREGATES[found.name].bind(arguments, None)
    if typed != arguments:
        raise refused(node)
    if distinct and found.name in VALUE_DISTINCT:
        raise refused(node)
    # Spark makes what is inside an aggregate by the session's settings.
    usual = EvalMode.ANSI if scope.ansi else EvalMode.LEGACY
    mode = eval_mode(node, found.mode) if found.mode is not None else usual
    function, typed = in_other_words(found.name, typed)
    call = AggregateCall(function, typed, kind, distinct, condition)
    meant = None if mode is None else aggregate_in(mode, call)
    if meant is None:
        raise refused(node)
    return meant


def _count(node: Node, scope: Scope, condition: Expr | None) -> AggregateCall:
    """``COUNT``; of a constant it counts rows."""
    arguments = read_all(node.children_of("children"), scope)
    rows = len(arguments) == 1 and isinstance(arguments[0], Literal) and arguments[0].value is not None
    return AggregateCall("count", () if rows else arguments, BIGINT, filter=condition)


def _count_if(node: Node, scope: Scope, condition: Expr | None) -> AggregateCall:
    met = read_expression(node.child("child"), scope)
    return AggregateCall("count", (), BIGINT, filter=_both(condition, met))


def _first(node: Node, scope: Scope, condition: Expr | None) -> AggregateCall:
    arguments = (read_expression(node.child("child"), scope),)
    if node.value("ignoreNulls"):
        condition = _both(condition, OPERATORS["is_not_null"](arguments, None))
    return AggregateCall(_FIRSTS[node.kind], arguments, arguments[0].type, filter=condition)


def _percentile(node: Node, scope: Scope, condition: Expr | None) -> AggregateCall:
    """``percentile``, ``median``, ``percentile_cont`` and ``percentile_disc``."""
    function = "percentile_disc" if node.kind == "PercentileDisc" else "percentile"
    arguments = read_all([node.child(name) for name in _PERCENTILES[node.kind] if node.has(name)], scope)
    if node.kind == "Median":
        arguments = (*arguments, Literal(0.5, DOUBLE))
    if node.value("legacyCalculation", False):  # noqa: FBT003 - what Spark means if it says nothing
        raise refused(node)
    backwards = node.value("reverse", False)  # noqa: FBT003 - as above
    frequency = arguments[_PLAIN] if len(arguments) > _PLAIN else _ONE
    if isinstance(frequency, Literal) and frequency.value == 1:
        arguments = arguments[:_PLAIN]
    if backwards:
        arguments = (*arguments, *(_ONE for _ in range(_PLAIN + 1 - len(arguments))), _TRUE)
    node.ignore(*_BUFFERS)
    typed, kind = AGGREGATES[function].bind(arguments, None)
    return AggregateCall(function, typed, kind, filter=condition)


def _mode(node: Node, scope: Scope, condition: Expr | None) -> AggregateCall:
    value = read_expression(node.child("child"), scope)
    smallest = node.value("reverseOpt", None)
    node.ignore(*_BUFFERS)
    if smallest is None:
        raise undetermined("mode", None)
    if not has_mode(value.type):
        raise refused(node)
    return AggregateCall("mode", (value, Literal(not smallest, BOOLEAN)), value.type, filter=condition)


def _listed(node: Node, scope: Scope, condition: Expr | None) -> AggregateCall:
    value, delimiter = (read_expression(node.child(name), scope) for name in ("child", "delimiter"))
    order = read_order(node.children_of("orderExpressions"), scope)
    node.ignore(*_BUFFERS)
    known = isinstance(delimiter, Literal) and (delimiter.value is None or delimiter.type == value.type)
    if not known or value.type not in (STRING, BINARY):
        raise refused(node)
    return AggregateCall("listagg", (value, delimiter), value.type, filter=condition, order_by=order)


def _estimate(node: Node, scope: Scope, condition: Expr | None) -> AggregateCall:
    value = read_expression(node.child("child"), scope)
    found = distinct_estimate(value, Literal(node.value("relativeSD"), DOUBLE))
    node.ignore(*_BUFFERS)
    if found is None:
        raise refused(node)
    arguments, present = found
    return AggregateCall("approx_count_distinct", arguments, BIGINT, filter=_both(condition, present))


def _sketch(node: Node, scope: Scope, condition: Expr | None) -> AggregateCall:
    names = ("child", "epsExpression", "confidenceExpression", "seedExpression")
    arguments = read_all([node.child(name) for name in names], scope)
    node.ignore(*_BUFFERS)
    if not is_integral(arguments[0].type) or not is_count_min(*arguments[1:]):
        raise refused(node)
    typed, kind = AGGREGATES["count_min_sketch"].bind(arguments, None)
    return AggregateCall("count_min_sketch", typed, kind, filter=condition)


def _both(condition: Expr | None, other: Expr) -> Expr:
    return other if condition is None else OPERATORS["and"]((condition, other), None)


_ONE, _TRUE = Literal(1, INT), Literal(value=True, type=BOOLEAN)
_READERS: dict[str, Callable[[Node, Scope, Expr | None], AggregateCall]] = {
    "Count": _count,
    "CountIf": _count_if,
    **dict.fromkeys(_FIRSTS, _first),
    **dict.fromkeys(_PERCENTILES, _percentile),
    "Mode": _mode,
    "ListAgg": _listed,
    "HyperLogLogPlusPlus": _estimate,
    "CountMinSketchAgg": _sketch,
}
