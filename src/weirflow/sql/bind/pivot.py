"""PIVOT, which makes columns of groups, and UNPIVOT, which makes rows of columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from weirflow.errors import NotIncremental, Reason, SqlTypeError
from weirflow.sql.bind.assemble import GroupedInput
from weirflow.sql.bind.expressions.binder import ExpressionBinder
from weirflow.sql.bind.expressions.naming import output_name
from weirflow.sql.bind.expressions.placeholders import SelectCalls
from weirflow.sql.bind.grouping import Grouping
from weirflow.sql.bind.scope import FromItem, Name, Scope, scope_of
from weirflow.sql.expr import AggregateCall, Call, Column, Expr, Literal
from weirflow.sql.functions.aggregates.pivots import is_picked, picked
from weirflow.sql.plan import Aggregate, Field, Filter, Plan, Project, Union
from weirflow.sql.traverse import columns, remap
from weirflow.sql.types import BOOLEAN, STRING, type_name
from weirflow.sql.typing.casts import can_cast
from weirflow.sql.typing.coercion import cast, common_type

if TYPE_CHECKING:
    from weirflow.sql.bind.context import BindContext


def bind_pivot(item: FromItem, node: exp.Pivot, context: BindContext) -> FromItem:
    """The relation after PIVOT or UNPIVOT."""
    return _unpivoted(item, node, context) if node.args.get("unpivot") else _pivoted(item, node, context)


@dataclass(frozen=True)
class _Value:
    """One of the values that become columns."""

    name: str
    parts: tuple[Expr, ...]


def _pivoted(item: FromItem, node: exp.Pivot, context: BindContext) -> FromItem:
    field = node.args["fields"][0]
    binder = ExpressionBinder(context, item.scope, clause="PIVOT")
    trees = field.this.expressions if isinstance(field.this, exp.Tuple) else [field.this]
    of = tuple(binder.bind(tree) for tree in trees)
    values = [_value(binder, tree, of) for tree in field.expressions]
    if len({value.parts for value in values}) < len(values):
        raise SqlTypeError("PIVOT has the same value twice.", position=context.position(field))
    calls = SelectCalls()
    inside = replace(binder, placeholders=calls)
    made = [inside.bind(_plain(tree)) for tree in node.expressions]
    names = [tree.alias if isinstance(tree, exp.Alias) else output_name(tree) for tree in node.expressions]
    for tree, expr in zip(node.expressions, made, strict=True):
        if not calls.has_aggregate(expr) or calls.windows:
            raise SqlTypeError("PIVOT takes aggregates.", position=context.position(tree))
    read = {index for one in of for index in columns(one)}
    read |= {index for call in calls.aggregates for one in _inputs(call) for index in columns(one)}
    kept = [name for name in item.scope.names if name.in_star and not columns(name.expr) & read]
    keys = tuple(name.expr for name in kept)
    plan = _picked_values(item.plan, keys, of, tuple(calls.aggregates), made, values)
    titles = [value.name if len(made) == 1 else f"{value.name}_{name}" for value in values for name in names]
    shown = [Name(name.name, Column(at, name.name, name.expr.type), name.relation) for at, name in enumerate(kept)]
    shown += [
        Name(title, Column(len(kept) + at, title, plan.fields[len(kept) + at].type)) for at, title in enumerate(titles)
    ]
    fields = tuple(Field(name.name, name.expr.type) for name in shown)
    return FromItem(replace(plan, fields=fields), replace(item.scope, names=tuple(shown)))


def _plain(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Alias) else tree


def _inputs(call: AggregateCall) -> list[Expr]:
    return [*call.arguments, *(() if call.filter is None else (call.filter,)), *(key.expr for key in call.order_by)]


def _value(binder: ExpressionBinder, tree: exp.Expr, of: tuple[Expr, ...]) -> _Value:
    plain, position = _plain(tree), binder.position(tree)
    inner = plain.unnest()
    trees = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
    constants = binder.without_placeholders("the values of PIVOT")
    bound = [replace(constants, scope=Scope((), None, binder.scope.fold)).bind(one) for one in trees]
    if len(bound) != len(of) or not all(isinstance(one, Literal) for one in bound):
        raise NotIncremental(
            "A value of PIVOT is not a constant here.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint="write numbers, strings and dates as they are",
            position=position,
        )
    for one, column in zip(bound, of, strict=True):
        if not can_cast(one.type, column.type):
            raise SqlTypeError(
                f"PIVOT cannot compare {type_name(column.type)} with {type_name(one.type)}.", position=position
            )
    parts = tuple(cast(one, column.type, position) for one, column in zip(bound, of, strict=True))
    if isinstance(tree, exp.Alias):
        return _Value(tree.alias, parts)
    texts = [_text(one) for one in bound if isinstance(one, Literal)]
    if any(text is None for text in texts):
        raise SqlTypeError("Spark's name of this value is not known here.", hint="name it with AS", position=position)
    listed = ", ".join(str(text) for text in texts)
    return _Value(f"{{{listed}}}" if isinstance(inner, exp.Tuple) else listed, parts)


def _text(constant: Literal) -> str | None:
    """A constant as Spark casts it to a string, where that is beyond doubt."""
    value = constant.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int) or pa.types.is_date(constant.type):
        return str(value)
    return f"{value:f}" if pa.types.is_decimal(constant.type) else None


def _picked_values(  # noqa: PLR0917 - the parts of a PIVOT
    plan: Plan,
    keys: tuple[Expr, ...],
    of: tuple[Expr, ...],
    calls: tuple[AggregateCall, ...],
    made: list[Expr],
    values: list[_Value],
) -> Project:
    """The keys, then for each value what the aggregates are in the group of rows with it.

    Spark groups by the values as well, and picks the results of each, if it can hold them all: a group without rows
    of a value has NULL then. If not, it aggregates the rows of each value, and a count of none is 0.
    """
    if all(is_picked(expr.type) for expr in made):
        first = GroupedInput(Grouping(keys + of, None, is_grouped=True), calls, None)
        width = len(keys)
        groups = first.over(plan)
        results = tuple(first.change(expr) for expr in made)
        own = tuple(Column(at, field.name, field.type) for at, field in enumerate(groups.fields[: width + len(of)]))
        fields = groups.fields[: width + len(of)] + tuple(
            Field(f"_result{at}", expr.type) for at, expr in enumerate(results)
        )
        computed = Project(groups, own + results, fields)
        chosen = [
            picked(Column(width + len(of) + at, "", expr.type), own[width:], value.parts)
            for value in values
            for at, expr in enumerate(results)
        ]
        grouped = _grouped(computed, own[:width], chosen)
        return Project(
            grouped, tuple(Column(at, "", one.type) for at, one in enumerate(grouped.fields)), grouped.fields
        )
    return _filtered(plan, keys, of, calls, made, values)


def _grouped(plan: Plan, keys: tuple[Expr, ...], calls: list[AggregateCall]) -> Aggregate:
    fields = [Field(f"_key{at}", key.type) for at, key in enumerate(keys)]
    fields += [Field(f"_picked{at}", call.type) for at, call in enumerate(calls)]
    return Aggregate(plan, keys, tuple(calls), tuple(fields))


_BY_ROWS = frozenset({"count", "sum", "avg", "min", "max", "collect_list", "collect_set", "bool_and", "bool_or"})
"""Aggregates for which a row that is left out is the same as one whose arguments are NULL."""


def _filtered(  # noqa: PLR0917 - the parts of a PIVOT
    plan: Plan,
    keys: tuple[Expr, ...],
    of: tuple[Expr, ...],
    calls: tuple[AggregateCall, ...],
    made: list[Expr],
    values: list[_Value],
) -> Project:
    for call in calls:
        if call.function not in _BY_ROWS:
            raise NotIncremental(
                f"PIVOT of {call.function}() beside results of other types has no incremental form.",
                reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
                position=call.position,
            )
    chosen: list[AggregateCall] = []
    exprs: list[Expr] = []
    for value in values:
        start = len(keys) + len(chosen)
        chosen += [replace(call, filter=_with_filter(call, of, value)) for call in calls]
        change = GroupedInput(Grouping(keys, None, is_grouped=True), calls, None)
        for expr in made:
            moved = change.change(expr)
            exprs.append(_behind(moved, len(keys), start))
    grouped = _grouped(plan, keys, chosen)
    own = tuple(Column(at, "", key.type) for at, key in enumerate(keys))
    fields = tuple(Field(f"_{at}", one.type) for at, one in enumerate((*own, *exprs)))
    return Project(grouped, (*own, *exprs), fields)


def _with_filter(call: AggregateCall, of: tuple[Expr, ...], value: _Value) -> Expr:
    test = picked(Literal(None, STRING), of, value.parts).filter
    assert test is not None, "a value is picked by a test"
    return test if call.filter is None else Call("and", (call.filter, test), BOOLEAN)


def _behind(expr: Expr, width: int, start: int) -> Expr:
    return remap(expr, lambda index: index if index < width else index - width + start)


def _unpivoted(item: FromItem, node: exp.Pivot, context: BindContext) -> FromItem:
    field = node.args["fields"][0]
    target = node.expressions[0]
    titles = [part.name for part in target.expressions] if isinstance(target, exp.Tuple) else [target.name]
    binder = ExpressionBinder(context, item.scope, clause="UNPIVOT")
    entries = [_entry(binder, tree, len(titles)) for tree in field.expressions]
    used = {index for _, exprs in entries for one in exprs for index in columns(one)}
    kept = [name for name in item.scope.names if name.in_star and not columns(name.expr) & used]
    kinds = []
    for at in range(len(titles)):
        kind = common_type(exprs[at].type for _, exprs in entries)
        if kind is None:
            raise SqlTypeError("The columns of UNPIVOT have no common type.", position=context.position(field))
        kinds.append(kind)
    names = [name.name for name in kept] + [field.this.name, *titles]
    types = [name.expr.type for name in kept] + [STRING, *kinds]
    fields = tuple(Field(name, kind) for name, kind in zip(names, types, strict=True))
    own = tuple(name.expr for name in kept)
    inputs = tuple(
        Project(
            item.plan,
            (*own, Literal(title, STRING), *(cast(one, kind) for one, kind in zip(exprs, kinds, strict=True))),
            fields,
        )
        for title, exprs in entries
    )
    plan: Plan = inputs[0] if len(inputs) == 1 else Union(inputs, fields)
    if not node.args.get("include_nulls"):
        plan = Filter(plan, _some_value(fields, len(own) + 1))
    alias = node.args.get("alias")
    if alias is not None:
        if alias.columns:
            raise SqlTypeError("The alias of UNPIVOT has no names of columns.", position=context.position(node))
        return FromItem(plan, scope_of(fields, alias.name, item.scope.around, context.fold))
    scope = scope_of(fields, None, item.scope.around, context.fold)
    qualified = tuple(replace(one, relation=name.relation) for one, name in zip(scope.names, kept, strict=False))
    return FromItem(plan, replace(scope, names=qualified + scope.names[len(kept) :]))


def _entry(binder: ExpressionBinder, tree: exp.Expr, width: int) -> tuple[str, list[Expr]]:
    """One item of IN: what its rows are named, and the columns it is made of."""
    inner = _plain(tree).unnest()
    trees = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
    exprs = [binder.bind(one) for one in trees]
    if len(exprs) != width or not all(isinstance(one, Column) for one in exprs):
        raise SqlTypeError(f"UNPIVOT takes columns, {width} for each row.", position=binder.position(tree))
    title = tree.alias if isinstance(tree, exp.Alias) else "_".join(one.name for one in trees)
    return title, exprs


def _some_value(fields: tuple[Field, ...], start: int) -> Expr:
    """Whether one of the values is not NULL."""
    tests: list[Expr] = [
        Call("is_not_null", (Column(at, fields[at].name, fields[at].type),), BOOLEAN)
        for at in range(start, len(fields))
    ]
    found = tests[0]
    for test in tests[1:]:
        found = Call("or", (found, test), BOOLEAN)
    return found
