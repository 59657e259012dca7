"""A condition that users give beside a query, as one expression by itself: nothing of it reaches beyond."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from weirflow.errors import SqlSyntaxError
from weirflow.sql.statements.composed import position_at
from weirflow.sql.syntax.parse import parse_expression, tokenize

_HINT = "write one condition over the columns, such as lang = 'en' AND year > 2020"


def require_condition(sql: str) -> None:
    """Refuse what is no expression that stands for itself, so that it means the same in parentheses within a query.

    Raises:
        SqlSyntaxError: it has more than one expression, parentheses that it does not open or close, a comment, a query
            or a parameter, or is none at all.
    """
    tokens = tokenize(sql)
    at = 0
    for token in tokens:
        if sql[at : token.start].strip() or token.token_type is TokenType.HINT:
            _refuse("a comment has no place in a condition", sql, at)
        if token.token_type is TokenType.SEMICOLON:
            _refuse("a condition is no statement", sql, token.start)
        at = token.end + 1
    if sql[at:].strip():
        _refuse("a comment has no place in a condition", sql, at)
    tree = parse_expression(sql)
    if tree.find(exp.Query, exp.Table) is not None:
        _refuse("a condition has no query in it", sql, 0)


def _refuse(why: str, sql: str, at: int) -> NoReturn:
    rest = sql[at:]
    start = at + len(rest) - len(rest.lstrip())
    raise SqlSyntaxError(
        f"The text cannot be read as SQL: {why}.", hint=_HINT, position=position_at(sql, start, sql[start : start + 10])
    )
