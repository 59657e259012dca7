"""Rows and schemas as bytes: Arrow's streaming format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from weirflow.errors import ConfigError

WEIGHT = "_weight"
"""The column of weights, the last of a delta."""

_POSITIONAL = {b"weirflow.params": b"positional"}
_NAMED = {b"weirflow.params": b"named"}


def pack_rows(rows: pa.RecordBatch | pa.Table) -> bytes:
    """Rows, and the schema they have."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpack_rows(content: bytes) -> pa.Table:
    """The rows that were packed. Whatever the bytes are, what is returned is sound: they may come from anyone.

    Raises:
        ConfigError: the bytes hold no rows, or rows that are not what their schema says.
    """
    try:
        with pa.ipc.open_stream(content) as reader:
            table = reader.read_all()
        require_sound(table)
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise _unreadable(error) from None
    return table


def require_sound(rows: pa.RecordBatch | pa.Table) -> None:
    """``ConfigError`` if rows that came over a wire are not what their schema says: offsets, UTF-8, NULLs."""
    try:
        rows.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(error) from None
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if field.name == WEIGHT and column.null_count:
            raise ConfigError(f"The column '{WEIGHT}' has NULLs; it must be int64 without NULLs.")


def pack_schema(schema: pa.Schema) -> bytes:
    """A schema."""
    content: bytes = schema.serialize().to_pybytes()
    return content


def unpack_schema(content: bytes) -> pa.Schema:
    """The schema that was packed; ``ConfigError`` if the bytes hold none."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(content))
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise ConfigError(f"These bytes are not an Arrow schema: {error}.") from None


def pack_params(params: Mapping[str, Any] | Sequence[Any] | None) -> bytes | None:
    """The parameters of a statement as one row, whose values have their own types.

    Raises:
        ConfigError: a value has none that can be sent.
    """
    if params is None:
        return None
    is_named = isinstance(params, Mapping)
    named = dict(params) if isinstance(params, Mapping) else {str(number): one for number, one in enumerate(params)}
    columns = []
    for name, value in named.items():
        try:
            columns.append(pa.array([value]))
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise ConfigError(f"The parameter {name!r} cannot be sent to a server: {error}.") from None
    if not columns:  # a batch without columns has no rows
        columns, named = [pa.nulls(1)], {"": None}
    schema = pa.schema([(name, column.type) for name, column in zip(named, columns, strict=True)])
    batch = pa.RecordBatch.from_arrays(columns, schema=schema.with_metadata(_NAMED if is_named else _POSITIONAL))
    return pack_rows(batch)


def unpack_params(content: bytes | None) -> dict[str, Any] | list[Any] | None:
    """The parameters that were packed; ``ConfigError`` if the bytes hold none."""
    if content is None:
        return None
    table = unpack_rows(content)
    if table.num_rows != 1:
        raise ConfigError("The parameters of a statement are one row.")
    row = {name: column[0].as_py() for name, column in zip(table.schema.names, table.columns, strict=True)}
    if table.schema.names == [""]:
        row = {}
    return row if table.schema.metadata == _NAMED else list(row.values())


def _unreadable(error: Exception) -> ConfigError:
    return ConfigError(f"These bytes are not rows in Arrow's streaming format: {error}.")
