"""UNION, INTERSECT and EXCEPT, with or without ALL."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import SqlTypeError
from weirflow.sql.bind.expressions.binder import ExpressionBinder
from weirflow.sql.bind.limit import bind_limit
from weirflow.sql.bind.ordinal import ordinal
from weirflow.sql.bind.scope import Scope, scope_of
from weirflow.sql.bind.star import is_all
from weirflow.sql.expr import Column, SortKey
from weirflow.sql.passes.rename import retype
from weirflow.sql.plan import Distinct, Field, Plan, SetKind, SetOperation, TopK, Union
from weirflow.sql.types import type_name
from weirflow.sql.typing.coercion import common_type

if TYPE_CHECKING:
    from weirflow.sql.bind.context import BindContext


def bind_set(node: exp.SetOperation, context: BindContext, around: Scope | None) -> Plan:
    """A set operation of two queries; columns meet by position, types in their common type."""
    left = context.bind_query(node.this, context, around)
    right = context.bind_query(node.expression, context, around)
    plan = combine(node, left, right, context)
    limit = bind_limit(node, context)
    order = _order(node, plan, context, around)
    made = plan if limit is None else TopK(plan, order, limit.count, limit.offset)
    if order:
        context.remember_order(made)
    return made


def combine(node: exp.SetOperation, left: Plan, right: Plan, context: BindContext) -> Plan:
    """The operation on two bound sides."""
    position = context.position(node.expression)
    if len(left.fields) != len(right.fields):
        raise SqlTypeError(
            f"{node.key.upper()} of {len(left.fields)} and {len(right.fields)} columns.",
            hint="both sides need the same number of columns",
            position=position,
        )
    fields = []
    for one, other in zip(left.fields, right.fields, strict=True):
        kind = common_type((one.type, other.type))
        if kind is None:
            raise SqlTypeError(
                f"{node.key.upper()} mixes {type_name(one.type)} and {type_name(other.type)} in column {one.name!r}.",
                position=position,
            )
        fields.append(Field(one.name, kind))
    header = tuple(fields)
    sides = (retype(left, header), retype(right, _with_types(right, header)))
    if isinstance(node, exp.Union):
        union = Union(_flat(sides), header)
        return Distinct(union) if node.args.get("distinct") else union
    kind = SetKind.INTERSECT if isinstance(node, exp.Intersect) else SetKind.EXCEPT
    return SetOperation(kind, not node.args.get("distinct"), *sides, fields=header)


def _with_types(plan: Plan, header: tuple[Field, ...]) -> tuple[Field, ...]:
    """The plan's own names with the header's types, so that a side that fits stays as it is."""
    return tuple(replace(field, type=wanted.type) for field, wanted in zip(plan.fields, header, strict=True))


def _flat(sides: tuple[Plan, Plan]) -> tuple[Plan, ...]:
    """UNION ALL of UNION ALLs is one union."""
    left, right = (side.inputs if isinstance(side, Union) else (side,) for side in sides)
    return left + right


def _order(node: exp.SetOperation, plan: Plan, context: BindContext, around: Scope | None) -> tuple[SortKey, ...]:
    order = node.args.get("order")
    if order is None:
        return ()
    binder = ExpressionBinder(context, scope_of(plan.fields, None, around, context.fold), clause="ORDER BY")
    keys = []
    if is_all(order.expressions) and binder.scope.find(("all",)) is None:
        every = order.expressions[0]
        columns = (Column(at, field.name, field.type) for at, field in enumerate(plan.fields))
        return tuple(
            SortKey(column, bool(every.args.get("desc")), bool(every.args.get("nulls_first"))) for column in columns
        )
    for tree in order.expressions:
        key = binder.sort_key(tree)
        place = ordinal(tree.this)
        if place is not None:
            if not 1 <= place <= len(plan.fields):
                raise SqlTypeError(
                    f"ORDER BY {place}: there are {len(plan.fields)} columns.", position=binder.position(tree)
                )
            field = plan.fields[place - 1]
            key = replace(key, expr=Column(place - 1, field.name, field.type))
        keys.append(key)
    return tuple(keys)
