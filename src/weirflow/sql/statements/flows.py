"""Statements about incremental flows: what a Session's SQL understands beside Spark's.

``read_statement`` turns text into one of the frozen dataclasses here. It knows grammar only: whether a name in it is a
flow's, and so whether the statement is Weirflow's or Spark's, is for the caller to find out (``kind_of``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from weirflow.errors import UnsupportedError, did_you_mean
from weirflow.sql.statements.changes import CHANGES, Change, read_change, read_relation_name
from weirflow.sql.statements.cursor import Cursor
from weirflow.sql.statements.lexer import LexemeKind, Lexer
from weirflow.sql.statements.source_columns import read_columns, read_dimensions
from weirflow.sql.statements.with_options import read_options
from weirflow.types import SourceSpread

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.sql.statements.composed import Fragment
    from weirflow.sql.statements.relation_name import RelationName

MODES = ("auto", "incremental", "diff")
_SOURCE_OPTIONS = ("dedup", "dimensions", "event_time", "lateness", "spread")
_VIEW_OPTIONS = ("mode", "materialized")


class Kind(StrEnum):
    """What a flow is made of, as statements call it."""

    SOURCE = "source"
    VIEW = "incremental view"


@dataclass(frozen=True)
class CreateFlow:
    """``CREATE FLOW``; ``partitions`` is 0 for what a Session makes if nothing is said."""

    name: str
    partitions: int = 0
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateSource:
    """``CREATE SOURCE``; ``lateness`` is the column of the event time and the delay."""

    name: RelationName
    schema: pa.Schema
    key: tuple[str, ...] = ()
    dedup: int | str = 0
    lateness: tuple[str, str] | None = None
    spread: str | None = None
    dimensions: tuple[tuple[str, int], ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateView:
    """``CREATE INCREMENTAL VIEW``."""

    name: RelationName
    query: Fragment
    mode: str = "auto"
    materialized: bool = True
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Drop:
    """``DROP SOURCE`` and ``DROP INCREMENTAL VIEW``."""

    kind: Kind
    name: RelationName
    if_exists: bool = False


@dataclass(frozen=True)
class Show:
    """``SHOW SOURCES`` and ``SHOW INCREMENTAL VIEWS``, of one flow or of all."""

    kind: Kind
    flow: str | None = None


@dataclass(frozen=True)
class Describe:
    """``DESCRIBE``; without a kind it may be either."""

    kind: Kind | None
    name: RelationName


@dataclass(frozen=True)
class Refresh:
    """``REFRESH``; without a kind it may be the path of files that Spark is to read again."""

    kind: Kind | None
    name: RelationName


@dataclass(frozen=True)
class Explain:
    """``EXPLAIN INCREMENTAL``, of a source or view or of a query."""

    what: RelationName | Fragment


Statement = CreateFlow | CreateSource | CreateView | Drop | Show | Describe | Refresh | Explain | Change


def read_statement(sql: str) -> Statement | None:
    """The statement about flows that ``sql`` is, or None if it is something else.

    Changes of tables are read too: they may be about a source, or about a table of Spark's.

    Raises:
        SqlSyntaxError: the text begins as a statement about flows and does not go on as one.
        UnsupportedError: it is a form of a change that only tables of Spark's have.
    """
    cursor, reader = _begun(sql)
    if cursor is None or reader is None:
        return None
    statement = reader(cursor)
    if statement is not None:
        cursor.expect_end()
    return statement


def _begun(sql: str) -> tuple[Cursor | None, Callable[[Cursor], Statement | None] | None]:
    first = next(iter(Lexer(sql)), None)
    if first is None or first.kind is not LexemeKind.WORD:
        return None, None
    word = first.text.upper()
    readers: dict[str, Callable[[Cursor], Statement | None]] = {
        "CREATE": _create,
        "DROP": _drop,
        "SHOW": _show,
        "DESCRIBE": _describe,
        "DESC": _describe,
        "REFRESH": _refresh,
        "EXPLAIN": _explain,
        **{change: lambda cursor: read_change(word, cursor) for change in CHANGES},
    }
    reader = readers.get(word)
    return (Cursor(sql, first.start + len(word)), reader) if reader else (None, None)


def _create(cursor: Cursor) -> Statement | None:
    replace = cursor.accept("OR", "REPLACE")
    if cursor.accept("SOURCE"):
        if replace:
            raise UnsupportedError(
                "A source holds rows that cannot be made again, so it is not replaced.",
                hint="DROP SOURCE it first, or use CREATE SOURCE IF NOT EXISTS",
            )
        return _create_source(cursor)
    if not replace and cursor.accept("FLOW"):
        return _create_flow(cursor)
    return _create_view(cursor, replace=replace) if cursor.accept("INCREMENTAL", "VIEW") else None


def _create_flow(cursor: Cursor) -> CreateFlow:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    options = read_options(cursor, ("partitions",))
    return CreateFlow(name, options.count("partitions"), if_not_exists)


def _create_source(cursor: Cursor) -> CreateSource:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = read_relation_name(cursor)
    schema, key = read_columns(cursor)
    options = read_options(cursor, _SOURCE_OPTIONS)
    dedup = options.number_or("dedup", "content")
    event_time = options.text("event_time", "a column's name in quotes")
    delay = options.text("lateness", "a length of time such as '10 minutes'")
    if (event_time is None) != (delay is None):
        options.refuse(
            "lateness" if event_time is None else "event_time",
            "event_time and lateness go together",
            hint="WITH (event_time = 'at', lateness = '10 minutes')",
        )
    lateness = None if event_time is None or delay is None else (event_time, delay)
    spread = options.text("spread", f"one of {', '.join(SourceSpread)}, in quotes")
    if spread is not None and spread not in tuple(SourceSpread):
        hint = did_you_mean(spread, SourceSpread) or f"there are {', '.join(SourceSpread)}"
        options.refuse("spread", f"Rows cannot be spread {spread!r}", hint=hint)
    dimensions = read_dimensions(options, schema)
    return CreateSource(name, schema, key, dedup, lateness, spread, dimensions, if_not_exists)


def _create_view(cursor: Cursor, *, replace: bool) -> CreateView:
    start = cursor.here()
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if replace and if_not_exists:
        cursor.fail("OR REPLACE and IF NOT EXISTS exclude each other", position=start)
    name = read_relation_name(cursor)
    options = read_options(cursor, _VIEW_OPTIONS)
    mode = (options.text("mode", f"one of {', '.join(MODES)}, in quotes") or "auto").lower()
    if mode not in MODES:
        hint = did_you_mean(mode, MODES) or f"there are {', '.join(MODES)}"
        options.refuse("mode", f"No mode is called {mode!r}", hint=hint)
    kept = options.flag("materialized", default=True)
    cursor.expect("AS")
    return CreateView(name, cursor.rest("a query"), mode, kept, replace, if_not_exists)


def _drop(cursor: Cursor) -> Drop | None:
    kind = _kind(cursor)
    if kind is None:
        return None
    if_exists = cursor.accept("IF", "EXISTS")
    return Drop(kind, read_relation_name(cursor), if_exists)


def _show(cursor: Cursor) -> Show | None:
    if not cursor.sees("SOURCES") and not cursor.sees("INCREMENTAL"):
        return None
    kind = Kind.SOURCE if cursor.accept("SOURCES") else Kind.VIEW
    if kind is Kind.VIEW:
        cursor.expect("INCREMENTAL", "VIEWS")
    named = cursor.accept("IN") or cursor.accept("FROM")
    return Show(kind, cursor.name() if named else None)


def _describe(cursor: Cursor) -> Describe | None:
    kind = _kind(cursor)
    if kind is None and not _is_name_alone(cursor):
        return None  # DESCRIBE TABLE, DESCRIBE QUERY, DESCRIBE EXTENDED ...
    return Describe(kind, read_relation_name(cursor))


def _refresh(cursor: Cursor) -> Refresh | None:
    kind = Kind.VIEW if cursor.accept("INCREMENTAL", "VIEW") else None
    if kind is None and not _is_name_alone(cursor):
        return None
    return Refresh(kind, read_relation_name(cursor))


def _explain(cursor: Cursor) -> Explain | None:
    if not cursor.accept("INCREMENTAL"):
        return None
    if any(cursor.sees(word) for word in ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")):
        return Explain(cursor.rest("a query"))
    return Explain(read_relation_name(cursor))


def _kind(cursor: Cursor) -> Kind | None:
    """``SOURCE name`` or ``INCREMENTAL VIEW name``; a table may be called source."""
    if cursor.accept("INCREMENTAL", "VIEW"):
        return Kind.VIEW
    if cursor.sees("SOURCE") and not _is_name_alone(cursor):
        cursor.expect("SOURCE")
        return Kind.SOURCE
    return None


def _is_name_alone(cursor: Cursor) -> bool:
    ahead = cursor.ahead()
    return bool(ahead.names()) and ahead.ends()
