"""``SparkStages``: the stages of a partitioned flow as jobs of a Session's Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from weirflow.flows.beside import SessionsBeside
from weirflow.flows.own_session import conf_of
from weirflow.flows.recompute import SparkRecompute
from weirflow.flows.session_tables import SessionTables
from weirflow.flows.view_schema import view_schema
from weirflow.ivm.sharded.executor import StageExecutor
from weirflow.ivm.sharded.worker.reports import (
    ShardReport,
    StageTask,
    decode_parcel,
    decode_task,
    encode_parcel,
    encode_task,
)
from weirflow.ivm.sharded.worker.stage import run_stage

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.flows.host import FlowSession
    from weirflow.flows.view_reader import ViewReader
    from weirflow.ivm.compiler.view import RecomputeEngine
    from weirflow.ivm.sharded.worker.distribution import ReadRows
    from weirflow.spark.jobs.shards import ShardJobs
    from weirflow.sql.settings import SqlSettings


class SparkStages(StageExecutor):
    """Runs stages on Spark's executors; rows stay there."""

    def __init__(self, session: FlowSession) -> None:
        from weirflow.spark.jobs.shards import ShardJobs  # noqa: PLC0415 - imports pyspark

        self._session = session
        self._beside = SessionsBeside(session)
        run, tables = session.operations.run_for_tick, SessionTables(session)
        functions = session._user_functions  # noqa: SLF001 - for flows alone
        self._jobs: ShardJobs = ShardJobs(self._beside.open, run, functions.install)
        self._recompute = SparkRecompute(
            lambda: session.spark,
            self._beside.open,
            run,
            tables,
            functions,
            in_shards=True,
        )

    @property
    def runs(self) -> str:
        """Where it runs, in words for people."""
        return f"on Spark {self._session.describe().spark}"

    @property
    def parallelism(self) -> int:
        """How many tasks Spark runs at a time."""
        return self._jobs.parallelism

    def run(self, stages: Sequence[StageTask]) -> list[ShardReport]:
        """See ``StageExecutor``. The job ends when the reports of all tasks are here."""
        work = [StageOnShard(encode_task(task)) for task in stages]
        parcels = [decode_parcel(data) for data in self._jobs.stages(stages[0].shards, work)]
        return [parcel.report for parcel in parcels if parcel.report is not None]

    def over(self, frame: Any, work: Callable[[Iterable[Any]], Iterator[bytes]]) -> list[bytes]:
        """See ``StageExecutor``: tasks that write files say here where these are."""
        return self._jobs.over([(frame, work)])

    @override
    def over_all(self, works: Sequence[tuple[Any, Callable[[Iterable[Any]], Iterator[bytes]]]]) -> list[bytes]:
        return self._jobs.over(works)

    @override
    def each(self, shards: int, work: Callable[[int], bytes]) -> list[bytes]:
        return self._jobs.each(shards, work)

    @property
    @override
    def engine(self) -> RecomputeEngine:
        return self._recompute

    @property
    def reader(self) -> ViewReader:
        """What has Spark read views."""
        return self._recompute.reader

    def rows(self, work: ReadRows, shards: int) -> Any:
        """See ``StageExecutor``: a native frame of the Session's."""
        from weirflow.spark.jobs.shards import rows_of_shards  # noqa: PLC0415 - imports pyspark

        return rows_of_shards(self._session.spark, work.schema, shards, work)

    def query(
        self,
        sql: str,
        tables: Mapping[str, ReadRows],
        shards: int,
        given: Mapping[str, pa.Table] | None = None,
        settings: SqlSettings | None = None,
    ) -> Any:
        """See ``StageExecutor``: executors read the rows where the query needs them."""
        works = {name: (work.schema, work) for name, work in tables.items()}
        conf = conf_of(settings or self._recompute.settings_now())
        return self._jobs.query(sql, works, shards, given or {}, conf)

    @override
    def table(self, frame: Any) -> pa.Table:
        result = self._session.operations.run_for_tick("run a query", frame.toArrow)
        return result.cast(view_schema(result.schema))

    def close(self) -> None:
        """Let go of the native sessions that were opened for this."""
        self._beside.close()


@dataclass(frozen=True)
class StageOnShard:
    """What a task of Spark runs."""

    task: bytes

    def __call__(self, shard: int, parcels: Iterable[bytes], where: str) -> Iterator[tuple[int, bytes]]:
        """Parcels in, parcels out."""
        sent = run_stage(decode_task(self.task), shard, (decode_parcel(data) for data in parcels), where)
        return ((target, encode_parcel(parcel)) for target, parcel in sent)
