"""The columns of whatever tabular data is given, as Arrow arrays or as lists of Python values."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from weirflow.arguments.in_errors import kind_of, shown
from weirflow.errors import ConfigError, did_you_mean
from weirflow.rows.casts import cast_exactly
from weirflow.rows.types import spark_type
from weirflow.rows.values import column, inferred

Values = Sequence[Any]
"""Python values of a column."""


@dataclass(frozen=True)
class GivenColumns:
    """Columns as they are given.

    Attributes:
        of: by name, in their order.
        count: the number of rows.
        absent: the rows, by number, that leave out a column: dicts may.
    """

    of: Mapping[str, pa.ChunkedArray | Values]
    count: int
    absent: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def array(self, name: str, kind: pa.DataType | None) -> pa.ChunkedArray | pa.Array:
        """A column, of a type of Spark's; without one, of the type that its values have.

        Raises:
            ConfigError: a value does not fit, or the values have no type of Spark's.
        """
        given = self.of[name]
        if isinstance(given, pa.ChunkedArray):
            return cast_exactly(given, spark_type(given.type, name) if kind is None else kind, name)
        if kind is not None:
            return column(given, kind, name)
        try:
            return column(given, inferred(given, name), name)
        except ConfigError as error:
            raise ConfigError(
                error.message, hint="pass schema= to say the types, or give values of one type"
            ) from error

    def table(self) -> pa.Table:
        """All columns: Arrow's of the type they have, Python values of the type of Spark's that they have."""
        arrays = [
            given if isinstance(given, pa.ChunkedArray) else self.array(name, None) for name, given in self.of.items()
        ]
        return pa.Table.from_arrays(arrays, list(self.of))


def columns_of(data: Any, names: Sequence[str] | None = None, also: str | None = None) -> GivenColumns:
    """The columns of ``data``.

    Args:
        data: an Arrow table, batch or reader, an object with the Arrow PyCapsule interface (Polars, DuckDB...), a
            pandas frame (its index is left out, NaN is NULL), a list of dicts, or a dict of columns.
        names: the columns that dicts may have; None for all that any of them has.
        also: another one that they may have, all of them or none.

    Raises:
        ConfigError: it is none of these, or two columns have one name, or a dict has other columns.
    """
    if isinstance(data, Sequence) and not isinstance(data, str | bytes | bytearray | memoryview):
        return _of_rows(data, names, also)
    if isinstance(data, Mapping):
        return _of_mapping(data)
    if _is_pandas(data, "DataFrame"):
        return _of_frame(data)
    return _of_table(_table(data))


def rereadable(data: Any) -> Any:
    """The data, as something that can be read more than once: a reader or another's stream may be gone then."""
    if isinstance(data, Sequence | Mapping) or _is_pandas(data, "DataFrame"):
        return data
    return _table(data)


def _table(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    try:
        if isinstance(data, pa.RecordBatchReader):
            return data.read_all()
        if hasattr(data, "__arrow_c_stream__"):
            _refuse_objects(data)
            return pa.table(data)
        if hasattr(data, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(data)])
    except (ConfigError, MemoryError):
        raise
    except Exception as error:
        # Another library hands out its data here, and raises what it likes.
        raise ConfigError(f"The {type(data).__name__} cannot be read as Arrow data: {error}") from error
    kind = kind_of(data)
    raise ConfigError(
        f"{kind[0].upper()}{kind[1:]} holds no rows that Weirflow can read.",
        hint="pass Arrow data, a pandas or Polars frame, a list of dicts, or any object with __arrow_c_stream__",
    )


def _refuse_objects(frame: Any) -> None:
    """Polars hands out the addresses of Python's objects as if they were values."""
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(frame, polars.DataFrame):
        for name, kind in frame.schema.items():
            if kind == polars.Object:
                raise ConfigError(
                    f"The column {shown(name)} holds Python objects, which are not data.",
                    hint="give the column a type of its own, or give a list of dicts",
                )


def _of_table(table: pa.Table) -> GivenColumns:
    refuse_repeated(table.column_names)
    return GivenColumns(dict(zip(table.column_names, table.columns, strict=True)), table.num_rows)


def refuse_repeated(names: Sequence[str]) -> None:
    """``ConfigError`` if two columns have one name."""
    if len(set(names)) < len(names):
        repeated = next(name for name, count in Counter(names).items() if count > 1)
        raise ConfigError(f"Several columns are named {repeated!r}.", hint="rename or leave out all but one")


# pandas, NumPy and lists


