"""Marks of operators: equal for what holds the same rows in one process and in shards, wherever these are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.ivm.circuit.circuit import Input
from weirflow.ivm.compiler.builder import NOT_NULL
from weirflow.ivm.kernel.fingerprint import fingerprint
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.map import Normalize, Project
from weirflow.ivm.operators.recompute import Recompute

if TYPE_CHECKING:
    from weirflow.ivm.compiler.program import Program


def marks_of(program: Program) -> list[str]:
    """The mark of each node of a program's circuit.

    It is a fingerprint that leaves out how rows come to meet each other, how a view is recomputed, and whether the side
    of a join that is probed has rows that nothing meets: what comes of either is the same.
    """
    circuit = program.circuit
    # A view of all that is in another one has its node: the first of them is meant.
    given = {relation.node: name for name, relation in reversed(program.relations.items())}
    given |= {number: name for name, number in circuit.sources.items()}
    marks: list[str] = []
    made: list[str] = []
    """What comes out of each node."""
    keyed: list[bool] = []
    """Whether rows with a NULL in the key were left out on the way to an arrangement."""
    for number, node in enumerate(circuit.nodes):
        operator = node.operator
        inputs = [made[one] for one in node.inputs]
        below = bool(node.inputs) and keyed[node.inputs[0]]
        keyed.append(node.label == NOT_NULL or (below and isinstance(operator, Project | Normalize)))
        if isinstance(operator, Input | Recompute):
            made.append(fingerprint(("given", given[number]), ()))
        elif node.label == NOT_NULL:
            made.append(inputs[0])
        elif type(operator) is Arrange:
            made.append(fingerprint(("Arrange", operator.types, operator.key_count), inputs))
        else:
            made.append(fingerprint(node.kind, inputs))
        marks.append(fingerprint("keyed", [made[-1]]) if below and type(operator) is Arrange else made[-1])
    return marks
