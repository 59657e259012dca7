"""``JoinInput``: what a join has to know about one of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from types import GenericAlias
from typing import Annotated, Any

import pyarrow as pa

from weirflow.arguments import Name, NotEmpty, checked
from weirflow.errors import ColumnNotFound, ConfigError, did_you_mean
from weirflow.sql.types import type_name
from weirflow.sql.typing.type_syntax import parse_ddl


@checked
@dataclass(frozen=True)
class JoinInput:
    """One input of a join.

    Attributes:
        columns: the columns that are joined, as in ``CREATE TABLE`` or as an Arrow schema; others are left out.
        key: the column, or columns, that must be equal. NULL equals nothing.
        time: the column of the event time, or None for an input that has none.
    """

    columns: str | pa.Schema
    key: Name | Annotated[Sequence[Name], NotEmpty()]
    time: Name | None = None

    def __post_init__(self) -> None:
        """Refuse columns that are not there."""
        schema = self.schema
        for name in (*self.keys, *(() if self.time is None else (self.time,))):
            if name not in schema.names:
                raise ColumnNotFound(f"There is no column {name!r} to join by.", hint=did_you_mean(name, schema.names))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns."""
        return parse_ddl(self.columns) if isinstance(self.columns, str) else self.columns

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the key."""
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)

    @property
    def key_type(self) -> Any:
        """The type of keys in state.

        Raises:
            ConfigError: values of a column cannot be keys.
        """
        schema = self.schema
        types = [_python_type(schema.field(name)) | None for name in self.keys]
        return types[0] if isinstance(self.key, str) else GenericAlias(tuple, tuple(types))

    @property
    def row_type(self) -> pa.DataType:
        """The type of rows in state."""
        return pa.struct(list(self.schema))

    def rows_by(self, place: Any) -> Any:
        """The type of maps from places to rows."""
        return GenericAlias(dict, (place, self.row_type))


def _python_type(field: pa.Field) -> Any:
    kind = field.type
    for matches, python in (
        (pa.types.is_boolean, bool),
        (pa.types.is_integer, int),
        (pa.types.is_floating, float),
        (pa.types.is_string, str),
        (pa.types.is_binary, bytes),
        (pa.types.is_date, date),
        (pa.types.is_timestamp, datetime),
    ):
        if matches(kind):
            return python
    raise ConfigError(
        f"{field.name!r} of type {type_name(kind)} cannot be the key of a join.",
        hint="join by booleans, numbers without decimals, strings, binaries, dates or timestamps",
    )
