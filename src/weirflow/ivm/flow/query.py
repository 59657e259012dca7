"""Ad-hoc queries over a flow, computed once by a circuit of their own."""

from __future__ import annotations

from collections.abc import Mapping
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


def run_query(state: FlowState, query: str, given: Mapping[str, Any], settings: SqlSettings = USUAL) -> pa.Table:
    """The rows that a query returns for the sources and views whose rows are kept, as they are now.

    It may also read the tables ``given``, which go before sources and views of their names. It means what it does
    with these settings.
    """
    tables = {name: read_table(data) for name, data in given.items()}
    program = Program()
    for name in _stored(state) - tables.keys():
        program.add_source(name, state.schema(name), stored=False)
    for name, table in tables.items():
        program.add_source(name, table.schema, stored=False)
    if CLOCK not in program.relations:
        program.add_source(CLOCK, CLOCK_SCHEMA, stored=False)
    result = _QUERY
    program.add_views({result: View(query, Mode.INCREMENTAL, stored=False, settings=settings)})
    read = program.circuit.ancestors([program.relations[result].node])
    contents = {
        name: Batch.of_arrow(tables[name]) if name in tables else _rows(state, name)
        for name, number in program.circuit.sources.items()
        if number in read
    }
    made = program.circuit.computed(contents)[result]
    schema = pa.schema([(field.name, field.type) for field in program.relations[result].fields])
    return DeltaBatch.of_batch(schema, made).inserts()


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


def _stored(state: FlowState) -> set[str]:
    return {name for name, relation in state.program.relations.items() if relation.store is not None}
