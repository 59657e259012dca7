"""How long, and how deeply nested, SQL may be: generous for queries that people and programs write, finite for all.

Text is bounded before it is read, syntax trees before they are bound, plans before they are compiled. What is within
these bounds is read and computed on any stack (``weirflow.stack``); what is not is refused at once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.errors import SqlPosition, SqlTooComplex

if TYPE_CHECKING:
    from sqlglot import exp

    from weirflow.sql.expr import Expr
    from weirflow.sql.plan import Plan

MAX_CHARACTERS = 16_000_000
"""Of a statement, its literals and comments included."""
MAX_CODE = 1_000_000
"""Characters outside of literals."""
MAX_TOKENS = 250_000
"""Names, numbers, signs."""
MAX_NESTING = 1000
"""Parentheses, calls, subqueries, CASE and signs such as NOT inside each other."""
MAX_HEIGHT = 6000
"""Nodes on the longest way down a syntax tree or plan: a chain of operators is as high as it is long."""
MAX_SIZE = 250_000
"""Nodes of an expression or plan; a CTE or alias that is used twice counts twice."""
MAX_BREADTH = 50_000
"""Columns of all joins of a plan: each of two hundred joins in a row has those of all before it."""
MAX_GROUPING_SETS = 4096
"""What CUBE and ROLLUP come to."""
MAX_TYPE_DEPTH = 50
"""Types inside each other, a map counting as two; Arrow's file format ends at 64."""

_LITERAL = re.compile(
    r"""[rR]'[^']*'|[rR]"[^"]*"|'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|`[^`]*`""", re.DOTALL
)


def check_text(sql: str) -> None:
    """Raise ``SqlTooComplex`` for text that is too long to be cut into tokens."""
    if len(sql) > MAX_CHARACTERS:
        raise too_long(f"{len(sql):,} characters", f"{MAX_CHARACTERS:,}")
    if len(sql) > MAX_CODE:
        code = len(sql) - sum(found.end() - found.start() for found in _LITERAL.finditer(sql))
        if code > MAX_CODE:
            raise too_long(f"{code:,} characters outside of literals", f"{MAX_CODE:,}")


def check_tree(tree: exp.Expr) -> None:
    """Raise ``SqlTooComplex`` for a syntax tree that is too high."""
    level, height = [tree], 0
    while level:
        height += 1
        if height > MAX_HEIGHT:
            raise too_deep(MAX_HEIGHT)
        level = [child for node in level for child in node.iter_expressions()]


def check_node(node: Expr | Plan, position: SqlPosition | None = None) -> None:
    """Raise ``SqlTooComplex`` for an expression or plan that is too high or too large."""
    if node.height > MAX_HEIGHT:
        raise too_deep(MAX_HEIGHT, position)
    if node.size > MAX_SIZE:
        raise SqlTooComplex(
            f"The query has more than {MAX_SIZE:,} operations when every CTE and alias is written out.",
            hint="make views of the parts that are used several times",
            position=position,
        )


def check_plan(plan: Plan) -> None:
    """Raise ``SqlTooComplex`` for a plan that is too high, too large, or joins too much."""
    check_node(plan)
    if plan.breadth > MAX_BREADTH:
        raise SqlTooComplex(
            f"The joins of the query have {plan.breadth:,} columns in all; at most {MAX_BREADTH:,} can be read.",
            hint="split the query into views, and let each join read only the columns it needs",
        )


def check_grouping_sets(count: int) -> None:
    """Raise ``SqlTooComplex`` for too many grouping sets."""
    if count > MAX_GROUPING_SETS:
        raise SqlTooComplex(
            f"CUBE, ROLLUP and GROUPING SETS come to {count:,} sets; at most {MAX_GROUPING_SETS:,} can be read.",
            hint="name the sets that are needed in GROUPING SETS",
        )


def check_depth(depth: int, position: SqlPosition | None = None) -> None:
    """Raise ``SqlTooComplex`` for a type, or a value of it, that is this deep inside others."""
    if depth > MAX_TYPE_DEPTH:
        raise SqlTooComplex(f"A type is nested more than {MAX_TYPE_DEPTH} deep.", hint="flatten it", position=position)


def check_type(kind: pa.DataType, position: SqlPosition | None = None) -> None:
    """Raise ``SqlTooComplex`` for a type that is nested too deeply."""
    depth, level = 0, [kind] if pa.types.is_nested(kind) else []
    while level:
        depth += 1
        check_depth(depth, position)
        inner = [one.field(index).type for one in level for index in range(one.num_fields)]
        level = [one for one in inner if pa.types.is_nested(one)]


def too_deep(limit: int, position: SqlPosition | None = None) -> SqlTooComplex:
    """The error for what is nested too deeply."""
    return SqlTooComplex(
        f"The SQL is nested more than {limit:,} deep.",
        hint="write long chains of OR as IN, or split the query into views",
        position=position,
    )


def out_of_room() -> SqlTooComplex:
    """The error for SQL that is within the bounds, and yet more than this process has room for."""
    return SqlTooComplex(
        "There is not enough stack or memory for this SQL.", hint="split the query into views, or give it more memory"
    )


def too_long(found: str, limit: str) -> SqlTooComplex:
    """The error for text that is too long."""
    return SqlTooComplex(
        f"The SQL has {found}; at most {limit} can be read.",
        hint="load long lists into a source and join it, or split the query into views",
    )
