"""Binding of calls by name: scalar functions, aggregates, and what only has a meaning in a SELECT."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import NotIncremental, Reason, SqlPosition, SqlTypeError
from weirflow.sql.bind.expressions.aggregate import bind_aggregate, is_aggregate
from weirflow.sql.bind.expressions.higher_order import bind_higher_order, is_higher_order
from weirflow.sql.bind.expressions.naming import field_names, has_unit
from weirflow.sql.bind.expressions.window import bind_over
from weirflow.sql.clock.reading import clock_call, is_clock_function
from weirflow.sql.expr import Call, Expr
from weirflow.sql.functions.arrays import arrays_zip
from weirflow.sql.functions.collections import named_struct
from weirflow.sql.functions.dates import WITH_UNIT, extract, with_unit
from weirflow.sql.functions.lookup import GENERATORS, is_window_only, scalar, unknown
from weirflow.sql.types import BIGINT, TINYINT

if TYPE_CHECKING:
    from weirflow.sql.bind.expressions.binder import ExpressionBinder
    from weirflow.sql.functions.rules import Rule

CALLS = (exp.Anonymous, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Window)
"""The syntax of calls by name, with the clauses around them."""
GROUPING = "grouping"
"""The call ``grouping(key)`` until the query's grouping sets are known."""
GROUPING_ID = "grouping_id"
_IGNORES_NULLS = frozenset({"first", "first_value", "last", "last_value", "any_value"})


@dataclass(frozen=True)
class WrappedCall:
    """A call and the clauses around it."""

    call: exp.Anonymous
    condition: exp.Expr | None = None
    within: tuple[exp.Expr, ...] = ()
    ignore_nulls: bool = False

    @property
    def name(self) -> str:
        """The function's name as written, in lower case."""
        return self.call.name.casefold()

    @property
    def is_distinct(self) -> bool:
        """Whether it is ``f(DISTINCT ...)``."""
        return bool(self.call.expressions) and isinstance(self.call.expressions[0], exp.Distinct)

    @property
    def arguments(self) -> list[exp.Expr]:
        """The arguments, without DISTINCT."""
        inner = self.call.expressions
        return list(inner[0].expressions) if self.is_distinct else list(inner)


def unwrap(binder: ExpressionBinder, node: exp.Expr) -> WrappedCall:
    """The call inside FILTER, WITHIN GROUP and IGNORE NULLS."""
    if isinstance(node, exp.Anonymous):
        return WrappedCall(node)
    if isinstance(node, exp.Filter):
        return replace(unwrap(binder, node.this), condition=node.expression.this)
    if isinstance(node, exp.WithinGroup):
        return replace(unwrap(binder, node.this), within=tuple(node.expression.expressions))
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        return replace(unwrap(binder, node.this), ignore_nulls=isinstance(node, exp.IgnoreNulls))
    raise binder.refused(node)


def bind_call(binder: ExpressionBinder, node: exp.Expr) -> Expr:  # noqa: C901 - one for each kind of function
    """A call by name, with its clauses."""
    if isinstance(node, exp.Window):
        _require_no_lambda(binder, node)
        return bind_over(binder, node, unwrap(binder, node.this))
    wrapped = unwrap(binder, node)
    name, position = wrapped.name, binder.position(wrapped.call)
    if wrapped.ignore_nulls and name not in _IGNORES_NULLS:
        raise SqlTypeError(f"{name}() does not take IGNORE NULLS.", position=position)
    if name in _SPECIAL:
        return _SPECIAL[name](binder, wrapped, position)
    if is_aggregate(name):
        _require_no_lambda(binder, node)
        if binder.placeholders is None:
            raise SqlTypeError(f"The aggregate {name}() cannot be used in {binder.clause}.", position=position)
        return binder.placeholders.aggregate(bind_aggregate(binder, wrapped))
    rule = _clock_rule(wrapped) or scalar(name)
    if rule is not None or is_higher_order(name, wrapped.arguments):
        if wrapped.condition or wrapped.within or wrapped.is_distinct:
            raise SqlTypeError(f"{name}() is not an aggregate; FILTER and DISTINCT do not apply.", position=position)
        if rule is None or is_higher_order(name, wrapped.arguments):
            return bind_higher_order(binder, name, wrapped.arguments, position)
        unit = wrapped.arguments[0] if has_unit(wrapped.call) else None
        given = tuple(binder.bind(tree) for tree in wrapped.arguments if tree is not unit)
        return rule(given, position) if unit is None else with_unit(WITH_UNIT[name], unit.sql(), given, position)
    if name in GENERATORS:
        raise SqlTypeError(
            f"{name}() makes rows, so it cannot be part of an expression.",
            hint="use it alone in the SELECT list or in LATERAL VIEW",
            position=position,
        )
    if is_window_only(name):
        raise SqlTypeError(f"{name}() is a window function and needs OVER (...).", position=position)
    raise unknown(wrapped.call.name, position)


