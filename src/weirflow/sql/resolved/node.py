"""``Node``: a node of Spark's plan whose fields are all to be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weirflow.errors import NotIncremental, Reason


class _Omitted:
    def __repr__(self) -> str:
        return "OMITTED"


OMITTED: Final = _Omitted()
"""A field that Spark has and did not tell."""


class Node:
    """A plan, an expression, or another part of Spark's plan.

    Attributes:
        kind: Spark's class, without the packages.
        children: the nodes it is applied to.
        origin: Spark's own object, for who can ask it.

    Args:
        shown: asks Spark what people call it.
    """

    __slots__ = ("_fields", "_shown", "_unread", "children", "kind", "origin")

    def __init__(
        self,
        kind: str,
        fields: dict[str, Any],
        children: tuple[Node, ...],
        shown: Callable[[], str] | None = None,
        origin: Any = None,
    ) -> None:
        self.origin = origin
        self.kind = kind.rpartition(".")[2]
        self.children = children
        self._shown = shown
        self._fields = fields
        self._unread = set(fields)

    def __repr__(self) -> str:
        return f"<{self.kind} {self._fields}>"

    @property
    def shown(self) -> str:
        """What people call it."""
        return self.kind if self._shown is None else self._shown()

    def has(self, name: str) -> bool:
        """Whether Spark wrote the field: an option that is not there is left out."""
        return name in self._fields

    def value(self, name: str, default: Any = OMITTED) -> Any:
        """A field: a constant, a node, or a tuple of them."""
        self._unread.discard(name)
        found = self._fields.get(name, default)
        if found is OMITTED:
            raise unread(self, name)
        return found

    def child(self, name: str) -> Node:
        """The child that a field stands for; one that need not be there is written out in its field."""
        found: Node | int = self.value(name)
        return found if isinstance(found, Node) else self.children[found]

    def children_of(self, name: str) -> tuple[Node, ...]:
        """The children that a field stands for."""
        return tuple(self.children[index] for index in self.value(name, ()))

    def ignore(self, *names: str) -> None:
        """Say of fields that they make no difference to the rows."""
        self._unread.difference_update(names)

    def finish(self) -> None:
        """Refuse the node if a field of it was not read."""
        if self._unread:
            raise unread(self, ", ".join(sorted(self._unread)))


class LeftToBinder(NotIncremental, code="NOT_INCREMENTAL"):
    """Spark's plan says less than the text, which is read here by the binder."""


def unread(node: Node, what: str) -> NotIncremental:
    """The refusal of a node that has more to it than is read here."""
    return NotIncremental(
        f"{node.shown} says more to Spark than is known here ({what}).", reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE
    )
