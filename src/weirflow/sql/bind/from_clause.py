"""The FROM clause: tables, subqueries, VALUES, joins and lateral views become a plan and the names it offers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import SqlSyntaxError, SqlTypeError, TableNotFound, did_you_mean
from weirflow.sql.bind.expressions.binder import ExpressionBinder
from weirflow.sql.bind.expressions.generator import bind_generator
from weirflow.sql.bind.join import bind_join, bind_lateral_join
from weirflow.sql.bind.pivot import bind_pivot
from weirflow.sql.bind.scope import FromItem, Name, Scope, scope_of
from weirflow.sql.bind.strict import refusal
from weirflow.sql.bind.table_function import bind_table_function
from weirflow.sql.clock.relation import CLOCK
from weirflow.sql.expr import Column, Expr
from weirflow.sql.plan import Field, Generate, Plan, Scan, Values
from weirflow.sql.types import nullable, type_name
from weirflow.sql.typing.coercion import cast, common_type
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.sql.bind.context import BindContext


def bind_from(query: exp.Select, context: BindContext, around: Scope | None) -> FromItem:
    """FROM, JOIN and LATERAL VIEW of a SELECT; one row without columns when there is no FROM."""
    source = query.args.get("from_")
    if source is None:
        relation = FromItem(Values(((),), ()), Scope((), around, context.fold))
    else:
        relation = _relation(source.this, context, around, pivots=True)
    return _extended(relation, query, context, around)


def _extended(relation: FromItem, node: exp.Expr, context: BindContext, around: Scope | None) -> FromItem:
    """The relation with the joins and lateral views that follow it."""
    for join in node.args.get("joins") or ():
        relation = join_relation(relation, join, context, around)
    for view in node.args.get("laterals") or ():
        relation = _lateral_view(relation, view, context)
    return relation


def join_relation(left: FromItem, join: exp.Join, context: BindContext, around: Scope | None) -> FromItem:
    """What is on the left joined with another relation; a PIVOT that follows is one of both."""
    pivots = [*(join.this.args.get("pivots") or ()), *(join.args.get("pivots") or ())]
    if join.this.args.get("pivots") and (join.args.get("on") or join.args.get("using")):
        raise SqlSyntaxError("PIVOT and UNPIVOT follow the condition of a join.", position=context.position(join))
    joined = _joined(left, join, context, around)
    for pivot in pivots:
        joined = bind_pivot(joined, pivot, context)
    return joined


def _joined(left: FromItem, join: exp.Join, context: BindContext, around: Scope | None) -> FromItem:
    if isinstance(join.this, exp.Lateral):
        right = _relation(join.this, context, left.scope)
        binder = ExpressionBinder(context, left.scope, clause="a join condition")
        return FromItem(*bind_lateral_join(binder, join, left.plan, right.plan, right.scope))
    right = _relation(join.this, context, around)
    binder = ExpressionBinder(context, left.scope, clause="a join condition")
    return FromItem(*bind_join(binder, join, left.plan, right.plan, right.scope))


@grows
def _relation(node: exp.Expr, context: BindContext, around: Scope | None, *, pivots: bool = False) -> FromItem:
    if isinstance(node, exp.Table):
        relation = _table(node, context, around)
    elif isinstance(node, exp.Values):
        relation = _renamed(bind_values(node, context, around), node, context, around)
    elif isinstance(node, exp.Subquery) and _is_relation(node.this):
        relation = _parenthesized(node, context, around)
    elif isinstance(node, exp.Subquery):
        relation = _renamed(context.bind_query(node, context, around), node, context, around)
    elif isinstance(node, exp.Lateral):
        relation = _lateral(node, context, around)
    else:
        raise refusal(node, context.position(node))
    for pivot in (node.args.get("pivots") or ()) if pivots else ():
        relation = bind_pivot(relation, pivot, context)
    return _extended(relation, node, context, around)


def _is_relation(node: exp.Expr) -> bool:
    """Whether parentheses are around a relation and no query: ``(t)``, ``((t))``."""
    while isinstance(node, exp.Subquery) and not node.args.get("pivots"):
        node = node.this
    return isinstance(node, exp.Table)


def _parenthesized(node: exp.Subquery, context: BindContext, around: Scope | None) -> FromItem:
    """``(t)`` and ``(t JOIN u ...)``, under their own names or all under the alias of the parentheses."""
    inner = _relation(node.this, context, around, pivots=True)
    if any(node.args.get(part) for part in ("with_", "order", "limit", "offset")):
        raise refusal(node, context.position(node))
    if not node.alias:
        return inner
    seen = tuple(name for name in inner.scope.names if name.in_star)
    columns = node.alias_column_names or [name.name for name in seen]
    if len(columns) != len(seen):
        raise SqlTypeError(
            f"There are {len(columns)} column aliases for {len(seen)} columns.", position=context.position(node)
        )
    renamed = (Name(name, one.expr, node.alias) for name, one in zip(columns, seen, strict=True))
    return FromItem(inner.plan, Scope(tuple(renamed), around, context.fold))


def _lateral(node: exp.Lateral, context: BindContext, around: Scope | None) -> FromItem:
    """What follows LATERAL, which sees as the query around it what stands before."""
    if node.args.get("view"):
        raise refusal(node, context.position(node))
    if isinstance(node.this, exp.Subquery):
        return _renamed(context.bind_query(node.this, context, around), node, context, around)
    return _renamed(bind_table_function(node.this, context, around), node, context, around, _call_name(node.this))


def _call_name(node: exp.Expr) -> str | None:
    return node.name if isinstance(node, exp.Anonymous) else None


def _table(node: exp.Table, context: BindContext, around: Scope | None) -> FromItem:
    if not isinstance(node.this, exp.Identifier):
        return _renamed(bind_table_function(node.this, context, around), node, context, around)
    name = ".".join(part.name for part in node.parts)
    cte = context.ctes.get(context.fold(name))
    if cte is not None:
        return _renamed(cte, node, context, around, node.name)
    found = context.table(name)
    if found is None:
        known = [*(one for one in context.catalog if one != CLOCK), *context.ctes]
        hint = did_you_mean(name, known) or ("known are " + ", ".join(sorted(known)) if known else "none is defined")
        raise TableNotFound(f"No source or view is named {name!r}.", hint=hint, position=context.position(node))
    fields = tuple(Field(field.name, nullable(field.type)) for field in found[1])
    return _renamed(Scan(found[0], fields, context.position(node)), node, context, around, node.name)


def _renamed(
    plan: Plan, node: exp.Expr, context: BindContext, around: Scope | None, default: str | None = None
) -> FromItem:
    """The relation under its alias, with its columns under theirs."""
    relation = node.alias or default
    columns = node.alias_column_names
    if not columns:
        return FromItem(plan, scope_of(plan.fields, relation, around, context.fold))
    if len(columns) != len(plan.fields):
        raise SqlTypeError(
            f"There are {len(columns)} column aliases for {len(plan.fields)} columns.", position=context.position(node)
        )
    named = tuple(Field(name, field.type) for name, field in zip(columns, plan.fields, strict=True))
    return FromItem(plan, scope_of(named, relation, around, context.fold))


def bind_values(node: exp.Values, context: BindContext, around: Scope | None) -> Plan:
    """``VALUES (...), (...)``: columns ``col1`` and so on, each in the common type of its values."""
    binder = ExpressionBinder(context, Scope((), around, context.fold), clause="VALUES")
    rows = [
        [binder.bind(part) for part in (row.expressions if isinstance(row, exp.Tuple) else [row])]
        for row in node.expressions
    ]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise SqlTypeError("The rows of VALUES differ in length.", position=context.position(node))
    typed = [_column([row[index] for row in rows], node, context) for index in range(width)]
    fields = tuple(Field(f"col{index + 1}", column[0].type) for index, column in enumerate(typed))
    return Values(tuple(tuple(row) for row in zip(*typed, strict=True)), fields)


def _column(values: list[Expr], node: exp.Expr, context: BindContext) -> list[Expr]:
    kind = common_type(value.type for value in values)
    if kind is None:
        names = ", ".join(dict.fromkeys(type_name(value.type) for value in values))
        raise SqlTypeError(f"A column of VALUES mixes {names}.", position=context.position(node))
    return [cast(value, kind) for value in values]


def _lateral_view(relation: FromItem, view: exp.Lateral, context: BindContext) -> FromItem:
    if not view.args.get("view"):
        raise refusal(view, context.position(view))
    binder = ExpressionBinder(context, relation.scope, clause="LATERAL VIEW")
    generator = bind_generator(binder, view.this)
    names = view.alias_column_names or [field.name for field in generator.fields]
    if len(names) != len(generator.fields):
        raise SqlTypeError(
            f"There are {len(names)} names for the {len(generator.fields)} columns of {generator.call.function}().",
            position=context.position(view),
        )
    made = tuple(Field(name, field.type) for name, field in zip(names, generator.fields, strict=True))
    outer = generator.outer or bool(view.args.get("outer"))
    width = len(relation.plan.fields)
    plan = Generate(relation.plan, generator.call, outer, relation.plan.fields + made)
    seen = tuple(
        Name(field.name, Column(width + index, field.name, field.type), view.alias or None)
        for index, field in enumerate(made)
    )
    return FromItem(plan, replace(relation.scope, names=relation.scope.names + seen))
