"""Arrow in and out of Spark: any tabular Python data to a frame, any frame to a stream of record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from weirflow.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    if kind in _REPLACED:
        return _REPLACED[kind]
    if pa.types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if pa.types.is_decimal256(kind):
        return pa.decimal128(min(kind.precision, 38), kind.scale)
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind) and kind.unit != "us":
        return pa.duration("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_spark_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_spark_type(kind.key_type), kind.item_field.with_type(_spark_type(kind.item_type)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(kind.value_field.with_type(_spark_type(kind.value_type)))
    if pa.types.is_large_list_view(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_spark_type(kind.value_type)))
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return kind


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

    batches = RDD(native._jdf.toArrowBatchRdd().toJavaRDD(), native.sparkSession.sparkContext, NoOpSerializer())  # noqa: SLF001 - PySpark has no public Arrow stream
    for message in batches.toLocalIterator(prefetchPartitions=True):
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), schema)
        if batch.num_rows:
            yield batch


def _stream_connect(native: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    plan = native._plan.to_proto(native._session.client)  # noqa: SLF001 - as above
    for part in native._session.client.to_table_as_iterator(plan, native._plan.observations):  # noqa: SLF001 - as above
        if not isinstance(part, StructType) and part.num_rows:
            yield from part.cast(schema).to_batches()
