"""Whether the rows of a query have an order, so that they are to be read from one end to the other."""

from __future__ import annotations

from weirflow.sql.statements.lexer import Lexer


def is_ordered(sql: str) -> bool:
    """Whether a query says, at its outermost, by what its rows are ordered.

    >>> is_ordered("SELECT * FROM (SELECT 1 ORDER BY 1)"), is_ordered("(SELECT a, max(b) FROM t ORDER BY (a))")
    (False, True)
    """
    depth = leading = 0
    before = ""
    for lexeme in Lexer(sql):
        match word := lexeme.plain:
            case "(":
                leading += before in ("", "(") and depth == leading
                depth += 1
            case ")":
                depth -= 1
            case "BY" if before in ("ORDER", "SORT") and depth <= leading:
                return True
        before = word or "?"
    return False