def _require_no_lambda(binder: ExpressionBinder, node: exp.Expr) -> None:
    if binder.variables:
        raise NotIncremental(
            "An aggregate or a window inside of a lambda has no incremental form.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            position=binder.position(node),
        )


def _clock_rule(wrapped: WrappedCall) -> Rule | None:
    """What makes ``now()`` and the like of no arguments."""
    if wrapped.arguments or not is_clock_function(wrapped.name):
        return None
    return lambda _, position: clock_call(wrapped.name, position)


def _struct(binder: ExpressionBinder, wrapped: WrappedCall, position: SqlPosition | None) -> Expr:
    """``struct(a, b AS c)``: fields are named by their columns, or ``col1`` and so on."""
    trees = wrapped.arguments
    values = tuple(binder.bind(tree.this if isinstance(tree, exp.Alias) else tree) for tree in trees)
    return named_struct(field_names(trees), values, position)


def _arrays_zip(binder: ExpressionBinder, wrapped: WrappedCall, position: SqlPosition | None) -> Expr:
    """``arrays_zip(a, b)``: fields are named by their columns, or by their numbers from 0."""
    trees = wrapped.arguments
    return arrays_zip(field_names(trees, "{0}"), tuple(binder.bind(tree) for tree in trees), position)


def _date_part(binder: ExpressionBinder, wrapped: WrappedCall, position: SqlPosition | None) -> Expr:
    trees = wrapped.arguments
    if len(trees) != 2 or not (isinstance(trees[0], exp.Literal) and trees[0].is_string):  # noqa: PLR2004
        raise SqlTypeError("date_part() takes a literal field and a date or timestamp.", position=position)
    return extract(trees[0].name, binder.bind(trees[1]), position)


def _grouping(binder: ExpressionBinder, wrapped: WrappedCall, position: SqlPosition | None) -> Expr:
    kind = TINYINT if wrapped.name == GROUPING else BIGINT
    if binder.placeholders is None or (wrapped.name == GROUPING and len(wrapped.arguments) != 1):
        raise SqlTypeError(f"{wrapped.name}() tells grouping sets apart, so it cannot be used here.", position=position)
    inside = binder.without_placeholders("grouping()")
    return Call(wrapped.name, tuple(inside.bind(tree) for tree in wrapped.arguments), kind, position)


def _time_window(binder: ExpressionBinder, wrapped: WrappedCall, position: SqlPosition | None) -> Expr:
    if binder.time_window is None and binder.clause == "WHERE":
        raise NotIncremental(
            f"{wrapped.name}() in WHERE has no incremental form.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint="select its start in a subquery in FROM, and filter that",
            position=position,
        )
    if binder.time_window is None:
        raise SqlTypeError(f"{wrapped.name}() cannot be used in {binder.clause}.", position=position)
    tree, column = binder.time_window
    if tree != wrapped.call:
        raise NotIncremental(
            "A query can have only one window() or session_window().",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint="compute the other one in a query around this one",
            position=position,
        )
    return column


_SPECIAL = {
    "struct": _struct,
    "arrays_zip": _arrays_zip,
    "date_part": _date_part,
    "datepart": _date_part,
    GROUPING: _grouping,
    GROUPING_ID: _grouping,
    "window": _time_window,
    "session_window": _time_window,
}
