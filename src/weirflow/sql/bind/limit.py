"""LIMIT and OFFSET."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import SqlTypeError
from weirflow.sql.bind.constant import whole_number
from weirflow.sql.bind.expressions.binder import ExpressionBinder
from weirflow.sql.bind.ordinal import ordinal
from weirflow.sql.bind.scope import Scope
from weirflow.sql.types import INT

if TYPE_CHECKING:
    from weirflow.sql.bind.context import BindContext


@dataclass(frozen=True)
class Limit:
    """How many rows (None: all) from which row on."""

    count: int | None
    offset: int


def bind_limit(query: exp.Query, context: BindContext) -> Limit | None:
    """The query's LIMIT and OFFSET, or None if it has neither."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if limit is None and offset is None:
        return None
    bound = None if limit is None else _count(limit.expression, "LIMIT", context)
    start = 0 if offset is None else _count(offset.expression, "OFFSET", context)
    return None if bound is None and not start else Limit(bound, start or 0)


def _count(node: exp.Expr, clause: str, context: BindContext) -> int | None:
    if clause == "LIMIT" and isinstance(node, exp.Var) and node.name.upper() == "ALL":
        return None
    count = ordinal(node)
    if count is None:
        count = _computed(node, clause, context)
    if count is None:
        raise SqlTypeError(f"{clause} takes a whole number that is constant.", position=context.position(node))
    if count < 0:
        raise SqlTypeError(f"{clause} takes no negative number.", position=context.position(node))
    return count


def _computed(node: exp.Expr, clause: str, context: BindContext) -> int | None:
    """The number that a constant expression of type INT is; None if it is none."""
    if any(node.find_all(exp.Column, exp.Query)):
        return None
    bound = ExpressionBinder(context, Scope((), None, context.fold), clause=clause).bind(node)
    return whole_number(bound) if bound.type == INT else None
