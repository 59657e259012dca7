"""``Cursor``: reads a statement token by token, and cuts out the queries and expressions in it unread."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from sqlglot.tokenizer_core import TokenType

from weirflow.errors import SqlPosition, SqlSyntaxError
from weirflow.sql.parse import tokenize
from weirflow.sql.statements.composed import Fragment, position_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.tokenizer_core import Token

_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_VALUES = frozenset({TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER})


class Cursor:
    """A place in a statement. ``SqlSyntaxError`` with the position for whatever is expected and not there.

    Args:
        sql: the statement.
        start: where reading begins, behind the statement's first word.

    Raises:
        SqlSyntaxError: the text cannot be cut into tokens.
    """

    def __init__(self, sql: str, start: int = 0) -> None:
        self.sql = sql
        tokens = tokenize(" " * start + sql[start:])  # some first words make the tokenizer swallow the rest
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        self._tokens = tokens
        self._at = 0

    def copy(self) -> Cursor:
        """Another cursor at the same place."""
        other = Cursor.__new__(Cursor)
        other.__dict__.update(self.__dict__)
        return other

    @property
    def at_end(self) -> bool:
        """Whether everything was read."""
        return self._at >= len(self._tokens)

    def sees(self, *words: str) -> bool:
        """Whether these words or signs come next."""
        ahead = self._tokens[self._at : self._at + len(words)]
        return len(ahead) == len(words) and all(_is(token, word) for token, word in zip(ahead, words, strict=True))

    def accept(self, *words: str) -> bool:
        """Read these words or signs if all of them come next."""
        if not self.sees(*words):
            return False
        self._at += len(words)
        return True

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
        token = None if self.at_end else self._tokens[self._at]
        if token is None or not (
            token.token_type == TokenType.IDENTIFIER or (token.token_type not in _VALUES and _is_word(token.text))
        ):
            self.fail("expected a name")
        self._at += 1
        return token.text

    def names(self) -> tuple[str, ...]:
        """Read identifiers with dots between them."""
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
        token = None if self.at_end else self._tokens[self._at]
        if token is None or not (
            token.token_type == TokenType.STRING
            or (token.token_type == TokenType.NUMBER and token.text.isdigit())
            or any(_is(token, word) for word in ("TRUE", "FALSE"))
        ):
            self.fail("expected a string, a whole number, true or false")
        self._at += 1
        if token.token_type == TokenType.STRING:
            return token.text
        return int(token.text) if token.token_type == TokenType.NUMBER else _is(token, "TRUE")

    def until(self, what: str, *stops: str | tuple[str, ...]) -> Fragment:
        """Cut out everything up to one of the stops, or to the end, that is in no parentheses and no CASE.

        A stop is a word or several. ``what`` is expected to be there.
        """
        words = [(stop,) if isinstance(stop, str) else stop for stop in stops]
        return self._cut(what, lambda: any(self.sees(*stop) for stop in words))

    def rest(self, what: str) -> Fragment:
        """Cut out everything up to the end."""
        return self._cut(what, lambda: False)

    def here(self) -> SqlPosition:
        """Where the next token is; the end of the text if there is none."""
        if self.at_end:
            return position_at(self.sql, len(self.sql.rstrip()), "")
        token = self._tokens[self._at]
        return position_at(self.sql, token.start, self.sql[token.start : token.end + 1])

    def fail(self, problem: str, *, hint: str | None = None, position: SqlPosition | None = None) -> NoReturn:
        """Raise ``SqlSyntaxError`` at this place."""
        found = self.here()
        seen = f"found {found.fragment!r}" if found.fragment else "the statement ends"
        message = f"{problem[0].upper()}{problem[1:]}"
        raise SqlSyntaxError(
            f"{message}." if position else f"{message}, {seen}.", hint=hint, position=position or found
        )

    def _cut(self, what: str, is_stop: Callable[[], bool]) -> Fragment:
        begun, depth = self._at, 0
        while not self.at_end and (depth or not is_stop()):
            kind = self._tokens[self._at].token_type
            if kind in _CLOSING and depth == 0:
                break
            depth += (kind in _OPENING) - (kind in _CLOSING)
            self._at += 1
        if self._at == begun:
            self.fail(f"expected {what}")
        start = self._tokens[begun].start
        return Fragment(self.sql[start : self._tokens[self._at - 1].end + 1], start)


def _is(token: Token, word: str) -> bool:
    return token.token_type not in _VALUES and " ".join(token.text.upper().split()) == word


def _is_word(text: str) -> bool:
    return text.replace("_", "a").isalnum()
