"""Views with the plans that an engine reads in their SQL, where it can."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from weirflow.errors import TableNotFound, WeirflowError
from weirflow.ivm.compiler.program import Program, RecomputeEngine, View
from weirflow.sql.refusal import NotIncremental
from weirflow.sql.stored import encode_refusal, outline

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from weirflow.sql.plan import Field


@runtime_checkable
class ResolvingEngine(RecomputeEngine, Protocol):
    """An engine that also reads the SQL of views."""

    def resolve(self, sql: str, tables: Mapping[str, pa.Schema]) -> str | None:
        """The query's plan over relations of these columns, as ``encode_plan`` writes it; None: as the binder reads it.

        Called when a view is registered or replaced, also by one that it reads, and when what it waits for comes. The
        plan may scan some of the relations, whose types are as ``nullable`` gives them.

        Raises:
            NotIncremental: the query is to be recomputed.
            TableNotFound: the query reads something that is not there.
            QueryError: something else is wrong with it.
        """


def can_resolve(engine: RecomputeEngine | None) -> TypeIs[ResolvingEngine]:
    """Whether there is an engine that reads the SQL of views."""
    return isinstance(engine, ResolvingEngine)


def resolved(
    engine: RecomputeEngine | None, schemas: Mapping[str, pa.Schema], views: Mapping[str, View], new: Container[str]
) -> dict[str, View]:
    """The views, which may read relations of these columns and each other, each with the plan that it has now.

    One that reads something that is not there has no plan; if the engine reads no SQL, each has the plan it had. What
    is wrong with the SQL of one that is ``new`` is raised; others stay as they are then.
    """
    if not can_resolve(engine):
        return dict(views)
    found: dict[str, View] = {}
    known, left = dict(schemas), dict(views)
    while left:
        before = len(left)
        for name, view in list(left.items()):
            try:
                plan = engine.resolve(view.sql, known)
            except NotIncremental as refusal:
                plan = encode_refusal(refusal)
            except TableNotFound:
                continue
            except WeirflowError:
                if name in new:
                    raise
                plan = view.plan
            found[name] = replace(view, plan=plan)
            del left[name]
            if left:
                known |= columns_of({name: found[name]}, known, engine)
        if len(left) == before:
            break
    return {**found, **{name: replace(view, plan=None) for name, view in left.items()}}


def columns_of(
    views: Mapping[str, View], schemas: Mapping[str, pa.Schema], engine: RecomputeEngine | None
) -> dict[str, pa.Schema]:
    """The columns of views, each behind those that it reads, over relations of these; without those that have none."""
    found: dict[str, pa.Schema] = {}
    for name, view in views.items():
        known = None if view.plan is None else outline(view.plan)
        try:
            fields = _compiled(view, {**schemas, **found}, engine) if known is None else known.fields
        except WeirflowError:
            continue
        found[name] = pa.schema([(field.name, field.type) for field in fields])
    return found


def _compiled(view: View, schemas: Mapping[str, pa.Schema], engine: RecomputeEngine | None) -> tuple[Field, ...]:
    program = Program(engine)
    for name, schema in schemas.items():
        program.add_source(name, schema)
    program.add_views({"": view})
    return program.relations[""].fields
