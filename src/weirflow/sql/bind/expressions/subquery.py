"""Subqueries in expressions: scalar, EXISTS, IN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.expr import Column, Exists, Expr, InSubquery, ScalarSubquery
from weirflow.sql.plan import Field, Plan, Project
from weirflow.sql.traverse import outer_columns
from weirflow.sql.types import BOOLEAN
from weirflow.sql.typing.coercion import cast, comparable

if TYPE_CHECKING:
    from sqlglot import exp

    from weirflow.sql.bind.expressions.binder import ExpressionBinder


def bind_scalar_subquery(binder: ExpressionBinder, node: exp.Subquery) -> Expr:
    """``(SELECT ...)`` used as a value."""
    plan, position = _inner(binder, node), binder.position(node)
    if len(plan.fields) != 1:
        raise SqlTypeError(f"A subquery used as a value needs one column, not {len(plan.fields)}.", position=position)
    return ScalarSubquery(plan, plan.fields[0].type, position)


def bind_exists(binder: ExpressionBinder, node: exp.Exists) -> Expr:
    """``EXISTS (SELECT ...)``."""
    return Exists(_inner(binder, node.this), BOOLEAN, binder.position(node))


def bind_in_subquery(
    binder: ExpressionBinder, values: list[Expr], query: exp.Expr, position: SqlPosition | None
) -> Expr:
    """``values IN (SELECT ...)``, both sides in their common types."""
    plan = _inner(binder, query)
    if len(plan.fields) != len(values):
        raise SqlTypeError(
            f"IN compares {len(values)} values with a query of {len(plan.fields)} columns.", position=position
        )
    columns = [Column(index, field.name, field.type) for index, field in enumerate(plan.fields)]
    pairs = [comparable(value, column, "IN", position) for value, column in zip(values, columns, strict=True)]
    return InSubquery(
        tuple(value for value, _ in pairs), _typed(plan, [column for _, column in pairs]), BOOLEAN, position
    )


def _inner(binder: ExpressionBinder, query: exp.Expr) -> Plan:
    if binder.variables:
        raise binder.refused(query)  # Spark has no queries inside of lambdas
    plan = binder.context.bind_query(query, binder.context, binder.scope)
    query.meta["outer"] = [column.name for column in outer_columns(plan)]  # Spark names columns by them
    return plan


def _typed(plan: Plan, columns: list[Expr]) -> Plan:
    if all(column.type == field.type for column, field in zip(columns, plan.fields, strict=True)):
        return plan
    fields = tuple(Field(field.name, column.type) for column, field in zip(columns, plan.fields, strict=True))
    return Project(plan, tuple(cast(column, column.type) for column in columns), fields)
