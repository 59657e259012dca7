"""Window functions: OVER (PARTITION BY ... ORDER BY ... ROWS BETWEEN ...)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import NotIncremental, QueryError, Reason, SqlPosition, SqlSyntaxError, SqlTypeError
from weirflow.sql.bind.expressions.aggregate import aggregate_call, is_aggregate
from weirflow.sql.expr import AggregateCall, Expr, Frame, FrameUnit, Literal, SortKey, WindowCall
from weirflow.sql.functions.aggregates.frames import over_frame
from weirflow.sql.functions.lookup import unknown
from weirflow.sql.functions.rules import result_type
from weirflow.sql.functions.windows import FRAMED, OFFSET, RANKING, offset_arguments
from weirflow.sql.types import DATE, INT, TIMESTAMP, TIMESTAMP_NTZ, is_integral, type_name

if TYPE_CHECKING:
    from weirflow.sql.bind.expressions.binder import ExpressionBinder
    from weirflow.sql.bind.expressions.call import WrappedCall

_VALUE_FUNCTIONS = {
    "first": "first_value",
    "first_value": "first_value",
    "last": "last_value",
    "last_value": "last_value",
    "any_value": "first_value",
}


def bind_over(binder: ExpressionBinder, node: exp.Window, wrapped: WrappedCall) -> Expr:
    """The placeholder of a window function."""
    position = binder.position(wrapped.call)
    if binder.placeholders is None:
        raise SqlTypeError(
            f"The window function {wrapped.name}() cannot be used in {binder.clause}.",
            hint="compute it in a subquery and use its column",
            position=position,
        )
    if wrapped.is_distinct or wrapped.condition is not None:
        raise SqlTypeError("A window function takes neither DISTINCT nor FILTER.", position=position)
    spec = _specification(binder, node)
    partition = tuple(binder.bind(tree) for tree in spec.args.get("partition_by") or ())
    order_tree = spec.args.get("order")
    order = tuple(binder.sort_key(tree) for tree in (order_tree.expressions if order_tree else ()))
    name = wrapped.name
    by_place = name in RANKING or name in OFFSET or name in FRAMED or name in _VALUE_FUNCTIONS
    given = tuple(binder.bind(tree) for tree in wrapped.arguments) if by_place else ()
    if name in RANKING or name in OFFSET:
        if not order:
            raise SqlTypeError(f"{name}() needs an ORDER BY in its OVER clause.", position=position)
        _check_fixed_frame(binder, name, spec, order, position)
        if name in RANKING:
            arguments = RANKING[name].arguments(given, position)
            kind = result_type(RANKING[name].result, arguments)
        else:
            arguments = offset_arguments(name, given, position)
            kind = arguments[0].type
        return binder.placeholders.window(
            WindowCall(name, arguments, kind, partition, order, None, wrapped.ignore_nulls, position)
        )
    frame = _frame(binder, spec.args.get("spec"), order, position)
    ignore_nulls = wrapped.ignore_nulls
    if name in FRAMED:
        arguments = FRAMED[name].arguments(given, position)
        kind = arguments[0].type
    elif name in _VALUE_FUNCTIONS:
        ignore_nulls = ignore_nulls or (len(given) > 1 and isinstance(given[1], Literal) and given[1].value is True)
        name, arguments, kind = _VALUE_FUNCTIONS[name], given[:1], given[0].type
    else:
        call = _aggregate(binder, wrapped, position, ordered=bool(order))
        name, arguments, kind = call.function, call.arguments, call.type
    return binder.placeholders.window(
        WindowCall(name, arguments, kind, partition, order, frame, ignore_nulls, position)
    )


def _check_fixed_frame(
    binder: ExpressionBinder, name: str, spec: exp.Window, order: tuple[SortKey, ...], position: SqlPosition | None
) -> None:
    """Functions of a row's place have a frame of their own; it may only be written where it is that one."""
    if spec.args.get("spec") is None:
        return
    if name in OFFSET or _frame(binder, spec.args["spec"], order, position) != Frame(FrameUnit.ROWS, None, 0):
        raise SqlTypeError(f"{name}() takes no such window frame.", hint="leave it out", position=position)


