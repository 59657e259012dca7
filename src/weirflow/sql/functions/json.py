"""Functions of JSON texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from weirflow.errors import NotIncremental, Reason, SqlPosition, SqlSyntaxError, SqlTypeError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, check_count
from weirflow.sql.types import INT, STRING, array_of, nullable, type_name
from weirflow.sql.typing.type_syntax import parse_ddl, parse_type_name
from weirflow.sql.zoned import UTC_ZONE

Options: TypeAlias = Mapping[str, str]


def to_json(value: Expr, options: Options | None = None, position: SqlPosition | None = None) -> Expr:
    """``to_json`` of a struct, an array or a map; moments are written as the session's clocks show them."""
    if not pa.types.is_nested(value.type):
        raise _unproven(f"to_json() of {type_name(value.type)}", position)
    return Call("to_json", (value, *_told(options), Literal(UTC_ZONE, STRING)), STRING, position)


def _to_json(given: Arguments, position: SqlPosition | None) -> Expr:
    check_count("to_json", given, 1, 2, position)
    return to_json(given[0], _options("to_json", given[1:], position), position)


def from_json(
    text: Expr, kind: pa.DataType, options: Options | None = None, position: SqlPosition | None = None
) -> Expr:
    """``from_json`` of a text that is a struct of this type; moments are read by the session's clocks."""
    if not pa.types.is_struct(kind):
        raise _unproven(f"from_json() of {type_name(kind)}", position)
    if not options and not _has_time(kind):
        return Call("from_json", (text,), nullable(kind), position)
    return Call("from_json", (text, *_told(options or {}), Literal(UTC_ZONE, STRING)), nullable(kind), position)


def _from_json(given: Arguments, position: SqlPosition | None) -> Expr:
    check_count("from_json", given, 2, 3, position)
    schema = given[1].value if isinstance(given[1], Literal) else None
    if not isinstance(schema, str):
        raise _unproven("from_json() with a schema that is no constant text", position)
    options = _options("from_json", given[2:], position)
    (text,) = FunctionSignature("from_json", (STRING,), STRING).arguments(given[:1], position)
    try:
        is_type = schema.strip().casefold().startswith("struct")
        kind = parse_type_name(schema) if is_type else pa.struct(list(parse_ddl(schema)))
    except SqlSyntaxError as error:
        raise _unproven(f"from_json() of {schema!r}", position) from error
    return from_json(text, kind, options, position)


def _options(name: str, given: Arguments, position: SqlPosition | None) -> Options | None:
    """Options as a query has them, which must be a map of constants; None if there are none."""
    if not given:
        return None
    call = given[0]
    pairs = call.arguments if isinstance(call, Call) and call.function == "map" else ()
    texts = [one.value for one in pairs if isinstance(one, Literal) and isinstance(one.value, str)]
    if not texts or len(texts) < len(pairs):
        raise _unproven(f"{name}() with options that are no map of constant texts", position)
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _told(options: Options | None) -> tuple[Expr, ...]:
    return () if options is None else (Literal(json.dumps(dict(sorted(options.items()))), STRING),)


def _has_time(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) or any(_has_time(kind.field(at).type) for at in range(kind.num_fields))


def json_tuple(given: Arguments, position: SqlPosition | None = None) -> Call:
    """The generator ``json_tuple``, which makes one row: it is ``inline`` of the struct that is made of a text."""
    check_count("json_tuple", given, 2, None, position)
    other = next((one.type for one in given if one.type != STRING), None)
    if other is not None:
        raise SqlTypeError(f"json_tuple() takes texts, not {type_name(other)}.", position=position)
    kind = pa.struct([pa.field(f"c{at}", STRING) for at in range(len(given) - 1)])
    made = Call("json_fields", given, kind, position)
    return Call("inline", (Call("array", (made,), array_of(kind), position),), kind, position)


def _unproven(what: str, position: SqlPosition | None) -> NotIncremental:
    return NotIncremental(
        f"{what} is not proven equal to Spark's.", reason=Reason.FUNCTION_NOT_PROVEN, position=position
    )


JSON: dict[str, Rule] = {
    "get_json_object": FunctionSignature("get_json_object", (STRING, STRING), STRING),
    "json_array_length": FunctionSignature("json_array_length", (STRING,), INT),
    "schema_of_json": FunctionSignature("schema_of_json", (STRING,), STRING),
    "json_object_keys": FunctionSignature("json_object_keys", (STRING,), array_of(STRING)),
    "to_json": _to_json,
    "from_json": _from_json,
}
