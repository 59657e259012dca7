"""Sides of joins that are columns of a source: they can be read where the source keeps its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weirflow.ivm.zset.hashing import has_floats
from weirflow.sql.expr import Column, Expr
from weirflow.sql.plan import Join, JoinKind, Plan, Project, Recursive, Scan
from weirflow.sql.traverse import inputs


class SourceSide(NamedTuple):
    """The side of a join that has nothing but columns of a relation.

    Attributes:
        name: the relation's.
        key: the relation's columns that are the keys of the join.
        columns: for each column of the side, which one of the relation's it is.
    """

    name: str
    key: tuple[int, ...]
    columns: tuple[int, ...]


def source_side(plan: Plan, keys: Sequence[Expr]) -> SourceSide | None:
    """What a side of a join with these keys reads of a relation; None if it is not to be read where that is kept.

    Where the keys are all that is read, an arrangement of the side's own adds up all rows of a key, and is better.
    """
    columns = _columns(plan)
    if columns is None or not keys:
        return None
    name, places = columns
    key = [places[one.index] for one in keys if isinstance(one, Column) and not has_floats(one.type)]
    if len(key) < len(keys) or len(set(key)) < len(key) or set(places) <= set(key):
        return None
    return SourceSide(name, tuple(key), places)


def _columns(plan: Plan) -> tuple[str, tuple[int, ...]] | None:
    """The relation whose columns a plan has, and which these are; None if it is anything else."""
    if isinstance(plan, Scan):
        return plan.name, tuple(range(len(plan.fields)))
    if not isinstance(plan, Project) or not isinstance(plan.input, Scan):
        return None
    fields = plan.input.fields
    found = [
        one.index for one in plan.expressions if isinstance(one, Column) and one.type.equals(fields[one.index].type)
    ]
    return (plan.input.name, tuple(found)) if len(found) == len(plan.expressions) else None


def source_sides(plan: Plan) -> Iterator[SourceSide]:
    """What the joins of a plan could read where it is kept, those above before those below.

    A recursion has a circuit of its own, with its own arrangements.
    """
    ahead = [plan]
    while ahead:
        node = ahead.pop()
        if isinstance(node, Recursive):
            continue
        ahead += reversed(inputs(node))
        if isinstance(node, Join):
            found = [source_side(node.left, node.left_keys)]
            if node.kind not in (JoinKind.SEMI, JoinKind.ANTI):
                found.append(source_side(node.right, node.right_keys))
            yield from (one for one in found if one is not None)
