"""The reading of a flow's clock, as an expression: all that a plan says of ``now()`` and its kin."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from weirflow.sql.expr import Call, Expr
from weirflow.sql.traverse import parts, rewrite
from weirflow.sql.tree import Tree, inner
from weirflow.sql.types import BIGINT, DATE, TIMESTAMP, TIMESTAMP_NTZ

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.errors import SqlPosition

_FUNCTION = "clock"
_KINDS: dict[str, pa.DataType] = {
    "now": TIMESTAMP,
    "current_timestamp": TIMESTAMP,
    "current_date": DATE,
    "curdate": DATE,
    "localtimestamp": TIMESTAMP_NTZ,
    "unix_timestamp": BIGINT,
}
_MENTIONED = re.compile(rf"\b(?:{'|'.join(_KINDS)})\b", re.IGNORECASE)
_STORED = f'["call","{_FUNCTION}",[],'


def is_clock_function(name: str) -> bool:
    """Whether a function that is called without arguments tells the time."""
    return name.casefold() in _KINDS


def clock_call(name: str, position: SqlPosition | None = None) -> Expr:
    """What such a function gives in a session in UTC.

    >>> clock_call("current_date").type
    DataType(date32[day])
    """
    return told(_KINDS[name.casefold()], position)


def told(kind: pa.DataType, position: SqlPosition | None = None) -> Expr:
    """The reading as a timestamp, or cast to another type in a session in UTC."""
    reading = Call(_FUNCTION, (), TIMESTAMP, position)
    return reading if kind == TIMESTAMP else Call("cast", (reading,), kind, position)


def is_clock(expr: Expr) -> bool:
    """Whether it is the reading itself."""
    return isinstance(expr, Call) and expr.function == _FUNCTION


def reads_clock(expr: Expr) -> bool:
    """Whether an expression reads the clock; subqueries inside it do not count."""
    return any(is_clock(part) for part in parts(expr))


def follows_clock(plan: Tree) -> bool:
    """Whether a plan, or an expression with its subqueries, reads the clock."""
    seen: set[int] = set()
    ahead: list[Tree] = [plan]
    while ahead:
        node = ahead.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Call) and node.function == _FUNCTION:
            return True
        ahead += inner(node)
    return False


def may_follow_clock(sql: str, plan: str | None) -> bool:
    """Whether a view's text, or its stored plan, may read the clock; cheap, and right when it says no."""
    return _STORED in plan if plan is not None else _MENTIONED.search(sql) is not None


def with_reading(expr: Expr, reading: Expr) -> Expr:
    """The expression with something else in the place of the clock."""
    return rewrite(expr, lambda part: reading if is_clock(part) else None)
