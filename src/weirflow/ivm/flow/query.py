"""Ad-hoc queries over a flow, computed once by a circuit of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.ivm.compiler.program import Program
from weirflow.ivm.compiler.resolve import resolved
from weirflow.ivm.compiler.session_tables import can_read_tables
from weirflow.ivm.compiler.view import Mode, RecomputeEngine, View
from weirflow.ivm.flow.clock import clock_row, system_time
from weirflow.ivm.flow.explain import explain_view
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.ingest import read_table
from weirflow.sql.clock.relation import CLOCK, CLOCK_SCHEMA
from weirflow.sql.settings import USUAL, SqlSettings
from weirflow.sql.snapshots import free_name

if TYPE_CHECKING:
    from weirflow.ivm.flow.state import FlowState

_QUERY = "the query"  # no name of a source or view


@dataclass(frozen=True)
class PlannedQuery:
    """A query that is compiled to a circuit of its own, which shares nothing with the flow.

    Attributes:
        program: what computes it.
        given: the rows that came with it.
        reads: the sources and views of the flow that it reads.
    """

    program: Program
    given: Mapping[str, Batch]
    reads: tuple[str, ...]

    def rows(self, contents: Mapping[str, Batch]) -> pa.Table:
        """Its rows, for the rows of what it ``reads``."""
        result = self.program.circuit.computed({**self.given, **contents})[_QUERY]
        fields = self.program.relations[_QUERY].fields
        schema = pa.schema([(field.name, field.type) for field in fields])
        return DeltaBatch.of_batch(schema, result).inserts()


def given_tables(given: Mapping[str, Any]) -> dict[str, pa.Table]:
    """The rows that come with a query, read once: they may be a stream."""
    return {name: read_table(data) for name, data in given.items()}


def plan_query(
    known: Mapping[str, pa.Schema], query: str, tables: Mapping[str, pa.Table], settings: SqlSettings = USUAL
) -> PlannedQuery:
    """Compile a query over what is ``known`` of a flow: see ``kept_relations``.

    It may also read the ``tables``, which go before sources and views of their names. It means what it does with these
    settings.
    """
    program = Program()
    for name in known.keys() - tables.keys():
        program.add_source(name, known[name], stored=False)
    for name, table in tables.items():
        program.add_source(name, table.schema, stored=False)
    if CLOCK not in program.relations:
        program.add_source(CLOCK, CLOCK_SCHEMA, stored=False)
    program.add_views({_QUERY: View(query, Mode.INCREMENTAL, stored=False, settings=settings)})
    read = program.circuit.ancestors([program.relations[_QUERY].node])
    names = [name for name, number in program.circuit.sources.items() if number in read]
    own = {name: Batch.of_arrow(tables[name]) for name in names if name in tables}
    return PlannedQuery(program, own, tuple(name for name in names if name not in tables))


def kept_relations(state: FlowState) -> dict[str, pa.Schema]:
    """The columns of the sources and views whose rows are kept, which queries can read."""
    relations = state.program.relations
    return {name: state.schema(name) for name, relation in relations.items() if relation.store is not None}


def contents_of(state: FlowState, names: Iterable[str]) -> dict[str, Batch]:
    """The rows of sources and views as they are now; later ticks do not change them."""
    return {name: _rows(state, name) for name in names}


def run_query(state: FlowState, query: str, given: Mapping[str, Any], settings: SqlSettings = USUAL) -> pa.Table:
    """The rows that a query returns for a state that nobody changes meanwhile; see ``plan_query``."""
    planned = plan_query(kept_relations(state), query, given_tables(given), settings)
    return planned.rows(contents_of(state, planned.reads))


def explain_query(
    tables: Mapping[str, pa.Schema],
    query: str,
    mode: Mode,
    engine: RecomputeEngine | None = None,
    settings: SqlSettings = USUAL,
) -> str:
    """How a query over sources and views of these columns would be maintained as a view, without making it one."""
    if can_read_tables(engine):
        read = [one for one in engine.tables(query, list(tables)) if one.snapshot_in(tables) is None]
        tables = {**tables, **{free_name(one.name, tables): one.schema for one in read}}
    program = Program(engine)
    for name, schema in {CLOCK: CLOCK_SCHEMA, **tables}.items():
        program.add_source(name, schema)
    view = resolved(engine, tables, {_QUERY: View(query, mode, settings=settings)}, {_QUERY})[_QUERY]
    program.add_views({_QUERY: view})
    return explain_view(program, _QUERY, view)


def _rows(state: FlowState, name: str) -> Batch:
    """The rows of a source or view; of the clock, if the flow has none, the system's time."""
    kept = state.rows(name) if name in state.program.relations else Batch.empty(CLOCK_SCHEMA.types)
    return kept if len(kept) or name != CLOCK else Batch.of_arrow(clock_row(system_time()))
