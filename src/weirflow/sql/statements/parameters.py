"""Parameter markers, ``:name`` and ``?``, replaced by literals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

from sqlglot.tokenizer_core import TokenType

from weirflow.errors import SqlSyntaxError, UnsupportedError
from weirflow.sql.limits import check_depth
from weirflow.sql.quoting import text_literal
from weirflow.sql.statements.composed import ComposedSql, Fragment
from weirflow.sql.syntax.parse import tokenize


def with_literals(sql: str, params: Mapping[str, Any] | Sequence[Any]) -> ComposedSql:
    """The statement with the values of a mapping for ``:name``, or of a sequence for ``?``, as literals.

    A name that the mapping lacks stays as it is.

    Raises:
        SqlSyntaxError: there are more or fewer ``?`` than values.
        UnsupportedError: a value has no literal.
    """
    tokens = tokenize(sql)
    edits = []
    if isinstance(params, Mapping):
        for sign, name in pairwise(tokens):
            joined = sign.token_type == TokenType.COLON and sign.end + 1 == name.start
            if joined and name.text in params:
                edits.append((sign.start, name.end + 1, _literal(params[name.text])))
    else:
        places = [token for token in tokens if token.token_type == TokenType.PLACEHOLDER]
        if len(places) != len(params):
            raise SqlSyntaxError(f"The statement has {len(places)} markers '?', and {len(params)} values are given.")
        edits = [(place.start, place.end + 1, _literal(value)) for place, value in zip(places, params, strict=True)]
    return ComposedSql([Fragment(sql, 0)]).replaced(edits)


def markers_of(sql: str) -> tuple[str, ...]:
    """The parameter markers of a statement: the names of ``:name``, each once, and ``?1``, ``?2``, ... for each ``?``.

    >>> markers_of("SELECT * FROM t WHERE a = :a AND b < :b OR c = :a")
    ('a', 'b')
    """
    found: list[str] = []
    tokens = tokenize(sql)
    for sign, name in pairwise(tokens):
        if sign.token_type == TokenType.COLON and sign.end + 1 == name.start and _begins_value(sql, sign.start):
            found.append(name.text)
    places = [token for token in tokens if token.token_type == TokenType.PLACEHOLDER]
    return (*dict.fromkeys(found), *(f"?{number}" for number in range(1, len(places) + 1)))


def _begins_value(sql: str, at: int) -> bool:
    """Whether a colon stands where a value may begin, not behind one, as in ``column:field``."""
    return at == 0 or not (sql[at - 1].isalnum() or sql[at - 1] in "_`)]'\"")


def _literal(value: Any, depth: int = 0) -> str:  # noqa: C901, PLR0911 - one for each type
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return f"({value})" if value < 0 else str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            return text_literal(value)
        case Decimal() if value.is_finite():
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return f"CAST('{value:f}' AS DECIMAL({max(len(digits) + max(0, int(exponent)), scale)},{scale}))"
        case datetime():  # without a zone it is a time of this machine's, as Spark has it
            return f"TIMESTAMP '{value.astimezone(UTC).isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case bytes():
            return f"X'{value.hex()}'"
        case list() | tuple():
            check_depth(depth)
            return f"array({', '.join(_literal(item, depth + 1) for item in value)})"
        case _:
            raise UnsupportedError(
                f"A {type(value).__name__} cannot be a parameter of a statement about flows.",
                hint="pass numbers, text, bytes, dates, times, or lists of them",
            )
