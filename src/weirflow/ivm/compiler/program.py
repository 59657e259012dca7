"""``Program``: a circuit with named relations, to which views are added while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.errors import ConfigError, NotIncremental
from weirflow.ivm.circuit.circuit import Circuit
from weirflow.ivm.compiler.columns import identity
from weirflow.ivm.compiler.lower import Lowering
from weirflow.ivm.compiler.missing_engine import no_engine
from weirflow.ivm.compiler.reads import in_order, missing, reads
from weirflow.ivm.compiler.settled import under
from weirflow.ivm.compiler.source_sides import source_sides
from weirflow.ivm.compiler.user_functions import recomputes
from weirflow.ivm.compiler.view import Mode, RecomputeEngine, View, frame_recomputed
from weirflow.ivm.kernel.expressions.foreign import evaluated_by
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.recompute import Recompute
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.rows.dimensions import dimensions_of
from weirflow.sql.limits import check_plan, check_type
from weirflow.sql.passes.optimize import logical_plan, optimized
from weirflow.sql.plan import Field, Plan, Scan
from weirflow.sql.settings import USUAL, SqlSettings
from weirflow.sql.stored import decode_plan, fitted, not_there
from weirflow.sql.traverse import map_plan

if TYPE_CHECKING:
    from weirflow.ivm.compiler.builder import ArrangedNode
    from weirflow.ivm.kernel.runs.run import Run


@dataclass(frozen=True)
class Relation:
    """A source or view in a program.

    Attributes:
        fields: its columns.
        node: whose output its deltas are.
        store: the arrangement that holds all its rows, by key if it has one; None if they are not kept.
        plan: what an incremental view computes; None for others.
        mode: how a view is maintained; None for a source.
        refusal: why a view that could choose is not incremental.
        keeps: whether stored rows stay until they are retracted.
        key: of a source, the columns that identify a row.
        order: of a source, the columns by which views probe its store; none if they do not.
    """

    fields: tuple[Field, ...]
    node: int
    store: ArrangedNode | None
    plan: Plan | None = None
    mode: Mode | None = None
    refusal: NotIncremental | None = None
    keeps: bool = True
    key: tuple[int, ...] = ()
    order: tuple[int, ...] = ()

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of its columns."""
        return tuple(field.type for field in self.fields)

    @cached_property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return pa.schema([(field.name, field.type) for field in self.fields])

    @property
    def kind(self) -> str:
        """What it is: ``source``, or how a view is maintained."""
        return "source" if self.mode is None else self.mode.value


