"""Spark's aggregates as ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.sql.expr import AggregateCall, Expr, Literal
from weirflow.sql.functions.aggregates import AGGREGATES
from weirflow.sql.functions.collections import struct_field
from weirflow.sql.functions.modes import EvalMode, aggregate_in
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.functions.pivots import picked
from weirflow.sql.resolved.eval_mode import eval_mode
from weirflow.sql.resolved.functions import Function
from weirflow.sql.resolved.reading import Scope, read_all, read_expression, refused
from weirflow.sql.resolved.types import literal
from weirflow.sql.types import BIGINT, DOUBLE, INT

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
    "BoolAnd": Function("bool_and", ("child",)),
    "BoolOr": Function("bool_or", ("child",)),
    "Mode": Function("mode", ("child",), settings={"reverseOpt": None}, ignored=_BUFFERS),
    "CollectList": Function("collect_list", ("child",), ignored=(*_BUFFERS, "ignoreNulls")),
    "CollectSet": Function("collect_set", ("child",), ignored=(*_BUFFERS, "ignoreNulls")),
    "BitAndAgg": Function("bit_and", ("child",)),
    "BitOrAgg": Function("bit_or", ("child",)),
    "BitXorAgg": Function("bit_xor", ("child",)),
}
"""By Spark's class; ``count``, ``first`` and their like are read one by one."""


_FIRSTS = {"First": "first", "Last": "last", "AnyValue": "any_value"}


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


def read_aggregate(node: Node, scope: Scope) -> AggregateCall:
    """An ``AggregateExpression``: a function over the rows of a group."""
    function = node.child("aggregateFunction")
    distinct = node.value("isDistinct")
    condition = read_expression(node.value("filter"), scope) if node.has("filter") else None
    if node.value("mode") != "Complete":
        raise refused(node)
    node.ignore("resultId")
    call = _called(function, scope, distinct=distinct, condition=condition)
    function.finish()
    node.finish()
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
    mode = EvalMode.ANSI if found.mode is None else eval_mode(node, found.mode)
    call = AggregateCall(found.name, typed, kind, distinct, condition)
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
    """``percentile`` of plain values, and ``median``."""
    value = read_expression(node.child("child"), scope)
    share: Expr = Literal(0.5, DOUBLE)
    if node.kind == "Percentile":
        share = read_expression(node.child("percentageExpression"), scope)
        frequency = read_expression(node.child("frequencyExpression"), scope)
        if not isinstance(frequency, Literal) or frequency.value != 1 or node.value("reverse"):
            raise refused(node)
        node.ignore(*_BUFFERS)
    typed, kind = AGGREGATES["percentile"].bind((value, share), None)
    return AggregateCall("percentile", typed, kind, filter=condition)


def _both(condition: Expr | None, other: Expr) -> Expr:
    return other if condition is None else OPERATORS["and"]((condition, other), None)


_ONE = Literal(1, INT)
_READERS: dict[str, Callable[[Node, Scope, Expr | None], AggregateCall]] = {
    "Count": _count,
    "CountIf": _count_if,
    **dict.fromkeys(_FIRSTS, _first),
    **dict.fromkeys(("Percentile", "Median"), _percentile),
}
