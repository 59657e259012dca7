"""Tests of texts: for what they begin with, end with or contain, and by LIKE patterns.

In a pattern ``%`` is any text, ``_`` any code point, and an escape character takes their meaning away.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import DataError, SqlPosition
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.expressions.failures import failure, shown
from weirflow.ivm.kernel.expressions.rows import on_arrays
from weirflow.ivm.kernel.expressions.strings import letters
from weirflow.ivm.kernel.expressions.strings.texts import are_texts, constants, first_only, in_slices, one_by_one

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.rows import Value
    from weirflow.ivm.kernel.expressions.signature import CallSignature, Kernel


TESTS: dict[str, tuple[Kernel, Callable[[Any, Any], bool]]] = {
    "startswith": (pc.starts_with, lambda text, part: text.startswith(part)),
    "endswith": (pc.ends_with, lambda text, part: text.endswith(part)),
    "contains": (pc.match_substring, lambda text, part: part in text),
}


def contains(signature: CallSignature) -> Kernel | None:
    """``startswith``, ``endswith`` and ``contains``."""
    if not are_texts(signature, 2, binary=True):
        return None
    by_arrow, by_python = TESTS[signature.function]
    known = constants(signature, 1)
    if known is None:
        return one_by_one(by_python, pa.bool_())
    part = known[0]
    return first_only(lambda texts: by_arrow(texts, pattern=part))


def like(signature: CallSignature) -> Kernel | None:
    """``LIKE`` and ``ILIKE``, with an escape character (a backslash unless given)."""
    if not are_texts(signature, len(signature.types)):
        return None
    escape = constants(signature, 2)
    if escape is None:
        return None
    escape_character = escape[0] if escape else "\\"
    lowered = signature.function == "ilike"
    known = constants(signature, 1)
    if known is None:
        return _varying(escape_character, signature.position, lowered=lowered)
    pattern = letters.lower(known[0]) if lowered else known[0]
    matcher = _matcher(pattern, escape_character)
    if matcher is None:
        return None
    if not lowered:
        return first_only(matcher)
    lower = one_by_one(letters.lower, pa.string())
    return first_only(lambda texts: matcher(lower(texts)))


class Piece(NamedTuple):
    """A piece of a pattern: literal text, or (without text) the wildcard."""

    text: str
    wildcard: str = ""


def _matcher(pattern: str, escape: str) -> Callable[[Value], Value] | None:
    """A test of texts against one pattern; None if it is malformed, for which Spark refuses the whole query."""
    try:
        pieces = _pieces(pattern, escape, None)
    except DataError:
        return None
    return _by_arrow(pieces) if len(pattern) <= _LONGEST else one_by_one(Like(pieces).matches, pa.bool_())


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
    return on_arrays(in_slices(lambda texts: pc.match_substring_regex(texts, pattern=expression)))


def _quoted(text: str) -> str:
    """Text that RE2 reads as itself."""
    return "".join(f"\\x{ord(each):02x}" if each.isascii() and not each.isalnum() else each for each in text)


_ESCAPED = {"%": ".*", "_": "."}
_LONGEST = 500
"""Of patterns that are left to RE2, whose time for a text grows with the pattern."""


def _varying(escape: str, position: SqlPosition | None, *, lowered: bool) -> Kernel:
    """A test of texts against a pattern of each row's own."""

    @functools.lru_cache(maxsize=256)
    def compiled(pattern: str) -> Like:
        return Like(_pieces(pattern, escape, position))

    def matches(text: str, pattern: str, _: str = "") -> bool:
        if lowered:
            text, pattern = letters.lower(text), letters.lower(pattern)
        return compiled(pattern).matches(text)

    return one_by_one(matches, pa.bool_())


class _Stretch:
    """What is between two ``%``: texts at their places, and how long it is with every ``_``."""

    __slots__ = ("_places", "length")

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._places: list[tuple[int, str]] = []
        self.length = 0
        for piece in pieces:
            if piece.text:
                self._places.append((self.length, piece.text))
            self.length += len(piece.text) or 1

    def is_at(self, text: str, start: int) -> bool:
        return all(text.startswith(part, start + place) for place, part in self._places)

    def find(self, text: str, start: int, end: int) -> int:
        """The first place from ``start`` on where it is, and ends before ``end``; -1 if it is nowhere."""
        if not self._places:
            return start if start + self.length <= end else -1
        place, first = self._places[0]
        while (found := text.find(first, start + place, end)) >= 0:
            start = found - place
            if start + self.length > end:
                return -1
            if self.is_at(text, start):
                return start
            check()
            start += 1
        return -1


class Like:
    """A pattern, matched stretch by stretch, each where it is found first: nothing is tried twice."""

    __slots__ = ("_stretches",)

    def __init__(self, pieces: Sequence[Piece]) -> None:
        stretches: list[list[Piece]] = [[]]
        for piece in pieces:
            if piece.wildcard == "%":
                stretches.append([])
            elif piece.wildcard or piece.text:
                stretches[-1].append(piece)
        self._stretches = [_Stretch(each) for each in stretches]

    def matches(self, text: str) -> bool:
        """Whether the whole text is as the pattern says."""
        first, *others = self._stretches
        if not others:
            return len(text) == first.length and first.is_at(text, 0)
        *inner, last = others
        start, end = first.length, len(text) - last.length
        if start > end or not first.is_at(text, 0) or not last.is_at(text, end):
            return False
        for stretch in inner:
            found = stretch.find(text, start, end)
            if found < 0:
                return False
            start = found + stretch.length
        return True


def _pieces(pattern: str, escape: str, position: SqlPosition | None) -> list[Piece]:
    pieces: list[Piece] = []
    text: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                raise failure(
                    "INVALID_FORMAT.ESC_AT_THE_END", f"The pattern {shown(pattern)!r} ends in its escape.", position
                )
            if following not in ("%", "_", escape):
                message = f"The pattern {shown(pattern)!r} escapes {following!r}, which needs no escape."
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
