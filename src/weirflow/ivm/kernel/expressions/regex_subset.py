r"""Regular expressions on whose meaning Java, RE2 and Python agree, and their translation.

Taken: characters, ``.``, classes without nesting, ``\d \w \s`` and their complements, groups, alternatives, greedy and
lazy repetition of what is not empty, ``^`` and ``$``, and ``(?i)`` in front. All else is refused, for it is read
differently by some of the three, or only by Java.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_ENDS = "\\n\\r\\x85\\u2028\\u2029"
_DOT = f"[^{_LINE_ENDS}]"
_DOLLAR = r"(?=(?:\r\n|(?<!\r)\n|[\r\x85\u2028\u2029])?\Z)"
_SHORTHANDS = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0b\f\r"}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ")
_SPECIAL = frozenset("\\^$.|?*+()[{")
_REPETITION = re.compile(r"\{(\d{1,3})(,(\d{0,3}))?\}")
_MAX_REPEAT = 200


class Refused(Exception):
    """The expression is outside of the subset."""


@dataclass(frozen=True)
class Expression:
    """A translated expression.

    Attributes:
        pattern: for Python's ``re``.
        groups: how many capturing groups it has.
        nullable: whether it may match the empty text.
        fast: the same for RE2, or None if it cannot be said there.
        repeated_groups: whether a capturing group may match more than once.
    """

    pattern: re.Pattern[str]
    groups: int
    nullable: bool
    fast: str | None
    repeated_groups: bool


def translate(java: str) -> Expression:
    """The expression's meaning to Java, for Python and RE2; ``Refused`` outside of the subset."""
    fold = java.startswith("(?i)")
    parser = _Parser(java[4:] if fold else java, fold=fold)
    text, nullable = parser.alternatives()
    if not parser.at_end():
        raise Refused(java)
    fast = None if parser.has_dollar else _for_re2(text)
    return Expression(re.compile(text), parser.groups, nullable, fast, parser.repeated_groups)


def _for_re2(text: str) -> str:
    for code in ("85", "2028", "2029"):
        text = text.replace(f"\\u{code}" if len(code) > 2 else f"\\x{code}", f"\\x{{{code}}}")  # noqa: PLR2004
    return text


class _Parser:
    def __init__(self, text: str, *, fold: bool) -> None:
        self._text = text
        self._at = 0
        self._fold = fold
        self.groups = 0
        self.has_dollar = False
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

    def alternatives(self) -> tuple[str, bool]:
        """Branches up to the end or a closing parenthesis, and whether one of them may be empty."""
        branches = [self._branch()]
        while self._peek() == "|":
            self._take()
            branches.append(self._branch())
        return "|".join(text for text, _ in branches), any(nullable for _, nullable in branches)

    def _branch(self) -> tuple[str, bool]:
        parts, empty = [], True
        while not self.at_end() and self._peek() not in "|)":
            text, nullable = self._piece()
            parts.append(text)
            empty = empty and nullable
        return "".join(parts), empty

    def _piece(self) -> tuple[str, bool]:
        groups = self.groups
        text, nullable, repeatable = self._atom()
        suffix, least = self._quantifier()
        if not suffix:
            return text, nullable
        if nullable or not repeatable:
            raise Refused(self._text)
        if self.groups > groups and suffix not in ("?", "??"):
            self.repeated_groups = True
        return text + suffix, least == 0

    def _quantifier(self) -> tuple[str, int]:
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
            if suffix in ("{0}", "{0,0}"):
                raise Refused(self._text)
        else:
            return "", 1
        if self._peek() == "?":
            suffix += self._take()
        if self._peek() and self._peek() in "*+?{":
            raise Refused(self._text)
        return suffix, least

    def _atom(self) -> tuple[str, bool, bool]:  # noqa: PLR0911 - one for each kind
        """The text, whether it may be empty, whether it may be repeated."""
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return self._class(), False, True
        if character == ".":
            return _DOT, False, True
        if character == "^":
            return r"\A", True, False
        if character == "$":
            self.has_dollar = True
            return _DOLLAR, True, False
        if character == "\\":
            return self._escape(), False, True
        if character in _SPECIAL:
            raise Refused(self._text)
        return self._literal(character), False, True

    def _group(self) -> tuple[str, bool, bool]:
        opening = "("
        if self._peek() == "?":
            if self._text[self._at : self._at + 2] != "?:":
                raise Refused(self._text)
            self._at += 2
            opening = "(?:"
        else:
            self.groups += 1
        text, nullable = self.alternatives()
        if self._take() != ")":
            raise Refused(self._text)
        return f"{opening}{text})", nullable, True

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
        elif character in "[&^" or (character == "-" and self._peek() != "]"):
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

    def _both_cases(self, low: str, high: str) -> str:
        spelled = _quoted(low) if low == high else f"{_quoted(low)}-{_quoted(high)}"
        if not self._fold:
            return spelled
        letters = [chr(code) for code in range(ord(low), min(ord(high), 127) + 1) if chr(code).isalpha()]
        return spelled + "".join(letter.swapcase() for letter in letters)


def _quoted(character: str) -> str:
    if character.isascii() and not character.isalnum():
        return f"\\x{ord(character):02x}"
    return character
