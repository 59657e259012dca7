"""By which columns to partition a source: those that its first join or aggregate will ask for, if it may choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.arrange import Arrange, Meeting
from weirflow.ivm.operators.clocked.operator import Clocked
from weirflow.ivm.operators.map import Filter, Normalize, Project
from weirflow.sql.expr import Column

if TYPE_CHECKING:
    from weirflow.ivm.circuit.circuit import Circuit

Origins = tuple[int | None, ...]
"""For each column of a node, the column of the source that it is; None if it is computed."""


def source_columns(circuit: Circuit, source: str, key: Sequence[int]) -> tuple[int, ...]:
    """The columns: the source's key, what is first joined on, what is first grouped by, or all of them.

    Once rows are stored the choice is part of where they are; whoever asks has to remember it.
    """
    if key:
        return tuple(key)
    start = circuit.sources[source]
    width = len(circuit.nodes[start].operator.types)
    origins: dict[int, Origins] = {start: tuple(range(width))}
    grouped: tuple[int, ...] | None = None
    for number in range(start + 1, len(circuit.nodes)):
        node = circuit.nodes[number]
        known = origins.get(node.inputs[0]) if node.inputs else None
        if known is None:
            continue
        match node.operator:
            case Filter() | Normalize() | Clocked(projections=None):
                origins[number] = known
            case Project(expressions=expressions) | Clocked(projections=tuple(expressions)):
                origins[number] = tuple(known[one.index] if isinstance(one, Column) else None for one in expressions)
            case Arrange(key_count=count, meeting=Meeting.BY_KEY) if count:
                joined = _all_known(known[:count])
                if joined is not None:
                    return joined
            case Aggregate(keys=keys) if keys and grouped is None:
                grouped = _all_known([known[one.index] if isinstance(one, Column) else None for one in keys])
            case _:
                continue
    return grouped or tuple(range(width))


def _all_known(columns: Sequence[int | None]) -> tuple[int, ...] | None:
    found = tuple(column for column in columns if column is not None)
    return found if len(found) == len(columns) else None
