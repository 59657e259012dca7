"""Arrow in and out of Spark: any tabular Python data to a frame, any frame to a stream of record batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from weirflow.errors import ConfigError, DataError
from weirflow.rows.tabular import columns_of
from weirflow.spark.compat import arrow_schema, ending_quietly
from weirflow.spark.frames.arrow_types import spark_type, to_spark_type


def to_table(data: Any) -> pa.Table:
    """Tabular data as an Arrow table: Arrow, pandas, Polars, anything with the Arrow PyCapsule interface, or dicts.

    A pandas index is not a column and is left out.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    try:
        if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
            return columns_of(data).table()
        if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
            return pa.table(data)
        if isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
            return columns_of(data).table()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ConfigError(f"The {type(data).__name__} cannot be read as a table: {error}.") from error
    if isinstance(data, list) and not data:
        raise ConfigError("An empty list has no columns.", hint="pass an Arrow table, whose schema says them")
    raise ConfigError(
        f"A {type(data).__name__} is not tabular data.",
        hint="pass an Arrow, pandas or Polars table, anything with __arrow_c_stream__, or a list of dicts",
    )


def spark_table(data: Any) -> pa.Table:
    """``to_table`` with every type that Spark refuses replaced by one that holds the same values.

    Raises ``DataError`` for a value that no type of Spark can hold.
    """
    table = without_empty_batches(to_table(data))
    return pa.Table.from_arrays(
        [_spark_column(name, column) for name, column in zip(table.column_names, table.columns, strict=True)],
        schema=pa.schema([field.with_type(spark_type(field.type)) for field in table.schema]),
    )


def arrow_frame(session: Any, data: Any) -> Any:
    """A native frame of a session's, of what ``spark_table`` takes."""
    table = spark_table(data)
    if table.num_rows:
        return session.createDataFrame(table)
    # Over Spark Connect, a table without rows has no columns but those that are given.
    ntz = session.conf.get("spark.sql.timestampType") == "TIMESTAMP_NTZ"
    return session.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=ntz))


def relation_frame(session: Any, rows: pa.Table) -> Any:
    """A native frame of a flow's rows, of whose timestamps those without a zone have none in Spark either."""
    columns = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    return session.createDataFrame(without_empty_batches(rows), columns)


def without_empty_batches(table: pa.Table) -> pa.Table:
    """The same rows; Spark stops reading a table of Arrow's at its first batch without rows."""
    batches = table.to_batches()
    filled = [batch for batch in batches if batch.num_rows]
    return table if len(filled) == len(batches) else pa.Table.from_batches(filled, table.schema)


def empty_relation(session: Any, schema: pa.Schema, mark: Mapping[str, str] | None = None) -> Any:
    """As ``relation_frame``, without rows, on a classic session; a twentieth of the time. Columns may have a mark."""
    from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - Spark Connect does without

    columns = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    for column in columns.fields:
        column.metadata = dict(mark or {})
    native, jvm = session._jsparkSession, session._jvm  # noqa: SLF001 - no public way
    return DataFrame(native.createDataFrame(jvm.java.util.ArrayList(), native.parseDataType(columns.json())), session)


def _spark_column(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return to_spark_type(column)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"The column {name!r} of type {column.type} holds a value that Spark cannot hold: {error}.",
            hint="Spark's times have microseconds and its decimals 38 digits; round or cast the column first",
        ) from error


def spark_schema(schema: pa.Schema) -> Any:
    """The columns that Spark has for rows of an Arrow schema."""
    return from_arrow_schema(pa.schema([field.with_type(spark_type(field.type)) for field in schema]))


def frame_schema(native: Any) -> pa.Schema:
    """The Arrow schema that the frame's batches have."""
    large = native.sparkSession.conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false") == "true"
    return arrow_schema(native.schema, error_on_duplicated_field_names_in_struct=True, prefers_large_types=large)


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
    for message in ending_quietly(batches.toLocalIterator(prefetchPartitions=True)):
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), schema)
        if batch.num_rows:
            yield batch


def _stream_connect(native: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    plan = native._plan.to_proto(native._session.client)  # noqa: SLF001 - as above
    for part in native._session.client.to_table_as_iterator(plan, native._plan.observations):  # noqa: SLF001 - as above
        if not isinstance(part, StructType) and part.num_rows:
            yield from part.cast(schema).to_batches()
