"""Reads the tree that Spark prints for a physical plan.

Spark draws a plan with three characters per level. A node's children are drawn one level below it; its
*inner* children (subqueries, a cached relation, the plan of a command) come first and two levels below::

    Project [id#6L, Subquery subquery#62, [id=#603] AS m#63]
    :  +- Subquery subquery#62, [id=#603]          inner child
    :     +- ...
    +- FileScan parquet [id#6L] ...                child

Adaptive plans that have changed are printed as two sections, the current plan and the initial one, whose
indentation forgets that of the plan around them; only the header's place after its ``AdaptiveSparkPlan``
line says where they belong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LEVEL = 3
_HEADING = "== Physical Plan =="
_TREE_LINE = re.compile(r"(?:   |:  )*[:+]- (?:\*(?:\(\d+\))? )?['!]?[A-Z=]")
_SECTION = re.compile(r"(?P<indent> *)\+- == (?P<name>Final|Current|Initial) Plan ==\s*")
_CODEGEN = re.compile(r"\*(?:\(\d+\))? ")
_ADAPTIVE = "AdaptiveSparkPlan "
_WRAPPER = re.compile(r"AdaptiveSparkPlan |\w*QueryStage \d+")
_LEAF = re.compile(r"\w*Scan\b|Range \(|ReusedExchange\b|ReusedSubquery\b|EmptyRelation\b")
_INNER_OF_LEAF = re.compile(r"(?:Reused)?Subquery|InMemoryRelation\b")
_OUTSIDE_THE_QUERY = re.compile(r"InMemoryRelation\b|SubqueryAdaptiveBroadcast\b")


@dataclass(frozen=True)
class PlanNode:
    """One operator of a plan: its line, and the operators it reads from, left to right.

    Subqueries an operator evaluates come first among its children.
    """

    text: str
    children: tuple[PlanNode, ...] = ()

    @property
    def name(self) -> str:
        """The operator's name, the first word of its line."""
        found = re.match(r"\w+", self.text)
        return found.group() if found else ""


def parse_plan(text: str) -> PlanNode | None:
    """The operator tree in ``text``, printed by ``explain()`` or a plan's ``toString``; None if it has none.

    Of an adaptive plan the current (or final) section is read, not the initial one. What is left out: the
    code-generation marks, the wrappers of adaptive execution, the plan that once filled a cached relation,
    and dynamic pruning that Spark has yet to decide on. Lines that fit nowhere, which happens when a string
    literal imitates the drawing, are kept as children of the root: text never raises.
    """
    body = text.rpartition(_HEADING)[2].strip("\n").rstrip()
    if not body:
        return None
    reader = _Reader(body.split("\n"))
    root = _unwrapped(reader.root(indent=""))
    strays = tuple(PlanNode(line.strip()) for line in reader.rest())
    return PlanNode(root.text, root.children + strays) if strays else root


class _Reader:
    """Recursive descent over the lines; each node knows the exact prefix its children must have."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def rest(self) -> list[str]:
        return self._lines[self._at :]

    def root(self, indent: str) -> PlanNode:
        return self._node(self._take_text(len(indent)), indent)

    def _next_is(self, prefix: str) -> bool:
        return self._at < len(self._lines) and self._lines[self._at].startswith(prefix)

    def _take_text(self, start: int) -> str:
        """This line's operator, with the lines a literal in it broke onto."""
        parts = [self._lines[self._at][start:]]
        self._at += 1
        while self._at < len(self._lines) and not _TREE_LINE.match(self._lines[self._at]):
            parts.append(self._lines[self._at])
            self._at += 1
        return _CODEGEN.sub("", "\\n".join(parts), count=1) if parts[0].startswith("*") else "\\n".join(parts)

    def _node(self, text: str, base: str) -> PlanNode:
        if text.startswith(_ADAPTIVE) and (section := self._section()):
            return PlanNode(text, (section,))
        children = self._inner_children(text, base)
        if not _LEAF.match(text):
            children += self._siblings(base)
        return PlanNode(text, tuple(_unwrapped(child) for child in children if _belongs(child)))

    def _siblings(self, base: str) -> list[PlanNode]:
        """Nodes drawn with ``:-`` under ``base``, closed by one drawn with ``+-``."""
        nodes = []
        while self._next_is(base + ":- "):
            nodes.append(self._node(self._take_text(len(base) + _LEVEL), base + ":  "))
        if self._next_is(base + "+- "):
            nodes.append(self._node(self._take_text(len(base) + _LEVEL), base + "   "))
        return nodes

    def _inner_children(self, text: str, base: str) -> list[PlanNode]:
        for bar in ("   ", ":  "):
            inner = base + bar
            if self._next_is(inner + ":- ") or self._next_is(inner + "+- "):
                line = self._lines[self._at][len(inner) + _LEVEL :]
                if not _LEAF.match(text) or _INNER_OF_LEAF.match(line):
                    return self._siblings(inner)
        return []

    def _section(self) -> PlanNode | None:
        """The current plan of an adaptive plan that was printed in sections; skips the initial one."""
        opening = self._header()
        if opening is None or opening["name"] == "Initial":
            return None
        plan = self._section_plan(opening["indent"])
        closing = self._header()
        if closing is not None and closing["name"] == "Initial" and closing["indent"] == opening["indent"]:
            self._section_plan(closing["indent"])
        return plan

    def _header(self) -> re.Match[str] | None:
        return _SECTION.fullmatch(self._lines[self._at]) if self._at < len(self._lines) else None

    def _section_plan(self, header_indent: str) -> PlanNode | None:
        self._at += 1
        return self.root(header_indent + "   ") if self._at < len(self._lines) else None


def _belongs(node: PlanNode) -> bool:
    return not _OUTSIDE_THE_QUERY.match(node.text)


def _unwrapped(node: PlanNode) -> PlanNode:
    while _WRAPPER.match(node.text) and len(node.children) == 1:
        node = node.children[0]
    return node
