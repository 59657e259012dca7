"""Work in shards as one Spark job: stages with an exchange between them, a task for each shard in each."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema

from weirflow.errors import QueryError
from weirflow.spark.compat import arrow_schema
from weirflow.spark.frames.arrow import arrow_frame, spark_table
from weirflow.spark.frames.frame import unwrap
from weirflow.sql.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

StageWork = Callable[[int, Iterable[bytes], str], Iterator[tuple[int, bytes]]]
"""What a stage does on a shard, somewhere, with the parcels that came for it: parcels for shards of the next stage."""

_log = logging.getLogger(__name__)

_ATTEMPTS = 3
"""How often a job is tried whose executors are lost over and over; Spark has run its tasks four times by then."""
_LOST = re.compile(
    r"ExecutorLostFailure|FetchFailed|Python worker exited unexpectedly|has failed the maximum allowable"
)
_SENT = "shard int, parcel binary"
_DONE = "done binary"
_SENT_SCHEMA = pa.schema([("shard", pa.int32()), ("parcel", pa.binary())])
_DONE_SCHEMA = pa.schema([("done", pa.binary())])
_BATCH_BYTES = 4 << 20


class ShardJobs:
    """Runs work in shards on Spark's executors. All work is pickled: it consists of data and names of functions.

    Args:
        open_session: a native session that shares the Session's Spark.
        run: runs a call as an operation of the Session, with its errors translated.
        install: has a native session know the functions that queries may call by name.
    """

    def __init__(
        self,
        open_session: Callable[[], Any],
        run: Callable[[str, Callable[[], Any]], Any],
        install: Callable[[Any], None],
    ) -> None:
        self._open_session = open_session
        self._run = run
        self._install = install
        self._native: Any = None
        self._queries: dict[tuple[tuple[str, str], ...], Any] = {}
        self._given: list[tuple[Any, str]] = []

    @property
    def parallelism(self) -> int:
        """How many tasks Spark runs at a time."""
        native = self._session()
        if hasattr(native, "_jsparkSession"):
            return int(native.sparkContext.defaultParallelism)
        return int(native.conf.get("spark.sql.shuffle.partitions"))  # a Connect server does not tell

    def stages(self, shards: int, stages: Sequence[StageWork]) -> list[bytes]:
        """Run the stages one behind the other; returns the parcels that the last one sends."""

        def job() -> list[Any]:
            frame = self._shards(shards)
            for number, work in enumerate(stages):
                if number:
                    frame = frame.repartitionById(shards, "shard")
                frame = frame.mapInArrow(_StageFunction(work), _SENT)
            return list(frame.collect())

        return [bytes(row.parcel) for row in self._run_again_if_lost("run a tick", job)]

    def over(self, works: Sequence[tuple[Any, Callable[[Iterable[pa.RecordBatch]], Iterator[bytes]]]]) -> list[bytes]:
        """Run work on the rows of each partition of its frame, where they are; returns what all of it says."""

        def job() -> list[Any]:
            mapped = [unwrap(frame).mapInArrow(_OverFunction(work), _DONE) for frame, work in works]
            return list(reduce(lambda one, other: one.unionAll(other), mapped).collect())

        return [bytes(row.done) for row in self._run_again_if_lost("take a delta in", job)]

    def here(self, frame: Any) -> pa.Table:
        """All rows of a native frame, in this process."""

        def job() -> list[pa.Table]:
            return [frame.toArrow()]

        (rows,) = self._run_again_if_lost("read a delta", job)
        return rows

    def each(self, shards: int, work: Callable[[int], bytes]) -> list[bytes]:
        """Run work for each shard; returns what it says, in any order."""
        rows = self._run_again_if_lost(
            "move shards", lambda: self._shards(shards).mapInArrow(_EachFunction(work), _DONE).collect()
        )
        return [bytes(row.done) for row in rows]

    def query(
        self,
        sql: str,
        tables: Mapping[str, tuple[pa.Schema, Callable[[int], Iterable[pa.RecordBatch]]]],
        shards: int,
        given: Mapping[str, pa.Table],
        conf: Mapping[str, str],
    ) -> Any:
        """A query over the batches that work gives for each shard of each table, when the frame is run.

        It may also read the tables that are given, and means what it means in a session of this configuration.
        """
        native = self._for_queries(conf)
        # Not dropped at once: over Spark Connect, a query looks for its tables when it is run.
        while self._given:
            there, name = self._given.pop()
            there.catalog.dropTempView(name)
        for name, (schema, work) in tables.items():
            rows_of_shards(native, schema, shards, work).createOrReplaceTempView(quoted(name))
        for name, table in given.items():
            arrow_frame(native, table).createOrReplaceTempView(quoted(name))
            self._given.append((native, name))
        return self._run("plan a view", lambda: native.sql(sql))

    def _for_queries(self, conf: Mapping[str, str]) -> Any:
        """A session for queries of this configuration; its plans may change on their way."""
        wanted = tuple(sorted(conf.items()))
        if wanted not in self._queries:
            native = self._open_session()
            for name, value in wanted:
                native.conf.set(name, value)
            self._queries[wanted] = native
        self._install(self._queries[wanted])
        return self._queries[wanted]

    def _run_again_if_lost(self, what: str, job: Callable[[], list[Any]]) -> list[Any]:
        """Run a job, and once more if what failed was Spark: what the tasks of a lost job wrote counts for nothing."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return list(self._run(what, job))
            except QueryError as error:
                if not is_lost(error):
                    raise
                _log.warning("the job to %s was lost and is run again: %s", what, error.message)
        return list(self._run(what, job))

    def _shards(self, count: int) -> Any:
        """A frame of one row in each of ``count`` partitions."""
        return self._session().range(0, count, 1, count)

    def _session(self) -> Any:
        if self._native is None:
            self._native = self._open_session()
            # A plan that changes on its way could put two shards into one task.
            self._native.conf.set("spark.sql.adaptive.enabled", "false")
        return self._native


