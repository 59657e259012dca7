"""``Circuit``: operators in topological order, stepped together as one atomic tick."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from weirflow.errors import DataError
from weirflow.ivm import compiled
from weirflow.ivm.circuit.routes import Routes
from weirflow.ivm.circuit.slices import SlicedJoins
from weirflow.ivm.circuit.together import stepped_together
from weirflow.ivm.kernel.deadline import Deadline
from weirflow.ivm.kernel.fingerprint import fingerprint
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate
from weirflow.sql.clock.relation import CLOCK
from weirflow.sql.snapshots import is_snapshot

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.circuit.slices import SlicedRun
    from weirflow.ivm.kernel.frontier import Frontier

_FUEL_PER_ROW = 12
"""How many rows are merged for each row that arrives.

Levels of runs grow by the factor FAN_IN = 3, so a row is merged once for each of log3(n / HEAD_ROWS) levels on its way
down: nine for 40 million rows. When what is newer is half as large as the base, all of it is merged with the base,
which is three rows for each new one. Twelve keeps up with both, so that merges never pile up.
"""
_LEAST_FUEL = 8192


class Input(Operator):
    """A source of the circuit: its delta comes from outside.

    Attributes:
        everywhere: whether every shard has all its rows, where the circuit is cut into shards.
    """

    def __init__(self, types: Sequence[pa.DataType], *, everywhere: bool = False) -> None:
        super().__init__(types)
        self.everywhere = everywhere

    def step(self, deltas: Sequence[Batch]) -> Batch:
        """Pass the delta on."""
        (delta,) = deltas
        return delta


Marks = list[tuple[Operator, Any]]
"""Operators that a commit has changed, each with what it was."""


@dataclass(frozen=True)
class CircuitNode:
    """An operator in its place.

    Attributes:
        kind: all that makes the operator differ from others with the same inputs, as plain data.
    """

    operator: Operator
    inputs: tuple[int, ...]
    label: str
    fingerprint: str
    kind: Any = field(default=None, compare=False, repr=False)


@dataclass
class Circuit:
    """A program that turns deltas of sources into deltas of views.

    Nodes are added in topological order, inputs before what reads them. ``start`` runs once, then ``step`` for every
    tick, each followed by ``commit`` or ``discard``.
    """

    nodes: list[CircuitNode] = field(default_factory=list)
    sources: dict[str, int] = field(default_factory=dict)
    views: dict[str, int] = field(default_factory=dict)
    _steps: int = field(default=0, init=False, repr=False)
    _is_open: bool = field(default=False, init=False, repr=False)
    """Whether a step was begun that was neither committed nor discarded."""
    _stepped: list[Operator] = field(default_factory=list, init=False, repr=False)
    """The operators that the open step has reached."""
    _routes: Routes = field(default_factory=lambda: Routes((), {}), init=False, repr=False)
    _untidy: dict[Operator, None] = field(default_factory=dict, init=False, repr=False)
    """Operators whose state has changed and may have something to merge."""
    _sliced: SlicedJoins | None = field(default=None, init=False, repr=False)
    """Found when it is needed; forgotten when nodes or views change."""

    def add_source(self, name: str, types: Sequence[pa.DataType], *, everywhere: bool = False, about: str = "") -> int:
        """A new input of the circuit; what there is to say ``about`` it stands behind its name for people."""
        self.sources[name] = self.add(Input(types, everywhere=everywhere), (), _label(name) + about, name)
        return self.sources[name]

    def add(self, operator: Operator, inputs: Sequence[int], label: str, spec: Any = ()) -> int:
        """Append an operator that reads the outputs of earlier ones; returns its number.

        ``spec`` is all that makes it differ from others of its kind with the same inputs, as plain data.
        """
        assert all(number < len(self.nodes) for number in inputs)
        kind = (type(operator).__name__, operator.types, spec)
        mark = fingerprint(kind, [self.nodes[number].fingerprint for number in inputs])
        self.nodes.append(CircuitNode(operator, tuple(inputs), label, mark, kind))
        self._sliced = None
        return len(self.nodes) - 1

    def add_view(self, name: str, node: int) -> None:
        """Name a node's output."""
        self.views[name] = node
        self._sliced = None

    def start(self) -> dict[str, Batch]:
        """The views over empty sources. Constants flow through the circuit like a first delta."""
        return self.fill(0, {})

    def computed(self, contents: Mapping[str, Batch]) -> dict[str, Batch]:
        """Instead of ``start``: the views over these rows of the sources, all or an error; no tick follows."""
        given = {self.sources[name]: rows for name, rows in contents.items()}
        with Deadline(None):
            outputs = self._run(0, given, starting=True)
        return {name: consolidate(outputs[number]) for name, number in self.views.items()}

    def fill(self, first: int, contents: Mapping[int, Batch]) -> dict[str, Batch]:
        """Run the nodes from ``first`` on for the first time; returns the views among them.

        ``contents`` are all rows of the older nodes that new ones read: to the new nodes they are a first delta, before
        which everything was empty. What an expression cannot be computed for over nothing, such as ``10 / COUNT(*)``,
        is not there until it can be. If this raises, the new nodes are to be cut off.
        """
        with ExitStack() as stack, Deadline(None):
            for number in contents:
                operator = self.nodes[number].operator
                if isinstance(operator, Arrange):
                    stack.enter_context(operator.emptied())
            begun = self._run(first, {}, starting=True, lenient=True)
            self._commit_new(first)
            made = self._run(first, contents, starting=False)
            self._commit_new(first)
        views = {name: number for name, number in self.views.items() if number >= first}
        return {name: consolidate(Batch.concat([begun[number], made[number]])) for name, number in views.items()}

    def _run(
        self, first: int, given: Mapping[int, Batch], *, starting: bool, lenient: bool = False
    ) -> dict[int, Batch]:
        """The outputs of all nodes from ``first`` on, for those that are given.

        ``starting`` adds what nodes begin with; ``lenient`` leaves out what cannot be computed of that.
        """
        outputs = dict(given)
        sliced = self._sliced_joins().run()
        over_nothing: set[int] = set()  # nodes with rows that are there because the sources are empty
        for number in range(first, len(self.nodes)):
            if number in given:
                continue
            node = self.nodes[number]
            inputs = [outputs.get(one) or self.nodes[one].operator.nothing for one in node.inputs]
            output = self._begun(number, lenient=lenient) if starting else node.operator.nothing
            if lenient and len(output) and node.inputs and self._is_over_sources(number):
                over_nothing.add(number)
            if any(len(delta) for delta in inputs) or sliced.waits(node):
                from_nothing = not over_nothing.isdisjoint(node.inputs)
                made = sliced.step(number, inputs, lenient=from_nothing)
                output = Batch.concat([output, made])
                if from_nothing:
                    over_nothing.add(number)
            outputs[number] = output
        return outputs

    def _begun(self, number: int, *, lenient: bool) -> Batch:
        """What a node begins with; nothing if it is a whole query over sources, which fails over nothing."""
        operator = self.nodes[number].operator
        try:
            return operator.start()
        except DataError:
            if not lenient or not self._is_over_sources(number):
                raise
            return operator.nothing

    def _commit_new(self, first: int) -> None:
        for node in self.nodes[first:]:
            self._untidy[node.operator] = None
            node.operator.commit()

    def _is_over_sources(self, number: int) -> bool:
        """Whether a node reads sources, directly or not."""
        return any(isinstance(self.nodes[one].operator, Input) for one in self.ancestors([number]))

    def keep(self) -> Callable[[], None]:
        """A function that brings back the nodes that are there now, between ticks; it may be called repeatedly."""
        nodes, sources, views = list(self.nodes), dict(self.sources), dict(self.views)
        arranged = [(node.operator, node.operator.arrangement) for node in nodes if isinstance(node.operator, Arrange)]

        def restore() -> None:
            self.nodes[:] = nodes
            self._sliced = None
            self.sources, self.views = dict(sources), dict(views)
            for operator, arrangement in arranged:
                operator.arrangement = arrangement

        return restore

    def retain(self, live: Iterable[int]) -> dict[int, int]:
        """Remove all nodes but these, which read no others; returns the new number of each."""
        self._sliced = None
        place = {number: at for at, number in enumerate(sorted(live))}
        self.nodes[:] = [
            replace(self.nodes[number], inputs=tuple(place[one] for one in self.nodes[number].inputs))
            for number in place
        ]
        self.sources = {name: place[number] for name, number in self.sources.items() if number in place}
        self.views = {name: place[number] for name, number in self.views.items() if number in place}
        return place

    def ancestors(self, numbers: Iterable[int]) -> set[int]:
        """These nodes and all that they read, directly or not."""
        return ancestors(self.nodes, numbers)

    def is_everywhere(self, number: int) -> bool:
        """Whether every shard has all rows of a node: it is made of nothing but sources that are everywhere."""
        operators = [self.nodes[one].operator for one in self.ancestors([number]) if not self.nodes[one].inputs]
        return all(isinstance(one, Input) and one.everywhere for one in operators)

    def read_by(self, first: int) -> set[int]:
        """The nodes before ``first`` that those from ``first`` on read."""
        return {one for node in self.nodes[first:] for one in node.inputs if one < first}

    def cut(self, first: int) -> None:
        """Remove the nodes from ``first`` on, and the names of those among them."""
        self._sliced = None
        del self.nodes[first:]
        self.sources = {name: number for name, number in self.sources.items() if number < first}
        self.views = {name: number for name, number in self.views.items() if number < first}

    def step(self, deltas: Mapping[str, Batch]) -> dict[str, Batch]:
        """One tick: the deltas of the views that change. Nothing has changed yet when it returns or raises.

        An operator none of whose inputs change is not run. What an earlier step left staged is forgotten.
        """
        if self._is_open:
            self.discard()
        self._is_open = True
        if not compiled.decided:
            self._steps += 1
            compiled.offer(self._steps, sum(map(len, deltas.values())))
        given = {self.sources[name]: delta for name, delta in deltas.items()}
        if not self._routes.are_of(self.nodes, self.views):
            self._routes = Routes(self.nodes, self.views)
        routes = self._routes
        outputs: dict[int, Batch] = {}
        sliced = self._sliced_joins().run()
        for in_order, together in routes.behind(frozenset(given)):
            for number in in_order:
                self._step(number, given, outputs, sliced)
            if together:
                self._step_together(together, given, outputs, sliced)
        for output in outputs.values():
            output.forget()
        changed = {name: self._consolidated(number, outputs) for number in outputs for name in routes.views(number)}
        return {name: delta for name, delta in changed.items() if len(delta.weights)}

    def _step(self, number: int, given: Mapping[int, Batch], outputs: dict[int, Batch], sliced: SlicedRun) -> None:
        """Step a node if one of its inputs changes."""
        node = self.nodes[number]
        if number in given:
            inputs = [given[number]]
        elif not outputs.keys().isdisjoint(node.inputs) or sliced.waits(node):
            inputs = [outputs[one] if one in outputs else self.nodes[one].operator.nothing for one in node.inputs]
        else:
            return
        self._stepped.append(node.operator)
        output = sliced.step(number, inputs)
        if len(output.weights):
            outputs[number] = output

    def _step_together(
        self, numbers: Sequence[int], given: Mapping[int, Batch], outputs: dict[int, Batch], sliced: SlicedRun
    ) -> None:
        """Step nodes that have one input each, as many of them as possible at once."""
        ready = []
        for number in numbers:
            node = self.nodes[number]
            if node.inputs[0] in outputs and not sliced.waits(node):
                self._stepped.append(node.operator)
                ready.append((number, node.operator, outputs[node.inputs[0]]))
            else:
                self._step(number, given, outputs, sliced)
        for number, output in stepped_together(ready):
            if output is None:
                self._step(number, given, outputs, sliced)
            elif len(output.weights):
                outputs[number] = output

    def _sliced_joins(self) -> SlicedJoins:
        if self._sliced is None:
            self._sliced = SlicedJoins(self.nodes, self.views.values())
        return self._sliced

    def _consolidated(self, number: int, outputs: Mapping[int, Batch]) -> Batch:
        return outputs[number] if self.nodes[number].operator.consolidated else consolidate(outputs[number])

    def commit(self, marks: Marks) -> None:
        """Apply the tick's changes, each operator's behind a mark of what it was.

        What raises may have applied a part of them: ``rewind`` with the same marks takes that back.
        """
        for operator in self._stepped:
            if operator.is_staged:
                marks.append((operator, operator.mark()))
                self._untidy[operator] = None
                operator.commit()
        self._stepped = []
        self._is_open = False

    def rewind(self, marks: Marks) -> None:
        """Take back a commit that was interrupted: the circuit is as before ``step``. May be repeated."""
        for operator, mark in marks:
            operator.rewind(mark)
        self.discard()

    def maintain(self, rows: int) -> None:
        """Between ticks: tidy up the state that has changed, in proportion to the ``rows`` that came."""
        fuel = max(_LEAST_FUEL, _FUEL_PER_ROW * rows)
        for operator in list(self._untidy):
            if not operator.maintain(fuel):
                del self._untidy[operator]

    def advance(self, sources: Mapping[str, Frontier]) -> None:
        """Between ticks: time has come so far at the sources; state that cannot change any more goes."""
        advance(self.nodes, {self.sources[name]: frontier for name, frontier in sources.items()})

    def discard(self) -> None:
        """Forget the tick: the circuit is as it was before ``step``."""
        for node in self.nodes:
            node.operator.discard()
        self._stepped = []
        self._is_open = False


def ancestors(nodes: Sequence[CircuitNode], numbers: Iterable[int]) -> set[int]:
    """Some of the nodes and all that they read, directly or not."""
    ahead, seen = list(numbers), set[int]()
    while ahead:
        number = ahead.pop()
        if number not in seen:
            seen.add(number)
            ahead += nodes[number].inputs
    return seen


def advance(nodes: Sequence[CircuitNode], sources: Mapping[int, Frontier]) -> None:
    """Between ticks: time has come so far at the nodes of the sources; state that cannot change any more goes."""
    at = dict(sources)
    for number, node in enumerate(nodes):
        if any(at.get(one) for one in node.inputs):
            at[number] = node.operator.advance([at.get(one, {}) for one in node.inputs])


def _label(source: str) -> str:
    if source == CLOCK:
        return source
    return f"{source}: its rows as they were when last refreshed" if is_snapshot(source) else f"source {source}"
