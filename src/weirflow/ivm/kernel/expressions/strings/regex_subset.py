r"""Regular expressions on whose meaning Java and RE2 agree, and their translation: RE2 takes linear time.

Taken: characters, ``.``, classes without nesting, ``\d \w \s`` and their complements, groups, alternatives, greedy and
lazy repetition of what is not empty, ``^``, ``$`` where nothing comes behind it, and ``(?i)`` in front. All else is
refused, for it is read differently by the two, or only by Java; and so is what would be large once it is compiled.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE_ENDS = "\\n\\r\\x{85}\\x{2028}\\x{2029}"
_DOT = f"[^{_LINE_ENDS}]"
_DOLLAR = f"((?:[{_LINE_ENDS}])?)\\z"
_DOLLAR_BEFORE_CRLF = "((?:\\r\\n)?)\\z"
_SHORTHANDS = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0b\f\r"}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ")
_SPECIAL = frozenset("\\^$.|?*+()[{")
_REPETITION = re.compile(r"\{(\d{1,3})(,(\d{0,3}))?\}")
_MAX_REPEAT = 200
_MAX_SIZE = 1000
"""Of all characters and classes with repetitions written out. RE2 looks at no more than this for a byte of a text."""
_MAX_DEPTH = 50
_WIDE = 5
"""What a class costs that is not made of a few ASCII characters."""


class Refused(Exception):
    """The expression is outside of the subset."""


class Translation(NamedTuple):
    """An expression as RE2 reads it.

    Attributes:
        text: for texts that do not end in a carriage return and a line feed.
        before_crlf: for those that do. The two differ in what ``$`` may have behind it.
        groups: the number in RE2 of each of Java's groups, that of the whole match first.
        dollars: the groups, in RE2, that hold what is behind a ``$`` and not part of the match.
        nullable: whether it may match the empty text.
        repeated_groups: whether a capturing group may match more than once.
    """

    text: str
    before_crlf: str
    groups: tuple[int, ...]
    dollars: tuple[int, ...]
    nullable: bool
    repeated_groups: bool


def translated(java: str) -> Translation:
    """The expression's meaning to Java, for RE2; ``Refused`` outside of the subset."""
    fold = java.startswith("(?i)")
    parser = _Parser(java[4:] if fold else java, fold=fold)
    found = parser.alternatives()
    if not parser.at_end():
        raise Refused(java)
    text = found.text.replace(_MARK, _DOLLAR)
    before_crlf = found.text.replace(_MARK, _DOLLAR_BEFORE_CRLF)
    groups, dollars = (0, *parser.groups), tuple(parser.dollars)
    return Translation(text, before_crlf, groups, dollars, found.nullable, parser.repeated_groups)


_MARK = "\0"
"""Stands for ``$`` in what the parser returns; every NUL of the expression itself is written as an escape."""


class _Part(NamedTuple):
    """A part of an expression.

    Attributes:
        text: for RE2.
        nullable: whether it may match the empty text.
        repeatable: whether it may have a quantifier.
        size: once it is compiled.
        dollar: whether it may end in ``$``.
    """

    text: str
    nullable: bool = False
    repeatable: bool = True
    size: int = 1
    dollar: bool = False