def rows_of_shards(
    session: Any, schema: pa.Schema, shards: int, work: Callable[[int], Iterable[pa.RecordBatch]]
) -> Any:
    """A frame of a native session: the batches that work gives for each shard, when the frame is run."""
    columns = from_arrow_schema(spark_table(schema.empty_table()).schema, prefer_timestamp_ntz=True)
    return session.range(0, shards, 1, shards).mapInArrow(_RowsFunction(work, columns), columns)


def is_lost(error: QueryError) -> bool:
    """Whether a job failed because its executors went away, and for nothing in the data or the code."""
    return type(error) is QueryError and _LOST.search(error.message) is not None


@dataclass(frozen=True)
class _StageFunction:
    work: StageWork

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _batches(self.work(_partition(), _parcels(batches), _where()))


@dataclass(frozen=True)
class _OverFunction:
    work: Callable[[Iterable[pa.RecordBatch]], Iterator[bytes]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for done in self.work(batches):
            yield pa.record_batch([pa.array([done], pa.binary())], schema=_DONE_SCHEMA)


@dataclass(frozen=True)
class _EachFunction:
    work: Callable[[int], bytes]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch([pa.array([self.work(_partition())], pa.binary())], schema=_DONE_SCHEMA)


@dataclass(frozen=True)
class _RowsFunction:
    work: Callable[[int], Iterable[pa.RecordBatch]]
    columns: StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(self.columns)
        # The shards are the numbers in the rows: in a union, say, a frame's partitions are not the first ones.
        for shard in (shard for numbers in batches for shard in numbers.column(0).to_pylist()):
            for batch in self.work(shard):
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches()


def _parcels(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        if batch.schema.names == _SENT_SCHEMA.names:  # and not the numbers that the first stage begins with
            yield from batch.column(1).to_pylist()


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
