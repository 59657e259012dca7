"""``LocalChange``: a source of a flow in this process, changed by a statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from weirflow.flows.sql.change_plan import ROW, ChangePlan
from weirflow.flows.sql.change_rules import one_for_each_key, require_in_time, several_match
from weirflow.flows.sql.changes import MergeSource, RowChange
from weirflow.flows.sql.merge import require_distinct
from weirflow.ivm.zset.batch import Batch, one_array
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.sql.statements.composed import ComposedSql, Fragment

if TYPE_CHECKING:
    from weirflow.flows.registry import Flow
    from weirflow.flows.sql.queries import FlowQueries, Rows
    from weirflow.ivm.flow.summary import StepSummary

_SOURCE = "_weirflow_source"


class LocalChange(RowChange):
    """Reads and changes a source whose rows are here; see ``RowChange``."""

    def __init__(self, flow: Flow, name: str, queries: FlowQueries) -> None:
        self.source = flow.source(name)
        self._flow = flow
        self._queries = queries

    @override
    def target(self, *, numbered: bool = False) -> pa.Table:
        rows = self._flow.snapshot(self.source.name)
        return rows.append_column(ROW, pa.array(np.arange(rows.num_rows))) if numbered else rows

    def incoming(self, source: Fragment) -> MergeSource:
        """See ``RowChange``: its rows are computed once."""
        rows = self.query(["SELECT * FROM ", source], {})
        require_distinct(rows.column_names)
        return MergeSource(rows.column_names, [_SOURCE], {_SOURCE: rows})

    @override
    def query(self, pieces: Sequence[str | Fragment], tables: Mapping[str, Rows]) -> pa.Table:
        return self._queries.run(ComposedSql(pieces), tables)

    @override
    def width(self, rows: Rows) -> int:
        return int(rows.num_columns)

    def tick(self, plan: ChangePlan, found: Rows) -> StepSummary:
        """Do as the plan says with the rows found, in one tick.

        Raises:
            DataError: a rule is broken; nothing has changed.
        """
        removed, added = plan.apply(_once(plan, found))
        require_in_time(self.source, self._flow.too_late(self.source.name, removed))
        if self.source.key:
            there = self._flow.snapshot(self.source.name) if plan.moves_keys else None
            added = one_for_each_key(self.source, added, removed, there)
        return self._flow.tick(self.source.name, delta(self.source.schema, removed, added))


def delta(schema: pa.Schema, removed: pa.Table, added: pa.Table) -> DeltaBatch:
    """Rows that go and rows that come, of the schema."""
    return DeltaBatch.of_batch(schema, Batch.concat([Batch.of_arrow(removed, -1), Batch.of_arrow(added)]))


def _once(plan: ChangePlan, found: pa.Table) -> pa.Table:
    """What was found, with each row that goes in it once."""
    if not plan.matches:
        return found
    row = one_array(found.column(ROW))
    numbers = row.drop_null().to_numpy(zero_copy_only=False)
    _, first = np.unique(numbers, return_index=True)
    if len(first) == len(numbers):
        return found
    if plan.one_match:
        raise several_match(plan.source)
    matched = found.filter(pc.is_valid(row))
    return pa.concat_tables([found.filter(pc.is_null(row)), matched.take(pa.array(first))])
