"""Anything tabular to an Arrow table of Spark's types, with errors that say which column is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from weirflow.errors import ConfigError, did_you_mean
from weirflow.ivm.zset.types import spark_schema


def read_table(data: Any, schema: pa.Schema | None = None) -> pa.Table:
    """An Arrow table of ``data``, with Spark's types, cast to ``schema`` when it is given.

    ``data`` is an Arrow table, batch or reader, any object with the Arrow PyCapsule interface (Polars, DuckDB...),
    a pandas frame (its index is left out and NaN is NULL, as Spark reads it), a list of dicts or a dict of columns.

    Raises:
        ConfigError: ``data`` is none of these, its columns are not those of ``schema``, or a value does not fit.
    """
    wanted = None if schema is None else spark_schema(schema)
    try:
        table = _as_table(data, wanted)
        _refuse_duplicates(table.schema)
        wanted = spark_schema(table.schema) if wanted is None else wanted
        table = _matched(table, wanted)
        _refuse_nulls(table, wanted)
        return table if table.schema.equals(wanted) else _cast(table, wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
        raise ConfigError(
            f"The rows cannot be read as Arrow data: {error}", hint="pass schema= to fix the types"
        ) from error


def _as_table(data: Any, schema: pa.Schema | None) -> pa.Table:  # noqa: PLR0911 (one return for each kind of data)
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)])
    if isinstance(data, Mapping):
        return pa.table(dict(data))
    if isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data):
        return _from_rows(data, schema)
    raise ConfigError(
        f"A {type(data).__name__} holds no rows that Weirflow can read.",
        hint="pass Arrow data, a pandas or Polars frame, a list of dicts, or any object with __arrow_c_stream__",
    )


def _from_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema | None) -> pa.Table:
    """A row that lacks a key has NULL there; a key outside the schema is refused."""
    if schema is None:
        if not rows:
            raise ConfigError("An empty list says nothing about its columns.", hint="pass schema=")
        names = list(dict.fromkeys(name for row in rows for name in row))
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    for row in rows:
        for name in row:
            if name not in schema.names:
                raise ConfigError(f"There is no column {name!r} in the schema.", hint=did_you_mean(name, schema.names))
    arrays = [_column([row.get(field.name) for row in rows], field) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise ConfigError(f"A value does not fit column {field.name!r} of type {field.type}: {error}") from error


def _refuse_duplicates(schema: pa.Schema) -> None:
    repeated = [name for name, count in Counter(schema.names).items() if count > 1]
    if repeated:
        raise ConfigError(f"Several columns are named {repeated[0]!r}.", hint="rename or leave out all but one")


def _matched(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table's columns in the schema's order."""
    if table.schema.names == schema.names:
        return table
    for name in table.schema.names:
        if name not in schema.names:
            raise ConfigError(
                f"There is no column {name!r} in the schema.",
                hint=did_you_mean(name, schema.names) or f"the columns are {', '.join(schema.names)}",
            )
    for name in schema.names:
        if name not in table.schema.names:
            raise ConfigError(f"The column {name!r} is missing.", hint=did_you_mean(name, table.schema.names))
    return table.select(schema.names)


def _refuse_nulls(table: pa.Table, schema: pa.Schema) -> None:
    for column, field in zip(table.columns, schema, strict=True):
        if not field.nullable and column.null_count:
            raise ConfigError(f"Column {field.name!r} must not be NULL, but {column.null_count} values are.")


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for column, field in zip(table.columns, schema, strict=True):
        try:
            columns.append(column if column.type.equals(field.type) else column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ConfigError(
                f"Column {field.name!r} has type {column.type} and cannot become {field.type}: {error}",
                hint="cast the column to the type you want before",
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)
