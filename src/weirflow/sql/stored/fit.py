"""A stored plan over the relations that there are now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.errors import ColumnNotFound, SqlPosition, SqlTypeError, TableNotFound, did_you_mean
from weirflow.sql.expr import Column, Exists, Expr, InSubquery, ScalarSubquery
from weirflow.sql.plan import Field, Plan, Project, Recursive, Scan
from weirflow.sql.stored.plan_text import scans
from weirflow.sql.traverse import inputs, map_expressions, rewrite, with_inputs
from weirflow.sql.types import nullable, type_name
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.sql.bind.context import Catalog

_HINT = "replace the view, or register what it reads with the columns it had"


def fitted(plan: Plan, catalog: Catalog) -> Plan:
    """The plan with each scan over the relation and columns of its names, whatever their case and order are now.

    Raises:
        TableNotFound: there is no such relation.
        ColumnNotFound: a relation has no such column.
        SqlTypeError: a column has another type.
    """
    known = {name.casefold(): name for name in catalog}
    places: dict[Scan, Plan] = {}
    for scan in scans(plan):
        name = known.get(scan.name.casefold())
        if name is None:
            raise not_there(scan.name, catalog, scan.position)
        places[scan] = _placed(scan, name, tuple(Field(one.name, nullable(one.type)) for one in catalog[name]))
    moved = {scan: place for scan, place in places.items() if scan != place}
    return _replaced(plan, moved, frozenset()) if moved else plan


def not_there(name: str, known: Iterable[str], position: SqlPosition | None = None) -> TableNotFound:
    """The error for a name that a plan scans and nothing has."""
    hint = did_you_mean(name, known) or _HINT
    return TableNotFound(f"No source or view is named {name!r}.", hint=hint, position=position)


def _placed(scan: Scan, name: str, fields: tuple[Field, ...]) -> Plan:
    """The columns of a scan, under the names that they have there."""
    if [_key(one) for one in scan.fields] == [_key(one) for one in fields] and not _differ_by_case(scan, fields):
        return replace(scan, name=name)
    exactly = {field.name: place for place, field in enumerate(fields)}
    at = {field.name.casefold(): place for place, field in enumerate(fields)}
    columns = []
    for wanted in scan.fields:
        place = exactly.get(wanted.name, at.get(wanted.name.casefold()))
        if place is None:
            raise ColumnNotFound(
                f"{name!r} has no column {wanted.name!r}, which a view reads.", hint=_HINT, position=scan.position
            )
        if fields[place].type != wanted.type:
            raise SqlTypeError(
                f"The column {wanted.name!r} of {name!r} is {type_name(fields[place].type)}; "
                f"a view reads it as {type_name(wanted.type)}.",
                hint=_HINT,
                position=scan.position,
            )
        columns.append(Column(place, wanted.name, wanted.type))
    return Project(replace(scan, name=name, fields=fields), tuple(columns), scan.fields)


def _differ_by_case(scan: Scan, fields: tuple[Field, ...]) -> bool:
    """Whether columns that differ only by case may have changed places."""
    folded = {one.name.casefold() for one in fields}
    return len(folded) < len(fields) and [one.name for one in scan.fields] != [one.name for one in fields]


def _key(field: Field) -> tuple[str, str]:
    return field.name.casefold(), str(field.type)


@grows
def _replaced(plan: Plan, places: Mapping[Scan, Plan], own: frozenset[str]) -> Plan:
    if isinstance(plan, Scan):
        return plan if plan.name in own else places.get(plan, plan)
    inside = own | {plan.name} if isinstance(plan, Recursive) else own
    below = [_replaced(one, places, own) for one in inputs(plan)[:1]]
    below += [_replaced(one, places, inside) for one in inputs(plan)[1:]]

    def changed(part: Expr) -> Expr | None:
        if isinstance(part, InSubquery):
            values = tuple(rewrite(one, changed) for one in part.values)
            return replace(part, plan=_replaced(part.plan, places, own), values=values)
        if isinstance(part, ScalarSubquery | Exists):
            return replace(part, plan=_replaced(part.plan, places, own))
        return None

    return map_expressions(with_inputs(plan, tuple(below)), lambda expr: rewrite(expr, changed))
