"""INSERT, DELETE, UPDATE and MERGE, cut into the queries and expressions they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from weirflow.errors import UnsupportedError
from weirflow.sql.statements.relation_name import RelationName

if TYPE_CHECKING:
    from weirflow.sql.statements.composed import Fragment
    from weirflow.sql.statements.cursor import Cursor
    from weirflow.sql.statements.lexer import Lexer

CHANGES = ("INSERT", "DELETE", "UPDATE", "MERGE")
_WHEN = (("WHEN", "MATCHED"), ("WHEN", "NOT", "MATCHED"))


@dataclass(frozen=True)
class Target:
    """What a change is made to, and what its expressions call it."""

    name: RelationName
    alias: str


@dataclass(frozen=True)
class Assignment:
    """``column = value``; no value is DEFAULT, which is NULL."""

    column: Fragment
    value: Fragment | None


@dataclass(frozen=True)
class Insert:
    """``INSERT INTO target (columns) query``; no columns are all of them."""

    target: RelationName
    columns: tuple[str, ...] | None
    query: Fragment


@dataclass(frozen=True)
class Delete:
    """``DELETE FROM target WHERE``; without WHERE all rows go."""

    target: Target
    where: Fragment | None


@dataclass(frozen=True)
class Update:
    """``UPDATE target SET ... WHERE``."""

    target: Target
    assignments: tuple[Assignment, ...]
    where: Fragment | None


class When(StrEnum):
    """Which rows a clause of MERGE is for."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


@dataclass(frozen=True)
class MergeDelete:
    """``DELETE``."""


@dataclass(frozen=True)
class MergeUpdate:
    """``UPDATE SET``; no assignments are ``SET *``."""

    assignments: tuple[Assignment, ...] | None


@dataclass(frozen=True)
class MergeInsert:
    """``INSERT (columns) VALUES (values)``; no values are ``INSERT *``."""

    columns: tuple[str, ...] | None
    values: tuple[Fragment | None, ...] | None


@dataclass(frozen=True)
class MergeClause:
    """``WHEN ... [AND condition] THEN action``."""

    when: When
    condition: Fragment | None
    action: MergeDelete | MergeUpdate | MergeInsert


@dataclass(frozen=True)
class Merge:
    """``MERGE INTO target USING source ON condition`` and its clauses, in order; ``source`` has its alias."""

    target: Target
    source: Fragment
    on: Fragment
    clauses: tuple[MergeClause, ...]


Change = Insert | Delete | Update | Merge


def read_relation_name(cursor: Cursor) -> RelationName:
    """Read ``[flow.]name``."""
    place = cursor.here()
    parts = cursor.names()
    name = RelationName.of(*parts)
    if name is None:
        cursor.fail(
            f"{'.'.join(parts)!r} has too many parts",
            hint="a source or view is called name or flow.name",
            position=place,
        )
    return name


def skip_to_target(word: str, cursor: Cursor | Lexer) -> bool:
    """Read what stands before the target of a statement with this first word; whether it may be a change."""
    if word == "INSERT":
        begun = cursor.accept("INTO") or cursor.accept("OVERWRITE")
        cursor.accept("TABLE")
        return begun
    if word == "MERGE":
        cursor.accept("WITH", "SCHEMA", "EVOLUTION")
        return cursor.accept("INTO")
    return word == "UPDATE" or cursor.accept("FROM")


def read_change(word: str, cursor: Cursor) -> Change | None:
    """Read the change that begins with ``word``, which is read already."""
    for words in (("OVERWRITE",), ("WITH", "SCHEMA", "EVOLUTION")):
        if word in ("INSERT", "MERGE") and cursor.sees(*words):
            raise UnsupportedError(
                f"{word} {' '.join(words)} is not for sources of flows.", hint="DELETE FROM the source, then INSERT"
            )
    if not skip_to_target(word, cursor):
        return None
    if word == "INSERT":
        return _insert(cursor)
    name = read_relation_name(cursor)
    target = Target(name, _alias(cursor, "WHERE", "SET", "USING") or name.name)
    match word:
        case "DELETE":
            return Delete(target, _where(cursor))
        case "UPDATE":
            cursor.expect("SET")
            return Update(target, _assignments(cursor, "WHERE"), _where(cursor))
        case _:
            return _merge(cursor, target)


