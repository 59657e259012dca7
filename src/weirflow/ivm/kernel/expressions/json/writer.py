"""Values as JSON texts, as Jackson writes them for Spark: without blanks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from weirflow.ivm.kernel.expressions.json.reader import Decimal, Fields, Whole
from weirflow.ivm.kernel.expressions.numbers.java_double import FLOAT_BITS, java_text
from weirflow.stack import grows

_SPECIAL = re.compile(r'["\\\x00-\x1f]')
_PAIRS = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def string_text(text: str) -> str:
    """A string in quotes."""
    return f'"{_SPECIAL.sub(_escaped, text)}"'


def _bytes_text(text: str) -> str:
    """A string in quotes as Jackson writes it as bytes: what is two characters in Java, or half of two, is escaped."""
    return _PAIRS.sub(_pair, string_text(text))


def _pair(found: re.Match[str]) -> str:
    if found[0] < "\U00010000":
        return f"\\u{ord(found[0]):04X}"
    high, low = divmod(ord(found[0]) - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04X}\\u{0xDC00 + low:04X}"


def _escaped(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}"


def double_text(number: float, *, single: bool = False) -> str:
    """A number of floating point; what is none is in quotes."""
    if number != number:  # noqa: PLR0124 - NaN
        return '"NaN"'
    if number in (float("inf"), float("-inf")):
        return '"Infinity"' if number > 0 else '"-Infinity"'
    return java_text(number, FLOAT_BITS) if single else java_text(number)


def value_text(value: Any, spell: Callable[[str], str] = _bytes_text) -> str:  # noqa: PLR0911 - each kind of value
    """A value that was read, its strings as ``spell`` has them; numbers with a fraction are those of doubles."""
    if isinstance(value, Whole):
        return str(int(value))
    if isinstance(value, Decimal):
        return double_text(float(value))
    if isinstance(value, str):
        return spell(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    return _container_text(value, spell)


@grows
def _container_text(value: list[Any], spell: Callable[[str], str]) -> str:
    if isinstance(value, Fields):
        return f"{{{','.join(f'{spell(name)}:{value_text(one, spell)}' for name, one in value)}}}"
    return f"[{','.join(value_text(one, spell) for one in value)}]"
