"""Functions that write values as texts of a form, and read them: base 16 and 64, character sets, URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.conditionals import case
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, check_count
from weirflow.sql.refusal import NotIncremental, Reason
from weirflow.sql.types import BIGINT, BINARY, BOOLEAN, INT, STRING, type_name

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition

_DECODE = FunctionSignature("string_decode", (BINARY, STRING), STRING)
_TO_BINARY = FunctionSignature("to_binary", (STRING, STRING), BINARY, (Literal("hex", STRING),))
_COLLATION = "SYSTEM.BUILTIN.UTF8_BINARY"


def _decode(given: Arguments, position: SqlPosition | None) -> Expr:
    """Of two arguments the text of a binary; of more the value behind the first that is the same, NULL or not."""
    check_count("decode", given, 2, None, position)
    if len(given) == 2:  # noqa: PLR2004 - the binary and its character set
        return _DECODE(given, position)
    value, *rest = given
    default = rest.pop() if len(rest) % 2 else Literal(None, STRING)
    pairs = zip(rest[0::2], rest[1::2], strict=True)
    equal = OPERATORS["equal_null_safe"]
    return case(tuple((equal((value, one), position), found) for one, found in pairs), default, position)


def _try_to_binary(given: Arguments, position: SqlPosition | None) -> Expr:
    return Call("try", (_TO_BINARY(given, position),), BINARY, position)


def _typeof(given: Arguments, position: SqlPosition | None) -> Expr:
    """The name of a type; intervals of several names are one type here."""
    check_count("typeof", given, 1, 1, position)
    if "interval" in type_name(given[0].type):
        raise NotIncremental(
            "typeof() of an interval is not proven equal to Spark's.",
            reason=Reason.FUNCTION_NOT_PROVEN,
            position=position,
        )
    return Literal(type_name(given[0].type), STRING)


def _collation(given: Arguments, position: SqlPosition | None) -> Expr:
    FunctionSignature("collation", (STRING,), STRING).arguments(given, position)
    return Literal(_COLLATION, STRING)


ENCODINGS: dict[str, Rule] = {
    "hex": FunctionSignature("hex", ((BIGINT, BINARY, STRING),), STRING),
    "unhex": FunctionSignature("unhex", (STRING,), BINARY),
    "base64": FunctionSignature("base64", (BINARY,), STRING),
    "unbase64": FunctionSignature("unbase64", (STRING,), BINARY),
    "encode": FunctionSignature("encode", (STRING, STRING), BINARY),
    "decode": _decode,
    "string_decode": _DECODE,
    "to_binary": _TO_BINARY,
    "try_to_binary": _try_to_binary,
    "is_valid_utf8": FunctionSignature("is_valid_utf8", (STRING,), BOOLEAN),
    **{
        name: FunctionSignature(name, (STRING,), STRING)
        for name in ("make_valid_utf8", "validate_utf8", "try_validate_utf8", "url_encode", "url_decode")
    },
    "try_url_decode": FunctionSignature("try_url_decode", (STRING,), STRING),
    "typeof": _typeof,
    "collation": _collation,
    "conv": FunctionSignature("conv", (STRING, INT, INT), STRING),
}
