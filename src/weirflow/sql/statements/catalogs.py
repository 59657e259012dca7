"""Statements about catalogs: what a Session's SQL understands beside Spark's.

They may hold secrets, so nothing that stands in quotes is repeated in an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from weirflow.errors import SqlPosition
from weirflow.sql.statements.cursor import Cursor
from weirflow.sql.statements.lexer import LexemeKind
from weirflow.sql.statements.parameters import with_literals
from weirflow.sql.statements.with_options import read_any_options

_ADDRESS = "USING 'iceberg-rest+https://host/path', or USING iceberg_rest WITH (uri = 'https://host/path')"


@dataclass(frozen=True)
class CreateCatalog:
    """``CREATE CATALOG``; options may be secrets."""

    name: str
    address: str
    options: Mapping[str, str] = field(repr=False)
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropCatalog:
    """``DROP CATALOG``, which leaves what is in it."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class ShowCatalogs:
    """``SHOW CATALOGS``; the pattern is one of Spark's, in which ``*`` is anything and ``|`` is or."""

    pattern: str | None = None


CatalogStatement = CreateCatalog | DropCatalog | ShowCatalogs


def read_catalog_statement(sql: str, params: Mapping[str, Any] | Sequence[Any] | None = None) -> CatalogStatement:
    """Read a statement that is about catalogs, as ``kind_of`` says, with values for its markers.

    >>> read_catalog_statement("DROP CATALOG IF EXISTS lake")
    DropCatalog(name='lake', if_exists=True)

    Raises:
        SqlSyntaxError: it cannot be read.
    """
    if params is not None:
        for _ in _SecretiveCursor(sql):  # what is not closed is found here: others would repeat it
            pass
        sql = with_literals(sql, params).text
    cursor = _SecretiveCursor(sql)
    if cursor.accept("CREATE"):
        statement: CatalogStatement = _create(cursor)
    elif cursor.accept("DROP", "CATALOG"):
        if_exists = cursor.accept("IF", "EXISTS")
        statement = DropCatalog(cursor.name(), if_exists)
    else:
        cursor.expect("SHOW", "CATALOGS")
        cursor.accept("LIKE")
        statement = ShowCatalogs(None if cursor.at_end else _text(cursor))
    cursor.expect_end()
    return statement


def described(sql: str) -> str:
    """A statement about catalogs up to where secrets may begin, for lists of what runs."""
    return " ".join(sql[: _start_of_secrets(sql)].split())


class _SecretiveCursor(Cursor):
    """Repeats nothing that stands in quotes."""

    @override
    def here(self, count: int = 1) -> SqlPosition:
        found = super().here(count)
        return SqlPosition(found.line, found.column, "a text in quotes") if self.sees_text() else found


def _create(cursor: Cursor) -> CreateCatalog:
    start = cursor.here()
    if cursor.accept("OR", "REPLACE"):
        cursor.fail("A catalog is not replaced", hint="DROP CATALOG it first", position=start)
    cursor.expect("CATALOG")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    if not cursor.accept("USING"):
        cursor.fail("expected USING and an address", hint=_ADDRESS)
    is_text = cursor.sees_text()
    address = _text(cursor) if is_text else cursor.name().lower().replace("_", "-")
    options = {option: _as_text(value) for option, value in read_any_options(cursor).items()}
    uri = options.pop("uri", None)
    if uri is not None and is_text:
        cursor.fail("The option uri goes with USING and the name of a kind", hint=_ADDRESS, position=start)
    return CreateCatalog(name, address if uri is None else f"{address}+{uri}", options, if_not_exists)


def _text(cursor: Cursor) -> str:
    found = cursor.value()
    if not isinstance(found, str):
        cursor.fail("expected a text in quotes")
    return found


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _start_of_secrets(sql: str) -> int:
    return next((one.start for one in Cursor(sql) if one.plain == "WITH" or one.kind is LexemeKind.TEXT), len(sql))
