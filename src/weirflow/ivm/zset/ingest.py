"""Anything tabular to rows of a schema, with or without weights: exactly, or with an error that names the value."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from weirflow.arguments.in_errors import kind_of, shown
from weirflow.errors import ConfigError, did_you_mean
from weirflow.ivm.zset.batch import Batch, one_array
from weirflow.ivm.zset.buffers import raw_values
from weirflow.rows.casts import is_always_valid
from weirflow.rows.tabular import GivenColumns, columns_of
from weirflow.rows.types import is_spark_type, spark_schema

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Int64s

WEIGHT = "_weight"
"""The column of weights."""
_RECENT = 8


def read_table(data: Any, schema: pa.Schema | None = None) -> pa.Table:
    """An Arrow table of ``data``, which ``rows.tabular.columns_of`` reads, with Spark's types.

    Every value is what it was; those that the types of ``schema`` do not hold are refused. A dict that lacks a column
    has NULL there.

    Raises:
        ConfigError: ``data`` holds no rows, its columns are not those of ``schema``, or a value does not fit.
    """
    if schema is not None:
        schema = spark_schema(schema)
    return made_table(columns_of(data, None if schema is None else schema.names), schema)


def made_table(given: GivenColumns, schema: pa.Schema | None) -> pa.Table:
    """``read_table`` of columns that were found already; the schema is of Spark's types."""
    if schema is None:
        return pa.Table.from_arrays([given.array(name, None) for name in given.of], list(given.of))
    require_columns(given, schema)
    arrays = [given.array(field.name, field.type) for field in schema]
    for array, field in zip(arrays, schema, strict=True):
        if not field.nullable and array.null_count:
            raise _is_null(array, field.name)
    return pa.Table.from_arrays(arrays, schema=schema)


def read_weighted(data: Any, schema: pa.Schema, *, key: Collection[str] = ()) -> Batch:
    """The rows of ``data`` with the weights of their column ``_weight``, or of weight 1 if there is none.

    Args:
        data: as for ``read_table``.
        schema: of Spark's types.
        key: columns that identify a row. Then a row of positive weight, which replaces another, has all columns, and
            one of negative weight needs no others: what it lacks is NULL.

    Raises:
        ConfigError: the columns are not those of the schema, or a value does not fit.
    """
    given = columns_of(data, schema.names, WEIGHT)
    weights = read_weights(given) if WEIGHT in given.of else np.ones(given.count, np.int64)
    given = without(given, WEIGHT)
    columns = _keyed(given, schema, weights, key) if key else Batch.of_arrow(made_table(given, schema)).columns
    return Batch(columns, weights).filter(weights != 0)


class _PlainSchemas:
    """Which schemas of record batches are of plain columns and then the weight, of the last few that were asked for."""

    def __init__(self) -> None:
        self._known: tuple[tuple[pa.Schema, pa.Schema | None], ...] = ()

    def others(self, schema: pa.Schema) -> pa.Schema | None:
        """The columns but the weight; None if that is not the last, or not all of them are plain."""
        for known, others in self._known:
            if known.equals(schema):
                return others
        others = _others_if_plain(schema)
        self._known = ((schema, others), *self._known[: _RECENT - 1])
        return others


_PLAIN_SCHEMAS = _PlainSchemas()


def plain_weighted(data: pa.RecordBatch) -> tuple[pa.Schema, Batch] | None:
    """The columns and rows of a batch that needs no reading: plain columns of Spark's types, then weights but 0."""
    others = _PLAIN_SCHEMAS.others(data.schema)
    if others is None:
        return None
    *columns, weight = data.columns
    weights = raw_values(weight)
    if weight.null_count or not weights.all():
        return None
    return others, Batch(tuple(columns), weights)


def _others_if_plain(schema: pa.Schema) -> pa.Schema | None:
    names = schema.names
    if not names or names[-1] != WEIGHT or len(set(names)) < len(names) or not pt.is_int64(schema.types[-1]):
        return None
    others = list(schema)[:-1]
    if not all(is_always_valid(field.type) and is_spark_type(field.type) for field in others):
        return None
    return pa.schema([(field.name, field.type) for field in others])


