"""Tables of which a plan reads only some columns need not have the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from weirflow.sql.expr import Column, Exists, Expr, InSubquery, Literal, ScalarSubquery
from weirflow.sql.plan import Field, Plan, Project, Scan
from weirflow.sql.traverse import columns, inputs, map_expressions, map_plan, nodes, rewrite


def read_columns(plan: Plan) -> dict[str, list[str]]:
    """The columns that an optimized plan reads of each relation, in their order; at least one of each."""
    found: dict[str, set[int]] = {}
    fields: dict[str, tuple[Field, ...]] = {}

    def note(scan: Scan, read: Iterable[int]) -> None:
        found.setdefault(scan.name, set()).update(read)
        fields[scan.name] = scan.fields

    if isinstance(plan, Scan):
        note(plan, range(len(plan.fields)))
    for node in nodes(plan):
        for below in inputs(node):
            if isinstance(below, Scan) and isinstance(node, Project):
                note(below, (index for expr in node.expressions for index in columns(expr)))
            elif isinstance(below, Scan):
                note(below, range(len(below.fields)))
    return {name: [fields[name][index].name for index in sorted(read) or [0]] for name, read in found.items()}


def narrow_scans(plan: Plan, kept: Mapping[str, Sequence[str]]) -> Plan:
    """The same plan over relations that have no other columns than these; others are NULL, and nobody reads them."""

    def inside(part: Expr) -> Expr | None:
        if isinstance(part, ScalarSubquery | Exists):
            return replace(part, plan=narrow_scans(part.plan, kept))
        if isinstance(part, InSubquery):
            values = tuple(rewrite(value, inside) for value in part.values)
            return replace(part, plan=narrow_scans(part.plan, kept), values=values)
        return None

    def narrow(node: Plan) -> Plan:
        if isinstance(node, Scan) and node.name in kept:
            return _narrowed(node, kept[node.name])
        return map_expressions(node, lambda expr: rewrite(expr, inside))

    return map_plan(plan, narrow)


def _narrowed(scan: Scan, kept: Sequence[str]) -> Plan:
    fields = tuple(one for one in scan.fields if one.name in set(kept))
    if len(fields) == len(scan.fields):
        return scan
    places = {one.name: place for place, one in enumerate(fields)}
    chosen = tuple(
        Column(places[one.name], one.name, one.type) if one.name in places else Literal(None, one.type)
        for one in scan.fields
    )
    return Project(Scan(scan.name, fields, scan.position), chosen, scan.fields)