def _aggregate(
    binder: ExpressionBinder, wrapped: WrappedCall, position: SqlPosition | None, *, ordered: bool
) -> AggregateCall:
    if not is_aggregate(wrapped.name):
        raise unknown(wrapped.call.name, position)
    call = over_frame(aggregate_call(binder, wrapped, ordered=ordered))
    if call is None:
        raise NotIncremental(
            f"{wrapped.name}() WITHIN GROUP, over a window, is not proven equal to Spark's.",
            reason=Reason.FUNCTION_NOT_PROVEN,
            position=position,
        )
    return call


def _specification(binder: ExpressionBinder, node: exp.Window) -> exp.Window:
    """The window's clauses, its own or those of the named window it refers to."""
    alias = node.args.get("alias")
    if alias is None:
        return node
    named = binder.windows.get(alias.name)
    if named is None:
        raise QueryError(
            f"There is no window named {alias.name!r}.",
            hint="define it in the query's WINDOW clause",
            position=binder.position(alias),
        )
    if has_own_clauses(node):
        raise binder.refused(node)
    return named


def has_own_clauses(node: exp.Window) -> bool:
    """Whether a window has clauses, besides the name of another that it may be."""
    return any(node.args.get(part) for part in ("partition_by", "order", "spec"))


def _frame(
    binder: ExpressionBinder, spec: exp.Expr | None, order: tuple[SortKey, ...], position: SqlPosition | None
) -> Frame:
    if spec is None:
        return Frame(FrameUnit.RANGE, None, 0) if order else Frame(FrameUnit.ROWS, None, None)
    if str(spec.args["kind"]).casefold() not in set(FrameUnit):
        raise SqlSyntaxError("A window frame counts ROWS or a RANGE.", position=position)
    unit = FrameUnit(str(spec.args["kind"]).casefold())
    start = _bound(binder, spec, "start", order, position)
    end = 0 if spec.args.get("end") is None else _bound(binder, spec, "end", order, position)
    if unit is FrameUnit.RANGE and not order and (start, end) != (None, None):
        raise SqlTypeError("A RANGE frame needs an ORDER BY.", position=position)
    if start is not None and end is not None and start > end:
        raise SqlTypeError("The window frame ends before it starts.", position=position)
    return Frame(unit, start, end)


def _bound(
    binder: ExpressionBinder,
    spec: exp.Expr,
    which: str,
    order: tuple[SortKey, ...],
    position: SqlPosition | None,
) -> int | None:
    tree, side = spec.args.get(which), spec.args.get(f"{which}_side")
    unit = FrameUnit(str(spec.args["kind"]).casefold())
    text = tree if isinstance(tree, str) else None
    if text is not None and text.upper() == "CURRENT ROW":
        return 0
    if tree is None or (text is not None and text.upper() == "UNBOUNDED"):
        if str(side).upper() != ("PRECEDING" if which == "start" else "FOLLOWING"):
            raise SqlTypeError("The window frame ends before it starts.", position=position)
        return None
    assert isinstance(tree, exp.Expr), "sqlglot gives text for the two keywords only"
    offset = _offset(binder.bind(tree), unit, order, position)
    return -offset if str(side).upper() == "PRECEDING" else offset


def _offset(value: Expr, unit: FrameUnit, order: tuple[SortKey, ...], position: SqlPosition | None) -> int:
    """The distance in rows, or in the unit of the order's values: days of a date, microseconds of a timestamp."""
    if not isinstance(value, Literal) or value.value is None:
        raise SqlTypeError("A window frame's bound must be a constant.", position=position)
    if unit is FrameUnit.ROWS:
        if value.type != INT:
            raise SqlTypeError("A ROWS frame counts rows: give an integer.", position=position)
        return int(value.value)
    if len(order) != 1:
        raise SqlTypeError("A RANGE frame with a distance needs exactly one ORDER BY key.", position=position)
    kind = order[0].expr.type
    if isinstance(value.value, timedelta) and kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return value.value // timedelta(microseconds=1)
    if isinstance(value.value, timedelta) and kind == DATE and not value.value % timedelta(days=1):
        return value.value // timedelta(days=1)
    if is_integral(value.type) and (is_integral(kind) or kind == DATE):
        return int(value.value)
    raise NotIncremental(
        f"A RANGE frame by {type_name(value.type)} over {type_name(kind)} is not supported.",
        reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
        position=position,
    )
