"""Spark's resolved plans as ours: from ids of columns to their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.bind.assemble import GroupedInput
from weirflow.sql.bind.constant import whole_number
from weirflow.sql.bind.expressions.placeholders import SelectCalls
from weirflow.sql.bind.grouping import Grouping
from weirflow.sql.bind.join import equi_join
from weirflow.sql.expr import Call, Column, Expr, SortKey
from weirflow.sql.functions.generators import stack
from weirflow.sql.functions.json import json_tuple
from weirflow.sql.passes.lateral import lateral_join
from weirflow.sql.plan import (
    Distinct,
    Field,
    Filter,
    Generate,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    SetKind,
    SetOperation,
    TopK,
    Union,
    Values,
    Window,
)
from weirflow.sql.resolved.aggregates import read_aggregate, read_picked
from weirflow.sql.resolved.node import LeftToBinder
from weirflow.sql.resolved.reading import Foreign, Scope, read_all, read_expression, read_order
from weirflow.sql.resolved.types import literal, type_of
from weirflow.sql.resolved.windows import read_window
from weirflow.sql.settings import USUAL, SqlSettings
from weirflow.sql.types import BIGINT, array_of
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.sql.resolved.node import Node

_JOINS = {
    "Inner": JoinKind.INNER,
    "Cross": JoinKind.INNER,
    "LeftOuter": JoinKind.LEFT,
    "RightOuter": JoinKind.RIGHT,
    "FullOuter": JoinKind.FULL,
    "LeftSemi": JoinKind.SEMI,
    "LeftAnti": JoinKind.ANTI,
}
_MOST_CONSTANT_ROWS = 10_000
_GENERATORS = {"Explode": "explode", "PosExplode": "posexplode", "Inline": "inline"}


@dataclass(frozen=True)
class Relation:
    """A plan, and for each of its columns Spark's id.

    Attributes:
        order: how its rows are ordered, for a limit above; a view has no order.
        below: of the columns that were made of ordered rows: those rows, and what makes the columns.
        is_lost: whether its rows are ordered by something that is not among its columns.
    """

    plan: Plan
    ids: tuple[int, ...]
    order: tuple[SortKey, ...] = ()
    below: tuple[Relation, Callable[[Relation], Relation]] | None = None
    is_lost: bool = False

    def columns(self) -> dict[int, Column]:
        """Its columns by id; the first where one is there twice."""
        found: dict[int, Column] = {}
        for index, (number, column) in enumerate(zip(self.ids, self.plan.fields, strict=True)):
            found.setdefault(number, Column(index, column.name, column.type))
        return found


def read_plan(
    root: Node,
    sources: Mapping[str, tuple[Field, ...]],
    settings: SqlSettings = USUAL,
    foreign: Foreign | None = None,
) -> Plan:
    """The plan of a query over these sources, in a session of these settings; see ``Scope.foreign``.

    Raises:
        NotIncremental: it cannot be read without a doubt.
    """
    return PlanReader(sources, settings, foreign).relation(root, None).plan


class PlanReader:
    """Reads one plan, its subqueries and common table expressions included."""

    def __init__(
        self, sources: Mapping[str, tuple[Field, ...]], settings: SqlSettings, foreign: Foreign | None
    ) -> None:
        self._settings = settings
        self._foreign = foreign
        self._sources = {name.casefold(): (name, fields) for name, fields in sources.items()}
        self._ctes: dict[int, Relation] = {}

    @grows
    def relation(self, node: Node, around: Scope | None) -> Relation:
        """A plan inside the query of a scope."""
        read = self._READERS.get(node.kind)
        if read is None:
            raise self._refused(node)
        found = read(self, node, around)
        node.finish()
        return found

    def _scope(self, columns: Mapping[int, Column], around: Scope | None) -> Scope:
        settings = self._settings
        return Scope(columns, self.relation, settings.time_zone, around, foreign=self._foreign, ansi=settings.ansi)

    def _over(self, node: Node, around: Scope | None) -> tuple[Relation, Scope]:
        below = self.relation(node.child("child"), around)
        return below, self._scope(below.columns(), around)

    # Leaves

    def _view(self, node: Node, _: Scope | None) -> Relation:
        name = node.value("desc")["identifier"]["table"]
        if not node.value("isTempView") or name.casefold() not in self._sources:
            raise self._refused(node)
        node.ignore("options")
        own, fields = self._sources[name.casefold()]
        ids = _ids(node.child("child").value("output"))
        return Relation(Scan(own, fields), ids)

    def _one_row_relation(self, _: Node, __: Scope | None) -> Relation:
        return Relation(Values(((),), ()), ())

    def _local_relation(self, node: Node, _: Scope | None) -> Relation:
        output = node.value("output")
        fields = _fields(output)
        rows = tuple(
            tuple(literal(value, one.type) for value, one in zip(row, fields, strict=True))
            for row in node.value("data")
        )
        if node.value("isStreaming"):
            raise self._refused(node)
        node.ignore("stream")
        return Relation(Values(rows, fields), _ids(output))

    def _range(self, node: Node, _: Scope | None) -> Relation:
        output = node.value("output")
        numbers = range(node.value("start"), node.value("end"), node.value("step"))
        node.ignore("numSlices", "isStreaming")
        if len(numbers) > _MOST_CONSTANT_ROWS:
            raise self._refused(node)
        return Relation(Values(tuple((literal(one, BIGINT),) for one in numbers), _fields(output)), _ids(output))

    # One input

    def _subquery_alias(self, node: Node, around: Scope | None) -> Relation:
        node.ignore("identifier")
        return self.relation(node.child("child"), around)

    def _pipe_operator(self, node: Node, around: Scope | None) -> Relation:
        return self.relation(node.child("child"), around)

    def _project(self, node: Node, around: Scope | None) -> Relation:
        below, scope = self._over(node, around)
        named = [_Named.of(one) for one in node.value("projectList")]
        expressions = read_all([one.node for one in named], scope)
        return _over_ordered(below, lambda rows: _projected(rows, expressions, named))

    def _filter(self, node: Node, around: Scope | None) -> Relation:
        below, scope = self._over(node, around)
        plan = Filter(below.plan, read_expression(node.value("condition"), scope))
        return Relation(plan, below.ids, below.order, is_lost=below.is_lost or below.below is not None)

    def _same_rows(self, node: Node, around: Scope | None) -> Relation:
        """What says only how Spark is to run it."""
        node.ignore("hints", "numPartitions", "shuffle", "partitionExpressions", "optNumPartitions")
        node.ignore("optAdvisoryPartitionSize", "defaultPartitioning")
        found = self.relation(node.child("child"), around)
        return found if node.kind == "ResolvedHint" else Relation(found.plan, found.ids)

    def _distinct(self, node: Node, around: Scope | None) -> Relation:
        below, _ = self._over(node, around)
        return Relation(Distinct(below.plan), below.ids)

    def _deduplicate(self, node: Node, around: Scope | None) -> Relation:
        """Distinct rows; where only some columns tell rows apart, Spark keeps any of those that are alike."""
        below, _ = self._over(node, around)
        if set(_ids(node.value("keys"))) != set(below.ids):
            raise self._refused(node)
        return Relation(Distinct(below.plan), below.ids)

    def _sort(self, node: Node, around: Scope | None) -> Relation:
        below, scope = self._over(node, around)
        order = read_order(node.value("order"), scope)
        node.ignore("hint")
        if not node.value("global"):
            raise self._refused(node)
        return Relation(below.plan, below.ids, order)

    def _global_limit(self, node: Node, around: Scope | None) -> Relation:
        local = node.child("child")
        limit = self._count(node, "limitExpr")
        if local.kind != "LocalLimit" or self._count(local, "limitExpr") != limit:
            raise self._refused(node)
        return _limited(self.relation(local.child("child"), around), limit, 0)

    def _offset(self, node: Node, around: Scope | None) -> Relation:
        below, _ = self._over(node, around)
        return _limited(below, None, self._count(node, "offsetExpr"))

    def _aggregate(self, node: Node, around: Scope | None) -> Relation:
        below, scope = self._over(node, around)
        node.ignore("hint")
        keys = read_all(node.value("groupingExpressions"), scope)
        named = [_Named.of(one) for one in node.value("aggregateExpressions")]
        calls = SelectCalls()

        def aggregated(one: Node) -> Expr:
            several = read_picked(one, scope)
            if several is None:
                return calls.aggregate(read_aggregate(one, scope))
            return Call("array", tuple(calls.aggregate(call) for call in several), array_of(several[0].type))

        inside = replace(scope, aggregate=aggregated, keys=keys)
        items = read_all([one.node for one in named], inside)
        groups = GroupedInput(Grouping(keys, None, is_grouped=True), tuple(calls.aggregates), None)
        grouped = Relation(groups.over(below.plan), ())
        return _projected(grouped, tuple(groups.change(item) for item in items), named)

    def _window(self, node: Node, around: Scope | None) -> Relation:
        below, scope = self._over(node, around)
        named = [_Named.of(one) for one in node.value("windowExpressions")]
        calls = tuple(read_window(one.node, scope) for one in named)
        node.ignore("partitionSpec", "orderSpec", "hint")  # each call has its own
        fields = below.plan.fields + tuple(Field(one.name, call.type) for one, call in zip(named, calls, strict=True))
        return Relation(Window(below.plan, calls, fields), below.ids + tuple(one.number for one in named))

    def _generate(self, node: Node, around: Scope | None) -> Relation:
        below, scope = self._over(node, around)
        output = node.value("generatorOutput")
        if node.value("unrequiredChildIndex", ()):
            raise self._refused(node)
        node.ignore("qualifier")
        made = _fields(output)
        call = self._generator(node, scope, made)
        fields = below.plan.fields + made
        return Relation(Generate(below.plan, call, node.value("outer"), fields), below.ids + _ids(output))

    def _generator(self, node: Node, scope: Scope, made: tuple[Field, ...]) -> Call:
        generator = node.value("generator")
        kind = pa.struct([pa.field(one.name, one.type) for one in made])
        name = _GENERATORS.get(generator.kind)
        if generator.kind == "Stack":
            count, *values = read_all(generator.children_of("children"), scope)
            call = replace(stack(whole_number(count) or 0, tuple(values)), type=kind)
        elif generator.kind == "JsonTuple":
            call = replace(json_tuple(read_all(generator.children_of("children"), scope)), type=kind)
        elif name is not None:
            call = Call(name, (read_expression(generator.child("child"), scope),), kind)
        else:
            raise self._refused(node)
        generator.finish()
        return call

    def _expand(self, node: Node, around: Scope | None) -> Relation:
        below, scope = self._over(node, around)
        output = node.value("output")
        fields = _fields(output)
        inputs = tuple(
            Project(below.plan, read_all(projection, scope), fields) for projection in node.value("projections")
        )
        return Relation(Union(inputs, fields), _ids(output))

    def _count(self, node: Node, name: str) -> int:
        """A limit, which Spark lets be any constant."""
        count = whole_number(read_expression(node.value(name), self._scope({}, None)))
        if count is None:
            raise NotIncremental(
                "A limit that is not a number is recomputed.", reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE
            )
        return count

    # Two inputs and more

    def _join(self, node: Node, around: Scope | None) -> Relation:
        left, right = (self.relation(node.child(name), around) for name in ("left", "right"))
        kind = _JOINS.get(str(node.value("joinType")))
        node.ignore("hint")
        if kind is None:
            raise self._refused(node)
        ids = left.ids if kind in (JoinKind.SEMI, JoinKind.ANTI) else left.ids + right.ids
        if not node.has("condition"):
            return Relation(Join(left.plan, right.plan, kind, (), ()), ids)
        predicate = read_expression(node.value("condition"), self._scope(_side_by_side(left, right), around))
        return Relation(equi_join(left.plan, right.plan, kind, predicate), ids)

    def _lateral_join(self, node: Node, around: Scope | None) -> Relation:
        left = self.relation(node.child("left"), around)
        query = node.value("right")
        query.ignore("outerAttrs", "exprId", "hint")
        if query.value("joinCond", ()):
            raise self._refused(node)
        right = self.relation(query.value("plan"), self._scope(left.columns(), around))
        query.finish()
        kind = _JOINS.get(str(node.value("joinType")))
        if kind not in (JoinKind.INNER, JoinKind.LEFT):
            raise self._refused(node)
        predicate = None
        if node.has("condition"):
            both = self._scope(_side_by_side(left, right), around)
            predicate = read_expression(node.value("condition"), both)
        return Relation(lateral_join(left.plan, right.plan, kind, predicate), left.ids + right.ids)

    def _union(self, node: Node, around: Scope | None) -> Relation:
        inputs = [self.relation(one, around) for one in node.children_of("children")]
        if node.value("byName") or node.value("allowMissingCol"):
            raise self._refused(node)
        return Relation(Union(tuple(one.plan for one in inputs), inputs[0].plan.fields), inputs[0].ids)

    def _intersect(self, node: Node, around: Scope | None) -> Relation:
        return self._set(node, SetKind.INTERSECT, around)

    def _except(self, node: Node, around: Scope | None) -> Relation:
        return self._set(node, SetKind.EXCEPT, around)

    def _set(self, node: Node, kind: SetKind, around: Scope | None) -> Relation:
        left, right = (self.relation(node.child(name), around) for name in ("left", "right"))
        return Relation(SetOperation(kind, node.value("isAll"), left.plan, right.plan, left.plan.fields), left.ids)

    # Common table expressions

    def _recursion(self, node: Node, _: Scope | None) -> Relation:
        raise LeftToBinder(f"{node.shown} is read from the text.", reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE)

    def _with_ctes(self, node: Node, around: Scope | None) -> Relation:
        for one in node.children_of("cteDefs"):
            self._ctes[one.value("id")] = self.relation(one.child("child"), around)
            one.ignore("underSubquery", "originalPlanWithPredicates", "maxRows", "maxDepth")
            one.finish()
        return self.relation(node.child("plan"), around)

    def _cte(self, node: Node, _: Scope | None) -> Relation:
        found = self._ctes.get(node.value("cteId"))
        if found is None or node.value("recursive", False):  # noqa: FBT003 - what Spark means if it says nothing
            raise self._refused(node)
        node.ignore("_resolved", "isStreaming", "statsOpt", "maxRows", "isUnlimitedRecursion")
        is_lost = found.is_lost or found.below is not None
        return Relation(found.plan, _ids(node.value("output")), found.order, is_lost=is_lost)

    @staticmethod
    def _refused(node: Node) -> NotIncremental:
        return NotIncremental(
            f"Spark's {node.shown} has no incremental form here.", reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE
        )

    _READERS: ClassVar[dict[str, Callable[[PlanReader, Node, Scope | None], Relation]]] = {
        "View": _view,
        "OneRowRelation": _one_row_relation,
        "LocalRelation": _local_relation,
        "Range": _range,
        "SubqueryAlias": _subquery_alias,
        "PipeOperator": _pipe_operator,
        "Project": _project,
        "Filter": _filter,
        "Distinct": _distinct,
        "Deduplicate": _deduplicate,
        "ResolvedHint": _same_rows,
        "Repartition": _same_rows,
        "RepartitionByExpression": _same_rows,
        "Sort": _sort,
        "GlobalLimit": _global_limit,
        "Offset": _offset,
        "Aggregate": _aggregate,
        "Window": _window,
        "Generate": _generate,
        "Expand": _expand,
        "Join": _join,
        "LateralJoin": _lateral_join,
        "Union": _union,
        "Intersect": _intersect,
        "Except": _except,
        "UnionLoop": _recursion,
        "WithCTE": _with_ctes,
        "CTERelationRef": _cte,
    }


@dataclass(frozen=True)
class _Named:
    """An expression with the name and the id of its column."""

    node: Node
    name: str
    number: int

    @classmethod
    def of(cls, node: Node) -> _Named:
        named = node.value("e") if node.kind == "OuterReference" else node
        return cls(node, named.value("name"), named.value("exprId"))


def _side_by_side(left: Relation, right: Relation) -> dict[int, Column]:
    """The columns of a join by id; those of the left side where both have one."""
    moved = {
        number: Column(column.index + len(left.ids), column.name, column.type)
        for number, column in right.columns().items()
    }
    return {**moved, **left.columns()}


def _projected(below: Relation, expressions: tuple[Expr, ...], named: Sequence[_Named]) -> Relation:
    fields = tuple(Field(one.name, expr.type) for one, expr in zip(named, expressions, strict=True))
    return Relation(Project(below.plan, expressions, fields), tuple(one.number for one in named))


def _over_ordered(below: Relation, make: Callable[[Relation], Relation]) -> Relation:
    """What is made of each row; a limit above is one of the rows below, which may be ordered by what is left out."""
    made = replace(make(below), is_lost=below.is_lost)
    if below.below is not None:
        rows, first = below.below
        return replace(made, below=(rows, lambda some: make(first(some))))
    return replace(made, below=(below, make)) if below.order else made


def _limited(below: Relation, limit: int | None, offset: int) -> Relation:
    """The first rows in the order that there is."""
    if below.below is not None:
        rows, make = below.below
        return _over_ordered(_limited(rows, limit, offset), make)
    if below.is_lost:
        raise NotIncremental(
            "A limit of rows whose order is not among their columns is recomputed.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
        )
    plan = below.plan
    if isinstance(plan, TopK) and plan.limit is None and limit is not None:  # OFFSET below LIMIT
        return Relation(TopK(plan.input, plan.order, limit, plan.offset), below.ids, below.order)
    return Relation(TopK(plan, below.order, limit, offset), below.ids, below.order)


def _ids(attributes: Sequence[Node]) -> tuple[int, ...]:
    return tuple(one.value("exprId") for one in attributes)


def _fields(attributes: Sequence[Node]) -> tuple[Field, ...]:
    return tuple(Field(one.value("name"), type_of(one.value("dataType"))) for one in attributes)
