"""Windows whose ranks are filtered compute the first rows of each partition only."""

from __future__ import annotations

from dataclasses import replace

from weirflow.sql.expr import Call, Column, Expr, FrameUnit, Literal, WindowCall
from weirflow.sql.passes.conditions import conjuncts
from weirflow.sql.plan import Filter, FirstRanked, Plan, Recursive, Window
from weirflow.sql.traverse import inputs, with_inputs
from weirflow.sql.types import is_integral
from weirflow.stack import grows

_RANKS = frozenset({"row_number", "rank", "dense_rank"})
_MOST = 1000
"""Who asks for more first rows than that asks for most of a partition."""
_BOUNDING = frozenset({"less", "less_equal", "equal", "equal_null_safe", "in"})
_MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


@grows
def limit_ranks(plan: Plan) -> Plan:
    """The same rows; where a filter asks for ranks up to a constant, the window below makes no others.

    The filter stays. A recursion's step is left as it is written: it is part of what its state is known by.
    """
    if isinstance(plan, Recursive):
        return with_inputs(plan, (limit_ranks(plan.base), plan.step))
    plan = with_inputs(plan, tuple(limit_ranks(one) for one in inputs(plan)))
    if not isinstance(plan, Filter) or type(plan.input) is not Window:
        return plan
    window = plan.input
    limits = [
        (most, number)
        for number, call in enumerate(window.calls)
        if call.function in _RANKS and all(_comes_with(other, call) for other in window.calls)
        for part in conjuncts(plan.predicate)
        if (most := _most(part, len(window.input.fields) + number)) is not None and most <= _MOST
    ]
    if not limits:
        return plan
    most, number = min(limits)
    return replace(plan, input=FirstRanked(window.input, window.calls, window.fields, number, most))


def _comes_with(call: WindowCall, rank: WindowCall) -> bool:
    """Whether the call is computed from no more of a partition than the rank is."""
    return (call.partition_by, call.order_by) == (rank.partition_by, rank.order_by) and _looks_back(call)


def _looks_back(call: WindowCall) -> bool:
    """Whether the call's value comes from rows before, the row itself, and those with equal sort keys."""
    if call.function in _RANKS:
        return True
    if call.function == "lag":
        offset = call.arguments[1]
        return isinstance(offset, Literal) and offset.value >= 0
    frame = call.frame
    if frame is None or frame.end is None or frame.end > 0:
        return False
    return frame.unit is FrameUnit.ROWS or (frame.end == 0 and not frame.start)


def _most(part: Expr, column: int) -> int | None:
    """The greatest value of an integer column for which a condition can be true; None if it does not say."""
    if not isinstance(part, Call) or len(part.arguments) < 2:  # noqa: PLR2004 - both sides of a comparison
        return None
    function, (left, *others) = part.function, part.arguments
    if isinstance(left, Literal) and len(others) == 1:
        left, others, function = others[0], [left], _MIRRORED.get(function, function)
    values = [one.value for one in others if isinstance(one, Literal) and isinstance(one.value, int)]
    if not _is_column(left, column) or len(values) != len(others):
        return None
    return max(values) - (function == "less") if function in _BOUNDING else None


def _is_column(expr: Expr, column: int) -> bool:
    """Whether an expression is the column, or that as a wider integer."""
    if isinstance(expr, Call) and expr.function == "cast" and is_integral(expr.type):
        (expr,) = expr.arguments
    return isinstance(expr, Column) and expr.index == column
