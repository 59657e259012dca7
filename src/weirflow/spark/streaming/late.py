"""The rows of a stream that come too late for their windows, written aside while the query runs.

A worker knows which batch it works for, and the query's checkpoint says what the watermark was: Spark drops rows by the
watermark of the batch before, and so these are just the rows that it would drop.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import functions as sf

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ConfigError, ObjectExists, StorageError, UnsupportedError

_BATCH = "streaming.sql.batchId"
_NOTE = "_checkpoint.json"  # readers of Parquet folders pass over names that begin so


def note_checkpoint(late: str, checkpoint: str | None) -> None:
    """Let workers know where the checkpoint is of the query whose late rows go to ``late``; done before it starts.

    Raises:
        ConfigError: the late rows of another query are there, whose files this one would replace.
    """
    if checkpoint is None:
        raise UnsupportedError(
            "Late rows are told by the watermark in the query's checkpoint, which is the server's own.",
            hint='set option("checkpointLocation", ...) to a place that the workers reach',
        )
    storage, note = open_checkpoint_storage(late, private=False), json.dumps({"checkpoint": checkpoint}).encode()
    try:
        storage.put_if_absent(_NOTE, note)
    except ObjectExists:
        if storage.get(_NOTE) != note:
            raise ConfigError(
                f"The late rows of another query, or of another checkpoint, are at {late}.",
                hint="give late_rows() a folder of its own, and the query the same checkpointLocation each time",
            ) from None


def on_time(end_micros: Any, late: str) -> Any:
    """Whether a row is not too late, given when its last window ends; those that are get written to ``late``."""

    @sf.arrow_udf("boolean")  # type: ignore[attr-defined,untyped-decorator]  # PySpark's types do not know it
    def judge(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        task = TaskContext.get()
        assert task is not None  # this runs in a worker
        writer = LateWriter(late, int(task.getLocalProperty(_BATCH) or 0), task.partitionId())
        for ends, rows in batches:
            yield writer.judge(ends, rows)
        writer.close()

    return judge(end_micros, sf.struct("*"))


class LateWriter:
    """Tells late rows from others, for one partition of one batch, and writes them when closed.

    A batch that is repeated writes the same file again.

    Args:
        late: the folder or storage URI for them.
        batch: the number of the batch.
        partition: the number of the partition.
    """

    def __init__(self, late: str, batch: int, partition: int) -> None:
        self._storage = open_checkpoint_storage(late, private=False)
        self._name = f"{batch:09}-{partition:05}.parquet"
        self._watermark = _watermark_micros(json.loads(self._storage.get(_NOTE))["checkpoint"], batch - 1)
        self._rows: list[pa.Array] = []

    def judge(self, ends: pa.Array, rows: pa.Array) -> pa.Array:
        """For each row whether it is on time; a row without a time is in no window, and not late."""
        kept = pc.fill_null(pc.greater(ends, self._watermark), fill_value=True)
        late = rows.filter(pc.invert(kept))
        if len(late):
            self._rows.append(late)
        return kept

    def close(self) -> None:
        """Write the late rows, if there are any."""
        if not self._rows:
            return
        batches = [pa.RecordBatch.from_struct_array(rows) for rows in self._rows]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_batches(batches), sink)
        self._storage.put(self._name, sink.getvalue().to_pybytes())


def _watermark_micros(checkpoint: str, batch: int) -> int:
    """The watermark that Spark has noted for a batch: its offsets, a version line and then a line of JSON."""
    if batch < 0:
        return 0
    uri = f"s3://{checkpoint.removeprefix('s3a://')}" if checkpoint.startswith("s3a://") else checkpoint
    text = open_checkpoint_storage(uri).get(f"offsets/{batch}").decode()
    try:
        return int(json.loads(text.splitlines()[1])["batchWatermarkMs"]) * 1000
    except (IndexError, KeyError, ValueError) as error:
        raise StorageError(f"The offsets of batch {batch} hold no watermark.", uri=uri) from error
