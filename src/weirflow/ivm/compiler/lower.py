"""Lower a logical plan to operators of a circuit; equal sub-plans and equal arrangements are built once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import singledispatchmethod

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.errors import NotIncremental, Reason, TableNotFound
from weirflow.ivm.circuit.circuit import Circuit
from weirflow.ivm.circuit.first_level import LEVEL
from weirflow.ivm.circuit.recursion import FOUND, STEP, Recursion
from weirflow.ivm.compiler.builder import ArrangedNode, OfferedStore
from weirflow.ivm.compiler.columns import identity, moved_call
from weirflow.ivm.compiler.imports import Imports
from weirflow.ivm.compiler.lift import lift
from weirflow.ivm.compiler.lower_joins import JoinLowering
from weirflow.ivm.compiler.lower_nearest import lowered_nearest
from weirflow.ivm.compiler.one_value import determined_calls
from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.kernel.expressions.registry import UnknownFunction
from weirflow.ivm.kernel.sort_keys import SortColumn
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.clocked.operator import Clocked
from weirflow.ivm.operators.constant import Constant
from weirflow.ivm.operators.distinct import Distinct
from weirflow.ivm.operators.generate import Generate
from weirflow.ivm.operators.layered import LayeredArrange, LayeredDistinct
from weirflow.ivm.operators.map import Filter
from weirflow.ivm.operators.negate import Negate
from weirflow.ivm.operators.session_window import SessionWindow
from weirflow.ivm.operators.set_operation import SetOperation
from weirflow.ivm.operators.topk import TopK
from weirflow.ivm.operators.union import Union
from weirflow.ivm.operators.window.changes import Limit
from weirflow.ivm.operators.window.functions import is_supported
from weirflow.ivm.operators.window.operator import Window
from weirflow.ivm.zset.batch import Batch
from weirflow.sql import plan as logical
from weirflow.sql.clock.reading import reads_clock
from weirflow.sql.clock.relation import CLOCK
from weirflow.sql.expr import Column, Expr, Literal, WindowCall
from weirflow.stack import grows

_BIGINT = pa.int64()


class Lowering(JoinLowering):
    """Adds the operators of plans to a circuit.

    Args:
        circuit: where operators are added.
        relations: the nodes of the sources and views that plans may scan.
        imports: of the circuit of a recursion's step, what it reads of the circuit around it. The step runs several
            times in a tick, so its state is layered.
    """

    def __init__(self, circuit: Circuit, relations: Mapping[str, int], imports: Imports | None = None) -> None:
        super().__init__(circuit)
        self._relations = relations
        self._imports = imports
        self._arrange_operator = Arrange if imports is None else LayeredArrange
        self._distinct_operator = Distinct if imports is None else LayeredDistinct
        self._nodes: dict[logical.Plan, int] = {}

    @grows
    def node(self, plan: logical.Plan) -> int:
        """The number of the node whose output is the plan's; ``NotIncremental`` if there is no operator for it."""
        if plan not in self._nodes:
            try:
                imported = self._imports.node(plan) if self._imports is not None else None
                self._nodes[plan] = self._lower(plan) if imported is None else imported
            except UnknownFunction as error:
                raise NotIncremental(
                    error.message, reason=Reason.FUNCTION_NOT_PROVEN, hint=error.hint, position=error.position
                ) from error
        return self._nodes[plan]

    def keep(self) -> Callable[[], None]:
        """A function that brings back what is known now of nodes and arrangements; it may be called repeatedly."""
        nodes, arranged, offered = dict(self._nodes), dict(self._arranged), dict(self._offered)

        def restore() -> None:
            self._nodes, self._arranged, self._offered = dict(nodes), dict(arranged), dict(offered)

        return restore

    def forget_plans(self) -> None:
        """Build plans anew from here on; relations and arrangements, whose rows are kept, are still shared."""
        self._nodes.clear()

    def cut(self, first: int) -> None:
        """Forget the nodes from ``first`` on, which are gone."""
        self._nodes = {plan: node for plan, node in self._nodes.items() if node < first}
        self._arranged = {wanted: found for wanted, found in self._arranged.items() if found.node < first}
        self._offered = {source: store for source, store in self._offered.items() if store.arranged.node < first}

    def renumber(self, place: Mapping[int, int]) -> None:
        """Nodes have other numbers now; those without one are gone."""
        self._arranged = {
            (place[node], keys, keyed, in_place): replace(found, node=place[found.node])
            for (node, keys, keyed, in_place), found in self._arranged.items()
            if node in place and found.node in place
        }
        self._offered = {
            place[source]: OfferedStore(store.key, replace(store.arranged, node=place[store.arranged.node]))
            for source, store in self._offered.items()
            if source in place and store.arranged.node in place
        }

    @override
    def _source(self, name: str) -> int | None:
        return self._relations.get(name)

    @singledispatchmethod
    def _lower(self, plan: logical.Plan) -> int:
        raise NotIncremental(
            f"{type(plan).__name__} has no incremental operator.", reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE
        )

    @_lower.register
    def _(self, plan: logical.Scan) -> int:
        return self._relations[plan.name]

    @_lower.register
    def _(self, plan: logical.Values) -> int:
        count = len(plan.rows)
        cells = [expression for row in plan.rows for expression in row]
        values = compile_expressions(cells)([], 1)
        width = len(plan.fields)
        columns = tuple(pa.concat_arrays(values[index::width]) for index in range(width))
        types = [field.type for field in plan.fields]
        return self._circuit.add(
            Constant(types, Batch(columns, np.ones(count, np.int64))), (), f"values {count}", plan.rows
        )

    @_lower.register
    def _(self, plan: logical.Filter) -> int:
        if reads_clock(plan.predicate):
            return self._clocked(plan, plan.predicate, "filter by the clock")
        types = [field.type for field in plan.fields]
        return self._circuit.add(Filter(types, plan.predicate), [self.node(plan.input)], "filter", plan.predicate)

    @_lower.register
    def _(self, plan: logical.Project) -> int:
        if any(map(reads_clock, plan.expressions)):
            return self._clocked(plan, plan.expressions, "project by the clock")
        return self._project(self.node(plan.input), plan.expressions)

    @_lower.register
    def _(self, plan: logical.Union) -> int:
        types = [field.type for field in plan.fields]
        return self._circuit.add(Union(types), [self.node(one) for one in plan.inputs], "union")

    @_lower.register
    def _(self, plan: logical.Generate) -> int:
        operator = Generate([field.type for field in plan.fields], plan.generator, outer=plan.outer)
        return self._circuit.add(
            operator, [self.node(plan.input)], plan.generator.function, (plan.generator, plan.outer)
        )

    @_lower.register
    def _(self, plan: logical.Distinct) -> int:
        node = self._normalized(self.node(plan.input), plan.fields)
        return self._circuit.add(self._distinct_operator([field.type for field in plan.fields]), [node], "distinct")

    @_lower.register
    def _(self, plan: logical.SetOperation) -> int:
        sides = [self._normalized(self.node(side), plan.fields) for side in (plan.left, plan.right)]
        types = [field.type for field in plan.fields]
        label = f"{plan.kind}{' all' if plan.all else ''}"
        return self._circuit.add(SetOperation(types, plan.kind, keep_all=plan.all), sides, label, (plan.kind, plan.all))

    @_lower.register
    def _(self, plan: logical.Aggregate) -> int:
        calls = determined_calls(plan)
        source = self.node(plan.input)
        if plan.grouping_sets is None:
            return self._circuit.add(Aggregate(plan.keys, calls), [source], "aggregate", (plan.keys, calls))
        return self._grouping_sets(plan, source, plan.grouping_sets)

    @_lower.register
    def _(self, plan: logical.Window) -> int:
        """One operator for each way of partitioning, one behind the other; columns are put back in order at the end."""
        width = len(plan.input.fields)
        _require_supported(plan.calls)
        node = self.node(plan.input)
        placed: dict[int, int] = {}
        by_partition: dict[tuple[Expr, ...], list[int]] = {}
        for number, call in enumerate(plan.calls):
            by_partition.setdefault(call.partition_by, []).append(number)
        for numbers in by_partition.values():
            types = self._circuit.nodes[node].operator.types
            calls = [plan.calls[number] for number in numbers]
            operator = Window(types, calls)
            node = self._circuit.add(operator, [node], f"window, {operator.course}", calls)
            placed |= {number: len(types) + place for place, number in enumerate(numbers)}
        columns = [Column(placed[number], "", call.type) for number, call in enumerate(plan.calls)]
        return self._project(node, [*identity(plan.input.fields)[:width], *columns])

    @_lower.register
    def _(self, plan: logical.FirstRanked) -> int:
        """Its state is that of a window of the same calls, and is known by the same: the filter above is another."""
        _require_supported(plan.calls)
        operator = Window([field.type for field in plan.input.fields], plan.calls, Limit(plan.rank, plan.most))
        return self._circuit.add(operator, [self.node(plan.input)], f"window, {operator.course}", list(plan.calls))

    @_lower.register
    def _(self, plan: logical.SessionWindow) -> int:
        types = [field.type for field in plan.input.fields]
        operator = SessionWindow(types, plan.keys, plan.time, plan.gap_us)
        return self._circuit.add(
            operator, [self.node(plan.input)], "session window", (plan.keys, plan.time, plan.gap_us)
        )

    @_lower.register
    def _(self, plan: logical.Recursive) -> int:
        types = [field.type for field in plan.fields]
        circuit = Circuit()
        found = circuit.add_source(FOUND, [*types, LEVEL])
        imports = Imports(plan.name, circuit, self.node)
        inside = Lowering(circuit, {plan.name: found}, imports)
        step, base = inside.node(lift(plan)), self.node(plan.base)
        if plan.distinct:
            step, base = inside._normalized(step, plan.fields), self._normalized(base, plan.fields)
        circuit.add_view(STEP, step)
        operator = Recursion(plan.name, types, circuit, imports.sources, distinct=plan.distinct)
        return self._circuit.add(operator, [base, *imports.nodes], f"recursion {plan.name}", (plan.step, plan.distinct))

    @_lower.register
    def _(self, plan: logical.Nearest) -> int:
        operator, inputs, spec = lowered_nearest(self, plan, self._kept_rows)
        return self._circuit.add(operator, inputs, operator.label, spec)

    @_lower.register
    def _(self, plan: logical.Join) -> int:
        match plan.kind:
            case logical.JoinKind.INNER:
                return self._inner(plan)
            case logical.JoinKind.LEFT:
                return self._outer(plan, pad_left=True, pad_right=False)
            case logical.JoinKind.RIGHT:
                return self._outer(plan, pad_left=False, pad_right=True)
            case logical.JoinKind.FULL:
                return self._outer(plan, pad_left=True, pad_right=True)
            case logical.JoinKind.SEMI:
                return self._matched(plan.left, plan.right, plan, wanted=True)
            case logical.JoinKind.ANTI:
                anti = self._matched(plan.left, plan.right, plan, wanted=False)
                return self._null_aware(plan, anti) if plan.null_aware else anti

    @_lower.register
    def _(self, plan: logical.TopK) -> int:
        source = self.node(plan.input)
        if plan.limit is not None:
            return self._first(plan, source, plan.limit, plan.offset)
        # Everything but the first rows.
        types = [field.type for field in plan.fields]
        skipped = self._circuit.add(Negate(types), [self._first(plan, source, plan.offset, 0)], "negate")
        return self._circuit.add(Union(types), [source, skipped], "union")

    def _kept_rows(self, name: str) -> ArrangedNode | None:
        """Where all rows of a relation are kept; not in a recursion, whose circuit has arrangements of its own."""
        node = self._relations.get(name)
        return None if node is None or self._imports is not None else self.kept_rows(node)

    def _clocked(self, plan: logical.Filter | logical.Project, output: Expr | tuple[Expr, ...], label: str) -> int:
        types = [field.type for field in plan.input.fields]
        if CLOCK not in self._relations:
            raise TableNotFound("The flow has no clock yet.", hint="advance() it")
        return self._circuit.add(Clocked(types, output), [self.node(plan.input), self._relations[CLOCK]], label, output)

    def _first(self, plan: logical.TopK, source: int, limit: int, offset: int) -> int:
        """The first rows; sort keys that are not columns are computed beside the row and dropped again."""
        columns = identity(plan.fields)
        width = len(columns)
        keys = [key.expr for key in plan.order]
        if not columns and not keys:
            keys = [Literal(0, _BIGINT)]  # nobody reads a column, only how many rows there are
        projected = self._project(source, (*columns, *keys))
        order = [SortColumn(width + place, key.descending, key.nulls_first) for place, key in enumerate(plan.order)]
        if not order:
            # Any rows will do. All columns would break ties anyway; as sort keys they also lead to the first rows.
            order = [SortColumn(index) for index in range(max(width, 1))]
        types = self._circuit.nodes[projected].operator.types
        first = self._circuit.add(
            TopK(types, order, limit, offset), [projected], f"top {limit}", (order, limit, offset)
        )
        return self._project(first, columns)

    def _grouping_sets(self, plan: logical.Aggregate, source: int, sets: Sequence[Sequence[int]]) -> int:
        """One copy of the rows for each set, with the other keys NULL and a number that tells the sets apart."""
        columns = identity(plan.input.fields)
        width, count = len(columns), len(plan.keys)
        # Spark's grouping id: a bit for each key, the first key's highest, set when the key is left out.
        numbers = [sum(1 << (count - 1 - place) for place in range(count) if place not in members) for members in sets]
        # A set that is named twice makes its groups twice: its place tells them apart.
        marks = [(number,) if len(set(numbers)) == len(sets) else (number, at) for at, number in enumerate(numbers)]
        copies = []
        for members, mark in zip(sets, marks, strict=True):
            keys = tuple(key if place in members else Literal(None, key.type) for place, key in enumerate(plan.keys))
            copies.append(self._project(source, (*columns, *keys, *(Literal(value, _BIGINT) for value in mark))))
        types = self._circuit.nodes[copies[0]].operator.types
        spread = self._circuit.add(Union(types), copies, "grouping sets")
        keys = tuple(Column(place, "", types[place]) for place in range(width, len(types)))
        calls = tuple(moved_call(call, range(width)) for call in plan.calls)
        grouped = self._circuit.add(Aggregate(keys, calls), [spread], "aggregate", (keys, calls))
        output = [Column(place, "", key.type) for place, key in enumerate(plan.keys)]
        output += [Column(len(keys) + place, "", call.type) for place, call in enumerate(plan.calls)]
        return self._project(grouped, [*output, Column(count, "", _BIGINT)])


def _require_supported(calls: Sequence[WindowCall]) -> None:
    for call in calls:
        if not is_supported(call):
            raise NotIncremental(
                f"The window function {call.function}, as it is used here, is not proven to equal Spark's.",
                reason=Reason.FUNCTION_NOT_PROVEN,
                position=call.position,
            )
