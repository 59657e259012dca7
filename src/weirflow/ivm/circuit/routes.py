"""``Routes``: which nodes of a circuit a delta can reach, so that no others are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirflow.ivm.circuit.circuit import CircuitNode


class Routes:
    """What is behind each node, as long as there are these nodes and views."""

    def __init__(self, nodes: Sequence[CircuitNode], views: Mapping[str, int]) -> None:
        self._nodes = list(nodes)
        self._views = dict(views)
        self._readers: list[list[int]] = [[] for _ in nodes]
        for number, node in enumerate(nodes):
            for one in set(node.inputs):
                self._readers[one].append(number)
        self._named: dict[int, list[str]] = {}
        for name, number in views.items():
            self._named.setdefault(number, []).append(name)
        self._reached: dict[frozenset[int], list[int]] = {}

    def are_of(self, nodes: Sequence[CircuitNode], views: Mapping[str, int]) -> bool:
        """Whether a circuit with these is still the one that they were made for."""
        return self._nodes == nodes and self._views == views

    def behind(self, sources: frozenset[int]) -> list[int]:
        """These nodes and all that read them, directly or not, in order."""
        if sources not in self._reached:
            ahead, seen = list(sources), set[int]()
            while ahead:
                number = ahead.pop()
                if number not in seen:
                    seen.add(number)
                    ahead += self._readers[number]
            self._reached[sources] = sorted(seen)
        return self._reached[sources]

    def views(self, number: int) -> Sequence[str]:
        """The views whose rows are a node's."""
        return self._named.get(number, ())
