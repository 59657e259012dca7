"""Functions that write values as texts of a form, and read them: base 16 and 64, character sets, URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.conditionals import case
from weirflow.sql.functions.numbers import as_decimal
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, check_count
from weirflow.sql.types import BIGINT, BINARY, BOOLEAN, INT, STRING, is_decimal, type_name
from weirflow.sql.typing.coercion import ONLY_INT, ONLY_NUMERIC, ONLY_STRING
from weirflow.sql.typing.number_format import NumberFormat, number_format

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


def _format_string(given: Arguments, position: SqlPosition | None) -> Expr:
    """The format, then values of any types."""
    check_count("format_string", given, 1, None, position)
    pattern = FunctionSignature("format_string", (STRING,), STRING).arguments(given[:1], position)
    return Call("format_string", (*pattern, *given[1:]), STRING, position)


def _to_number(name: str) -> Rule:
    """A decimal with as many digits as the format, which is a literal for that reason."""

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        arguments = FunctionSignature(name, (STRING, STRING), STRING).arguments(given, position)
        return Call(name, arguments, _number_format(name, arguments[1], position).type, position)

    return rule


def _to_char(given: Arguments, position: SqlPosition | None) -> Expr:
    """The digits of a number; of times and binaries it is another function."""
    check_count("to_char", given, 2, 2, position)
    number = as_decimal(given[0], position)
    if not is_decimal(number.type):
        raise _unproven(f"to_char() of {type_name(number.type)}", position)
    pattern = FunctionSignature("to_char", (ONLY_STRING,), STRING).arguments(given[1:], position)
    _number_format("to_char", pattern[0], position)
    return Call("to_char", (number, *pattern), STRING, position)


def _number_format(name: str, text: Expr, position: SqlPosition | None) -> NumberFormat:
    known = isinstance(text, Literal) and isinstance(text.value, str)
    found = number_format(text.value) if isinstance(text, Literal) and known else None
    if found is None:
        raise _unproven(f"{name}() of such a format", position)
    return found


def _unproven(what: str, position: SqlPosition | None) -> NotIncremental:
    return NotIncremental(
        f"{what} is not proven equal to Spark's.", reason=Reason.FUNCTION_NOT_PROVEN, position=position
    )


def _typeof(given: Arguments, position: SqlPosition | None) -> Expr:
    """The name of a type; intervals of several names are one type here."""
    check_count("typeof", given, 1, 1, position)
    if "interval" in type_name(given[0].type):
        raise _unproven("typeof() of an interval", position)
    return Literal(type_name(given[0].type), STRING)


def _collation(given: Arguments, position: SqlPosition | None) -> Expr:
    FunctionSignature("collation", (ONLY_STRING,), STRING).arguments(given, position)
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
    **{
        name: FunctionSignature(name, (ONLY_STRING, ONLY_STRING, ONLY_STRING), STRING, optional=1)
        for name in ("parse_url", "try_parse_url")
    },
    "to_number": _to_number("to_number"),
    "try_to_number": _to_number("try_to_number"),
    "to_char": _to_char,
    "format_number": FunctionSignature("format_number", (ONLY_NUMERIC, ONLY_INT), STRING),
    "format_string": _format_string,
    "typeof": _typeof,
    "collation": _collation,
    "conv": FunctionSignature("conv", (STRING, INT, INT), STRING),
}
