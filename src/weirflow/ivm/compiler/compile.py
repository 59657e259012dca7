"""SQL views over sources to one circuit: order by dependency, plan, lower."""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import ConfigError
from weirflow.ivm.circuit.circuit import Circuit
from weirflow.ivm.compiler.lower import Lowering
from weirflow.sql.optimize import logical_plan
from weirflow.sql.parse import parse_query
from weirflow.sql.plan import Field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa


@dataclass(frozen=True)
class CompiledViews:
    """A circuit and the columns of its views."""

    circuit: Circuit
    fields: Mapping[str, tuple[Field, ...]]


def compile_views(sources: Mapping[str, pa.Schema], views: Mapping[str, str]) -> CompiledViews:
    """One circuit for all views; a view may read sources and other views, in any order of definition.

    Raises a ``QueryError`` for SQL that cannot be bound, ``NotIncremental`` for SQL outside the incremental subset,
    and ``ConfigError`` for views that read each other in a circle.
    """
    circuit = Circuit()
    catalog = {name: tuple(Field(field.name, field.type) for field in schema) for name, schema in sources.items()}
    nodes = {name: circuit.add_source(name, [field.type for field in fields]) for name, fields in catalog.items()}
    lowering = Lowering(circuit, nodes)
    fields: dict[str, tuple[Field, ...]] = {}
    for name in _in_order(views):
        plan = logical_plan(views[name], catalog)
        nodes[name] = lowering.node(plan)
        circuit.add_view(name, nodes[name])
        catalog[name] = fields[name] = plan.fields
    return CompiledViews(circuit, fields)


def _in_order(views: Mapping[str, str]) -> Sequence[str]:
    """The names of the views, each behind those it reads."""
    known = {name.casefold(): name for name in views}
    reads = {name: [known[table] for table in _tables(sql) if table in known] for name, sql in views.items()}
    try:
        return list(TopologicalSorter(reads).static_order())
    except CycleError as error:
        circle = " reads ".join(reversed(error.args[1]))
        raise ConfigError(f"Views read each other in a circle: {circle}.", hint="break the circle") from None


def _tables(sql: str) -> set[str]:
    """All names that the query may read, in lower case; names of its own CTEs do no harm."""
    return {table.name.casefold() for table in parse_query(sql).find_all(exp.Table)}
