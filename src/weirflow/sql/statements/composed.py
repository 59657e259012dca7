"""SQL put together from pieces of a user's statement and text of our own, which knows where each piece came from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weirflow.errors import SqlPosition


@dataclass(frozen=True)
class Fragment:
    """A part of a statement, as it was written.

    Attributes:
        start: its offset in the statement.
    """

    text: str
    start: int


class ComposedSql:
    """Text made of fragments of one statement, and of strings that are in none.

    >>> made = ComposedSql(["SELECT * FROM t WHERE ", Fragment("x > 1", 20)])
    >>> made.text, made.origin(22), made.origin(3)
    ('SELECT * FROM t WHERE x > 1', 20, None)
    """

    def __init__(self, pieces: Iterable[str | Fragment]) -> None:
        self._pieces = tuple(pieces)
        self.text = "".join(piece if isinstance(piece, str) else piece.text for piece in self._pieces)

    def around(self, before: str, after: str = "") -> ComposedSql:
        """This text between two strings."""
        return ComposedSql([before, *self._pieces, after])

    def replaced(self, edits: Iterable[tuple[int, int, str]]) -> ComposedSql:
        """This text with strings in place of spans ``(start, end, string)``, which do not overlap."""
        pieces: list[str | Fragment] = []
        done = 0
        for start, end, string in sorted(edits):
            pieces += [*self._cut(done, start), string]
            done = end
        return ComposedSql([*pieces, *self._cut(done, len(self.text))])

    def origin(self, offset: int) -> int | None:
        """Where in the statement the character at ``offset`` was; None for what is not of it."""
        at = 0
        for piece in self._pieces:
            text = piece if isinstance(piece, str) else piece.text
            if at <= offset < at + len(text):
                return None if isinstance(piece, str) else piece.start + offset - at
            at += len(text)
        return None

    def position_in(self, statement: str, position: SqlPosition | None) -> SqlPosition | None:
        """The place in the statement that a position in this text stands for; None if it stands for none.

        A position in some other text, which has something else there, stands for none.
        """
        if position is None:
            return None
        lines = self.text.splitlines(keepends=True)
        offset = sum(len(line) for line in lines[: position.line - 1]) + position.column - 1
        start = self.origin(offset) if self.text.startswith(position.fragment, offset) else None
        return None if start is None else position_at(statement, start, position.fragment)

    def _cut(self, start: int, end: int) -> list[str | Fragment]:
        found: list[str | Fragment] = []
        at = 0
        for piece in self._pieces:
            text = piece if isinstance(piece, str) else piece.text
            low, high = max(start - at, 0), min(end - at, len(text))
            if low < high:
                part = text[low:high]
                found.append(part if isinstance(piece, str) else Fragment(part, piece.start + low))
            at += len(text)
        return found


def position_at(sql: str, offset: int, fragment: str) -> SqlPosition:
    """The position of the fragment that begins at an offset."""
    before = sql[:offset]
    return SqlPosition(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1, fragment)
