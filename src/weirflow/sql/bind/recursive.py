"""Recursive CTEs: a base, UNION [ALL], a step that reads the rows found last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import NotIncremental, QueryError, Reason, SqlTypeError
from weirflow.sql.bind.recursive_reference import check_places
from weirflow.sql.passes.rename import rename, retype
from weirflow.sql.plan import Plan, Recursive, Scan
from weirflow.sql.types import type_name
from weirflow.sql.typing.coercion import common_type

if TYPE_CHECKING:
    from weirflow.sql.bind.context import BindContext
    from weirflow.sql.bind.scope import Scope


_NOT_OF_A_RECURSION = ("order", "limit", "offset")


def is_recursive(cte: exp.CTE) -> bool:
    """Whether the CTE reads itself."""
    return _reads(cte.this, cte.alias)


def bind_recursive(cte: exp.CTE, context: BindContext, around: Scope | None) -> Plan:
    """The base decides names and types; the step is cast to them where that is how Spark widens types."""
    query, name = _unwrapped(cte.this), cte.alias
    position = context.position(cte)
    if (
        not isinstance(query, exp.Union)
        or _reads(query.this, name)
        or any(query.args.get(part) for part in _NOT_OF_A_RECURSION)
    ):
        raise QueryError(
            f"The recursive CTE {name!r} is not of the form base UNION [ALL] step, with itself in the step only.",
            hint="put a step of several parts, or its ORDER BY and LIMIT, in parentheses",
            position=position,
            condition="INVALID_RECURSIVE_CTE",
        )
    if query.args.get("with_"):
        raise NotIncremental(
            "WITH inside a recursive CTE is not supported in an incremental view.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint="define its CTEs before it",
            position=position,
        )
    base = rename(context.bind_query(query.this, context, around), cte.alias_column_names, position)
    inside = _unique(name, context)
    step = context.bind_query(query.expression, context.with_cte(name, Scan(inside, base.fields, position)), around)
    check_places(step, inside, position)
    if len(step.fields) != len(base.fields):
        raise SqlTypeError(
            f"The step of {name!r} has {len(step.fields)} columns, its base {len(base.fields)}.", position=position
        )
    for one, other in zip(base.fields, step.fields, strict=True):
        if common_type((one.type, other.type)) != one.type:
            raise SqlTypeError(
                f"The step of {name!r} gives {type_name(other.type)} for {one.name!r}, its base {type_name(one.type)}.",
                hint="cast the base to the wider type, or the step to the base's",
                position=position,
            )
    return Recursive(inside, base, retype(step, base.fields), bool(query.args.get("distinct")), base.fields)


def _unwrapped(query: exp.Expr) -> exp.Expr:
    """The query without parentheses that hold nothing else."""
    while isinstance(query, exp.Subquery) and not any(value for part, value in query.args.items() if part != "this"):
        query = query.this
    return query


def _unique(name: str, context: BindContext) -> str:
    """A name that no source has, so that a Scan of it can only mean the recursion."""
    chosen = name
    while context.table(chosen) is not None or context.fold(chosen) in context.ctes:
        chosen += "'"
    return chosen


def _reads(query: exp.Expr, name: str) -> bool:
    return any(table.name.casefold() == name.casefold() and not table.db for table in query.find_all(exp.Table))
