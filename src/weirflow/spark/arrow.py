"""Arrow in and out of Spark: any tabular Python data to a frame, any frame to a stream of record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from weirflow.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Arrow types Spark refuses, and what holds the same values.
_REPLACED: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
    pa.null(): pa.string(),
}


def to_table(data: Any) -> pa.Table:
    """Tabular data as an Arrow table: Arrow, pandas, Polars, anything with the Arrow PyCapsule interface, or dicts.

    A pandas index is not a column and is left out.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return pa.table(data)
    if isinstance(data, list) and all(isinstance(row, dict) for row in data):
        if not data:
            raise ConfigError("An empty list has no columns.", hint="pass an Arrow table, whose schema says them")
        return pa.Table.from_pylist(data)
    raise ConfigError(
        f"A {type(data).__name__} is not tabular data.",
        hint="pass an Arrow, pandas or Polars table, anything with __arrow_c_stream__, or a list of dicts",
    )


def spark_table(data: Any) -> pa.Table:
    """``to_table`` with every type that Spark refuses cast to one that holds the same values."""
    table = to_table(data)
    schema = pa.schema([field.with_type(_spark_type(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """The nearest type that Spark takes; itself for most."""
    if kind in _REPLACED:
        return _REPLACED[kind]
    for applies, replaced in _RULES:
        if applies(kind):
            return replaced(kind)
    return kind


def _spark_field(field: pa.Field) -> pa.Field:
    return field.with_type(_spark_type(field.type))


def _is_listlike(kind: pa.DataType) -> bool:
    return any(
        applies(kind)
        for applies in (
            pa.types.is_list,
            pa.types.is_large_list,
            pa.types.is_list_view,
            pa.types.is_large_list_view,
            pa.types.is_fixed_size_list,
        )
    )


_RULES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...] = (
    (pa.types.is_dictionary, lambda kind: _spark_type(kind.value_type)),
    (pa.types.is_decimal256, lambda kind: pa.decimal128(min(kind.precision, 38), kind.scale)),
    (pa.types.is_time, lambda _: pa.time64("us")),
    (pa.types.is_timestamp, lambda kind: pa.timestamp("us", kind.tz)),
    (pa.types.is_duration, lambda _: pa.duration("us")),
    (pa.types.is_struct, lambda kind: pa.struct([_spark_field(field) for field in kind])),
    (pa.types.is_map, lambda kind: pa.map_(_spark_type(kind.key_type), _spark_field(kind.item_field))),
    (_is_listlike, lambda kind: pa.list_(_spark_field(kind.value_field))),
    (pa.types.is_fixed_size_binary, lambda _: pa.binary()),
)


def frame_schema(native: Any) -> pa.Schema:
    """The Arrow schema that the frame's batches have."""
    return to_arrow_schema(native.schema, error_on_duplicated_field_names_in_struct=True)


def stream_batches(native: Any) -> Iterator[pa.RecordBatch]:
    """The frame's rows as record batches, in order, a partition at a time.

    The driver never holds more than about two partitions. Spark runs while the iterator is read, from its first
    item on.
    """
    schema = frame_schema(native)
    if hasattr(native, "_jdf"):
        return _stream_classic(native, schema)
    return _stream_connect(native, schema)


def _stream_classic(native: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    from pyspark.core.rdd import RDD  # noqa: PLC0415 - not in the Connect-only client
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415 - goes with it

    frame = native._jdf  # noqa: SLF001 - PySpark has no public Arrow stream
    messages = frame.toArrowBatchRdd().toJavaRDD()
    batches: RDD[bytes] = RDD(messages, native.sparkSession.sparkContext, NoOpSerializer())
    for message in batches.toLocalIterator(prefetchPartitions=True):
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), schema)
        if batch.num_rows:
            yield batch


def _stream_connect(native: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    plan = native._plan.to_proto(native._session.client)  # noqa: SLF001 - as above
    for part in native._session.client.to_table_as_iterator(plan, native._plan.observations):  # noqa: SLF001 - as above
        if not isinstance(part, StructType) and part.num_rows:
            yield from part.cast(schema).to_batches()