def read_weights(given: GivenColumns) -> Int64s:
    """The column ``_weight``: integers, none of them NULL."""
    weights = given.of[WEIGHT]
    if isinstance(weights, pa.ChunkedArray):
        if not pt.is_integer(weights.type) or weights.null_count:
            found = "NULLs" if weights.null_count else f"type {weights.type}"
            raise ConfigError(f"The column '{WEIGHT}' has {found}; it must be int64 without NULLs.")
    elif not set(map(type, weights)) <= {int}:
        for row, weight in enumerate(weights):
            if row in given.absent.get(WEIGHT, ()):
                raise ConfigError(f"Row {row} has no '{WEIGHT}', but others do.", hint="give every row a weight")
            if isinstance(weight, bool) or not isinstance(weight, int | np.integer):
                raise ConfigError(
                    f"Row {row}: the weight {shown(weight)} is {kind_of(weight)}; weights are ints.",
                    hint="give +1 for a row that is inserted and -1 for one that is retracted",
                )
    return raw_values(one_array(given.array(WEIGHT, pa.int64())))


def without(given: GivenColumns, name: str) -> GivenColumns:
    """The other columns."""
    if name not in given.of:
        return given
    rest = {other: values for other, values in given.of.items() if other != name}
    return GivenColumns(rest, given.count, given.absent)


def require_columns(given: GivenColumns, schema: pa.Schema) -> None:
    """``ConfigError`` if the columns are not those of the schema, in any order."""
    _require_known(given, schema)
    for name in schema.names:
        if name not in given.of:
            raise ConfigError(f"The column {name!r} is missing.", hint=did_you_mean(name, given.of))


def _require_known(given: GivenColumns, schema: pa.Schema) -> None:
    known = schema.names
    for name in given.of:
        if name not in known:
            hint = did_you_mean(name, known) or f"the columns are {', '.join(known)}"
            raise ConfigError(f"There is no column {name!r} in the schema.", hint=hint)


def _keyed(given: GivenColumns, schema: pa.Schema, weights: Int64s, key: Collection[str]) -> tuple[pa.Array, ...]:
    """The columns of rows for a source with a key; rows that delete may leave out what is not in the key."""
    _require_known(given, schema)
    inserted = weights > 0
    arrays = []
    for field in schema:
        name = field.name
        if name not in given.of:
            absent = np.ones(given.count, np.bool_)
        else:
            absent = np.zeros(given.count, np.bool_)
            absent[list(given.absent.get(name, ()))] = True
        missing = np.flatnonzero(absent if name in key else absent & inserted)
        if len(missing):
            raise _incomplete(int(missing[0]), name, in_key=name in key)
        array = one_array(given.array(name, field.type)) if name in given.of else pa.nulls(given.count, field.type)
        if not field.nullable and array.null_count and np.any(_nulls(array) & inserted):
            raise _is_null(array, name)
        arrays.append(array)
    return tuple(arrays)


def _nulls(array: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    nulls: np.ndarray[Any, np.dtype[np.bool_]] = one_array(array).is_null().to_numpy(zero_copy_only=False)
    return nulls


def _incomplete(row: int, name: str, *, in_key: bool) -> ConfigError:
    if in_key:
        return ConfigError(f"Row {row} has no column {name!r}, which is in the key.", hint="give every row its key")
    return ConfigError(
        f"Row {row} has no column {name!r}: a row for a source with a key replaces all columns of that key.",
        hint="give every column, None for NULL; only deletions may have the key alone",
    )


def _is_null(array: pa.Array | pa.ChunkedArray, name: str) -> ConfigError:
    row = int(np.flatnonzero(_nulls(array))[0])
    return ConfigError(
        f"Row {row}: column {name!r} must not be NULL, but {array.null_count} values are.",
        hint="give every row a value there, or declare the column without NOT NULL",
    )
