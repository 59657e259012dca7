"""``Tree``: what the nodes of plans and expressions have in common, however deep they are nested.

Nothing here recurses: a chain of ten thousand operators is as deep, and Python's stack is not. Hash, size and height
are computed once for a node; equality looks at hashes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, cast

_HASH, _SHAPE = "_hash", "_shape"
LATER = "later"
"""In the metadata of a field that nodes of earlier versions did not have: with its default, it is as if not there."""


class Tree:
    """The base of frozen dataclasses (``eq=False``) that are compared by their fields, nodes among them or not.

    Fields of ``compare=False`` do not count. Two nodes are equal if they are of the same class and their fields are.

    Attributes:
        is_leaf: whether no node of the class has nodes inside.
        is_outward: whether nodes of the class stand for something outside of the tree.
    """

    is_leaf: ClassVar[bool] = False
    is_outward: ClassVar[bool] = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        ahead: list[tuple[Any, Any]] = [(self, other)]
        while ahead:
            one, two = ahead.pop()
            if one is two:
                continue
            if isinstance(one, Tree):
                if type(one) is not type(two) or _known_apart(one, two):
                    return False
                ahead += zip(_compared(one), _compared(two), strict=True)
            elif isinstance(one, tuple) and isinstance(two, tuple):
                if len(one) != len(two):
                    return False
                ahead += zip(one, two, strict=True)
            elif one != two:
                return False
        return True

    def __hash__(self) -> int:
        found = self.__dict__.get(_HASH)
        return _computed(self, _HASH, _hash_of) if found is None else int(found)

    def __getstate__(self) -> dict[str, Any]:
        """Without what was computed: hashes of text differ from process to process."""
        return {name: value for name, value in self.__dict__.items() if name not in (_HASH, _SHAPE)}

    @property
    def size(self) -> int:
        """How many nodes there are; one that is in several places counts in each."""
        return _shape_of(self)[0]

    @property
    def height(self) -> int:
        """How many nodes are on the longest way down."""
        return _shape_of(self)[1]

    @property
    def reaches_out(self) -> bool:
        """Whether a node of it is outward."""
        return _shape_of(self)[2]

    @property
    def breadth(self) -> int:
        """The columns of all joins, those of a join of joins counting in each."""
        return _shape_of(self)[3]

    @property
    def own_breadth(self) -> int:
        """The columns of this node, if it is a join."""
        return 0


def _shape_of(node: Tree) -> tuple[int, int, bool, int]:
    """Size, height, whether it reaches out, breadth."""
    if node.is_leaf:
        return 1, 1, node.is_outward, 0
    found: tuple[int, int, bool, int] = node.__dict__.get(_SHAPE) or _computed(node, _SHAPE, _shape)
    return found


def _known_apart(one: Tree, two: Tree) -> bool:
    hashes = one.__dict__.get(_HASH), two.__dict__.get(_HASH)
    return None not in hashes and hashes[0] != hashes[1]


def _computed(top: Tree, name: str, compute: Callable[[Tree], Any]) -> Any:
    """What ``compute`` makes of a node whose inner nodes have theirs, kept in each under ``name``."""
    ahead = [top]
    while ahead:
        node = ahead[-1]
        missing = [one for one in inner(node) if name not in one.__dict__ and not one.is_leaf]
        if missing:
            ahead += missing
        else:
            ahead.pop()
            if name not in node.__dict__:
                node.__dict__[name] = compute(node)
    return top.__dict__[name]


def _hash_of(node: Tree) -> int:
    return hash((type(node), _compared(node)))


def _shape(node: Tree) -> tuple[int, int, bool, int]:
    size, height, outward, breadth = 1, 0, node.is_outward, node.own_breadth
    for one in inner(node):
        shape = _shape_of(one)
        size += shape[0]
        height = max(height, shape[1])
        outward = outward or shape[2]
        breadth += shape[3]
    return size, height + 1, outward, breadth


def inner(node: Tree) -> Iterator[Tree]:
    """The nodes directly inside a node."""
    ahead = list(_compared(node))
    while ahead:
        value = ahead.pop()
        if isinstance(value, Tree):
            yield value
        elif isinstance(value, tuple):
            ahead += value


def _compared(node: Tree) -> tuple[Any, ...]:
    values, kind = node.__dict__, cast("Any", type(node))
    return tuple(values[name] for name in _names(kind))


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.compare)
