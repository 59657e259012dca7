"""Marks of operators: equal for what holds the same rows in one process and in shards, wherever these are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weirflow.ivm.circuit.circuit import CircuitNode, Input
from weirflow.ivm.compiler.builder import NOT_NULL
from weirflow.ivm.kernel.fingerprint import fingerprint
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.join.match import Match
from weirflow.ivm.operators.join.operator import Join
from weirflow.ivm.operators.map import Normalize, Project
from weirflow.ivm.operators.recompute import Recompute
from weirflow.sql.expr import Column

if TYPE_CHECKING:
    from weirflow.ivm.compiler.program import Program


@dataclass(frozen=True)
class _Made:
    """What comes out of a node.

    Attributes:
        rows: which rows, whatever of them is shown.
        columns: what is shown.
        keyed: whether rows with a NULL in a key that nothing meets were left out.
    """

    rows: str
    columns: tuple[str, ...]
    keyed: bool = False

    @property
    def whole(self) -> str:
        """Rows and columns."""
        return fingerprint("whole", [self.rows, *self.columns])


def marks_of(program: Program) -> list[str]:
    """The mark of each node of a program's circuit.

    It is a fingerprint that leaves out how rows come to meet each other, how a view is recomputed, and what else of a
    source is kept where a join reads it: what comes of it is the same. Only those of nodes with state tell these apart.
    """
    circuit = program.circuit
    # A view of all that is in another one has its node: the first of them is meant.
    given = {relation.node: name for name, relation in reversed(program.relations.items())}
    given |= {number: name for name, number in circuit.sources.items()}
    marks: list[str] = []
    made: list[_Made] = []
    for number, node in enumerate(circuit.nodes):
        operator, inputs = node.operator, [made[one] for one in node.inputs]
        if isinstance(operator, Input | Recompute):
            made.append(_opaque(fingerprint(("given", given[number]), ()), len(operator.types)))
        else:
            made.append(_made(node, inputs))
        if type(operator) is Arrange:
            marks.append(fingerprint(("arranged", operator.key_count, made[-1].keyed), [made[-1].whole]))
        else:
            marks.append(made[-1].rows)
    return marks


def _opaque(rows: str, width: int) -> _Made:
    return _Made(rows, tuple(fingerprint(at, [rows]) for at in range(width)))


def _made(node: CircuitNode, inputs: Sequence[_Made]) -> _Made:
    """What comes out of an operator; by ``node.kind`` and all of its inputs, if nothing else is known of it."""
    operator = node.operator
    if node.label == NOT_NULL or type(operator) is Arrange:
        return replace(inputs[0], keyed=inputs[0].keyed or node.label == NOT_NULL)
    if isinstance(operator, Project | Normalize):
        return replace(inputs[0], columns=tuple(_shown(node, operator, inputs[0])))
    if isinstance(operator, Join):
        return _joined(node, operator, inputs)
    if isinstance(operator, Match):
        return _matched(node, operator, inputs)
    return _opaque(fingerprint(node.kind, [one.whole for one in inputs]), len(operator.types))


def _shown(node: CircuitNode, operator: Project | Normalize, below: _Made) -> list[str]:
    """The columns of what changes nothing else."""
    if isinstance(operator, Project):
        plain = [one.index if isinstance(one, Column) else None for one in operator.expressions]
        computed = [fingerprint(one, [below.whole]) for one in operator.expressions]
        return [made if at is None else below.columns[at] for at, made in zip(plain, computed, strict=True)]
    _, _, floats = node.kind
    return [fingerprint("normal", [one]) if at in floats else one for at, one in enumerate(below.columns)]


def _joined(node: CircuitNode, operator: Join, inputs: Sequence[_Made]) -> _Made:
    """Pairs of rows; what is shown of them is what a condition reads."""
    _, _, (left, right, *conditions) = node.kind
    shown = [fingerprint("left", [inputs[0].columns[one]]) for one in left]
    shown += [fingerprint("right", [inputs[1].columns[one]]) for one in right]
    read = shown if any(one is not None for one in conditions) else []
    return _Made(fingerprint(("join", *conditions), [*_met(operator, inputs), *read]), tuple(shown))


def _matched(node: CircuitNode, operator: Match, inputs: Sequence[_Made]) -> _Made:
    """Rows of the left side, with or without others, as the label says."""
    condition = node.kind[2][1] if isinstance(node.kind[2], tuple) else node.kind[2]
    read = [] if condition is None else [column for one in inputs for column in one.columns]
    return _Made(fingerprint((node.label, condition), [*_met(operator, inputs), *read]), inputs[0].columns)


def _met(operator: Join | Match, inputs: Sequence[_Made]) -> list[str]:
    """The rows of both sides, and their keys."""
    count = operator.left.key_count
    return [mark for one in inputs for mark in (one.rows, *one.columns[:count])]
