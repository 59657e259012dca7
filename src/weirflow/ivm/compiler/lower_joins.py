"""``JoinLowering``: joins of every kind as operators."""

from __future__ import annotations

from abc import abstractmethod

import pyarrow as pa

from weirflow.ivm.compiler.builder import BOOL, ArrangedNode, CircuitBuilder, any_null, negated
from weirflow.ivm.compiler.columns import identity, moved
from weirflow.ivm.compiler.source_sides import source_side
from weirflow.ivm.operators.consolidate import Consolidate
from weirflow.ivm.operators.join.match import Match
from weirflow.ivm.operators.join.operator import Join
from weirflow.ivm.operators.map import Filter
from weirflow.ivm.operators.union import Union
from weirflow.sql import plan as logical
from weirflow.sql.expr import AggregateCall, Call, Column, Expr, Literal

_BIGINT = pa.int64()


class JoinLowering(CircuitBuilder):
    """Inner joins meet arrangements; outer ones add the rows without a match; NOT IN minds NULLs."""

    def _inner(self, plan: logical.Join) -> int:
        left, right = self._offered_side(plan.left, plan.left_keys), self._offered_side(plan.right, plan.right_keys)
        null_keys = right is not None
        in_place = any(
            self._circuit.is_everywhere(self.node(side))
            for side, offered in ((plan.left, left), (plan.right, right))
            if offered is None
        )
        # It is enough that one side has no NULL keys: the other side's then find nothing.
        left = left or self.arrange(self.node(plan.left), plan.left_keys, plan.left.fields, in_place=in_place)
        right = right or self.arrange(
            self.node(plan.right), plan.right_keys, plan.right.fields, keyed_only=True, in_place=in_place
        )
        operator = Join(
            self.arrange_at(left),
            self.arrange_at(right),
            left.positions,
            right.positions,
            self._residual(plan, left, right),
            null_keys=null_keys,
        )
        spec = (left.positions, right.positions, plan.residual)
        return self._circuit.add(operator, [left.node, right.node], "join", spec)

    def _outer(self, plan: logical.Join, *, pad_left: bool, pad_right: bool) -> int:
        parts = [self._inner(plan)]
        if pad_left:
            lonely = self._matched(plan.left, plan.right, plan, wanted=False)
            parts.append(self._padded(lonely, plan, left=True))
        if pad_right:
            lonely = self._matched(plan.right, plan.left, _swapped(plan), wanted=False)
            parts.append(self._padded(lonely, plan, left=False))
        return self._circuit.add(Union([field.type for field in plan.left.fields + plan.right.fields]), parts, "union")

    def _padded(self, lonely: int, plan: logical.Join, *, left: bool) -> int:
        """Rows of one side with NULLs for the columns of the other."""
        mine = identity(plan.left.fields if left else plan.right.fields)
        nulls = tuple(Literal(None, field.type) for field in (plan.right.fields if left else plan.left.fields))
        return self._project(lonely, mine + nulls if left else nulls + mine)

    def _matched(self, left: logical.Plan, right: logical.Plan, plan: logical.Join, *, wanted: bool) -> int:
        """The rows of ``left`` that have, or have not, a match in ``right``; ``plan`` has their keys in that order."""
        # All that may match a row must be where it is.
        in_place = self._circuit.is_everywhere(self.node(right))
        mine = self._offered_side(left, plan.left_keys) or self.arrange(
            self.node(left), plan.left_keys, left.fields, in_place=in_place
        )
        if plan.residual is None:
            # Whether a key is there at all is all that counts.
            keys = tuple(logical.Field(f"key{index}", key.type) for index, key in enumerate(plan.right_keys))
            distinct = logical.Distinct(logical.Project(right, plan.right_keys, keys))
            other = self.arrange(self.node(distinct), identity(keys), keys, keyed_only=True, in_place=in_place)
            residual = None
        else:
            other = self.arrange(self.node(right), plan.right_keys, right.fields, keyed_only=True, in_place=in_place)
            residual = self._residual(plan, mine, other)
        operator = Match(self.arrange_at(mine), self.arrange_at(other), residual, wanted=wanted)
        spec = ("semi", plan.residual) if wanted else plan.residual
        node = self._circuit.add(operator, [mine.node, other.node], "semi join" if wanted else "anti join", spec)
        columns = tuple(
            Column(position, field.name, field.type)
            for position, field in zip(mine.positions, left.fields, strict=True)
        )
        return self._project(node, columns)

    def _null_aware(self, plan: logical.Join, anti: int) -> int:
        """NOT IN: all rows if the right side is empty, none if it has a NULL, else those whose own key is not NULL."""
        nulls = any_null(plan.right_keys)
        count = AggregateCall("count", (), _BIGINT)
        totals = logical.Aggregate(
            plan.right,
            (),
            (count, AggregateCall("count", (), _BIGINT, filter=nulls)),
            (logical.Field("rows", _BIGINT), logical.Field("nulls", _BIGINT)),
        )
        fields = (logical.Field("rows", BOOL), logical.Field("nulls", BOOL))
        flags = self.node(logical.Project(totals, (_positive(0), _positive(1)), fields))
        steady = self._circuit.add(Consolidate((BOOL, BOOL)), [flags], "consolidate")
        left = self.arrange(anti, (), plan.left.fields)
        right = self.arrange(steady, (), fields, keyed_only=True)
        width = len(plan.left.fields)
        joined = self._circuit.add(
            Join(self.arrange_at(left), self.arrange_at(right), left.positions, right.positions, None),
            [left.node, right.node],
            "join",
            (left.positions, right.positions),
        )
        some, null = Column(width, "rows", BOOL), Column(width + 1, "nulls", BOOL)
        strict = Call("and", (negated(null), negated(any_null(plan.left_keys))), BOOL)
        predicate = Call("or", (negated(some), strict), BOOL)
        types = [*(field.type for field in plan.left.fields), BOOL, BOOL]
        kept = self._circuit.add(Filter(types, predicate), [joined], "filter", predicate)
        return self._project(kept, identity(plan.left.fields))

    def _offered_side(self, plan: logical.Plan, keys: tuple[Expr, ...]) -> ArrangedNode | None:
        """The side of a join where a source keeps its rows; None if these are not there by the join's keys."""
        side = source_side(plan, keys)
        node = None if side is None else self._source(side.name)
        if side is None or node not in self._offered or self._offered[node].key != side.key:
            return None
        store = self._offered[node].arranged
        return ArrangedNode(store.node, tuple(store.positions[column] for column in side.columns))

    @abstractmethod
    def _source(self, name: str) -> int | None:
        """The node of a relation; None if there is none of this name."""

    def _residual(self, plan: logical.Join, left: ArrangedNode, right: ArrangedNode) -> Expr | None:
        if plan.residual is None:
            return None
        offset = len(self._circuit.nodes[left.node].operator.types)
        return moved(plan.residual, (*left.positions, *(offset + position for position in right.positions)))


def _swapped(plan: logical.Join) -> logical.Join:
    """The same join seen from the right side."""
    left, right = len(plan.left.fields), len(plan.right.fields)
    positions = (*range(right, right + left), *range(right))
    residual = moved(plan.residual, positions) if plan.residual is not None else None
    return logical.Join(plan.right, plan.left, plan.kind, plan.right_keys, plan.left_keys, residual)


def _positive(index: int) -> Expr:
    return Call("greater", (Column(index, "", _BIGINT), Literal(0, _BIGINT)), BOOL)
