"""The stages of a partitioned flow as one Spark job: a task for each shard and stage, an exchange between stages."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from weirflow.ivm.partitioned.reports import decode_parcel, decode_task, encode_parcel, encode_task
from weirflow.ivm.partitioned.stage import run_stage
from weirflow.spark.arrow import spark_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql.types import StructType

    from weirflow.ivm.partitioned.moving import SplitRows
    from weirflow.ivm.partitioned.reports import Parcel, ShardReport, StageTask

_SENT = "shard int, parcel binary"
_DONE = "done binary"
_SENT_SCHEMA = pa.schema([("shard", pa.int32()), ("parcel", pa.binary())])
_DONE_SCHEMA = pa.schema([("done", pa.binary())])
_BATCH_BYTES = 4 << 20


class SparkStages:
    """Runs stages on Spark's executors.

    Args:
        open_session: a native session that shares the Session's Spark.
        run: runs a call as an operation of the Session, with its errors translated.
        where: says where Spark runs, for people.
    """

    def __init__(
        self, open_session: Callable[[], Any], run: Callable[[str, Callable[[], Any]], Any], where: Callable[[], str]
    ) -> None:
        self._open_session = open_session
        self._run = run
        self._where = where
        self._native: Any = None

    @property
    def runs(self) -> str:
        """Where, for people."""
        return f"on Spark {self._where()}"

    @property
    def parallelism(self) -> int:
        """How many tasks Spark runs at a time."""
        native = self._session()
        if hasattr(native, "_jsparkSession"):
            return int(native.sparkContext.defaultParallelism)
        return int(native.conf.get("spark.sql.shuffle.partitions"))  # a Connect server does not tell

    def rows(self, schema: pa.Schema, shards: int, work: Callable[[int], Iterable[pa.RecordBatch]]) -> Any:
        """A frame of the batches that ``work`` gives for each shard, when the frame is run."""
        columns = from_arrow_schema(spark_table(schema.empty_table()).schema, prefer_timestamp_ntz=True)
        return self._shards(shards).mapInArrow(RowsFunction(work, columns), columns)

    def run(self, stages: Sequence[StageTask]) -> list[ShardReport]:
        """See ``StageExecutor``. The job ends when the reports of all tasks are here; rows stay on the executors."""

        def job() -> list[Any]:
            shards = stages[0].shards
            frame = self._shards(shards)
            for task in stages:
                if task.stage:
                    frame = frame.repartitionById(shards, "shard")
                frame = frame.mapInArrow(StageFunction(encode_task(task)), _SENT)
            return list(frame.collect())

        parcels = [decode_parcel(bytes(row.parcel)) for row in self._run("run a tick", job)]
        return [parcel.report for parcel in parcels if parcel.report is not None]

    def split(self, frame: Any, work: SplitRows) -> list[bytes]:
        """See ``StageExecutor``: the frame's tasks write files; what comes here are their names."""
        native = getattr(frame, "native", frame)
        rows = self._run("take a delta in", lambda: native.mapInArrow(SplitFunction(work), _DONE).collect())
        return [bytes(row.done) for row in rows]

    def each(self, shards: int, work: Callable[[int], bytes]) -> list[bytes]:
        """See ``StageExecutor``."""
        rows = self._run("move shards", lambda: self._shards(shards).mapInArrow(EachFunction(work), _DONE).collect())
        return [bytes(row.done) for row in rows]

    def _shards(self, count: int) -> Any:
        """A frame of one row in each of ``count`` partitions."""
        return self._session().range(0, count, 1, count)

    def _session(self) -> Any:
        if self._native is None:
            self._native = self._open_session()
            # A plan that changes on its way could put two shards into one task.
            self._native.conf.set("spark.sql.adaptive.enabled", "false")
        return self._native


@dataclass(frozen=True)
class StageFunction:
    """What a task of a stage runs."""

    task: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Parcels in, parcels out."""
        task = decode_task(self.task)
        sent = run_stage(task, _partition(), _parcels(batches), _where())
        yield from _batches((target, encode_parcel(parcel)) for target, parcel in sent)


@dataclass(frozen=True)
class SplitFunction:
    """What a task of an incoming frame runs."""

    work: SplitRows

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows in, names of files out."""
        for done in self.work(batches):
            yield pa.record_batch([pa.array([done], pa.binary())], schema=_DONE_SCHEMA)


@dataclass(frozen=True)
class RowsFunction:
    """What a task of a frame of rows runs."""

    work: Callable[[int], Iterable[pa.RecordBatch]]
    columns: StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The shard's number in, its rows out."""
        schema = to_arrow_schema(self.columns)
        for _ in batches:
            for batch in self.work(_partition()):
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches()


@dataclass(frozen=True)
class EachFunction:
    """What a task runs for a shard."""

    work: Callable[[int], bytes]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The shard's number in, what was done out."""
        for _ in batches:
            yield pa.record_batch([pa.array([self.work(_partition())], pa.binary())], schema=_DONE_SCHEMA)


def _parcels(batches: Iterable[pa.RecordBatch]) -> Iterator[Parcel]:
    for batch in batches:
        if batch.schema.names == _SENT_SCHEMA.names:
            yield from (decode_parcel(data) for data in batch.column(1).to_pylist())


def _batches(sent: Iterable[tuple[int, bytes]]) -> Iterator[pa.RecordBatch]:
    """Parcels as batches of a bounded size."""
    targets: list[int] = []
    parcels: list[bytes] = []
    size = 0
    for target, parcel in sent:
        targets.append(target)
        parcels.append(parcel)
        size += len(parcel)
        if size > _BATCH_BYTES:
            yield _batch(targets, parcels)
            targets, parcels, size = [], [], 0
    if targets:
        yield _batch(targets, parcels)


def _batch(targets: list[int], parcels: list[bytes]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(targets, pa.int32()), pa.array(parcels, pa.binary())], schema=_SENT_SCHEMA)


def _partition() -> int:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def _where() -> str:
    """The executor: its host, and the process that starts its workers."""
    return f"{socket.gethostname()}/{os.getppid()}"
