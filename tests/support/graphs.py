"""Random graphs that change, and their closure computed the naive way."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Row = tuple[Any, ...]
Edge = tuple[int | None, int]
EDGES = {"edges": pa.schema([("src", pa.int64()), ("dst", pa.int64())])}


class RandomGraph:
    """Edges among a few nodes, some of them several times; ``changes`` are what a tick takes.

    With ``acyclic`` all edges lead from a lower node to a higher one.
    """

    def __init__(self, seed: int, nodes: int, *, acyclic: bool = False) -> None:
        self._dice = random.Random(seed)
        self._nodes = nodes
        self._acyclic = acyclic
        self.edges: list[Edge] = []

    def changes(self, most: int) -> dict[str, list[tuple[Edge, int]]]:
        """Up to ``most`` edges inserted or removed; nearly half are removed, sometimes one of the same delta."""
        changed = []
        for _ in range(self._dice.randint(1, most)):
            if self.edges and self._dice.random() < 0.45:
                changed.append((self.edges.pop(self._dice.randrange(len(self.edges))), -1))
            else:
                self.edges.append(self._edge())
                changed.append((self.edges[-1], 1))
        return {"edges": changed}

    def _edge(self) -> Edge:
        if self._dice.random() < 0.05:
            return (None, self._dice.randrange(self._nodes))
        if self._acyclic:
            low, high = sorted(self._dice.sample(range(self._nodes), 2))
            return (low, high)
        return (self._dice.randrange(self._nodes), self._dice.randrange(self._nodes))


def fixed_point(base: Iterable[Row], step: Callable[[Row], Iterable[Row]]) -> Counter[Row]:
    """All rows that the base and any number of steps give, each once."""
    found, last = set(base), set(base)
    while last:
        last = {made for row in last for made in step(row)} - found
        found |= last
    return Counter(found)
