"""SQL views over sources to one circuit, for tests that drive it without a flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.ivm.compiler.program import Program
from weirflow.ivm.compiler.view import Mode, View
from weirflow.sql.settings import USUAL

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.circuit.circuit import Circuit
    from weirflow.sql.plan import Field
    from weirflow.sql.settings import SqlSettings


@dataclass(frozen=True)
class CompiledViews:
    """A circuit and the columns of its views."""

    circuit: Circuit
    fields: Mapping[str, tuple[Field, ...]]


def compile_views(
    sources: Mapping[str, pa.Schema],
    views: Mapping[str, str],
    plans: Mapping[str, str] | None = None,
    settings: SqlSettings = USUAL,
) -> CompiledViews:
    """One circuit for all views; a view may read sources and other views, in any order of definition.

    ``plans`` are those of views that the binder does not read, from ``encode_plan``; others it reads with ``settings``.

    Neither sources nor views keep their rows; ``start`` is still to be called.

    Raises a ``QueryError`` for SQL that cannot be bound, ``NotIncremental`` for SQL outside the incremental subset,
    and ``ConfigError`` for views that read each other in a circle.
    """
    program = Program()
    for name, schema in sources.items():
        program.add_source(name, schema, stored=False)
    program.add_views(
        {
            name: View(sql, Mode.INCREMENTAL, stored=False, plan=plans.get(name) if plans else None, settings=settings)
            for name, sql in views.items()
        }
    )
    return CompiledViews(program.circuit, {name: program.relations[name].fields for name in views})
