"""Joins that are added up as they are made: of pairs that are many, only a slice is there at a time.

Where nothing but maps lies between a join and an aggregate whose totals are sums, the aggregate can take the pairs in
slices. A join of few pairs runs as everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weirflow.errors import DataError, ResultTooLarge
from weirflow.ivm.circuit.step import stepped
from weirflow.ivm.kernel.runs.search import TooManyPairs
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.aggregate.partial import PartialAggregate, has_parts
from weirflow.ivm.operators.aggregate.sections import sections
from weirflow.ivm.operators.join import pairs
from weirflow.ivm.operators.join.operator import Join
from weirflow.ivm.operators.map import Filter, Normalize, Project
from weirflow.ivm.operators.union import Union
from weirflow.ivm.zset.batch import Batch
from weirflow.sql.expr import Column

if TYPE_CHECKING:
    from weirflow.ivm.circuit.circuit import CircuitNode
    from weirflow.ivm.operators.operator import Operator
    from weirflow.sql.expr import Expr

SLICE_PAIRS = 1 << 19
"""Of a slice that is added up before the next is made: small, so that it stays near the processor."""


class SlicedJoins:
    """The joins of a circuit that an aggregate can take in slices.

    Args:
        nodes: all nodes, inputs before what reads them.
        read: the numbers of nodes that others read, too.
    """

    def __init__(self, nodes: Sequence[CircuitNode], read: Iterable[int] = ()) -> None:
        self._nodes = nodes
        readers: dict[int, list[int]] = {}
        for number, node in enumerate(nodes):
            for one in node.inputs:
                readers.setdefault(one, []).append(number)
        # Counting a reader of whom nothing is known, a node has more than one.
        for number in read:
            readers.setdefault(number, []).append(-1)
        self.joins = frozenset(
            number
            for number, node in enumerate(nodes)
            if isinstance(node.operator, Join) and self._ends(number, readers)
        )

    def _ends(self, number: int, readers: dict[int, list[int]]) -> bool:
        """Whether a node's one reader is an aggregate that takes slices, with nothing but maps between them."""
        while True:
            of = readers.get(number, [])
            if len(of) != 1 or of[0] < 0:
                return False
            number = of[0]
            operator = self._nodes[number].operator
            if isinstance(operator, Aggregate):
                return takes_slices(operator)
            if not isinstance(operator, Filter | Project | Normalize | Union):
                return False

    def run(self) -> SlicedRun:
        """For one run of the circuit."""
        return SlicedRun(self._nodes, self.joins)


def takes_slices(operator: Aggregate) -> bool:
    """Whether a delta's rows can be added up before they are all there."""
    return type(operator) in {Aggregate, PartialAggregate} and has_parts(operator.calls)


@dataclass(frozen=True)
class _Joined:
    """Columns of the output of a join that was put off."""

    join: Join
    inputs: Sequence[Batch]
    columns: Sequence[int]

    def chosen(self, expressions: Sequence[Expr]) -> _Joined | None:
        """Those that a projection lets through; None if it computes something."""
        named = [self.columns[one.index] for one in expressions if isinstance(one, Column)]
        return replace(self, columns=named) if len(named) == len(expressions) else None

    def slices(self, columns: Sequence[int]) -> Iterator[Batch]:
        """Just these columns of the output."""
        return self.join.narrow_slices(self.inputs, columns, SLICE_PAIRS)


class SlicedRun:
    """One run of a circuit, in which what a node makes may be put off until an aggregate takes it in slices."""

    def __init__(self, nodes: Sequence[CircuitNode], joins: frozenset[int]) -> None:
        self._nodes = nodes
        self._joins = joins
        self._slices: dict[int, Callable[[], Iterator[Batch]]] = {}
        self._whole: dict[int, Callable[[], Batch]] = {}
        self._joined: dict[int, _Joined] = {}

    def waits(self, node: CircuitNode) -> bool:
        """Whether an input of the node was put off."""
        return bool(self._slices) and any(one in self._slices for one in node.inputs)

    def step(self, number: int, inputs: Sequence[Batch], *, lenient: bool = False) -> Batch:
        """``stepped`` of a node, or nothing if what it makes is put off."""
        node = self._nodes[number]
        operator = node.operator
        if self._slices and self.waits(node):
            return self._waiting(number, node, inputs, lenient=lenient)
        if number not in self._joins or not isinstance(operator, Join):
            return stepped(operator, inputs, lenient=lenient)
        operator.most = pairs.MOST_PAIRS
        try:
            return stepped(operator, inputs, lenient=lenient)
        except TooManyPairs:
            self._slices[number] = lambda: operator.slices(inputs, SLICE_PAIRS)
            self._joined[number] = _Joined(operator, inputs, range(len(operator.types)))
            self._whole[number] = lambda: stepped(operator, inputs, lenient=lenient)
            return operator.nothing
        finally:
            operator.most = None

    def _waiting(self, number: int, node: CircuitNode, inputs: Sequence[Batch], *, lenient: bool) -> Batch:
        operator = node.operator
        late = [one for one in node.inputs if one in self._slices]
        if isinstance(operator, Aggregate):
            return self._added_up(operator, late[0], lenient=lenient)
        if isinstance(operator, Project) and late[0] in self._joined:
            joined = self._joined[late[0]].chosen(operator.expressions)
            if joined is not None:
                self._joined[number] = joined
        present = [delta for delta, one in zip(inputs, node.inputs, strict=True) if one not in self._slices]
        self._slices[number] = lambda: self._mapped(operator, late, present)
        self._whole[number] = lambda: stepped(operator, self._all(node, inputs), lenient=lenient)
        return operator.nothing

    def _mapped(self, operator: Operator, late: Sequence[int], present: Sequence[Batch]) -> Iterator[Batch]:
        """What a map or a union makes of slices and, of a union, of the inputs that are there."""
        for one in late:
            for delta in self._slices[one]():
                made = operator.step([delta])
                if len(made):
                    yield made
        yield from (delta for delta in present if len(delta))

    def _added_up(self, operator: Aggregate, source: int, *, lenient: bool) -> Batch:
        try:
            parts = self._parts(operator, source)
        except DataError as error:
            # A slice holds pairs that others take back: only all of them tell which are there.
            operator.discard()
            try:
                whole = self._whole[source]()
            except ResultTooLarge:
                raise error from None
            return stepped(operator, [whole], lenient=lenient)
        return parts if isinstance(operator, PartialAggregate) else operator.step_parts(parts)

    def _parts(self, operator: Aggregate, source: int) -> Batch:
        """What the rows that were put off add to the groups."""
        joined = self._joined.get(source)
        found = [] if joined is None else sections(joined.join, operator, joined.columns)
        if joined is not None and found:
            return Batch.concat([one.parts(joined.slices(one.columns), operator) for one in found])
        partial = (
            operator if isinstance(operator, PartialAggregate) else PartialAggregate(operator.keys, operator.calls)
        )
        return partial.of_slices(self._slices[source]())

    def _all(self, node: CircuitNode, inputs: Sequence[Batch]) -> list[Batch]:
        return [
            self._whole[one]() if one in self._whole else delta for delta, one in zip(inputs, node.inputs, strict=True)
        ]
