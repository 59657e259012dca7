"""The columns of ``CREATE SOURCE``: names, types, NOT NULL, the key, and the dimensions of vectors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.errors import SqlPosition, SqlSyntaxError, did_you_mean
from weirflow.sql.statements.composed import position_at
from weirflow.sql.typing.type_syntax import parse_type_name

if TYPE_CHECKING:
    from weirflow.sql.statements.cursor import Cursor
    from weirflow.sql.statements.with_options import Options

_ENDS = ("NOT", ("PRIMARY", "KEY"), "DEFAULT", "COMMENT", "GENERATED", "CONSTRAINT", "UNIQUE", "CHECK")

_DIMENSION = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\w+))\s*=\s*(?P<dimension>[1-9][0-9]{0,8})\s*(?:,(?=.*\S)|$)",
    re.DOTALL,
)
_SAY_SO = "WITH (dimensions = 'v = 384, w = 3')"


def read_columns(cursor: Cursor) -> tuple[pa.Schema, tuple[str, ...]]:
    """Read ``(name TYPE [NOT NULL] [PRIMARY KEY], ..., [PRIMARY KEY (names)])``: the schema and the key."""
    fields: dict[str, pa.Field] = {}
    key: tuple[str, ...] = ()
    key_place: SqlPosition | None = None

    def set_key(names: tuple[str, ...], place: SqlPosition) -> None:
        nonlocal key, key_place
        if key:
            cursor.fail("A source has one PRIMARY KEY", hint="name all its columns in it", position=place)
        key, key_place = names, place

    cursor.expect("(")
    while True:
        place = cursor.here(2)
        if cursor.accept("PRIMARY", "KEY"):
            set_key(cursor.listed_names(), place)
        else:
            field = _column(cursor, fields)
            fields[field.name.casefold()] = field
            place = cursor.here(2)
            if cursor.accept("PRIMARY", "KEY"):
                set_key((field.name,), place)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    if not fields:
        cursor.fail("A source has at least one column", position=key_place)
    return pa.schema(list(fields.values())), _in_spelling(cursor, key, fields, key_place)


def read_dimensions(options: Options, schema: pa.Schema) -> tuple[tuple[str, int], ...]:
    """What the option ``dimensions`` says: ``'v = 384, w = 3'``, columns and how many numbers their vectors have."""
    text = options.text("dimensions", "columns and numbers in quotes, such as 'v = 384'")
    if text is None:
        return ()
    spelled = {name.casefold(): name for name in schema.names}
    found: dict[str, int] = {}
    at = 0
    while at < len(text) or not found:
        one = _DIMENSION.match(text, at)
        if one is None:
            options.refuse("dimensions", f"{text!r} does not say which column has which dimension", hint=_SAY_SO)
        name = one["quoted"].replace("``", "`") if one["quoted"] is not None else one["plain"]
        column = spelled.get(name.casefold())
        if column is None:
            hint = did_you_mean(name, schema.names) or f"the columns are {', '.join(schema.names)}"
            options.refuse("dimensions", f"The dimensions name {name!r}, which is no column", hint=hint)
        if column in found:
            options.refuse("dimensions", f"The column {column!r} has two dimensions", hint=_SAY_SO)
        found[column] = int(one["dimension"])
        at = one.end()
    return tuple(found.items())


def _column(cursor: Cursor, known: dict[str, pa.Field]) -> pa.Field:
    place = cursor.here()
    name = cursor.name()
    if name.casefold() in known:
        cursor.fail(f"Two columns are called {name!r}", position=place)
    kind = _type(cursor)
    not_null = cursor.accept("NOT")
    if not_null:
        cursor.expect("NULL")
    return pa.field(name, kind, nullable=not not_null)


def _type(cursor: Cursor) -> pa.DataType:
    """A type may hold commas in angle brackets, which are signs of comparison elsewhere."""
    written = cursor.until("a type", ",", *_ENDS)
    while _open_brackets(written.text) > 0 and cursor.accept(","):
        more = cursor.until("a type", ",", *_ENDS)
        end = more.start + len(more.text)
        written = type(written)(cursor.sql[written.start : end], written.start)
    try:
        return parse_type_name(written.text)
    except SqlSyntaxError as error:
        position = position_at(cursor.sql, written.start, written.text)
        raise SqlSyntaxError(error.message, hint=error.hint, position=position) from None


def _open_brackets(text: str) -> int:
    plain = re.sub(r"`[^`]*`", "", text)
    return plain.count("<") - plain.count(">")


def _in_spelling(
    cursor: Cursor, key: tuple[str, ...], fields: dict[str, pa.Field], place: SqlPosition | None
) -> tuple[str, ...]:
    """The key's columns as the schema writes them."""
    for name in key:
        if name.casefold() not in fields:
            names = [field.name for field in fields.values()]
            hint = did_you_mean(name, names) or f"the columns are {', '.join(names)}"
            cursor.fail(f"The key names {name!r}, which is no column", hint=hint, position=place)
    return tuple(fields[name.casefold()].name for name in key)
