"""Ad-hoc queries over a flow, computed once by a circuit of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.ivm.compiler.program import Mode, Program, View
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.flow.state import FlowState


def run_query(state: FlowState, query: str) -> pa.Table:
    """The rows that a query returns for the sources and views whose rows are kept, as they are now."""
    program = Program()
    for name, relation in state.program.relations.items():
        if relation.store is not None:
            program.add_source(name, state.schema(name), stored=False)
    result = "the query"  # no name of a source or view
    program.add_views({result: View(query, Mode.INCREMENTAL, stored=False)})
    read = program.circuit.ancestors([program.relations[result].node])
    contents = {name: state.rows(name) for name, number in program.circuit.sources.items() if number in read}
    begun = program.circuit.start()[result]
    made = program.circuit.step(contents)
    schema = pa.schema([(field.name, field.type) for field in program.relations[result].fields])
    return DeltaBatch.of_batch(schema, consolidate(Batch.concat([begun, *made.values()]))).inserts()
