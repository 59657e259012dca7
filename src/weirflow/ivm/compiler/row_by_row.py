"""What a node holds that is made of a relation's rows one by one, for whom such a node is new."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weirflow.ivm.circuit.circuit import Input
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.map import Filter, Normalize, Project

if TYPE_CHECKING:
    from weirflow.ivm.compiler.program import Program
    from weirflow.ivm.zset.batch import Batch


def rows_at(program: Program, number: int, kept: Callable[[str], Batch | None]) -> Batch | None:
    """The rows of a node of a program's circuit; None if they are not made of kept rows, one by one.

    ``kept`` gives all rows of a source or view, as far as they are kept.
    """
    names = [name for name, relation in program.relations.items() if relation.node == number]
    for name in names:
        rows = kept(name)
        if rows is not None:
            return rows
    node = program.circuit.nodes[number]
    if isinstance(node.operator, Input) or not isinstance(node.operator, Filter | Normalize | Project | Arrange):
        return None
    below = rows_at(program, node.inputs[0], kept)
    if below is None or isinstance(node.operator, Arrange):
        return below
    return node.operator.step([below])
