"""``Routes``: which nodes of a circuit a delta can reach, so that no others are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from weirflow.ivm.circuit.together import can_step_together

if TYPE_CHECKING:
    from weirflow.ivm.circuit.circuit import CircuitNode


class Wave(NamedTuple):
    """Nodes that can be stepped when those of earlier waves were: some in order, then others at once."""

    in_order: list[int]
    together: list[int]


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
        self._reached: dict[frozenset[int], list[Wave]] = {}

    def are_of(self, nodes: Sequence[CircuitNode], views: Mapping[str, int]) -> bool:
        """Whether a circuit with these is still the one that they were made for."""
        return self._nodes == nodes and self._views == views

    def behind(self, sources: frozenset[int]) -> list[Wave]:
        """These nodes and all that read them, directly or not."""
        if sources not in self._reached:
            ahead, seen = list(sources), set[int]()
            while ahead:
                number = ahead.pop()
                if number not in seen:
                    seen.add(number)
                    ahead += self._readers[number]
            self._reached[sources] = self._waves(sorted(seen))
        return self._reached[sources]

    def views(self, number: int) -> Sequence[str]:
        """The views whose rows are a node's."""
        return self._named.get(number, ())

    def _waves(self, numbers: Sequence[int]) -> list[Wave]:
        """A node is in the wave behind that of the nodes that are stepped together of which it reads one."""
        waves: list[Wave] = []
        of: dict[int, int] = {}
        joint = {number for number in numbers if can_step_together(self._nodes[number].operator)}
        for number in numbers:
            wave = max([of[one] + (one in joint) for one in self._nodes[number].inputs if one in of], default=0)
            of[number] = wave
            while len(waves) <= wave:
                waves.append(Wave([], []))
            (waves[wave].together if number in joint else waves[wave].in_order).append(number)
        return waves
