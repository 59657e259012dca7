"""``Expression``: one of Java's regular expressions, searched for by RE2 in texts as bytes of UTF-8."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import re2

from weirflow.ivm.kernel.expressions.strings.regex_subset import Refused, translated

# Parentheses that are meant as such are written as escapes.
_GROUP = re.compile(r"\((?!\?)")


class RegexMatch:
    """Where an expression was found: bytes from ``start`` to ``end``."""

    __slots__ = ("_data", "_found", "_groups", "end", "start")

    def __init__(self, data: bytes, found: Any, groups: Sequence[int], dollars: Sequence[int]) -> None:
        self._data = data
        self._found = found
        self._groups = groups
        self.start, self.end = found.span()
        for group in dollars:
            behind, _ = found.span(group)
            if behind >= 0:
                self.end = behind

    def group(self, number: int) -> bytes:
        """What one of Java's groups matched; nothing if it had no part in the match."""
        start, end = self._found.span(self._groups[number])
        return self._data[start : min(end, self.end)] if start >= 0 else b""


class Expression:
    """An expression of the subset; ``Refused`` for any other.

    Attributes:
        texts: for RE2: for most texts, and for those that end in a carriage return and a line feed.
        groups: how many capturing groups it has.
        nullable: whether it may match the empty text.
        repeated_groups: whether a capturing group may match more than once.
        has_dollar, has_caret: whether it asks for the end or the beginning of the text.
    """

    def __init__(self, java: str) -> None:
        found = translated(java)
        self.texts = (found.text, found.before_crlf)
        self.groups = len(found.groups) - 1
        self.nullable = found.nullable
        self.repeated_groups = found.repeated_groups
        self.has_dollar = bool(found.dollars)
        self.has_caret = "\\A" in found.text
        self._groups = found.groups
        self._dollars = found.dollars
        self._pattern = _compiled(found.text)
        self._before_crlf = _compiled(found.before_crlf) if found.dollars else self._pattern

    def search(self, data: bytes, start: int = 0) -> RegexMatch | None:
        """The first match that begins at ``start`` or behind it. Other threads run meanwhile."""
        pattern = self._before_crlf if self._dollars and data.endswith(b"\r\n") else self._pattern
        found = pattern.search(data, start)
        return None if found is None else RegexMatch(data, found, self._groups, self._dollars)

    def with_group(self, number: int) -> str:
        """For RE2, with just one of Java's groups, called g. For expressions without ``$``."""
        if number == 0:
            return f"(?P<g>{_GROUP.sub('(?:', self.texts[0])})"
        before = itertools.count(1)
        return _GROUP.sub(lambda _: "(?P<g>" if next(before) == number else "(?:", self.texts[0])


def _compiled(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise Refused(text) from error
