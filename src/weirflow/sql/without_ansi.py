"""What a query means without ANSI, of a plan that the binder made by the rules of ANSI mode.

Without ANSI Spark also casts by itself otherwise. The casts that the binder added are taken where both modes add the
same one; a query with any other is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.expr import AggregateCall, Call, Expr, FrameUnit, WindowCall
from weirflow.sql.functions.modes import EvalMode, aggregate_in, call_in, cast_in, name_in
from weirflow.sql.map_calls import map_calls
from weirflow.sql.plan import Aggregate, Plan, Window
from weirflow.sql.types import FLOAT, NULL, STRING, is_integral, type_name

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition


def plan_without_ansi(plan: Plan) -> Plan:
    """What a plan for ANSI mode, in which only casts that are written are ``legacy_cast``, is without ANSI.

    Raises:
        NotIncremental: Spark may read the query otherwise, or has no such function.
    """
    return map_calls(plan, _call, _node)


def _call(call: Call) -> Expr:
    if call.function == "cast":
        return _added_cast(call)
    made = call_in(EvalMode.LEGACY, call)
    if made is None:
        raise _refused(f"{call.function}()", call.position)
    return made


def _added_cast(call: Call) -> Expr:
    inner, kind = call.arguments[0], call.type
    promoted = inner.type == STRING or (inner.type == FLOAT and kind != STRING) or pa.types.is_nested(kind)
    if promoted and inner.type != NULL:
        raise _refused(
            f"a cast of {type_name(inner.type)} to {type_name(kind)} that is not written in the SQL", call.position
        )
    return cast_in(EvalMode.LEGACY, inner, kind, call.position)


def _node(node: Plan) -> Plan:
    if isinstance(node, Aggregate):
        return replace(node, calls=tuple(_aggregate(call) for call in node.calls))
    if isinstance(node, Window):
        return replace(node, calls=tuple(_window(call) for call in node.calls))
    return node


def _aggregate(call: AggregateCall) -> AggregateCall:
    made = aggregate_in(EvalMode.LEGACY, call)
    if made is None:
        raise _refused(f"{call.function}()", call.position)
    return made


def _window(call: WindowCall) -> WindowCall:
    frame = call.frame
    reaches = frame is not None and frame.unit is FrameUnit.RANGE and {frame.start, frame.end} - {None, 0}
    if reaches and is_integral(call.order_by[0].expr.type):
        raise _refused("a RANGE frame over integers", call.position)  # a bound may wrap around
    name = name_in(EvalMode.LEGACY, call.function, call.arguments[0].type) if call.arguments else call.function
    if name is None:
        raise _refused(f"{call.function}()", call.position)
    return replace(call, function=name)


def _refused(what: str, position: SqlPosition | None) -> NotIncremental:
    return NotIncremental(
        f"Without ANSI mode {what} can only be read by Spark.",
        reason=Reason.SETTING_NOT_SUPPORTED,
        hint="write the cast that you mean, make the flow with session.flow(name), or leave ANSI mode on",
        position=position,
    )