class _Parser:
    def __init__(self, text: str, *, fold: bool) -> None:
        self._text = text
        self._at = 0
        self._fold = fold
        self._count = 0
        self._depth = 0
        self.groups: list[int] = []
        self.dollars: list[int] = []
        self.repeated_groups = False

    def at_end(self) -> bool:
        return self._at == len(self._text)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._peek()
        if not character:
            raise Refused(self._text)
        self._at += 1
        return character

    def alternatives(self) -> _Part:
        """Branches up to the end or a closing parenthesis."""
        branches = [self._branch()]
        while self._peek() == "|":
            self._take()
            branches.append(self._branch())
        return _Part(
            "|".join(each.text for each in branches),
            nullable=any(each.nullable for each in branches),
            size=self._bounded(sum(each.size for each in branches)),
            dollar=any(each.dollar for each in branches),
        )

    def _branch(self) -> _Part:
        parts: list[_Part] = []
        while not self.at_end() and self._peek() not in "|)":
            if parts and parts[-1].dollar:
                raise Refused(self._text)
            parts.append(self._piece())
        return _Part(
            "".join(each.text for each in parts),
            nullable=all(each.nullable for each in parts),
            size=self._bounded(sum(each.size for each in parts) + 1),
            dollar=bool(parts) and parts[-1].dollar,
        )

    def _bounded(self, size: int) -> int:
        if size > _MAX_SIZE:
            raise Refused(self._text)
        return size

    def _piece(self) -> _Part:
        groups = len(self.groups)
        atom = self._atom()
        suffix, least, most = self._quantifier()
        if not suffix:
            return atom
        optional = suffix in ("?", "??")
        if atom.nullable or not atom.repeatable or (atom.dollar and not optional):
            raise Refused(self._text)
        if len(self.groups) > groups and not optional:
            self.repeated_groups = True
        size = self._bounded(atom.size * most)
        return atom._replace(text=atom.text + suffix, nullable=least == 0, size=size)

    def _quantifier(self) -> tuple[str, int, int]:
        """What is written, how often it matches at least, and how often it is written out."""
        most = 1
        character = self._peek()
        if character and character in "*+?":
            suffix, least = self._take(), int(character == "+")
        elif character == "{":
            found = _REPETITION.match(self._text, self._at)
            if not found or max(int(found[1]), int(found[3] or 0)) > _MAX_REPEAT:
                raise Refused(self._text)
            if found[3] and int(found[3]) < int(found[1]):
                raise Refused(self._text)
            self._at = found.end()
            suffix, least = found[0], int(found[1])
            most = max(int(found[3] or 0), least + 1)
            if suffix in ("{0}", "{0,0}"):
                raise Refused(self._text)
        else:
            return "", 1, 1
        if self._peek() == "?":
            suffix += self._take()
        if self._peek() and self._peek() in "*+?{":
            raise Refused(self._text)
        return suffix, least, most

    def _atom(self) -> _Part:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "^":
            return _Part(r"\A", nullable=True, repeatable=False)
        if character == "$":
            self._count += 1
            self.dollars.append(self._count)
            return _Part(_MARK, nullable=True, repeatable=False, size=2 * _WIDE, dollar=True)
        return _sized(self._character(character))

    def _character(self, character: str) -> str:
        if character == "[":
            return self._class()
        if character == ".":
            return _DOT
        if character == "\\":
            return self._escape()
        if character in _SPECIAL:
            raise Refused(self._text)
        return self._literal(character)

    def _group(self) -> _Part:
        opening = "("
        if self._peek() == "?":
            if self._text[self._at : self._at + 2] != "?:":
                raise Refused(self._text)
            self._at += 2
            opening = "(?:"
        else:
            self._count += 1
            self.groups.append(self._count)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Refused(self._text)
        inside = self.alternatives()
        self._depth -= 1
        if self._take() != ")":
            raise Refused(self._text)
        return inside._replace(text=f"{opening}{inside.text})")

    def _escape(self) -> str:
        character = self._take()
        if character in _SHORTHANDS:
            return f"[{_SHORTHANDS[character]}]"
        if character.lower() in _SHORTHANDS:
            return f"[^{_SHORTHANDS[character.lower()]}]"
        return self._literal(self._escaped(character))

    def _escaped(self, character: str) -> str:
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character in _PUNCTUATION:
            return character
        raise Refused(self._text)

    def _literal(self, character: str) -> str:
        if self._fold and character.isascii() and character.isalpha():
            return f"[{character.lower()}{character.upper()}]"
        return _quoted(character)

    def _class(self) -> str:
        parts = []
        negated = self._peek() == "^"
        if negated:
            self._take()
        if self._peek() in ("", "]"):
            raise Refused(self._text)
        if self._peek() == "-":
            parts.append(_quoted(self._take()))
        while self._peek() != "]":
            parts.append(self._class_item())
        self._take()
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _class_item(self) -> str:
        character = self._take()
        if character == "\\":
            character = self._take()
            if character in _SHORTHANDS:
                return _SHORTHANDS[character]
            low = self._escaped(character)
        elif character in "[^" or (character == "-" and self._peek() != "]") or self._is_intersection(character):
            raise Refused(self._text)
        else:
            low = character
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] == "]":
            return self._both_cases(low, low)
        self._take()
        high = self._take()
        if high == "\\":
            high = self._escaped(self._take())
        elif high in "[]&^-":
            raise Refused(self._text)
        if high < low:
            raise Refused(self._text)
        return self._both_cases(low, high)

    def _is_intersection(self, character: str) -> bool:
        """To Java two ampersands are one; a single one is itself."""
        return character + self._peek() == "&&"

    def _both_cases(self, low: str, high: str) -> str:
        spelled = _quoted(low) if low == high else f"{_quoted(low)}-{_quoted(high)}"
        if not self._fold:
            return spelled
        letters = [chr(code) for code in range(ord(low), min(ord(high), 127) + 1) if chr(code).isalpha()]
        return spelled + "".join(letter.swapcase() for letter in letters)


def _sized(text: str) -> _Part:
    return _Part(text, size=_WIDE if text.startswith("[^") or not text.isascii() else 1)


def _quoted(character: str) -> str:
    if character.isascii() and not character.isalnum():
        return f"\\x{ord(character):02x}"
    return character
