"""JSON texts to values, as Jackson reads them for Spark: what follows the first value is not looked at.

Python's own reader is fast and reads almost the same; what it refuses is tried again by a slower one that also takes
single quotes and infinities with a sign.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from weirflow.stack import grows

_DEEPEST = 1_000
_LONGEST_NUMBER = 1_000
_BLANKS = " \t\n\r"
_HALVES = re.compile("[\ud800-\udfff]")
_BLANK = re.compile(r"[ \t\n\r]*+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][+-]?[0-9]++)?")
_WORD = re.compile("Infinity|NaN|[+-](?:Infinity|INF)")
_ODD = re.compile("'|[+-]I")
"""What Python's reader refuses and Jackson may take."""
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PLAIN = {
    quote: {
        True: re.compile(rf"[^\\{quote}]*+", re.DOTALL),
        False: re.compile(rf"[^\\{quote}\x00-\x1f]*+"),
    }
    for quote in "\"'"
}


class Malformed(Exception):
    """A text is no JSON."""


class Whole(str):
    """A number without a fraction or exponent, as it is written."""

    __slots__ = ()


class Decimal(str):
    """A number with a fraction or an exponent, as it is written."""

    __slots__ = ()


class Fields(list[tuple[str, Any]]):
    """An object: its names and values, in order; a name may be there twice."""

    __slots__ = ()


class _NotANumber(float):
    """NaN, or an infinity, as a word."""

    __slots__ = ()


def _whole(text: str) -> Whole:
    return Whole(_short(text))


def _decimal(text: str) -> Decimal:
    return Decimal(_short(text))


def _short(text: str) -> str:
    if len(text) > _LONGEST_NUMBER:
        raise Malformed(text)
    return text


def _refuse(text: str) -> Any:
    raise Malformed(text)


def _malformed(text: str) -> NoReturn:
    raise Malformed(text)


def _decoder(*, words: bool, controls: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=Fields,
        parse_int=_whole,
        parse_float=_decimal,
        parse_constant=_NotANumber if words else _refuse,
        strict=not controls,
    )


def whole(text: str) -> str:
    r"""A string as Spark makes it a value: with a question mark for each half of a character.

    >>> whole("a\ud83d")
    'a?'
    """
    if text.isascii() or not _HALVES.search(text):
        return text
    return _HALVES.sub("?", text)


class JsonReader:
    """Reads the first value of a text.

    Args:
        words: whether NaN and infinities are numbers.
        controls: whether control characters may be in strings as they are.
    """

    def __init__(self, *, words: bool, controls: bool) -> None:
        self._words = words
        self._controls = controls
        self._decoder: Final = _decoder(words=words, controls=controls)

    def __call__(self, text: str) -> Any:
        """The value; ``Malformed`` if there is none.

        Strings may have halves of characters, which JSON writes as escapes: see ``whole``.
        """
        try:
            start = len(text) - len(text.lstrip(_BLANKS))
            value, end = self._decoder.raw_decode(text, start)
        except (json.JSONDecodeError, StopIteration):
            value, end = self._slowly(text) if _ODD.search(text) else _malformed(text)
        except RecursionError:
            value, end = self._slowly(text)
        _require_end(value, text, end)
        if text.count("[") + text.count("{") > _DEEPEST and _is_too_deep(value):
            raise Malformed(text)
        return value

    def _slowly(self, text: str) -> tuple[Any, int]:
        try:
            return _Slow(text, words=self._words, controls=self._controls).value(0)
        except IndexError:
            raise Malformed(text) from None


def _require_end(value: Any, text: str, end: int) -> None:
    """A number ends with a blank, a word does not go on; behind all else anything may follow."""
    behind = text[end : end + 1]
    if not behind or behind in _BLANKS:
        return
    goes_on = behind.isalnum() or behind in "_$"
    if isinstance(value, Whole | Decimal | _NotANumber) or (goes_on and (value is None or isinstance(value, bool))):
        raise Malformed(text)


