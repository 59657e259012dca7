"""A stream by key and one that is broadcast, as one stream whose rows are of a key, or of every lane's copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as sf

from weirflow.spark.process.lanes import in_every_lane, in_lanes

_ROW = "_weirflow_row"
_TOLD = "_weirflow_told"
_PACK = "partition INT, number BIGINT, rows BINARY"
_PACK_SCHEMA = pa.schema([("partition", pa.int32()), ("number", pa.int64()), ("rows", pa.binary())])


class Told(NamedTuple):
    """What a batch broadcasts.

    Attributes:
        now: when the batch began, which is the same when it is repeated.
        rows: in the order of the stream's partitions, and in each in the order of arrival.
    """

    now: int
    rows: list[dict[str, Any]]


def with_broadcast(native: Any, broadcast: Any, keys: Sequence[str]) -> Any:
    """The rows of two native streams: the columns of a key in its lane, then a row as STRUCT, or what is broadcast.

    One of the two is NULL. What is broadcast comes to every lane, its rows packed and numbered.

    Args:
        native: a stream.
        broadcast: the stream that every lane gets.
        keys: the columns of the key.
    """
    types = {field.name: field.dataType for field in native.schema.fields}
    rows = native.select(*in_lanes(keys), sf.struct("*").alias(_ROW))
    now = sf.unix_millis(sf.current_timestamp()).alias("now")
    packs = broadcast.mapInArrow(_packed, _PACK).select(now, "partition", "number", "rows")
    told = in_every_lane(packs, [(key, types[key]) for key in keys], _TOLD)
    return rows.unionByName(told, allowMissingColumns=True)


def unpacked(rows: Iterable[Any]) -> Told:
    """What was packed, out of the rows of a lane's copy."""
    packs = sorted((row[-1] for row in rows), key=lambda pack: (pack["partition"], pack["number"]))
    found: list[dict[str, Any]] = []
    for pack in packs:
        found += pa.ipc.open_stream(pack["rows"]).read_all().to_pylist()
    return Told(packs[0]["now"], found)


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None, "Spark runs it"
    for number, batch in enumerate(batches):
        if batch.num_rows:
            written = pa.BufferOutputStream()
            with pa.ipc.new_stream(written, batch.schema) as stream:
                stream.write_batch(batch)
            pack = {"partition": context.partitionId(), "number": number, "rows": written.getvalue().to_pybytes()}
            yield pa.RecordBatch.from_pylist([pack], _PACK_SCHEMA)
