"""``CircuitBuilder``: the blocks that lowered plans are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from weirflow.ivm.compiler.columns import identity
from weirflow.ivm.operators.arrange import Arrange, Meeting
from weirflow.ivm.operators.map import Filter, Normalize, Project
from weirflow.ivm.zset.hashing import has_floats
from weirflow.sql import plan as logical
from weirflow.sql.expr import Call, Column, Expr, Literal

if TYPE_CHECKING:
    from weirflow.ivm.circuit.circuit import Circuit

BOOL = pa.bool_()
NOT_NULL = "filter NULL keys"
"""The label of what leaves out the rows of a join's side that meet no others."""


@dataclass(frozen=True)
class ArrangedNode:
    """An arranged node: its key columns come first, and ``positions[i]`` is where the input's column ``i`` went."""

    node: int
    positions: tuple[int, ...]


class OfferedStore(NamedTuple):
    """The arrangement that holds all rows of a source, by these columns of it, for joins to probe."""

    key: tuple[int, ...]
    arranged: ArrangedNode


class CircuitBuilder(ABC):
    """Adds projections and arrangements to a circuit; equal arrangements are built once."""

    _arrange_operator: type[Arrange] = Arrange

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._arranged: dict[tuple[int, tuple[Expr, ...], bool, bool], ArrangedNode] = {}
        self._offered: dict[int, OfferedStore] = {}

    @abstractmethod
    def node(self, plan: logical.Plan) -> int:
        """The number of the node whose output is the plan's."""

    def arrange(
        self,
        node: int,
        keys: Sequence[Expr],
        fields: Sequence[logical.Field],
        *,
        keyed_only: bool = False,
        in_place: bool = False,
    ) -> ArrangedNode:
        """An arrangement of a node's rows by keys, shared by all who want the same.

        ``keyed_only`` is for the side of a join that is probed: it has no rows with NULL in a key. See ``Meeting`` for
        what it means that rows meet ``in_place``.
        """
        wanted = (node, tuple(keys), keyed_only, in_place)
        if wanted not in self._arranged:
            self._arranged[wanted] = self._new_arrangement(node, tuple(keys), fields, keyed_only, in_place)
        return self._arranged[wanted]

    def _new_arrangement(
        self,
        node: int,
        keys: tuple[Expr, ...],
        fields: Sequence[logical.Field],
        keyed_only: bool,  # noqa: FBT001 - private, called from above
        in_place: bool,  # noqa: FBT001 - as above
    ) -> ArrangedNode:
        types = [field.type for field in fields]
        if keyed_only and keys:
            node = self._circuit.add(Filter(types, negated(any_null(keys))), [node], NOT_NULL, keys)
        # A key that is a plain column is not stored twice; a float may differ from its normalised key.
        at = {
            key.index: place for place, key in enumerate(keys) if isinstance(key, Column) and not has_floats(key.type)
        }
        payload = [column for column in identity(fields) if column.index not in at]
        positions = {column.index: len(keys) + place for place, column in enumerate(payload)} | at
        layout = (*keys, *payload)
        projected = self._project(node, layout)
        normal = self._normalized(projected, [logical.Field("", key.type) for key in keys])
        meeting = Meeting.IN_PLACE if in_place else Meeting.WHOLE if keyed_only and not keys else Meeting.BY_KEY
        arrange = self._arrange_operator([expression.type for expression in layout], len(keys), meeting)
        number = self._circuit.add(arrange, [normal], "arrange", (len(keys), "in place") if in_place else len(keys))
        return ArrangedNode(number, tuple(positions[index] for index in range(len(fields))))

    def unshare(self, arranged: ArrangedNode) -> None:
        """Keep an arrangement to whom it was made for."""
        self._arranged = {wanted: found for wanted, found in self._arranged.items() if found != arranged}

    def offer(self, source: int, key: tuple[int, ...], store: ArrangedNode) -> None:
        """Let joins probe a source's rows by these columns of it where they are kept; the store may have NULL keys."""
        self._offered[source] = OfferedStore(key, store)

    def kept_rows(self, node: int) -> ArrangedNode | None:
        """An arrangement that holds all rows of a node, by whatever key; None if there is none to share."""
        kept = [found for (one, _, keyed_only, _), found in self._arranged.items() if one == node and not keyed_only]
        return min(kept, key=lambda found: found.node, default=None)

    def arrange_at(self, arranged: ArrangedNode) -> Arrange:
        """The operator of an arrangement."""
        operator = self._circuit.nodes[arranged.node].operator
        assert isinstance(operator, Arrange)
        return operator

    def _project(self, node: int, expressions: Sequence[Expr]) -> int:
        types = self._circuit.nodes[node].operator.types
        if len(expressions) == len(types) and all(
            isinstance(expression, Column) and expression.index == index for index, expression in enumerate(expressions)
        ):
            return node
        return self._circuit.add(Project(expressions), [node], "project", tuple(expressions))

    def _normalized(self, node: int, fields: Sequence[logical.Field]) -> int:
        """The node with -0.0 made 0.0 in the first columns, as comparisons of rows in SQL want it."""
        floats = [index for index, field in enumerate(fields) if has_floats(field.type)]
        if not floats:
            return node
        types = self._circuit.nodes[node].operator.types
        return self._circuit.add(Normalize(types, floats), [node], "normalize floats", tuple(floats))


def any_null(keys: Sequence[Expr]) -> Expr:
    """Whether a key is NULL."""
    tests = [Call("is_null", (key,), BOOL) for key in keys]
    result: Expr = tests[0] if tests else Literal(value=False, type=BOOL)
    for test in tests[1:]:
        result = Call("or", (result, test), BOOL)
    return result


def negated(expression: Expr) -> Expr:
    """NOT of a condition."""
    return Call("not", (expression,), BOOL)