def _is_too_deep(value: Any) -> bool:
    """Whether more objects and arrays are inside each other than Jackson reads."""
    depth, level = 0, [value] if isinstance(value, list) else []
    while level and depth <= _DEEPEST:
        inside = [inner for one in level for inner in ((pair[1] for pair in one) if isinstance(one, Fields) else one)]
        level = [inner for inner in inside if isinstance(inner, list)]
        depth += 1
    return depth > _DEEPEST


class _Slow:
    """Reads a text character by character."""

    def __init__(self, text: str, *, words: bool, controls: bool) -> None:
        self._text = text
        self._words = words
        self._controls = controls
        self._depth = 0

    def value(self, at: int) -> tuple[Any, int]:
        at, text = self._behind_blanks(at), self._text
        first = text[at]
        if first in "{[":
            return self._inside(at + 1, self._object if first == "{" else self._array)
        if first in "\"'":
            return self._string(at)
        for word, value in (("true", True), ("false", False), ("null", None)):
            if text.startswith(word, at):
                return value, at + len(word)
        found = _WORD.match(text, at) if self._words else None
        if found is not None:
            return _NotANumber(found[0]), found.end()
        number = _NUMBER.match(text, at)
        if number is None:
            raise Malformed(text)
        is_whole = number[1] is None and number[2] is None
        return (_whole if is_whole else _decimal)(number[0]), number.end()

    @grows
    def _inside(self, at: int, read: Callable[[int], tuple[Any, int]]) -> tuple[Any, int]:
        if self._depth == _DEEPEST:
            raise Malformed(self._text)
        self._depth += 1
        found = read(at)
        self._depth -= 1
        return found

    def _behind_blanks(self, at: int) -> int:
        found = _BLANK.match(self._text, at)
        assert found is not None, "there may be none"
        return found.end()

    def _object(self, at: int) -> tuple[Fields, int]:
        fields = Fields()
        at = self._behind_blanks(at)
        if self._text[at] == "}":
            return fields, at + 1
        while True:
            at = self._behind_blanks(at)
            if self._text[at] not in "\"'":
                raise Malformed(self._text)
            name, at = self._string(at)
            at = self._behind_blanks(at)
            if self._text[at] != ":":
                raise Malformed(self._text)
            value, at = self.value(at + 1)
            fields.append((name, value))
            at = self._behind_blanks(at)
            if self._text[at] == "}":
                return fields, at + 1
            if self._text[at] != ",":
                raise Malformed(self._text)
            at += 1

    def _array(self, at: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        at = self._behind_blanks(at)
        if self._text[at] == "]":
            return values, at + 1
        while True:
            value, at = self.value(at)
            values.append(value)
            at = self._behind_blanks(at)
            if self._text[at] == "]":
                return values, at + 1
            if self._text[at] != ",":
                raise Malformed(self._text)
            at += 1

    def _string(self, at: int) -> tuple[str, int]:
        quote, at, pieces = self._text[at], at + 1, []
        plain = _PLAIN[quote][self._controls]
        while True:
            found = plain.match(self._text, at)
            assert found is not None, "it may be empty"
            pieces.append(found[0])
            at = found.end()
            if self._text[at] == quote:
                # Halves of characters, written apart, are one.
                joined = "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
                return joined, at + 1
            if self._text[at] != "\\":
                raise Malformed(self._text)
            escape = self._text[at + 1]
            if escape == "u":
                digits = self._text[at + 2 : at + 6]
                if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                    raise Malformed(self._text)
                pieces.append(chr(int(digits, 16)))
                at += 6
            elif escape in _ESCAPES:
                pieces.append(_ESCAPES[escape])
                at += 2
            else:
                raise Malformed(self._text)


LENIENT = JsonReader(words=False, controls=True)
"""For functions that take a text apart."""
OF_RECORDS = JsonReader(words=True, controls=False)
"""For ``from_json``."""