def _is_pandas(data: Any, kind: str) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, getattr(pandas, kind))


def _of_frame(frame: Any) -> GivenColumns:
    names = [str(name) for name in frame.columns]
    refuse_repeated(names)
    return GivenColumns({name: _of_series(frame.iloc[:, at], name) for at, name in enumerate(names)}, len(frame))


def _of_series(series: Any, name: str) -> pa.ChunkedArray | Values:
    if series.dtype == object:
        return [None if type(value) is float and value != value else value for value in series]  # noqa: PLR0124 - NaN
    return _array(series, name, from_pandas=True)


def _array(values: Any, name: str, *, from_pandas: bool) -> pa.ChunkedArray:
    """An array of NumPy's or pandas' values; in memory of its own, for they can be written to afterwards."""
    try:
        made = pa.array(values.copy(), from_pandas=from_pandas)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"The column {name!r} cannot be read as Arrow data: {error}", hint="give a list") from error
    return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])


def _of_mapping(data: Mapping[Any, Any]) -> GivenColumns:
    if not data:
        raise ConfigError("An empty dict has no columns.", hint="give a list of dicts, or a dict of columns")
    for name in data:
        if not isinstance(name, str):
            raise _no_name(name)
    of = {str(name): _values(values, name) for name, values in data.items()}
    counts = {name: len(values) for name, values in of.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name!r} has {count}" for name, count in list(counts.items())[:3])
        raise ConfigError(f"The columns are of different lengths: {told} values.")
    return GivenColumns(of, next(iter(counts.values()), 0))


def _values(values: Any, name: str) -> pa.ChunkedArray | Values:
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, pa.Array):
        return pa.chunked_array([values])
    if _is_pandas(values, "Series"):
        return _of_series(values, name)
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return list(values) if values.dtype == object else _array(values, name, from_pandas=False)
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray | memoryview):
        return values
    raise ConfigError(
        f"The column {shown(name)} is {shown(values)}, which is not a list of values.",
        hint="put a row into a list: [{...}]",
    )


# Dicts


def _of_rows(rows: Sequence[Any], names: Sequence[str] | None, also: str | None) -> GivenColumns:
    if names is not None:
        first = rows[0] if len(rows) else None
        wanted = (*names, also) if also is not None and type(first) is dict and also in first else tuple(names)
        whole = _whole(rows, wanted)
        if whole is not None:
            return GivenColumns(dict(zip(wanted, whole, strict=True)), len(rows))
    return _ragged(rows, names, also)


def _whole(rows: Sequence[Any], names: Sequence[str]) -> Sequence[Values] | None:
    """The columns of dicts that have all of these keys and no others; None if one has not."""
    if not names or not len(rows) or set(map(type, rows)) != {dict} or set(map(len, rows)) != {len(names)}:
        return None
    try:
        if len(names) == 1:
            return [list(map(itemgetter(names[0]), rows))]
        return list(zip(*map(itemgetter(*names), rows), strict=True))
    except KeyError:
        return None


def _ragged(rows: Sequence[Any], names: Sequence[str] | None, also: str | None) -> GivenColumns:
    """The columns of rows of which some may lack some."""
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ConfigError(
                f"Row {at} is {kind_of(row)}; in a list, every row must be a dict.",
                hint="give a dict for each row",
            )
    found = list(dict.fromkeys(name for row in rows for name in row)) if names is None else list(names)
    if names is None and not rows:
        raise ConfigError("An empty list says nothing about its columns.", hint="pass schema=")
    if also is not None and also not in found and any(also in row for row in rows):
        found.append(also)
    _require_known(rows, found)
    absent = {name: frozenset(at for at, row in enumerate(rows) if name not in row) for name in found}
    of = {name: [None if at in absent[name] else row[name] for at, row in enumerate(rows)] for name in found}
    return GivenColumns(of, len(rows), {name: missing for name, missing in absent.items() if missing})


def _require_known(rows: Sequence[Mapping[Any, Any]], names: Sequence[str]) -> None:
    known = set(names)
    for at, row in enumerate(rows):
        for name in row:
            if not isinstance(name, str):
                raise _no_name(name, at)
            if name not in known:
                hint = did_you_mean(name, names) or f"the columns are {', '.join(names)}"
                raise ConfigError(f"Row {at}: there is no column {shown(name)} in the schema.", hint=hint)


def _no_name(name: Any, row: int | None = None) -> ConfigError:
    where = "" if row is None else f"Row {row}: "
    return ConfigError(f"{where}{shown(name)} cannot be the name of a column.", hint="use str for the keys")
