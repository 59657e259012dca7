"""Cut a circuit into stages: exchanges are put where rows have to move, and each begins another stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from weirflow.ivm.circuit.circuit import Circuit, CircuitNode, Input, advance, ancestors
from weirflow.ivm.kernel.fingerprint import fingerprint
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.aggregate.two_steps import TwoSteps, two_steps
from weirflow.ivm.operators.join.match import Match
from weirflow.ivm.operators.join.operator import Join
from weirflow.ivm.operators.nearest.operator import Nearest
from weirflow.ivm.operators.topk import TopK
from weirflow.ivm.sharded.plan.held import Origin, Share
from weirflow.ivm.sharded.plan.nearest import is_near_in_place, merged_nearest
from weirflow.ivm.sharded.plan.placement import place, whole_rows
from weirflow.ivm.sharded.plan.policies import SpreadPolicy, shard_of
from weirflow.ivm.sharded.plan.routes import (
    FIRST,
    ByColumns,
    Everywhere,
    Exchange,
    Partitioning,
    Route,
    Single,
    Somewhere,
    ToAll,
    ToKeys,
    ToOne,
    after,
)
from weirflow.sql.expr import Column

if TYPE_CHECKING:
    from weirflow.ivm.compiler.program import Program
    from weirflow.ivm.kernel.frontier import Frontier
    from weirflow.ivm.operators.operator import Operator


@dataclass
class Spread:
    """A program's circuit with exchanges in it, and the stage of each node.

    Whatever is added later leaves the nodes before it as they are, with their numbers, stages and partitionings.

    Attributes:
        program: whose operators these are.
        sources: the columns by which each source is partitioned.
        policy: which shard a row goes to.
        nodes: operators and exchanges in topological order.
        stages: of each node; an exchange is in the stage that sends, and is read in later ones.
        partitionings: of each node's output.
        relations: the node that each source's and view's deltas come from; equal rows of it are on one shard or on all.
        origins: of nodes that have state, which operator of the program it is of.
    """

    program: Program
    sources: Mapping[str, tuple[int, ...]]
    policy: SpreadPolicy = shard_of
    nodes: list[CircuitNode] = field(default_factory=list)
    stages: list[int] = field(default_factory=list)
    partitionings: list[Partitioning] = field(default_factory=list)
    relations: dict[str, int] = field(default_factory=dict)
    origins: dict[int, Origin] = field(default_factory=dict)
    _movable: bool = field(default=False, init=False)
    _at: dict[int, int] = field(default_factory=dict, init=False)
    _exchanged: dict[tuple[int, Route], int] = field(default_factory=dict, init=False)

    @property
    def depth(self) -> int:
        """How many stages there are."""
        staged = zip(self.stages, self.nodes, strict=True)
        return max((stage + isinstance(node.operator, Exchange) for stage, node in staged), default=0) + 1

    def extend(self, *, movable: bool = False) -> None:
        """Take in what was added to the program.

        With ``movable`` each row of each state is on the shard that the row itself tells, or on all: then states can be
        moved to other shards, and what retracts a row finds it there. This takes an exchange more where rows were left
        anywhere, and aggregates whose first step has state are done in one.
        """
        self._movable = movable
        circuit = self.program.circuit
        for number in range(len(self._at), len(circuit.nodes)):
            self._add(circuit, number)
        for name, relation in self.program.relations.items():
            if name not in self.relations:
                node = self._at[relation.node]
                route, _ = whole_rows(self.nodes[node].operator.types, self.partitionings[node])
                # Those to come read a view where its rows are kept, which is where they are filled from.
                self.relations[name] = node if route is None else self._exchange(node, route)
        for name in self.relations:
            self._at[self.program.relations[name].node] = self.relations[name]
        self._exchanged.clear()  # what went through an exchange is not kept: those to come need their own

    def available(self, number: int) -> int:
        """The first stage in which a node's output can be read."""
        return self.stages[number] + isinstance(self.nodes[number].operator, Exchange)

    def reports(self, number: int, shard: int) -> bool:
        """Whether a shard tells others of a node's rows: of rows that are everywhere the first shard does."""
        return shard == FIRST or not isinstance(self.partitionings[number], Everywhere)

    def store(self, name: str) -> int | None:
        """The node that holds a relation's rows; None if they are not kept."""
        store = self.program.relations[name].store
        return None if store is None else self._at[store.node]

    def key(self, number: int) -> str:
        """What a node's state is stored under: equal for what holds the same rows on the same shards."""
        return fingerprint((str(self.partitionings[number]),), [self.nodes[number].fingerprint])

    def kept(self, stage: int) -> list[int]:
        """The nodes of a stage that have state."""
        of_stage = [number for number, at in enumerate(self.stages) if at == stage]
        return [number for number in of_stage if self.nodes[number].operator.states]

    def probed(self, stage: int) -> list[int]:
        """The arrangements that nodes of a stage probe and an earlier stage keeps."""
        numbers = {id(node.operator): number for number, node in enumerate(self.nodes)}
        found = {
            numbers[id(side)]
            for at, node in zip(self.stages, self.nodes, strict=True)
            if at == stage
            for side in _probed(node.operator)
        }
        return sorted(number for number in found if self.stages[number] != stage)

    def last_read(self, number: int, first: int = 0) -> int:
        """The last stage in which a node's output is read, by the nodes from ``first`` on."""
        readers = [at for at, node in enumerate(self.nodes) if at >= first and number in node.inputs]
        return max((self.stages[one] for one in readers), default=self.stages[number])

    def beneath(self, name: str) -> set[int]:
        """The nodes that a relation and its store are made of."""
        store = self.store(name)
        return ancestors(self.nodes, [self.relations[name], *([] if store is None else [store])])

    def advance(self, sources: Mapping[str, Frontier]) -> None:
        """Between ticks: time has come so far at the sources; state that cannot change any more goes."""
        advance(self.nodes, {self.relations[name]: frontier for name, frontier in sources.items()})

    # Inner workings

    def _add(self, circuit: Circuit, number: int) -> None:
        node = circuit.nodes[number]
        inputs = [self._at[one] for one in node.inputs]
        if isinstance(node.operator, Input):
            name = next(name for name, one in circuit.sources.items() if one == number)
            where = Everywhere() if node.operator.everywhere else ByColumns(self.sources[name])
            self._at[number] = self._append(node, (), where)
            return
        share = Share.OWN
        if isinstance(node.operator, TopK) and not isinstance(self.partitionings[inputs[0]], Single | Everywhere):
            inputs = [self._first_of_each_shard(number, node, node.operator, self._told_by_row(inputs[0]))]
            share = Share.FIRSTS
        if isinstance(node.operator, Nearest) and not is_near_in_place([self.partitionings[one] for one in inputs]):
            self._at[number] = self._nearest_of_each_shard(number, node, node.operator, inputs)
            return
        placement = place(node.operator, [self.partitionings[one] for one in inputs])
        if isinstance(node.operator, Aggregate) and placement.routes[0] is not None:
            steps = two_steps(node.operator)
            if steps is not None and not (self._movable and steps.local.states):
                self._at[number] = self._in_two_steps(number, node, steps, inputs[0], placement.output)
                return
        if node.operator.states and placement.routes[0] is None:
            inputs[0] = self._told_by_row(inputs[0])
            placement = place(node.operator, [self.partitionings[one] for one in inputs])
        moved = [
            one if route is None else self._exchange(one, route)
            for one, route in zip(inputs, placement.routes, strict=True)
        ]
        self._at[number] = self._append(node, moved, placement.output)
        self._has_state(self._at[number], number, share)

    def _told_by_row(self, source: int) -> int:
        """The node that has the same rows, if these have to be where they tell themselves."""
        if not self._movable or not isinstance(self.partitionings[source], Somewhere):
            return source
        types = self.nodes[source].operator.types
        return self._exchange(source, ToKeys(tuple(Column(at, "", kind) for at, kind in enumerate(types))))

    def _has_state(self, node: int, number: int, share: Share) -> None:
        if self.nodes[node].operator.states:
            self.origins[node] = Origin(number, share)

    def _first_of_each_shard(self, number: int, node: CircuitNode, operator: TopK, source: int) -> int:
        local = self._part(node, operator.local(), f"{node.label} of the shard")
        first = self._append(local, [source], self.partitionings[source])
        self._has_state(first, number, Share.OWN)
        return first

    def _nearest_of_each_shard(self, number: int, node: CircuitNode, operator: Nearest, inputs: Sequence[int]) -> int:
        """Queries go to all shards, each lists its own documents, and the first of all lists are chosen by query."""
        queries, documents = inputs
        if not isinstance(self.partitionings[queries], Everywhere):
            queries = self._exchange(queries, ToAll())
        merge = merged_nearest(operator)
        local = self._append(
            self._part(node, merge.local, f"{node.label} of the shard"), [queries, documents], Somewhere()
        )
        together = self._exchange(local, merge.route)
        placed = self.partitionings[together]
        ranked = self._append(self._part(node, merge.ranked, node.label), [together], placed)
        first = self._append(self._part(node, merge.first, "filter"), [ranked], placed)
        self._has_state(local, number, Share.PARTS)
        self._has_state(ranked, number, Share.SUMS)
        return self._append(self._part(node, merge.output, "project"), [first], Somewhere())

    def _in_two_steps(self, number: int, node: CircuitNode, steps: TwoSteps, source: int, output: Partitioning) -> int:
        local = self._append(self._part(node, steps.local, "aggregate of the shard"), [source], Somewhere())
        keys = tuple(Column(place, "", key.type) for place, key in enumerate(steps.final.keys))
        together = self._exchange(local, ToKeys(keys) if keys else ToOne())
        final = self._append(self._part(node, steps.final, "aggregate"), [together], output)
        # Where the first step keeps nothing, the second has what an aggregate in one step has.
        self._has_state(local, number, Share.PARTS)
        self._has_state(final, number, Share.SUMS if steps.local.states else Share.OWN)
        if steps.output is None:
            return final
        return self._append(self._part(node, steps.output, "project"), [final], output)

    def _part(self, node: CircuitNode, operator: Operator, label: str) -> CircuitNode:
        """A node that does a part of another one's work."""
        return CircuitNode(operator, (), label, fingerprint(label, [node.fingerprint]))

    def _exchange(self, source: int, route: Route) -> int:
        if (source, route) not in self._exchanged:
            operator = Exchange(self.nodes[source].operator.types, route, self.policy)
            mark = fingerprint(route, [self.nodes[source].fingerprint])
            node = CircuitNode(operator, (source,), "exchange", mark)
            self._exchanged[source, route] = self._append(node, [source], after(route))
        return self._exchanged[source, route]

    def _append(self, node: CircuitNode, inputs: Sequence[int], output: Partitioning) -> int:
        self.stages.append(max((self.available(one) for one in inputs), default=0))
        self.nodes.append(replace(node, inputs=tuple(inputs)))
        self.partitionings.append(output)
        return len(self.nodes) - 1


def _probed(operator: Operator) -> Sequence[Operator]:
    """The arrangements that an operator reads."""
    if isinstance(operator, Join | Match):
        return operator.left, operator.right
    return (operator.documents.store,) if isinstance(operator, Nearest) else ()
