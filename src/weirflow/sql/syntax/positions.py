"""``TextPositions``: where the parts of a syntax tree are in its text, found once for all of them."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from weirflow.errors import SqlPosition

if TYPE_CHECKING:
    from sqlglot import exp


class TextPositions:
    """Where nodes begin in a text. Building it takes as long as the tree is large, asking it takes no time.

    Args:
        sql: the text.
        tree: what was read from it; nodes made later are looked through when they are asked for.
    """

    def __init__(self, sql: str, tree: exp.Expr) -> None:
        self._sql = sql
        self._lines = [0, *(found.end() for found in re.finditer("\n", sql))]
        self._nodes = list(tree.walk(bfs=False))
        """Kept alive, since they are known by their identity."""
        self._spans: dict[int, tuple[int, int] | None] = {}
        for node in reversed(self._nodes):
            self._spans[id(node)] = self._span(node)

    def of(self, node: exp.Expr | None) -> SqlPosition | None:
        """Where ``node`` begins, with its first word; None when nothing of it remembers its place."""
        if node is None:
            return None
        if id(node) in self._spans:
            span = self._spans[id(node)]
        else:
            span = min((own for part in node.walk() if (own := _own(part)) is not None), default=None)
        if span is None:
            return None
        start, end = span
        line = bisect_right(self._lines, start)
        return SqlPosition(line, start - self._lines[line - 1] + 1, self._sql[start : end + 1])

    def _span(self, node: exp.Expr) -> tuple[int, int] | None:
        """The first of a node's own place and those of its parts, which are known."""
        found = _own(node)
        for part in node.iter_expressions():
            span = self._spans[id(part)]
            if span is not None and (found is None or span < found):
                found = span
        return found


def _own(node: exp.Expr) -> tuple[int, int] | None:
    start = node.meta_get("start")
    return None if start is None else (start, node.meta["end"])
