"""``ShardedChange``: a source of a flow in shards, changed by a statement; its rows stay on Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from typing_extensions import override

from weirflow.errors import UnsupportedError
from weirflow.flows.sql.change_plan import ROW, ChangePlan
from weirflow.flows.sql.change_rules import one_for_each_key, require_in_time, several_match
from weirflow.flows.sql.changed_rows import THERE, ChangedRows, OneForEachKey, delta_schema
from weirflow.flows.sql.changes import MergeSource, RowChange
from weirflow.flows.sql.local_change import delta
from weirflow.flows.sql.merge import require_distinct
from weirflow.flows.view_schema import view_schema
from weirflow.ivm.zset.delta import WEIGHT, DeltaBatch
from weirflow.sql.quoting import quoted
from weirflow.sql.statements.composed import ComposedSql, Fragment
from weirflow.sql.statements.kinds import is_values

if TYPE_CHECKING:
    from weirflow.flows.registry import Flow
    from weirflow.flows.sql.queries import FlowQueries, Rows
    from weirflow.ivm.flow.summary import StepSummary
    from weirflow.spark.frames.frame import DataFrame

_MOST_NOTICED = 100_000
"""How many rows a statement may bring to a source that notices repetitions, which takes all of them here."""


class ShardedChange(RowChange):
    """Reads and changes a source whose rows are on Spark's executors; see ``RowChange``.

    Each query is run once: what it finds may be different the next time. Where a rule needs a second look at the rows,
    Spark keeps them.
    """

    def __init__(self, flow: Flow, name: str, queries: FlowQueries) -> None:
        self.source = flow.source(name)
        self._flow = flow
        self._queries = queries
        self._placed: AbstractContextManager[None] = nullcontext()

    @override
    def target(self, *, numbered: bool = False) -> DataFrame:
        rows = self._flow.frame(self.source.name)
        return rows.selectExpr("*", f"monotonically_increasing_id() AS {ROW}") if numbered else rows

    def incoming(self, source: Fragment) -> MergeSource:
        """See ``RowChange``: it stays a part of the query."""
        _, rows = self._queries.frame(ComposedSql(["SELECT * FROM ", source]), {})
        require_distinct(rows.columns)
        return MergeSource(rows.columns, [source])

    def query(self, pieces: Sequence[str | Fragment], tables: Mapping[str, Rows]) -> Rows:
        """See ``RowChange``. A list of values is here already, and stays here."""
        query = ComposedSql(pieces)
        found = self._queries.literal(query) if is_values(query.text) else None
        if found is not None:
            return found
        made, frame = self._queries.frame(query, tables)
        self._placed = self._queries.placed(made)
        return frame

    @override
    def width(self, rows: Rows) -> int:
        return int(rows.num_columns) if isinstance(rows, pa.Table) else len(rows.columns)

    def tick(self, plan: ChangePlan, found: Rows) -> StepSummary:
        """Do as the plan says with the rows found, in one tick.

        Raises:
            DataError: a rule is broken; nothing has changed.
        """
        if isinstance(found, pa.Table):
            removed, added = plan.apply(found)
            if self.source.key:
                added = one_for_each_key(self.source, added, removed, None)
            return self._flow.tick(self.source.name, delta(self.source.schema, removed, added))
        with self._placed:
            return self._flow.tick(self.source.name, self._delta(plan, found))

    # Inner workings

    def _delta(self, plan: ChangePlan, found: DataFrame) -> DataFrame | DeltaBatch:
        """What is to be ticked, after the rules were seen to."""
        if not plan.is_merge:  # whose names are our own; those of an INSERT may be there twice
            found = found.toDF(*(f"_weirflow_{at}" for at in range(len(found.columns))))
        self._require_storable(plan, found)
        judges_time = plan.removes and self.source.lateness is not None
        if plan.matches or judges_time:
            found = found.localCheckpoint()
        if plan.matches:
            found = self._once(plan, found)
        rows = self._mapped(found, ChangedRows(plan))
        if judges_time:
            late = self._flow.too_late(self.source.name, rows.where(f"{WEIGHT} < 0"))
            require_in_time(self.source, late)
        if self.source.key:
            rows = self._one_for_each_key(plan, rows)
        return self._noticeable(rows) if self.source.dedup else rows

    def _require_storable(self, plan: ChangePlan, found: DataFrame) -> None:
        """``SqlTypeError`` for types that the source's columns do not take, before anything runs."""
        from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark

        plan.apply(view_schema(frame_schema(found.spark)).empty_table())

    def _once(self, plan: ChangePlan, found: DataFrame) -> DataFrame:
        """What was found, with each row that goes in it once."""
        matched = found.where(f"{ROW} IS NOT NULL")
        if not plan.one_match:
            once: DataFrame = found.where(f"{ROW} IS NULL").union(matched.dropDuplicates([ROW]))
            return once
        if not matched.groupBy(ROW).count().where("count > 1").isEmpty():
            raise several_match(self.source)
        return found

    def _one_for_each_key(self, plan: ChangePlan, rows: DataFrame) -> DataFrame:
        keys = [quoted(column) for column in self.source.key]
        rows = rows.selectExpr("*", f"FALSE AS {THERE}")
        if plan.moves_keys:
            there = self._flow.frame(self.source.name).selectExpr(*keys, f"0L AS {WEIGHT}", f"TRUE AS {THERE}")
            rows = rows.unionByName(there, allowMissingColumns=True)
        return self._mapped(rows.repartition(*keys), OneForEachKey(self.source, plan.moves_keys))

    def _noticeable(self, rows: DataFrame) -> DeltaBatch:
        """The rows here: whether a delta repeats an earlier one is found out where all of it is."""
        here = rows.limit(_MOST_NOTICED + 1).to_arrow()
        if here.num_rows > _MOST_NOTICED:
            raise UnsupportedError(
                f"The source {self.source.name!r} drops repeated deltas: a statement changes {_MOST_NOTICED:,} rows "
                "of it at most.",
                hint="change fewer rows at a time, or make the source without dedup",
            )
        return DeltaBatch.from_weighted(here, schema=self.source.schema)

    def _mapped(self, rows: DataFrame, work: Callable[..., Any]) -> DataFrame:
        from weirflow.spark.frames.mapped import mapped_frame  # noqa: PLC0415 - imports pyspark

        native = mapped_frame(rows.spark, work, delta_schema(self.source))
        return self._queries.wrapped(native)
