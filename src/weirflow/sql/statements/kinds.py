"""Whose a statement is, by its first words: a query, about flows or catalogs, or Spark's own. Found out once, here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from weirflow.errors import UnsupportedError
from weirflow.sql.statements.changes import CHANGES, skip_to_target
from weirflow.sql.statements.lexer import LexemeKind, Lexer
from weirflow.sql.statements.relation_name import RelationName

_PLAIN_QUERIES = frozenset({"SELECT", "VALUES", "TABLE"})
_QUERIES = _PLAIN_QUERIES | {"WITH", "FROM"}
_BEHIND_CTES = _PLAIN_QUERIES | {"(", "FROM", *CHANGES}
_READING = _QUERIES | {*CHANGES, "CREATE", "REPLACE", "CACHE", "EXPLAIN", "DESC", "DESCRIBE"}
# What follows the first word, or OR REPLACE, in a statement that is about flows for certain.
_OF_FLOWS = {
    "CREATE": ("FLOW", "SOURCE", "INCREMENTAL"),
    "DROP": ("SOURCE", "INCREMENTAL"),
    "SHOW": ("SOURCES", "INCREMENTAL"),
    "DESC": ("SOURCE", "INCREMENTAL"),
    "DESCRIBE": ("SOURCE", "INCREMENTAL"),
    "REFRESH": ("INCREMENTAL",),
    "EXPLAIN": ("INCREMENTAL",),
}
_OF_MATERIALIZED: dict[str, tuple[str, ...]] = {
    "CREATE": ("MATERIALIZED", "VIEW"),
    "DROP": ("MATERIALIZED", "VIEW"),
    "SHOW": ("MATERIALIZED", "VIEWS"),
    "DESC": ("MATERIALIZED", "VIEW"),
    "DESCRIBE": ("MATERIALIZED", "VIEW"),
    "REFRESH": ("MATERIALIZED", "VIEW"),
    "ALTER": ("MATERIALIZED", "VIEW"),
    "EXPLAIN": ("REFRESH", "MATERIALIZED", "VIEW"),
}
_OF_CATALOGS: dict[str, tuple[str, ...]] = {"CREATE": ("CATALOG",), "DROP": ("CATALOG",), "SHOW": ("CATALOGS",)}


class About(Enum):
    """What a statement is about."""

    QUERY = auto()
    """It can only read."""
    FLOWS = auto()
    """It begins as only statements about flows do."""
    MATERIALIZED = auto()
    """It begins as only statements about materialized views do."""
    CATALOGS = auto()
    """It creates, drops or lists catalogs."""
    SUBSCRIPTION = auto()
    """It follows the changes of a view."""
    TARGET = auto()
    """It is Weirflow's or Spark's, depending on what its target is."""
    SPARK = auto()
    """It is for Spark to read; also when in doubt."""


_OWN: dict[About, dict[str, tuple[str, ...]]] = {
    About.MATERIALIZED: _OF_MATERIALIZED,
    About.CATALOGS: _OF_CATALOGS,
    About.SUBSCRIPTION: {"SUBSCRIBE": ("TO",)},
}
"""How the statements begin that Spark does not have at all."""


@dataclass(frozen=True)
class StatementKind:
    """Whose a statement is.

    Attributes:
        about: what it is about.
        reads_tables: whether it may read tables, as queries do, or as commands that have a query in them.
        target: for ``About.TARGET``, what it changes, describes or refreshes.
    """

    about: About
    reads_tables: bool
    target: RelationName | None = None


def kind_of(sql: str) -> StatementKind:
    """Whose a statement is; reads no more of it than it must.

    >>> kind_of("INSERT INTO shop.orders VALUES (1)").target
    RelationName(flow='shop', name='orders')
    """
    lexer = Lexer(sql)
    nested = lexer.skip("(")
    word = lexer.word()
    reads = word in _READING
    if word in _QUERIES:
        return _query(sql, word, lexer)
    if nested:
        return StatementKind(About.SPARK, reads)
    if word in CHANGES:
        return _change(word, lexer)
    if word == "CREATE":
        lexer.accept("OR", "REPLACE")
    own = next((about for about, words in _OWN.items() if word in words and lexer.sees(*words[word])), None)
    if own is not None:
        return StatementKind(own, reads_tables=False)
    is_certain = any(lexer.sees(one) for one in _OF_FLOWS.get(word, ()))
    if word in ("DESC", "DESCRIBE", "REFRESH"):
        names = lexer.names()  # also of a table that is called source
        if names and lexer.ends():
            return _targeted(names, reads_tables=reads)
    return StatementKind(About.FLOWS if is_certain else About.SPARK, reads)


def is_query(sql: str) -> bool:
    """Whether the statement can only read; False when in doubt."""
    return kind_of(sql).about is About.QUERY


def is_values(sql: str) -> bool:
    """Whether the query is a list of values."""
    lexer = Lexer(sql)
    lexer.skip("(")
    return lexer.sees("VALUES")


def split_statements(sql: str) -> list[tuple[int, int]]:
    """Where each of the statements in ``sql`` begins and ends; semicolons are between them. A script is one."""
    if Lexer(sql).sees("BEGIN"):
        return [(0, len(sql))]
    found: list[tuple[int, int]] = []
    start, is_empty = 0, True
    for lexeme in Lexer(sql):
        if lexeme.plain != ";":
            is_empty = False
            continue
        if not is_empty:
            found.append((start, lexeme.start))
        start, is_empty = lexeme.start + 1, True
    return found if is_empty else [*found, (start, len(sql))]


def refuse_commands(sql: str) -> StatementKind:
    """Raise ``UnsupportedError`` for anything that may be more than a query: Spark runs commands as it reads them."""
    kind = kind_of(sql)
    if kind.about is not About.QUERY:
        raise UnsupportedError(
            "Only queries can be explained; this statement might change something.",
            hint="explain the SELECT in it, or run EXPLAIN as SQL",
        )
    return kind


def _query(sql: str, word: str, lexer: Lexer) -> StatementKind:
    """What begins as queries do; behind WITH and FROM there may be a change."""
    if word == "WITH":
        word = _behind_ctes(lexer)
    if word == "FROM":
        word = _behind_from(lexer)
    if word in CHANGES:
        return _change(word, lexer)
    is_one = word in _PLAIN_QUERIES and (";" not in sql or _is_alone(lexer))
    return StatementKind(About.QUERY if is_one else About.SPARK, reads_tables=True)


def _behind_ctes(lexer: Lexer) -> str:
    """The first word behind the parentheses of all CTEs, which is read; empty if there is none."""
    depth, closed = 0, False
    for lexeme in lexer:
        if closed and depth == 0 and lexeme.plain in _BEHIND_CTES:
            return "SELECT" if lexeme.plain == "(" else lexeme.plain
        closed = lexeme.plain == ")"
        depth += (lexeme.plain == "(") - closed
    return ""


def _behind_from(lexer: Lexer) -> str:
    """INSERT if it stands behind FROM, and is read; SELECT if it does not; empty when in doubt."""
    depth = 0
    for lexeme in lexer:
        depth += (lexeme.plain == "(") - (lexeme.plain == ")")
        if depth <= 0 and lexeme.plain == "INSERT" and (lexer.sees("INTO") or lexer.sees("OVERWRITE")):
            return "INSERT"
        if lexeme.kind is LexemeKind.OPEN or (lexeme.plain == ";" and not lexer.ends()):
            return ""
    return "SELECT"


def _change(word: str, lexer: Lexer) -> StatementKind:
    """A change, whose first word is read."""
    return _targeted(lexer.names() if skip_to_target(word, lexer) else (), reads_tables=True)


def _targeted(names: tuple[str, ...], *, reads_tables: bool) -> StatementKind:
    target = RelationName.of(*names) if names else None
    return StatementKind(About.SPARK if target is None else About.TARGET, reads_tables, target)


def _is_alone(lexer: Lexer) -> bool:
    """Whether nothing but semicolons follows the statement."""
    return next((lexer.ends() for lexeme in lexer if lexeme.plain == ";"), True)
