"""New names for a plan's columns."""

from __future__ import annotations

from collections.abc import Sequence

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.expr import Column
from weirflow.sql.plan import Field, Plan, Project
from weirflow.sql.typing.coercion import cast


def rename(plan: Plan, names: Sequence[str], position: SqlPosition | None = None) -> Plan:
    """The plan with its columns named so; as it is when there are no names."""
    if not names:
        return plan
    if len(names) != len(plan.fields):
        raise SqlTypeError(f"There are {len(names)} names for {len(plan.fields)} columns.", position=position)
    return retype(plan, tuple(Field(name, field.type) for name, field in zip(names, plan.fields, strict=True)))


def retype(plan: Plan, fields: tuple[Field, ...]) -> Plan:
    """The plan with these output columns, cast where the type differs; itself if nothing does."""
    if plan.fields == fields:
        return plan
    columns = (Column(index, field.name, field.type) for index, field in enumerate(plan.fields))
    return Project(plan, tuple(cast(column, field.type) for column, field in zip(columns, fields, strict=True)), fields)
