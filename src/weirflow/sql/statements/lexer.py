"""``Lexer``: the words and signs of a statement, one after the other, none before it is asked for.

sqlglot's tokenizer (``weirflow.sql.syntax.parse``) reads a statement whole, up to a length, and takes for one string
what follows some first words. Whose a statement is must be known from its beginning, of any text that Spark may
understand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

# What is not closed goes on to the end, so that no character is read again and again.
_LEXEME = re.compile(
    r"""\s++ | --(?:\\\n|[^\r\n])*+ | (?P<comment>/\*)
    | (?P<text>[rR]'[^']*+' | [rR]"[^"]*+" | '(?:[^'\\]++|\\.)*+' | "(?:[^"\\]++|\\.)*+")
    | (?P<quoted>`(?:[^`]++|``)*+`) | (?P<open>['"`].*) | (?P<word>\w++) | (?P<sign>[<>=!]=|.)""",
    re.DOTALL | re.VERBOSE,
)
_EDGE_OF_COMMENT = re.compile(r"/\*|\*/")


class LexemeKind(Enum):
    """What a lexeme is."""

    WORD = auto()
    QUOTED = auto()
    """A name in backticks."""
    TEXT = auto()
    SIGN = auto()
    OPEN = auto()
    """All that is left, for it begins with a quote or a comment that is not closed; Spark may see its end elsewhere."""


class Lexeme(NamedTuple):
    """A word or a sign, and where it begins."""

    kind: LexemeKind
    text: str
    start: int

    @property
    def plain(self) -> str:
        """The word, in capitals, or the sign; empty for what is in quotes."""
        return self.text.upper() if self.kind in (LexemeKind.WORD, LexemeKind.SIGN) else ""

    @property
    def name(self) -> str:
        """The identifier that it is; empty if it is none."""
        if self.kind is LexemeKind.QUOTED:
            return self.text[1:-1].replace("``", "`")
        return self.text if self.kind is LexemeKind.WORD and not self.text.isdigit() else ""


_KINDS = {kind.name.lower(): kind for kind in LexemeKind}


class Lexer:
    """A place in a statement."""

    def __init__(self, sql: str, start: int = 0) -> None:
        self._left = _lexemes(sql, start)
        self._ahead: list[Lexeme] = []

    def __iter__(self) -> Iterator[Lexeme]:
        """Read all that is left."""
        while self._look(1):
            yield self._ahead.pop(0)

    @property
    def at_end(self) -> bool:
        """Whether everything was read."""
        return not self._look(1)

    def sees(self, *words: str) -> bool:
        """Whether these words or signs come next."""
        return self._look(len(words)) and all(one.plain == word for one, word in zip(self._ahead, words, strict=False))

    def sees_text(self) -> bool:
        """Whether a text in quotes comes next."""
        return self._look(1) and self._ahead[0].kind is LexemeKind.TEXT

    def accept(self, *words: str) -> bool:
        """Read these words or signs if all of them come next."""
        found = self.sees(*words)
        if found:
            del self._ahead[: len(words)]
        return found

    def skip(self, sign: str) -> bool:
        """Read this sign as often as it comes; whether it came."""
        found = self.accept(sign)
        while found and self.accept(sign):
            pass
        return found

    def ends(self) -> bool:
        """Read semicolons; whether nothing else is left."""
        self.skip(";")
        return not self._look(1)

    def word(self) -> str:
        """Read a word, in capitals; empty if something else comes next."""
        is_word = self._look(1) and self._ahead[0].kind is LexemeKind.WORD
        return self._ahead.pop(0).text.upper() if is_word else ""

    def names(self) -> tuple[str, ...]:
        """Read identifiers with dots between them; none if there is none, or none behind a dot."""
        found: list[str] = []
        while self._look(1) and self._ahead[0].name:
            found.append(self._ahead.pop(0).name)
            if not self.accept("."):
                return tuple(found)
        return ()

    def _look(self, count: int) -> bool:
        """Have so many lexemes ahead; whether there are."""
        while len(self._ahead) < count:
            found = next(self._left, None)
            if found is None:
                return False
            self._ahead.append(found)
        return True


def _lexemes(sql: str, at: int) -> Iterator[Lexeme]:
    while found := _LEXEME.match(sql, at):
        start, at = found.span()
        name = found.lastgroup
        if name == "comment":
            end = _end_of_comment(sql, start)
            if end is None:
                yield Lexeme(LexemeKind.OPEN, sql[start:], start)
                return
            at = end
        elif name is not None:
            yield Lexeme(_KINDS[name], found[0], start)


def _end_of_comment(sql: str, start: int) -> int | None:
    """Comments may be inside each other."""
    depth = 0
    for edge in _EDGE_OF_COMMENT.finditer(sql, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return None
