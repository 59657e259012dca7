"""``Cursor``: reads a statement token by token, and cuts out the queries and expressions in it unread."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from typing_extensions import override

from weirflow.errors import SqlPosition, SqlSyntaxError
from weirflow.sql.limits import check_text
from weirflow.sql.statements.composed import Fragment, position_at
from weirflow.sql.statements.lexer import Lexeme, LexemeKind, Lexer
from weirflow.sql.syntax.parse import tokenize

_OPENING = frozenset({"(", "[", "{", "CASE"})
_CLOSING = frozenset({")", "]", "}", "END"})
_FLAGS = {"TRUE": True, "FALSE": False}


class Cursor(Lexer):
    """A place in a statement. ``SqlSyntaxError`` with the position for whatever is expected and not there.

    Args:
        sql: the statement.
        start: where reading begins, behind the statement's first word.

    Raises:
        SqlTooComplex: the text is too long.
    """

    def __init__(self, sql: str, start: int = 0) -> None:
        check_text(sql)
        super().__init__(sql, start)
        self.sql = sql
        self._left = map(self._closed, self._left)

    @property
    @override
    def at_end(self) -> bool:
        """Whether everything was read but semicolons."""
        return super().at_end or (self.sees(";") and self.ahead().ends())

    def ahead(self) -> Lexer:
        """Another reader at this place."""
        return Lexer(self.sql, self._ahead[0].start if self._look(1) else len(self.sql))

    def expect(self, *words: str) -> None:
        """Read these words or signs."""
        for word in words:
            if not self.accept(word):
                self.fail(f"expected {word}")

    def expect_end(self) -> None:
        """Refuse anything that is left."""
        if not self.at_end:
            self.fail("expected the end of the statement")

    def name(self) -> str:
        """Read an identifier."""
        if self.at_end or not self._ahead[0].name:
            self.fail("expected a name")
        return self._ahead.pop(0).name

    @override
    def names(self) -> tuple[str, ...]:
        found = [self.name()]
        while self.accept("."):
            found.append(self.name())
        return tuple(found)

    def listed_names(self) -> tuple[str, ...]:
        """Read identifiers in parentheses, with commas between them."""
        self.expect("(")
        found = [self.name()]
        while self.accept(","):
            found.append(self.name())
        self.expect(")")
        return tuple(found)

    def value(self) -> str | int | bool:
        """Read a string, a whole number, TRUE or FALSE."""
        found = None if self.at_end else self._ahead[0]
        if found is None or not (found.kind is LexemeKind.TEXT or found.text.isdigit() or found.plain in _FLAGS):
            self.fail("expected a string, a whole number, true or false")
        self._ahead.pop(0)
        if found.kind is LexemeKind.TEXT:
            return tokenize(found.text)[0].text
        return int(found.text) if found.text.isdigit() else _FLAGS[found.plain]

    def until(self, what: str, *stops: str | tuple[str, ...]) -> Fragment:
        """Cut out everything up to one of the stops, or to the end, that is in no parentheses and no CASE.

        A stop is a word or several. ``what`` is expected to be there.
        """
        words = [(stop,) if isinstance(stop, str) else stop for stop in stops]
        return self._cut(what, lambda: any(self.sees(*stop) for stop in words))

    def rest(self, what: str) -> Fragment:
        """Cut out everything up to the end."""
        return self._cut(what, lambda: False)

    def here(self, count: int = 1) -> SqlPosition:
        """Where the next word or sign is, or the next two, ...; the end of the text if there is none."""
        if self.at_end:
            return position_at(self.sql, len(self.sql.rstrip()), "")
        self._look(count)
        first, last = self._ahead[0], self._ahead[:count][-1]
        return position_at(self.sql, first.start, self.sql[first.start : last.start + len(last.text)])

    def fail(self, problem: str, *, hint: str | None = None, position: SqlPosition | None = None) -> NoReturn:
        """Raise ``SqlSyntaxError`` at this place."""
        found = self.here()
        seen = f"found {found.fragment!r}" if found.fragment else "the statement ends"
        message = f"{problem[0].upper()}{problem[1:]}"
        raise SqlSyntaxError(
            f"{message}." if position else f"{message}, {seen}.", hint=hint, position=position or found
        )

    def _cut(self, what: str, is_stop: Callable[[], bool]) -> Fragment:
        depth = start = end = 0
        while not self.at_end and (depth or not is_stop()):
            plain = self._ahead[0].plain
            if plain in _CLOSING and depth == 0:
                break
            depth += (plain in _OPENING) - (plain in _CLOSING)
            read = self._ahead.pop(0)
            start, end = start if end else read.start, read.start + len(read.text)
        if end == 0:
            self.fail(f"expected {what}")
        return Fragment(self.sql[start:end], start)

    def _closed(self, lexeme: Lexeme) -> Lexeme:
        if lexeme.kind is LexemeKind.OPEN:
            position = position_at(self.sql, lexeme.start, lexeme.text[:2] if lexeme.text[0] == "/" else lexeme.text[0])
            self.fail("The text cannot be read as SQL: this is not closed", position=position)
        return lexeme
