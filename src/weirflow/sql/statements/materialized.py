"""Statements about materialized views: what a Session's SQL understands beside Spark's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weirflow.errors import UnsupportedError
from weirflow.sql.quoting import quoted
from weirflow.sql.statements.cursor import Cursor
from weirflow.sql.statements.lexer import LexemeKind, Lexer

if TYPE_CHECKING:
    from weirflow.sql.statements.composed import Fragment


@dataclass(frozen=True)
class CreateMaterialized:
    """``CREATE MATERIALIZED VIEW``; names are quoted, and clauses as they are written."""

    name: str
    query: Fragment
    using: str | None = None
    partitioned_by: str | None = None
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    if_not_exists: bool = False


@dataclass(frozen=True)
class RefreshMaterialized:
    """``REFRESH MATERIALIZED VIEW``."""

    name: str
    full: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class AlterMaterialized:
    """``ALTER MATERIALIZED VIEW ... AS``."""

    name: str
    query: Fragment


@dataclass(frozen=True)
class DropMaterialized:
    """``DROP MATERIALIZED VIEW``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class ShowMaterialized:
    """``SHOW MATERIALIZED VIEWS``, of one schema; None for the current one."""

    schema: str | None = None


@dataclass(frozen=True)
class DescribeMaterialized:
    """``DESCRIBE MATERIALIZED VIEW``."""

    name: str


@dataclass(frozen=True)
class ExplainRefresh:
    """``EXPLAIN REFRESH MATERIALIZED VIEW``."""

    name: str


MaterializedStatement = (
    CreateMaterialized
    | RefreshMaterialized
    | AlterMaterialized
    | DropMaterialized
    | ShowMaterialized
    | DescribeMaterialized
    | ExplainRefresh
)


def read_materialized(sql: str) -> MaterializedStatement:
    """The statement that ``sql`` is, which begins as only statements about materialized views do (``kind_of``).

    >>> read_materialized("REFRESH MATERIALIZED VIEW gold.totals FULL")
    RefreshMaterialized(name='`gold`.`totals`', full=True, cascade=False)

    Raises:
        SqlSyntaxError: it does not go on as one.
    """
    first = next(iter(Lexer(sql)))
    word = first.text.upper()
    cursor = Cursor(sql, first.start + len(word))
    statement = _READERS[word](cursor)
    cursor.expect_end()
    return statement


def _create(cursor: Cursor) -> CreateMaterialized:
    if cursor.accept("OR", "REPLACE"):
        raise UnsupportedError(
            "A materialized view is not replaced.", hint="ALTER MATERIALIZED VIEW ... AS gives it another query"
        )
    cursor.expect("MATERIALIZED", "VIEW")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = _name(cursor)
    clauses = _Clauses()
    while not cursor.accept("AS"):
        clauses.read(cursor)
    query = cursor.rest("a query")
    return CreateMaterialized(
        name, query, clauses.using, clauses.partitioned_by, clauses.comment, clauses.properties, if_not_exists
    )


class _Clauses:
    """What stands between the name and the query, in any order, each once."""

    def __init__(self) -> None:
        self.using: str | None = None
        self.partitioned_by: str | None = None
        self.comment: str | None = None
        self.properties: dict[str, str] = {}
        self._seen: set[str] = set()

    def read(self, cursor: Cursor) -> None:
        """Read one."""
        place = cursor.here()
        clause = next((one for one in ("USING", "PARTITIONED", "COMMENT", "TBLPROPERTIES") if cursor.accept(one)), None)
        if clause is None:
            cursor.fail("expected USING, PARTITIONED BY, COMMENT, TBLPROPERTIES or AS")
        if clause in self._seen:
            cursor.fail(f"{clause} is given twice", position=place)
        self._seen.add(clause)
        match clause:
            case "USING":
                self.using = cursor.name()
            case "PARTITIONED":
                cursor.expect("BY", "(")
                self.partitioned_by = cursor.until("columns", ")").text
                cursor.expect(")")
            case "COMMENT":
                self.comment = _text(cursor, "a comment in quotes")
            case _:
                self.properties = _properties(cursor)


def _properties(cursor: Cursor) -> dict[str, str]:
    found: dict[str, str] = {}
    cursor.expect("(")
    while True:
        place = cursor.here()
        name = _text(cursor, "a property") if _sees_text(cursor) else ".".join(cursor.names())
        if name in found:
            cursor.fail(f"The property {name!r} is given twice", position=place)
        cursor.accept("=")
        value = cursor.value()
        found[name] = str(value).lower() if isinstance(value, bool) else str(value)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found


def _refresh(cursor: Cursor) -> RefreshMaterialized:
    cursor.expect("MATERIALIZED", "VIEW")
    name = _name(cursor)
    full = cursor.accept("FULL")
    return RefreshMaterialized(name, full, cursor.accept("CASCADE"))


def _alter(cursor: Cursor) -> AlterMaterialized:
    cursor.expect("MATERIALIZED", "VIEW")
    name = _name(cursor)
    cursor.expect("AS")
    return AlterMaterialized(name, cursor.rest("a query"))


def _drop(cursor: Cursor) -> DropMaterialized:
    cursor.expect("MATERIALIZED", "VIEW")
    if_exists = cursor.accept("IF", "EXISTS")
    return DropMaterialized(_name(cursor), if_exists)


def _show(cursor: Cursor) -> ShowMaterialized:
    cursor.expect("MATERIALIZED", "VIEWS")
    named = cursor.accept("IN") or cursor.accept("FROM")
    return ShowMaterialized(_name(cursor) if named else None)


def _describe(cursor: Cursor) -> DescribeMaterialized:
    cursor.expect("MATERIALIZED", "VIEW")
    return DescribeMaterialized(_name(cursor))


def _explain(cursor: Cursor) -> ExplainRefresh:
    cursor.expect("REFRESH", "MATERIALIZED", "VIEW")
    return ExplainRefresh(_name(cursor))


def _name(cursor: Cursor) -> str:
    return ".".join(map(quoted, cursor.names()))


def _sees_text(cursor: Cursor) -> bool:
    following = next(iter(cursor.ahead()), None)
    return following is not None and following.kind is LexemeKind.TEXT


def _text(cursor: Cursor, what: str) -> str:
    if not _sees_text(cursor):
        cursor.fail(f"expected {what}")
    return str(cursor.value())


_READERS: dict[str, Callable[[Cursor], MaterializedStatement]] = {
    "CREATE": _create,
    "REFRESH": _refresh,
    "ALTER": _alter,
    "DROP": _drop,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "EXPLAIN": _explain,
}
