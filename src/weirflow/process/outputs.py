"""The rows that a batch has put out so far, and those that came too late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from weirflow.arguments.in_errors import kind_of, shown
from weirflow.errors import ConfigError, UserCodeError, did_you_mean
from weirflow.process.function import LATE, KeyedFunction
from weirflow.process.schemas import output_schema, side_schemas
from weirflow.rows.types import spark_type
from weirflow.rows.values import column

_PLAIN = {pa.int64(): int, pa.float64(): float, pa.string(): str, pa.bool_(): bool}
"""Column types that hold every value of a Python type, integers of 64 bits."""
_LEAST, _MOST = -(2**63), 2**63 - 1


class OutputRows:
    """The rows of one output.

    Args:
        schema: the columns.
        what: the output, for errors.

    Raises:
        ConfigError: Spark has no type for a column.
    """

    def __init__(self, schema: pa.Schema, what: str) -> None:
        self._schema = schema
        self._what = what
        self._names = dict.fromkeys(schema.names)
        self._rows: list[dict[str, Any]] = []
        self._types = [spark_type(field.type, field.name) for field in schema]
        kinds = [(field.name, _PLAIN.get(field.type)) for field in schema]
        self._plain = [(name, kind) for name, kind in kinds if kind is not None] if all(k for _, k in kinds) else None

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a row as it is now; a column that it has not is NULL.

        Raises:
            UserCodeError: it is not a row, or it has a column that is not in the schema.
        """
        if type(row) is not dict and not isinstance(row, Mapping):
            raise UserCodeError(f"{self._what} was given {kind_of(row)}, which is not a row.", hint="give it a dict")
        if row.keys() == self._names.keys():
            self._rows.append(dict(row))
            return
        if not row.keys() <= self._names.keys():
            unknown = next(name for name in row if name not in self._names)
            raise UserCodeError(
                f"{self._what} has no column {shown(unknown)}.",
                hint=did_you_mean(str(unknown), self._names) or f"its columns are {', '.join(self._names)}",
            )
        self._rows.append({**self._names, **row})

    def clear(self) -> None:
        """Forget all rows."""
        self._rows = []

    def table(self) -> pa.Table:
        """All rows.

        Raises:
            UserCodeError: a value does not fit its column.
        """
        arrays = [self._array(field, kind) for field, kind in zip(self._schema, self._types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def rows(self) -> list[dict[str, Any]]:
        """All rows as their columns hold them, each with all columns; fails like ``table``."""
        if self._rows and not self._all_fit():
            return self.table().to_pylist()  # type: ignore[no-any-return]  # pyarrow ships no types
        return self._rows

    def _all_fit(self) -> bool:
        """Whether all values are plain ones that fit without a doubt: then no table has to be made to see it."""
        return self._plain is not None and all(
            type(row[name]) is kind
            and (kind is not int or _LEAST <= row[name] <= _MOST)
            and (kind is not str or row[name].isascii())  # others may have lone surrogates
            for row in self._rows
            for name, kind in self._plain
        )

    def _array(self, field: pa.Field, kind: pa.DataType) -> pa.Array:
        values = [row[field.name] for row in self._rows]
        try:
            array = column(values, kind, field.name)
            if not kind.equals(field.type):
                array = array.cast(field.type)
        except ConfigError as error:
            raise UserCodeError(f"{self._what}: {error.message}", hint=error.hint) from error
        except pa.ArrowInvalid as error:
            raise UserCodeError(
                f"{self._what} has a value that does not fit column {field.name!r} of type {field.type}: {error}"
            ) from error
        if array.null_count and not field.nullable:
            raise UserCodeError(f"{self._what} has NULL in column {field.name!r}, which is NOT NULL.")
        return array


class FunctionOutputs:
    """All outputs of a function.

    Attributes:
        late: the number of late rows.
    """

    def __init__(self, function: KeyedFunction) -> None:
        self._name = type(function).__name__
        self._main = OutputRows(output_schema(function), f"The output of {self._name}")
        self._sides = {
            tag: OutputRows(schema, f"The side output {tag!r} of {self._name}")
            for tag, schema in side_schemas(function).items()
        }
        self.late = 0

    def emit(self, row: Mapping[str, Any]) -> None:
        """Put out a row; fails like ``OutputRows.add``."""
        self._main.add(row)

    def side(self, tag: object, row: Mapping[str, Any]) -> None:
        """Put out a row beside; fails like ``OutputRows.add``, and with ``UserCodeError`` if there is no such tag."""
        side = self._sides.get(tag) if isinstance(tag, str) else None
        if side is None:
            raise UserCodeError(
                f"{self._name} has no side output {shown(tag)}.",
                hint=did_you_mean(str(tag), self._sides) or "declare its columns in side_outputs",
            )
        side.add(row)

    def too_late(self, row: Mapping[str, Any]) -> None:
        """Count a late row, and put it out if there is an output for it."""
        self.late += 1
        if LATE in self._sides:
            self.side(LATE, row)

    def clear(self) -> None:
        """Forget all rows."""
        self.late = 0
        for one in (self._main, *self._sides.values()):
            one.clear()

    def rows(self) -> list[list[dict[str, Any]]]:
        """The rows of the output and of each side output; fails like ``OutputRows.rows``."""
        return [self._main.rows(), *(side.rows() for side in self._sides.values())]

    def tables(self) -> tuple[pa.Table, dict[str, pa.Table]]:
        """The output and the side outputs; fails like ``OutputRows.table``."""
        return self._main.table(), {tag: side.table() for tag, side in self._sides.items()}
