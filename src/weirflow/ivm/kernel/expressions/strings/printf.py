"""``format_string``: Java's formats, of constant texts and of the conversions that mean a value of its type."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from weirflow.ivm.kernel.expressions.numbers.decimal_words import scientific_text
from weirflow.ivm.kernel.expressions.numbers.java_double import java_text
from weirflow.ivm.kernel.expressions.numbers.java_format import fixed, scientific
from weirflow.ivm.kernel.expressions.strings.texts import growing

if TYPE_CHECKING:
    from decimal import Decimal

    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

    Write = Callable[[Any], str]

_SPECIFIER = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(<]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")
_WIDEST = 1_000
_INTEGERS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_FLOATS = (pa.float32(), pa.float64())


class _Specifier(NamedTuple):
    """How one argument is written."""

    argument: int
    flags: str
    width: int
    precision: int | None
    conversion: str


def format_string(signature: CallSignature) -> Kernel | None:
    """``format_string(format, ...)``: a NULL among the others is written as ``null``."""
    pattern = signature.constants[0]
    if signature.types[0] != pa.string() or pattern is None or not pattern.is_valid:
        return None
    parts = _parsed(pattern.as_py(), signature.types[1:])
    if parts is None:
        return None

    def written(_: str, *values: Any) -> str:
        return "".join(part if isinstance(part, str) else part[1](values[part[0]]) for part in parts)

    return growing(written, signature, strict=False)


def _parsed(text: str, types: Sequence[pa.DataType]) -> list[str | tuple[int, Write]] | None:
    """Texts, and the places of arguments with how they are written; None for what is left to Java."""
    parts: list[str | tuple[int, Write]] = []
    end = ordinary = 0
    while (start := text.find("%", end)) >= 0:
        found = _SPECIFIER.match(text, start)
        if found is None or "<" in found[2]:
            return None
        parts.append(text[end:start])
        end = found.end()
        if found[5] in "%n":
            if found[0] not in ("%%", "%n"):
                return None
            parts.append("%" if found[5] == "%" else "\n")
            continue
        place = int(found[1]) - 1 if found[1] else ordinary
        ordinary += 0 if found[1] else 1
        if not 0 <= place < len(types):
            return None
        precision = None if found[4] is None else int(found[4])
        one = _Specifier(place, found[2], int(found[3] or 0), precision, found[5])
        write = _writer(one, types[place])
        if write is None:
            return None
        parts.append((place, write))
    return [*parts, text[end:]]


def _writer(one: _Specifier, kind: pa.DataType) -> Write | None:
    flags = set(one.flags)
    if len(flags) != len(one.flags) or max(one.width, one.precision or 0) > _WIDEST:
        return None
    if (flags & {"-", "0"} and not one.width) or {"-", "0"} <= flags or {"+", " "} <= flags:
        return None
    if one.conversion in "sSbB":
        return _of_text(one, kind)
    if one.conversion in "dxXo":
        return _of_integer(one, kind)
    return _of_double(one, kind) if one.conversion in "feE" else None


def _of_text(one: _Specifier, kind: pa.DataType) -> Write | None:
    if set(one.flags) - {"-"}:
        return None
    shown: Write | None = _is_there(kind) if one.conversion in "bB" else _TEXTS.get(kind)
    if one.conversion in "sS" and pa.types.is_decimal(kind):
        shown = _decimal
    if shown is None:
        return None
    show, upper = shown, one.conversion.isupper()

    def write(value: Any) -> str:
        text = show(value) if value is not None else "false" if one.conversion in "bB" else "null"
        if one.precision is not None:
            text = _cut(text, one.precision)
        return _padded(text.upper() if upper else text, one)

    return write if not upper or kind != pa.string() else None


def _decimal(value: Decimal) -> str:
    negative, digits, exponent = value.as_tuple()
    size = int("".join(map(str, digits)))
    return scientific_text(-size if negative else size, -int(exponent))


def _is_there(kind: pa.DataType) -> Write:
    return (lambda value: str(value).lower()) if kind == pa.bool_() else (lambda _: "true")


_TEXTS: dict[pa.DataType, Write] = {
    pa.string(): str,
    pa.bool_(): lambda value: str(value).lower(),
    **dict.fromkeys(_INTEGERS, str),
    pa.float64(): java_text,
    pa.float32(): lambda value: java_text(value, 24),
}


def _of_integer(one: _Specifier, kind: pa.DataType) -> Write | None:
    if kind not in _INTEGERS or one.precision is not None:
        return None
    if one.conversion != "d":
        return _of_bits(one, _INTEGERS[kind])
    if "#" in one.flags:
        return None
    separator = "," if "," in one.flags else ""
    return lambda value: _null(one) if value is None else _signed(format(abs(value), separator), value < 0, one)


def _of_bits(one: _Specifier, bits: int) -> Write | None:
    """The bits of an integer without a sign, in base 16 or 8."""
    if set(one.flags) - {"-", "0", "#"}:
        return None
    prefix = ("0" if one.conversion == "o" else "0x") if "#" in one.flags else ""

    def write(value: Any) -> str:
        if value is None:
            return _null(one)
        digits = format(value & ((1 << bits) - 1), one.conversion.lower())
        zeros = "0" * (one.width - len(prefix) - len(digits)) if "0" in one.flags else ""
        text = prefix + zeros + digits
        return _padded(text.upper() if one.conversion == "X" else text, one)

    return write


def _of_double(one: _Specifier, kind: pa.DataType) -> Write | None:
    if kind not in _FLOATS or "#" in one.flags or (one.conversion in "eE" and "," in one.flags):
        return None
    places = 6 if one.precision is None else one.precision
    grouped = "," in one.flags

    def write(value: Any) -> str:
        if value is None:
            return _null(one)
        if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
            return _unbounded(value, one)
        if one.conversion == "f":
            digits = fixed(abs(value), places)
            whole, point, rest = digits.partition(".")
            digits = (format(int(whole), ",") if grouped else whole) + point + rest
        else:
            digits = scientific(abs(value), places)
        text = _signed(digits, value < 0 or str(value).startswith("-"), one)
        return text.upper() if one.conversion == "E" else text

    return write


def _unbounded(value: float, one: _Specifier) -> str:
    """NaN and the infinities, which have no zeros before them."""
    plain = one._replace(flags=one.flags.replace("0", ""))
    text = "NaN" if value != value else _signed("Infinity", value < 0, plain._replace(width=0))  # noqa: PLR0124 - NaN
    return _padded(text.upper() if one.conversion == "E" else text, plain)


def _signed(digits: str, negative: bool, one: _Specifier) -> str:  # noqa: FBT001 - one of the two
    before, behind = "", ""
    if negative:
        before, behind = ("(", ")") if "(" in one.flags else ("-", "")
    elif "+" in one.flags or " " in one.flags:
        before = "+" if "+" in one.flags else " "
    if "0" in one.flags:
        digits = digits.rjust(one.width - len(before) - len(behind), "0")
    return _padded(before + digits + behind, one)


def _null(one: _Specifier) -> str:
    text = "null"[: one.precision] if one.conversion in "feE" and one.precision is not None else "null"
    return _padded(text.upper() if one.conversion.isupper() else text, one)


def _cut(text: str, size: int) -> str:
    """The first so many of Java's characters; half of one that is two of them is a question mark."""
    kept = text.encode("utf-16-le")[: 2 * size].decode("utf-16-le", "surrogatepass")
    return kept.encode(errors="replace").decode()


def _padded(text: str, one: _Specifier) -> str:
    """To its width, in Java's characters."""
    missing = one.width - len(text.encode("utf-16-le")) // 2
    return text + " " * missing if "-" in one.flags else " " * missing + text


FUNCTIONS: dict[str, Builder] = {"format_string": format_string}