class Program:
    """A circuit and its relations by name. A method that raises leaves the program as it was.

    Args:
        engine: what runs views of mode DIFF; without one they are refused.
    """

    def __init__(self, engine: RecomputeEngine | None = None) -> None:
        self.circuit = Circuit()
        self.relations: dict[str, Relation] = {}
        self._engine = engine
        self._nodes: dict[str, int] = {}
        self._lowering = Lowering(self.circuit, self._nodes)
        self._filled = 0
        self._unfilled: set[str] = set()

    def add_source(
        self,
        name: str,
        schema: pa.Schema,
        *,
        key: Sequence[str] = (),
        stored: bool = True,
        keeps: bool = True,
        everywhere: bool = False,
        order: Sequence[int] = (),
    ) -> None:
        """A relation whose deltas come from outside; ``stored`` keeps its rows, arranged by ``key``.

        Without ``keeps``, stored rows may be let go: nothing else rests on them. See ``Input`` for ``everywhere``.
        With an ``order`` they are arranged by these columns, and views that join by them probe them where they are.
        """
        fields = tuple(Field(field.name, field.type) for field in schema)
        about = "".join(f", {one} of {many} numbers" for one, many in dimensions_of(schema).items())
        node = self.circuit.add_source(name, [field.type for field in fields], everywhere=everywhere, about=about)
        columns, places = identity(fields), {field.name: place for place, field in enumerate(fields)}
        keys = tuple(places[one] for one in key)
        by = [columns[one] for one in keys or order]
        store = self._lowering.arrange(node, by, fields, in_place=everywhere) if stored else None
        if store is not None and not keeps:
            self._lowering.unshare(store)
        if store is not None and order:
            self._lowering.offer(node, tuple(order), store)
        self._add(name, Relation(fields, node, store, keeps=keeps, key=keys, order=tuple(order)))

    def add_views(self, views: Mapping[str, View]) -> None:
        """Compile views, which may read each other; they are empty until ``fill``.

        Equal parts of views that are filled together are built once. Of what was there before, relations and
        arrangements are shared; a view whose rows are not stored is computed once more inside the new ones.
        """
        first, names = len(self.circuit.nodes), set(self.relations)
        try:
            for name in in_order(views):
                self._add(name, self._build(views[name]))
                self.circuit.add_view(name, self.relations[name].node)
        except BaseException:
            self._cut(first, self.relations.keys() - names)
            raise

    def orders_for(self, view: View) -> dict[str, tuple[int, ...]]:
        """By which columns sources had better keep their rows, so that a new view needs no copy of them.

        That is the key of the first join that reads them, unless an operator reads the store as it is.
        """
        if view.mode is Mode.DIFF or view.forced:
            return {}
        try:
            sides = list(source_sides(self._inlined(self.plan(view))))
        except NotIncremental:
            return {}
        read = {one for node in self.circuit.nodes for one in node.inputs}
        found: dict[str, tuple[int, ...]] = {}
        for side in sides:
            relation = self.relations[side.name]
            is_free = relation.store is not None and relation.store.node not in read and relation.keeps
            if relation.mode is None and is_free and relation.key in ((), side.key):
                found.setdefault(side.name, side.key)
        return {name: key for name, key in found.items() if key != self.relations[name].order}

    def rearrange(self, name: str, order: tuple[int, ...]) -> None:
        """Keep the rows of a source by these columns from now on; everything is filled, and nothing reads its store."""
        relation = self.relations[name]
        first, columns = len(self.circuit.nodes), identity(relation.fields)
        store = self._lowering.arrange(relation.node, [columns[one] for one in order], relation.fields)
        if store.node >= first:
            self.circuit.fill(first, {relation.node: self.rows(name)})
        self._lowering.offer(relation.node, order, store)
        self.relations[name] = replace(relation, store=store, order=order)
        self._retain_used()

    @property
    def is_filled(self) -> bool:
        """Whether ``fill`` has nothing to do."""
        return self._filled == len(self.circuit.nodes) and not self._unfilled

    @property
    def unfilled(self) -> frozenset[str]:
        """The relations that ``fill`` is for."""
        return frozenset(self._unfilled)

    def fill(self) -> None:
        """Bring all that was added to the rows that are stored.

        If that raises, all that was not filled before is spoilt: ``cut_unfilled``.
        """
        first = self._filled
        self.circuit.fill(first, {node: self._content(node) for node in self.circuit.read_by(first)})
        self.settle()

    def cut_unfilled(self) -> None:
        """Remove all that is not filled."""
        self._cut(self._filled, set(self._unfilled))
        self.settle()

    def keep(self) -> Callable[[], None]:
        """A function that brings back the relations that are there now; it may be called repeatedly.

        What was filled or half filled meanwhile is spoilt: ``cut_unfilled`` and add it again.
        """
        relations, nodes, filled, unfilled = dict(self.relations), dict(self._nodes), self._filled, set(self._unfilled)
        circuit, lowering = self.circuit.keep(), self._lowering.keep()

        def restore() -> None:
            circuit()
            lowering()
            self.relations = dict(relations)
            self._nodes.clear()  # the lowering has the same
            self._nodes.update(nodes)
            self._filled, self._unfilled = filled, set(unfilled)

        return restore

    def drop(self, name: str) -> None:
        """Remove a relation that no other reads, and all state that was for it alone."""
        del self.relations[name], self._nodes[name]
        self.circuit.views.pop(name, None)
        self._retain_used()

    def _retain_used(self) -> None:
        """Remove the nodes that no relation is made of; everything that is left is filled."""
        live = self.circuit.ancestors(one for relation in self.relations.values() for one in _own_nodes(relation))
        place = self.circuit.retain(live)
        self._lowering.forget_plans()
        self._lowering.renumber(place)
        self.relations = {one: _renumbered(relation, place) for one, relation in self.relations.items()}
        self._nodes.update({one: relation.node for one, relation in self.relations.items()})
        self._filled = len(self.circuit.nodes)

    def plan(self, view: View) -> Plan:
        """The plan of a view over the relations."""
        known = {name: relation.fields for name, relation in self.relations.items()}
        lacking = missing(view, known)
        if lacking and view.plan is not None:
            raise not_there(min(lacking), known)
        if not lacking:  # otherwise all names count, to suggest one
            read = reads(view)
            known = {name: fields for name, fields in known.items() if name.casefold() in read}
        return _plan(view.sql, view.plan, view.read_with, tuple(known.items()))

    def rows(self, name: str) -> Batch:
        """All rows of a stored relation, each once with its weight."""
        return self._in_order_of_fields(name, _all_rows(self.store(name)))

    def store(self, name: str) -> Arrange:
        """The operator that holds a stored relation's rows, its key's columns first."""
        operator = self.circuit.nodes[self._store_node(name)].operator
        assert isinstance(operator, Arrange)
        return operator

    def states(self) -> dict[str, list[Sequence[Run]]]:
        """All state, by the fingerprint of the operator that has it: the runs of each of its states."""
        return {
            node.fingerprint: [state.runs for state in node.operator.states]
            for node in self.circuit.nodes
            if node.operator.states
        }

    def needs(self, name: str) -> set[str]:
        """The fingerprints of the operators whose state a relation rests on."""
        nodes = [self.circuit.nodes[number] for number in self.circuit.ancestors(_own_nodes(self.relations[name]))]
        return {node.fingerprint for node in nodes if node.operator.states}

    def adopt(self, states: Mapping[str, Sequence[Sequence[Run]]]) -> None:
        """Instead of ``fill``: take the state of all that was added from another program of the same operators."""
        for node in self.circuit.nodes[self._filled :]:
            if node.operator.states:
                node.operator.adopt(states[node.fingerprint])
        self.settle()

    def settle(self) -> None:
        """Take all that was added for filled: it is, or its state is elsewhere."""
        self._lowering.forget_plans()
        self._filled = len(self.circuit.nodes)
        self._unfilled.clear()

    # Inner workings

    def _add(self, name: str, relation: Relation) -> None:
        self.relations[name] = relation
        self._nodes[name] = relation.node
        self._unfilled.add(name)

    def _cut(self, first: int, names: set[str]) -> None:
        """Remove the nodes from ``first`` on, and these relations, which no others read."""
        self.circuit.cut(first)
        self._lowering.cut(first)
        for name in names:
            self.circuit.views.pop(name, None)  # a view may share the node of an older relation
            del self.relations[name], self._nodes[name]
        self._unfilled -= names

    def _build(self, view: View) -> Relation:
        if view.mode is Mode.DIFF or view.forced:
            return self._recomputed(view, None)
        first = len(self.circuit.nodes)
        try:
            plan = self._inlined(self.plan(view))
            check_plan(plan)
            with evaluated_by(self._engine):
                node = self._lowering.node(plan)
        except NotIncremental as refusal:
            if view.mode is Mode.INCREMENTAL:
                raise
            self.circuit.cut(first)
            self._lowering.cut(first)
            return self._recomputed(view, refusal)
        store = self._lowering.arrange(node, (), plan.fields) if view.stored else None
        return Relation(plan.fields, node, store, plan, Mode.INCREMENTAL)

    def _recomputed(self, view: View, refusal: NotIncremental | None) -> Relation:
        engine = under(self._engine, view.settings)
        if engine is None or not recomputes(engine):
            raise refusal or no_engine()
        if view.is_frame:
            raise refusal or frame_recomputed()
        read = read_whole(view, self.relations)
        schemas = {name: self.relations[name].schema for name in read}
        fields = tuple(Field(field.name, field.type) for field in engine.schema(view.query, schemas))
        for column in fields:
            check_type(column.type)
        types = [field.type for field in fields]

        def run(contents: Sequence[Batch]) -> Batch:
            tables = {
                name: DeltaBatch.of_batch(schemas[name], self._in_order_of_fields(name, rows)).inserts()
                for name, rows in zip(read, contents, strict=True)
            }
            return Batch.of_arrow(engine.run(view.query, tables))

        inputs = [self.store(name) for name in read]
        # The last result lies in the store behind the operator, where columns are in the order of the fields.
        operator = Recompute(types, inputs, run, lambda: _all_rows(result))
        text = view.query if view.read_with == USUAL else f"{view.query}\n{view.settings}"
        node = self.circuit.add(operator, [self._store_node(name) for name in read], "recompute", text)
        store = self._lowering.arrange(node, (), fields)
        result = self._lowering.arrange_at(store)
        return Relation(fields, node, store, None, Mode.DIFF, refusal)

    def _inlined(self, plan: Plan) -> Plan:
        """The plan with views that are filled but not stored replaced by what they compute."""

        def inline(node: Plan) -> Plan:
            if not isinstance(node, Scan) or node.name in self._unfilled or node.name not in self.relations:
                return node
            relation = self.relations[node.name]
            return node if relation.store is not None or relation.plan is None else self._inlined(relation.plan)

        return map_plan(plan, inline)

    def _content(self, node: int) -> Batch:
        """All rows of a relation's node, or of an arrangement."""
        operator = self.circuit.nodes[node].operator
        if isinstance(operator, Arrange):
            return _all_rows(operator)
        name = next(name for name, relation in self.relations.items() if relation.node == node)
        return self.rows(name)

    def _in_order_of_fields(self, name: str, rows: Batch) -> Batch:
        store = self.relations[name].store
        assert store is not None
        return rows.select(store.positions)

    def _store_node(self, name: str) -> int:
        store = self.relations[name].store
        assert store is not None, f"{name} is not stored"
        return store.node