def _insert(cursor: Cursor) -> Insert:
    target = read_relation_name(cursor)
    for words in (("PARTITION",), ("BY", "NAME"), ("REPLACE",)):
        if cursor.sees(*words):
            raise UnsupportedError(
                f"INSERT with {' '.join(words)} is not for sources of flows.", hint="list the columns after the name"
            )
    columns = None
    if cursor.sees("(") and not any(cursor.sees("(", word) for word in ("SELECT", "WITH", "VALUES", "FROM", "(")):
        columns = cursor.listed_names()
    return Insert(target, columns, cursor.rest("VALUES or a query"))


def _merge(cursor: Cursor, target: Target) -> Merge:
    cursor.expect("USING")
    source = cursor.until("a table or query", "ON")
    cursor.expect("ON")
    condition = cursor.until("a condition", *_WHEN)
    clauses = []
    while not cursor.at_end:
        clauses.append(_clause(cursor))
    if not clauses:
        cursor.fail("expected WHEN MATCHED or WHEN NOT MATCHED")
    return Merge(target, source, condition, tuple(clauses))


def _clause(cursor: Cursor) -> MergeClause:
    cursor.expect("WHEN")
    when = When.NOT_MATCHED if cursor.accept("NOT") else When.MATCHED
    cursor.expect("MATCHED")
    if when is When.NOT_MATCHED and not cursor.accept("BY", "TARGET") and cursor.accept("BY", "SOURCE"):
        when = When.NOT_MATCHED_BY_SOURCE
    condition = cursor.until("a condition", "THEN") if cursor.accept("AND") else None
    cursor.expect("THEN")
    if when is When.NOT_MATCHED:
        cursor.expect("INSERT")
        return MergeClause(when, condition, _merge_insert(cursor))
    if cursor.accept("DELETE"):
        return MergeClause(when, condition, MergeDelete())
    if not cursor.accept("UPDATE"):
        cursor.fail("expected UPDATE or DELETE")
    cursor.expect("SET")
    if when is When.MATCHED and cursor.accept("*"):
        return MergeClause(when, condition, MergeUpdate(None))
    return MergeClause(when, condition, MergeUpdate(_assignments(cursor, *_WHEN)))


def _merge_insert(cursor: Cursor) -> MergeInsert:
    if cursor.accept("*"):
        return MergeInsert(None, None)
    columns = cursor.listed_names() if cursor.sees("(") else None
    cursor.expect("VALUES")
    place = cursor.here()
    cursor.expect("(")
    values = [_value(cursor, ",")]
    while cursor.accept(","):
        values.append(_value(cursor, ","))
    cursor.expect(")")
    if columns is not None and len(columns) != len(values):
        cursor.fail(f"{len(values)} values for {len(columns)} columns", position=place)
    return MergeInsert(columns, tuple(values))


def _assignments(cursor: Cursor, *stops: str | tuple[str, ...]) -> tuple[Assignment, ...]:
    found = []
    while True:
        column = cursor.until("a column", "=", ",", *stops)
        cursor.expect("=")
        found.append(Assignment(column, _value(cursor, ",", *stops)))
        if not cursor.accept(","):
            return tuple(found)


def _value(cursor: Cursor, *stops: str | tuple[str, ...]) -> Fragment | None:
    value = cursor.until("a value", *stops)
    return None if value.text.upper() == "DEFAULT" else value


def _where(cursor: Cursor) -> Fragment | None:
    return cursor.rest("a condition") if cursor.accept("WHERE") else None


def _alias(cursor: Cursor, *stops: str) -> str | None:
    if cursor.accept("AS"):
        return cursor.name()
    return None if cursor.at_end or any(cursor.sees(stop) for stop in stops) else cursor.name()
