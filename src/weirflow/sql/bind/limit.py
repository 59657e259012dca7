"""LIMIT and OFFSET."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import SqlTypeError
from weirflow.sql.bind.ordinal import ordinal

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
        raise SqlTypeError(f"{clause} takes a whole number, not an expression.", position=context.position(node))
    if count < 0:
        raise SqlTypeError(f"{clause} takes no negative number.", position=context.position(node))
    return count