def _own_nodes(relation: Relation) -> list[int]:
    return [relation.node, *([relation.store.node] if relation.store else [])]


def _renumbered(relation: Relation, place: Mapping[int, int]) -> Relation:
    store = replace(relation.store, node=place[relation.store.node]) if relation.store else None
    return replace(relation, node=place[relation.node], store=store)


def _all_rows(store: Arrange) -> Batch:
    parts = list(store.arrangement.rows())
    return Batch.concat(parts) if parts else Batch.empty(store.types)


def plan_over(view: View, schemas: Mapping[str, pa.Schema]) -> Plan:
    """The plan of a view over sources and views of these columns; errors as ``Program.plan``'s."""
    program = Program()
    for name, schema in schemas.items():
        program.add_source(name, schema, stored=False)
    return program.plan(view)


def read_whole(view: View, relations: Mapping[str, Relation]) -> list[str]:
    """The relations that a view reads which is recomputed, in the order of their names.

    Raises:
        ConfigError: not all rows of one are kept.
    """
    known = {name.casefold(): name for name in relations}
    found = [known[table] for table in sorted(reads(view)) if table in known]
    for name in found:
        if relations[name].store is None:
            raise ConfigError(
                f"A view of mode 'diff' reads {name!r}, whose rows are not kept.",
                hint="register that view with materialized=True",
            )
        if not relations[name].keeps:
            raise ConfigError(
                f"A view of mode 'diff' reads {name!r}, which does not keep rows that are too old to change.",
                hint="register that source with Lateness(..., keep=True)",
            )
    return found


@lru_cache(maxsize=256)
def _plan(
    sql: str, stored: str | None, settings: SqlSettings, catalog: tuple[tuple[str, tuple[Field, ...]], ...]
) -> Plan:
    """The plan of a view, from its SQL or as it was stored; each shard of a partitioned flow asks for the same ones."""
    if stored is None:
        return logical_plan(sql, dict(catalog), settings=settings)
    plan = decode_plan(stored)
    check_plan(plan)
    return optimized(fitted(plan, dict(catalog)))
