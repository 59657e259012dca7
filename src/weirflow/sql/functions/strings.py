"""Functions of strings and binaries, regular expressions included."""

from __future__ import annotations

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, alike, check_count, same_as
from weirflow.sql.types import BIGINT, BINARY, BOOLEAN, INT, STRING, array_of, is_array, is_atomic
from weirflow.sql.typing.coercion import ONLY_STRING, implicit

_TEXT = (STRING, BINARY)
_STRINGS = array_of(STRING)
_MASKS = (Literal("X", STRING), Literal("x", STRING), Literal("n", STRING), Literal(None, STRING))


def _concat(given: Arguments, position: SqlPosition | None) -> Expr:
    """Strings, unless all are binaries or all arrays."""
    kinds = [expr.type for expr in given]
    if kinds and (all(is_array(kind) for kind in kinds) or all(kind == BINARY for kind in kinds)):
        return alike("concat", least=1)(given, position)
    return FunctionSignature("concat", (STRING,), STRING, optional=1, repeats=True)(given, position)


def _trimming(name: str) -> Rule:
    """``trim(text)`` or, as Spark orders a call's arguments, ``trim(characters, text)``; the call has text first."""

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count(name, given, 1, 2, position)
        texts = FunctionSignature(name, (STRING, STRING), STRING, optional=1).arguments(given, position)
        return Call(name, tuple(reversed(texts)), STRING, position)

    return rule


def _concat_ws(given: Arguments, position: SqlPosition | None) -> Expr:
    """The separator, then strings and arrays of strings."""
    check_count("concat_ws", given, 1, None, position)
    parts = tuple(
        expr
        if expr.type == _STRINGS
        else implicit(expr, STRING if is_atomic(expr.type) else _STRINGS, position) or expr
        for expr in given[1:]
    )
    separator = FunctionSignature("concat_ws", (STRING,), STRING).arguments(given[:1], position)
    rest = FunctionSignature("concat_ws", ((STRING, _STRINGS),), STRING, optional=1, repeats=True).arguments(
        parts, position
    )
    return Call("concat_ws", separator + rest, STRING, position)


def _locate(given: Arguments, position: SqlPosition | None) -> Expr:
    """``locate(part, text[, from])``; without a start it is ``instr(text, part)``."""
    return FunctionSignature("locate", (STRING, STRING, INT), INT, (Literal(1, INT),))(given, position)


def _overlay(given: Arguments, position: SqlPosition | None) -> Expr:
    """Of two strings, or of two binaries."""
    rule = FunctionSignature("overlay", (_TEXT, _TEXT, INT, INT), same_as(0), (Literal(-1, INT),))
    text, replacement, *places = rule.arguments(given, position)
    if text.type != replacement.type:
        raise SqlTypeError("overlay() does not mix strings with binaries.", position=position)
    return Call("overlay", (text, replacement, *places), text.type, position)


def _mask(given: Arguments, position: SqlPosition | None) -> Expr:
    """A string, and literals of one character each."""
    call = FunctionSignature("mask", (ONLY_STRING,) * 5, STRING, _MASKS)(given, position)
    assert isinstance(call, Call)
    if not all(isinstance(one, Literal) for one in call.arguments[1:]):
        raise SqlTypeError("mask() takes characters as literals.", position=position)
    return call


def _elt(given: Arguments, position: SqlPosition | None) -> Expr:
    """A number, then strings, unless all are binaries."""
    check_count("elt", given, 2, None, position)
    kind = BINARY if all(expr.type == BINARY for expr in given[1:]) else STRING
    return FunctionSignature("elt", (INT, kind), kind, repeats=True)(given, position)


STRINGS: dict[str, Rule] = {
    **{name: FunctionSignature(name, (STRING,), STRING) for name in ("upper", "lower", "initcap")},
    **{name: FunctionSignature(name, (_TEXT,), INT) for name in ("length", "octet_length", "bit_length")},
    **{name: _trimming(name) for name in ("trim", "ltrim", "rtrim")},
    "substring": FunctionSignature("substring", (_TEXT, INT, INT), same_as(0), (Literal(2**31 - 1, INT),)),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "replace": FunctionSignature("replace", (STRING, STRING, STRING), STRING, (Literal("", STRING),)),
    "lpad": FunctionSignature("lpad", (STRING, INT, STRING), STRING, (Literal(" ", STRING),)),
    "rpad": FunctionSignature("rpad", (STRING, INT, STRING), STRING, (Literal(" ", STRING),)),
    "left": FunctionSignature("left", (_TEXT, INT), same_as(0)),
    "right": FunctionSignature("right", (STRING, INT), STRING),
    "instr": FunctionSignature("instr", (STRING, STRING), INT),
    "locate": _locate,
    **{name: FunctionSignature(name, (_TEXT, _TEXT), BOOLEAN) for name in ("startswith", "endswith", "contains")},
    "repeat": FunctionSignature("repeat", (STRING, INT), STRING),
    "space": FunctionSignature("space", (INT,), STRING),
    "split": FunctionSignature("split", (STRING, STRING, INT), _STRINGS, (Literal(-1, INT),)),
    "split_part": FunctionSignature("split_part", (STRING, STRING, INT), STRING),
    "substring_index": FunctionSignature("substring_index", (STRING, STRING, INT), STRING),
    "translate": FunctionSignature("translate", (STRING, STRING, STRING), STRING),
    "ascii": FunctionSignature("ascii", (STRING,), INT),
    "chr": FunctionSignature("chr", (BIGINT,), STRING),
    "regexp_replace": FunctionSignature("regexp_replace", (STRING, STRING, STRING, INT), STRING, (Literal(1, INT),)),
    "regexp_extract": FunctionSignature("regexp_extract", (STRING, STRING, INT), STRING, (Literal(1, INT),)),
    "regexp_extract_all": FunctionSignature("regexp_extract_all", (STRING, STRING, INT), _STRINGS, (Literal(1, INT),)),
    "regexp_count": FunctionSignature("regexp_count", (STRING, STRING), INT),
    "regexp_instr": FunctionSignature("regexp_instr", (STRING, STRING, INT), INT, (Literal(0, INT),)),
    "regexp_substr": FunctionSignature("regexp_substr", (STRING, STRING), STRING),
    "soundex": FunctionSignature("soundex", (ONLY_STRING,), STRING),
    "levenshtein": FunctionSignature("levenshtein", (STRING, STRING, INT), INT, optional=1),
    "luhn_check": FunctionSignature("luhn_check", (STRING,), BOOLEAN),
    "find_in_set": FunctionSignature("find_in_set", (STRING, STRING), INT),
    "overlay": _overlay,
    "quote": FunctionSignature("quote", (STRING,), STRING),
    "mask": _mask,
    "elt": _elt,
}
