"""``TableFlow``: a flow in shards with one view over tables, which others open as it was at a commit that they name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.errors import FlowError, NotIncremental, Reason
from weirflow.flows.small_stages import SmallStages
from weirflow.flows.spark_flow import SparkFlow
from weirflow.ivm.compiler.view import Mode, View
from weirflow.ivm.sharded.backend import DeltaTooLarge
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.sql.passes.narrow_scans import narrow_scans, read_columns
from weirflow.sql.passes.optimize import optimized
from weirflow.sql.stored import decode_plan, encode_plan

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession
    from weirflow.ivm.flow.summary import StepSummary
    from weirflow.ivm.sharded.backend import ShardedBackend

_VIEW = "view"


class TableFlow(SparkFlow, PartitionedFlow):
    """Keeps what is needed to go on from one version of some tables to the next; the rows of the view are elsewhere.

    It needs no lease: who opens it last goes on, and commits of others are refused from then on.

    Args:
        session: whose Spark runs it.
        uri: where it is kept.
        at: the number of the commit to go on from; None makes a new one.
    """

    _backend: ShardedBackend

    def __init__(self, session: FlowSession, uri: str, *, at: int | None = None) -> None:
        with ExitStack() as held:
            stages = SmallStages(session)
            held.callback(stages.close)
            PartitionedFlow.__init__(self, uri, stages.parallelism, stages, name=f"state at {uri}", history=0, at=at)
            self._stages = stages
            self._wire(session, stages.reader, None, held.pop_all())

    @property
    def commit_number(self) -> int:
        """What names the flow as it is now."""
        return self._backend.commit_number

    def define(self, query: Any, tables: Mapping[tuple[str, ...], pa.Schema]) -> None:
        """Have the view of a native frame over tables, by their names as Spark has them.

        Each is a source then, of those columns that the view reads.

        Raises:
            NotIncremental: it has no delta rule, or follows the clock.
        """
        sources = {parts: _source_name(parts) for parts in tables}
        schemas = {sources[parts]: schema for parts, schema in tables.items()}
        text, encoded, settings = self._session.operations.run(
            "read a view", lambda: self._reader.read_frame(query, schemas, sources)
        )
        whole = decode_plan(encoded)
        kept = read_columns(optimized(whole))
        for name, schema in schemas.items():
            read = kept.setdefault(name, schema.names[:1])
            self.register_source(name, pa.schema([one for one in schema if one.name in set(read)]))
        plan = encode_plan(narrow_scans(whole, kept))
        self._backend.define_view(_VIEW, View(text, Mode.INCREMENTAL, stored=False, plan=plan, settings=settings))
        if self._backend.follows_clock:
            raise NotIncremental(
                "The query compares with the time at which it runs.", reason=Reason.EXPRESSION_NOT_DETERMINISTIC
            )

    def columns(self, parts: tuple[str, ...]) -> pa.Schema:
        """Those of a table that the view reads, as they were when it was defined."""
        return self.schema(_source_name(parts))

    def move(self, deltas: Mapping[tuple[str, ...], Any], *, most: int | None = None) -> StepSummary:
        """Take in what changed in tables, all of it in one tick.

        Args:
            deltas: for each table the columns that the view reads, with weights: a native frame, or rows of ``here``.
            most: how many rows may have changed.

        Raises:
            DeltaTooLarge: more rows changed than ``most``; nothing has happened.
        """
        if self.views != (_VIEW,):
            raise FlowError("The flow has no view yet.", hint="define() it first")
        self._backend.most_rows = most  # it counts the rows of frames
        here = sum(delta.num_rows for delta in deltas.values() if isinstance(delta, pa.Table))
        if most is not None and here > most:
            raise DeltaTooLarge(here)
        return self.tick({_source_name(parts): delta for parts, delta in deltas.items()})

    def here(self, frame: Any) -> pa.Table:
        """The rows of a native frame of few rows; a tick of such rows alone runs in this process."""
        return self._stages.here(frame)

    def changed(self, native: Any) -> Any:
        """What the last tick changed in the view: a frame of that native session, with weights."""
        from weirflow.spark.jobs.shards import rows_of_shards  # noqa: PLC0415 - imports pyspark

        work = self._backend.changed_rows(_VIEW)
        return rows_of_shards(native, work.schema, work.shards, work)

    def changed_here(self) -> DeltaBatch:
        """The same, read by this process and consolidated: for changes of few rows."""
        return self._backend.changed_here(_VIEW)

    def no_change(self) -> DeltaBatch:
        """A change of the view without rows."""
        return DeltaBatch.from_inserts(self.schema(_VIEW).empty_table())


def _source_name(parts: tuple[str, ...]) -> str:
    """What the source of a table is called: letters, digits and underscores, another name for each table."""
    return f"table_{hashlib.sha256(repr(parts).encode()).hexdigest()[:20]}"
