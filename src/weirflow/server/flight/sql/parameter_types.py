"""The types of a statement's parameters, for drivers that send each value as the type they were told."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from weirflow.errors import WeirflowError
from weirflow.sql.quoting import quoted
from weirflow.sql.statements.changes import Insert
from weirflow.sql.statements.flows import read_statement
from weirflow.sql.statements.kinds import kind_of
from weirflow.sql.statements.parameters import markers_of
from weirflow.sql.syntax.parse import tokenize

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

    from weirflow.server.access.caller import Caller
    from weirflow.server.coordinator import Coordinator, Prepared

_log = logging.getLogger(__name__)

_ANY = pa.string()
"""What is told where nothing is known: all drivers have text."""
_COUNTED = frozenset({"LIMIT", "OFFSET"})
_COMPARED = frozenset({"=", "==", "<>", "!=", "<", ">", "<=", ">=", "<=>"})


def parameter_schema(coordinator: Coordinator, caller: Caller, statement: Prepared) -> pa.Schema:
    """The parameters of a statement, by their names or places, with the types that their values should have.

    Of a query, what Spark casts them to; of a change, the columns that they are compared with or put into.
    """
    if not statement.parameters:
        return pa.schema([])
    places = _places(statement.sql, statement.parameters)
    found = {number: pa.int64() for number, at in enumerate(places) if at.before in _COUNTED}
    try:
        if statement.is_query:
            found = {**_cast_to(coordinator, caller, statement, places, found), **found}
        else:
            found = {**_columns(coordinator, caller, statement.sql, places), **found}
    except WeirflowError as error:
        _log.debug("the types of the parameters are not known: %s", error.message)
    return pa.schema([pa.field(name, found.get(number, _ANY)) for number, name in _names(statement, places)])


def without_counts(statement: str) -> str:
    """A query with 1 for its parameters behind LIMIT and OFFSET, where Spark takes no NULL to plan it with.

    >>> without_counts("SELECT * FROM t WHERE a = ? LIMIT ?")
    'SELECT * FROM t WHERE a = ? LIMIT 1'
    """
    markers = markers_of(statement)
    for place in reversed(_places(statement, markers) if markers else []):
        if place.before in _COUNTED:
            statement = f"{statement[: place.start]}1{statement[place.end :]}"
    return statement


class _Place:
    """Where a marker is: its beginning and end, what it is called, and the words before it."""

    def __init__(self, tokens: Sequence[Token], at: int, end: int, name: str) -> None:
        self.start, self.end, self.name = tokens[at].start, tokens[end].end + 1, name
        self.index = at
        self.before = tokens[at - 1].text.upper() if at else ""
        self.compared = tokens[at - 2].text if at > 1 and self.before in _COMPARED else ""


def _places(sql: str, markers: Sequence[str]) -> list[_Place]:
    tokens = tokenize(sql)
    if markers[0].startswith("?"):
        marks = [at for at, token in enumerate(tokens) if token.token_type == TokenType.PLACEHOLDER]
        return [_Place(tokens, at, at, f"?{number}") for number, at in enumerate(marks, 1)]
    return [
        _Place(tokens, at, at + 1, name.text)
        for at, (sign, name) in enumerate(pairwise(tokens))
        if sign.token_type == TokenType.COLON and sign.end + 1 == name.start and name.text in markers
    ]


def _names(statement: Prepared, places: Sequence[_Place]) -> list[tuple[int, str]]:
    """The first place of each parameter."""
    first = {place.name: number for number, place in reversed(list(enumerate(places)))}
    return [(first.get(name, -1), name) for name in statement.parameters]


def _cast_to(
    coordinator: Coordinator,
    caller: Caller,
    statement: Prepared,
    places: Sequence[_Place],
    known: Mapping[int, pa.DataType],
) -> Mapping[int, pa.DataType]:
    from weirflow.spark.analyzed.marker_types import marker, marker_types  # noqa: PLC0415 - imports pyspark

    text = statement.sql
    for number, place in reversed(list(enumerate(places))):
        text = text[: place.start] + ("1" if number in known else marker(number)) + text[place.end :]
    frame = coordinator.statement(caller, text).frame
    return marker_types(frame.spark) if frame is not None and hasattr(frame.spark, "_jdf") else {}


def _columns(coordinator: Coordinator, caller: Caller, sql: str, places: Sequence[_Place]) -> Mapping[int, pa.DataType]:
    """The types of the columns of a change's target that parameters are for."""
    target = kind_of(sql).target
    if target is None:
        return {}
    relation = coordinator.relation(caller, target)
    if relation is not None:
        schema = relation[0].schema(relation[1])
    else:
        from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark

        name = ".".join(quoted(part) for part in (target.flow, target.name) if part)
        coordinator.require_table(caller, name)
        schema = frame_schema(coordinator.session.table(name).spark)
    types = {field.name.casefold(): field.type for field in schema}
    found = {
        number: types[place.compared.casefold()]
        for number, place in enumerate(places)
        if place.compared.casefold() in types
    }
    return {**_inserted(sql, schema, places), **found}


def _inserted(sql: str, schema: pa.Schema, places: Sequence[_Place]) -> dict[int, pa.DataType]:
    """Of ``INSERT INTO t (a, b) VALUES (?, ?), ...`` the columns of the values."""
    blank = sql
    for place in reversed(places):
        blank = blank[: place.start] + "NULL".ljust(place.end - place.start) + blank[place.end :]
    statement = read_statement(blank)
    if not isinstance(statement, Insert):
        return {}
    names = [name.casefold() for name in statement.columns or schema.names]
    types = {field.name.casefold(): field.type for field in schema}
    tokens = tokenize(sql)
    begin = next((at for at, token in enumerate(tokens) if token.text.upper() == "VALUES"), len(tokens))
    numbers = {place.index: number for number, place in enumerate(places)}
    found: dict[int, pa.DataType] = {}
    depth = column = 0
    for at, token in enumerate(tokens[begin + 1 :], begin + 1):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            column = 0
        elif depth == 1 and token.text == ",":
            column += 1
        if at in numbers and depth == 1 and column < len(names) and names[column] in types:
            found[numbers[at]] = types[names[column]]
    return found
