"""Columns of a view as PostgreSQL's: which type each has, and its values as ``COPY`` reads them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import ConfigError, UnsupportedError

_LONGEST_NAME = 63
_TYPES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.binary(): "bytea",
    pa.large_binary(): "bytea",
    pa.date32(): "date",
}
"""As PostgreSQL itself writes their names."""


def require_identifier(name: str, what: str) -> str:
    """The name, if PostgreSQL takes it as it is: it cuts off longer ones without a word."""
    if "\0" in name or not 0 < len(name.encode()) <= _LONGEST_NAME:
        raise ConfigError(
            f"PostgreSQL cannot call {what} {name!r}.", hint=f"names have 1 to {_LONGEST_NAME} bytes of UTF-8, no NUL"
        )
    return name


def column_type(field: pa.Field) -> str:
    """The type of a column other than the vector's; ``UnsupportedError`` if PostgreSQL's table can have none."""
    kind = field.type
    is_array = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    found = _scalar_type(kind.value_type if is_array else kind)
    if found is None:
        raise UnsupportedError(
            f"The column {field.name!r} of type {kind} cannot be written to a vector store.",
            hint="leave it out of the view, or write it as text: CAST(... AS STRING), to_json(...)",
        )
    return f"{found}[]" if is_array else found


def _scalar_type(kind: pa.DataType) -> str | None:
    if pa.types.is_timestamp(kind):
        return f"timestamp {'with' if kind.tz else 'without'} time zone"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    return _TYPES.get(kind)


def copy_lines(columns: list[pa.Array]) -> memoryview:
    """Rows in the text format of ``COPY``, one line each; made by column, whatever the rows hold."""
    texts = [pc.fill_null(_escaped(text_values(column)), "\\N") for column in columns]
    rows = pc.binary_join_element_wise(*texts, _large("\t"))
    lines = pc.binary_join_element_wise(rows, _large(""), _large("\n"))
    _, offsets, data = lines.buffers()
    end = np.frombuffer(offsets, np.int64)[lines.offset + len(lines)]
    return memoryview(data)[:end]


def text_values(column: pa.Array) -> pa.Array:
    """A value as PostgreSQL reads it; NULL stays NULL."""
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        return _joined(column, "[", "]")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _joined(column, "{", "}")
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        shown = [None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()]
        return pa.array(shown, pa.large_string())
    if pa.types.is_timestamp(kind) and kind.tz:
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    return column.cast(pa.large_string())


def _joined(column: pa.Array, opening: str, closing: str) -> pa.Array:
    """Lists as texts: vectors of plain numbers, or arrays whose elements are in quotes unless they are NULL."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
    elements = text_values(column.flatten())
    if opening == "{":
        escaped = pc.replace_substring(pc.replace_substring(elements, "\\", "\\\\"), '"', '\\"')
        elements = pc.fill_null(pc.binary_join_element_wise(_large('"'), escaped, _large('"'), _large("")), "NULL")
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    lists = pa.LargeListArray.from_arrays(offsets, elements)
    whole = pc.binary_join_element_wise(
        _large(opening), pc.binary_join(lists, _large(",")), _large(closing), _large("")
    )
    return pc.if_else(column.is_valid(), whole, pa.scalar(None, pa.large_string()))


def _escaped(texts: pa.Array) -> pa.Array:
    for mark, escape in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        texts = pc.replace_substring(texts, mark, escape)
    return texts


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
