"""Functions of JSON texts."""

from __future__ import annotations

import pyarrow as pa

from weirflow.errors import SqlPosition, SqlSyntaxError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, check_count
from weirflow.sql.refusal import NotIncremental, Reason
from weirflow.sql.types import INT, STRING, array_of, nullable, type_name
from weirflow.sql.typing.type_syntax import parse_ddl, parse_type_name
from weirflow.sql.zoned import UTC_ZONE


def to_json(value: Expr, position: SqlPosition | None = None) -> Expr:
    """``to_json`` of a struct, an array or a map; moments are written as the session's clocks show them."""
    if not pa.types.is_nested(value.type):
        raise _unproven(f"to_json() of {type_name(value.type)}", position)
    return Call("to_json", (value, Literal(UTC_ZONE, STRING)), STRING, position)


def _to_json(given: Arguments, position: SqlPosition | None) -> Expr:
    check_count("to_json", given, 1, 2, position)
    if len(given) > 1:
        raise _unproven("to_json() with options", position)
    return to_json(given[0], position)


def from_json(text: Expr, kind: pa.DataType, position: SqlPosition | None = None) -> Expr:
    """``from_json`` of a text that is a struct of this type."""
    if not pa.types.is_struct(kind):
        raise _unproven(f"from_json() of {type_name(kind)}", position)
    return Call("from_json", (text,), nullable(kind), position)


def _from_json(given: Arguments, position: SqlPosition | None) -> Expr:
    check_count("from_json", given, 2, 3, position)
    schema = given[1].value if isinstance(given[1], Literal) else None
    if len(given) > 2 or not isinstance(schema, str):  # noqa: PLR2004 - options
        raise _unproven("from_json() with options, or a schema that is no constant text", position)
    (text,) = FunctionSignature("from_json", (STRING,), STRING).arguments(given[:1], position)
    try:
        is_type = schema.strip().casefold().startswith("struct")
        kind = parse_type_name(schema) if is_type else pa.struct(list(parse_ddl(schema)))
    except SqlSyntaxError as error:
        raise _unproven(f"from_json() of {schema!r}", position) from error
    return from_json(text, kind, position)


def json_tuple(given: Arguments, position: SqlPosition | None = None) -> Call:
    """The generator ``json_tuple``, which makes one row: it is ``inline`` of the struct that is made of a text."""
    check_count("json_tuple", given, 2, None, position)
    typed = FunctionSignature("json_tuple", (STRING, STRING), STRING, repeats=True).arguments(given, position)
    if not all(isinstance(one, Literal) and one.value is not None for one in typed[1:]):
        raise _unproven("json_tuple() with names that are no constants", position)
    kind = pa.struct([pa.field(f"c{at}", STRING) for at in range(len(typed) - 1)])
    made = Call("json_fields", typed, kind, position)
    return Call("inline", (Call("array", (made,), array_of(kind), position),), kind, position)


def _unproven(what: str, position: SqlPosition | None) -> NotIncremental:
    return NotIncremental(
        f"{what} is not proven equal to Spark's.", reason=Reason.FUNCTION_NOT_PROVEN, position=position
    )


JSON: dict[str, Rule] = {
    "get_json_object": FunctionSignature("get_json_object", (STRING, STRING), STRING),
    "json_array_length": FunctionSignature("json_array_length", (STRING,), INT),
    "json_object_keys": FunctionSignature("json_object_keys", (STRING,), array_of(STRING)),
    "to_json": _to_json,
    "from_json": _from_json,
}
