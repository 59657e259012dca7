"""LIKE patterns: ``%`` is any text, ``_`` any code point, and an escape character takes their meaning away."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions import letters
from weirflow.ivm.kernel.expressions.failures import failure
from weirflow.ivm.kernel.expressions.texts import one_by_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirflow.errors import SqlPosition
    from weirflow.ivm.kernel.expressions.rows import Value
    from weirflow.ivm.kernel.expressions.signature import Kernel


class Piece(NamedTuple):
    """A piece of a pattern: literal text, or (without text) the wildcard."""

    text: str
    wildcard: str = ""


def matcher(pattern: str, escape: str) -> Callable[[Value], Value] | None:
    """A test of texts against one pattern; None if it is malformed, for which Spark refuses the whole query."""
    try:
        pieces = _pieces(pattern, escape, None)
    except DataError:
        return None
    return _by_arrow(pieces)


def _by_arrow(pieces: list[Piece]) -> Callable[[Value], Value]:
    shape = [piece.wildcard or "text" for piece in pieces]
    if shape == ["text"]:
        whole = pa.scalar(pieces[0].text)
        return lambda texts: pc.equal(texts, whole)
    if shape == ["text", "%"]:
        return lambda texts: pc.starts_with(texts, pattern=pieces[0].text)
    if shape == ["%", "text"]:
        return lambda texts: pc.ends_with(texts, pattern=pieces[1].text)
    if shape == ["%", "text", "%"]:
        return lambda texts: pc.match_substring(texts, pattern=pieces[1].text)
    expression = "(?s)\\A" + "".join(_ESCAPED.get(piece.wildcard) or _quoted(piece.text) for piece in pieces) + "\\z"
    return lambda texts: pc.match_substring_regex(texts, pattern=expression)


def _quoted(text: str) -> str:
    """Text that RE2 reads as itself."""
    return "".join(f"\\x{ord(each):02x}" if each.isascii() and not each.isalnum() else each for each in text)


_ESCAPED = {"%": ".*", "_": "."}


def varying(escape: str, position: SqlPosition | None, *, lowered: bool) -> Kernel:
    """A test of texts against a pattern of each row's own."""

    @functools.lru_cache(maxsize=256)
    def compiled(pattern: str) -> re.Pattern[str]:
        pieces = _pieces(pattern, escape, position)
        return re.compile("".join(_ESCAPED.get(piece.wildcard) or re.escape(piece.text) for piece in pieces), re.DOTALL)

    def matches(text: str, pattern: str, _: str = "") -> bool:
        if lowered:
            text, pattern = letters.lower(text), letters.lower(pattern)
        return compiled(pattern).fullmatch(text) is not None

    return one_by_one(matches, pa.bool_())


def _pieces(pattern: str, escape: str, position: SqlPosition | None) -> list[Piece]:
    pieces: list[Piece] = []
    text: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                raise failure("INVALID_FORMAT.ESC_AT_THE_END", f"The pattern {pattern!r} ends in its escape.", position)
            if following not in ("%", "_", escape):
                message = f"The pattern {pattern!r} escapes {following!r}, which needs no escape."
                raise failure("INVALID_FORMAT.ESC_IN_THE_MIDDLE", message, position)
            text.append(following)
        elif character in "%_":
            if text:
                pieces.append(Piece("".join(text)))
                text = []
            if not (character == "%" and pieces and pieces[-1].wildcard == "%"):
                pieces.append(Piece("", character))
        else:
            text.append(character)
    if text or not pieces:
        pieces.append(Piece("".join(text)))
    return pieces
