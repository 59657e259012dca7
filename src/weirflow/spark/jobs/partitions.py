"""Work on each partition of a frame, where its rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from weirflow.errors import QueryError
from weirflow.spark.frames.frame import unwrap
from weirflow.spark.jobs.relayed_errors import relayed

PartitionWork = Callable[[int, Iterable[pa.RecordBatch]], Iterator[bytes]]
"""What is done with the rows of a partition, which has a number: something to say about it."""

_DONE = "done binary"
_DONE_SCHEMA = pa.schema([("done", pa.binary())])


def over_partitions(frame: Any, work: PartitionWork) -> list[bytes]:
    """Run work on every partition of a frame; returns what it says. The work is pickled.

    The numbers of partitions are in the order of the frame's rows. An attempt at a partition may be one of several, of
    which one counts: that whose words are returned. Columns have numbers for names.
    """
    native = unwrap(frame)
    # PySpark would look columns up by their names, which may be there twice.
    numbered = native.toDF(*(str(number) for number, _ in enumerate(native.columns)))
    rows = numbered.mapInArrow(_PartitionFunction(work), _DONE).collect()
    return [bytes(row.done) for row in rows]


@dataclass(frozen=True)
class _PartitionFunction:
    work: PartitionWork

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        try:
            for done in self.work(context.partitionId(), batches):
                yield pa.record_batch([pa.array([done], pa.binary())], schema=_DONE_SCHEMA)
        except QueryError as error:
            raise relayed(error) from None
