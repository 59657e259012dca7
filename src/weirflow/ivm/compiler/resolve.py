"""Views with the plans that an engine reads in their SQL, where it can."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from weirflow.errors import NotIncremental, TableNotFound, WeirflowError
from weirflow.ivm.compiler.program import Program
from weirflow.ivm.compiler.reads import is_readable, missing
from weirflow.ivm.compiler.settled import settings_now, under
from weirflow.ivm.compiler.view import RecomputeEngine, View
from weirflow.sql.stored import encode_refusal, outline

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from weirflow.sql.plan import Field


@runtime_checkable
class ResolvingEngine(RecomputeEngine, Protocol):
    """An engine that also reads the SQL of views."""

    def resolve(self, sql: str, tables: Mapping[str, pa.Schema]) -> str | None:
        """The query's plan over relations of these columns, as ``encode_plan`` writes it; None: as the binder reads it.

        Or what ``encode_refusal`` writes: then the query is recomputed, and may be one that only Spark can read.
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
    absent: dict[str, TableNotFound] = {}
    known, left = dict(schemas), dict(views)
    while left.keys() - absent.keys():
        for name, view in list(left.items()):
            try:
                found[name] = _resolved(engine, known, view)
            except TableNotFound as error:
                absent[name] = error
                continue
            except WeirflowError:
                if name in new:
                    raise
                found[name] = view
            del left[name]
            if left:
                known |= columns_of({name: found[name]}, known, engine)
                absent.clear()
    for name in left:
        if name in new and not is_readable(views[name].sql):  # it cannot wait: nobody could tell what for
            raise absent[name]
    return {**found, **{name: replace(view, plan=None) for name, view in left.items()}}


def _resolved(engine: ResolvingEngine, schemas: Mapping[str, pa.Schema], view: View) -> View:
    if view.is_frame:
        return view
    settings = view.settings or settings_now(engine)
    try:
        plan = under(engine, settings).resolve(view.sql, schemas)
    except NotIncremental as refusal:
        plan = encode_refusal(refusal)
    return replace(view, plan=plan, settings=settings)


def columns_of(
    views: Mapping[str, View], schemas: Mapping[str, pa.Schema], engine: RecomputeEngine | None
) -> dict[str, pa.Schema]:
    """The columns of views, each behind those that it reads, over relations of these; without those that have none."""
    found: dict[str, pa.Schema] = {}
    for name, view in views.items():
        known = {**schemas, **found}
        try:
            if missing(view, known):
                continue
            fields = None if view.plan is None else outline(view.plan).fields
            fields = _compiled(view, known, engine) if fields is None else fields
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
