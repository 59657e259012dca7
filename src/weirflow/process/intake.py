"""``Intake``: what is read of an input: its rows, their keys and their times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from weirflow.arguments import Name, shown
from weirflow.errors import ColumnNotFound, ConfigError, DataError, UserCodeError, did_you_mean
from weirflow.process.context import END_OF_TIME

if TYPE_CHECKING:
    from weirflow.process.function import Row

KeyOf: TypeAlias = Name | Sequence[Name] | Callable[[Any], Any]
"""The column of the key, the columns of a tuple, or a function of the row."""
Rows: TypeAlias = pa.Table | pa.RecordBatch | Iterable[Mapping[str, Any]] | Any
"""A batch: Arrow data (or an object with its PyCapsule interface), or dicts."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Intake:
    """Reads an input.

    Args:
        key: see ``KeyOf``.
        event_time: the column with the time of the event: a timestamp, or milliseconds since 1970.
        delay: how far the watermark is behind the latest event; None if events do not move it.

    Raises:
        ConfigError: there is no column to key by.
    """

    def __init__(self, key: KeyOf, event_time: str | None, delay: timedelta | None) -> None:
        self.key = _key_reader(key)
        self.event_time = event_time
        self.delay = None if delay is None or event_time is None else delay // _MILLISECOND

    def time(self, row: Row) -> int | None:
        """The row's event time in milliseconds, or None if it has none.

        Raises:
            ColumnNotFound: the row has no such column.
            DataError: there is something else than a time in it.
        """
        if self.event_time is None:
            return None
        return _milliseconds(_column(row, self.event_time), self.event_time)


def read_rows(batch: Rows) -> Sequence[Row]:
    """The rows of a batch as dicts.

    Raises:
        ConfigError: they cannot be read as rows.
    """
    if isinstance(batch, pa.Table | pa.RecordBatch):
        return batch.to_pylist()  # type: ignore[no-any-return]  # pyarrow ships no types
    if hasattr(batch, "__arrow_c_stream__"):
        return pa.table(batch).to_pylist()  # type: ignore[no-any-return]  # as above
    if isinstance(batch, Iterable) and not isinstance(batch, Mapping | str | bytes):
        rows = list(batch)
        if all(isinstance(row, Mapping) for row in rows):
            return rows
    raise ConfigError(
        f"A {type(batch).__name__} is not a batch of rows.", hint="give Arrow data or a list of dicts for each batch"
    )


def _key_reader(key: KeyOf) -> Callable[[Row], Any]:
    if callable(key):
        return lambda row: _called(key, row)
    if isinstance(key, str):
        name = key
        return lambda row: _column(row, name)
    names = tuple(key)
    if not names:
        raise ConfigError("There is no column to key by.", hint="name one or more, or give a function of the row")
    return lambda row: tuple(_column(row, name) for name in names)


def _called(key: Callable[[Any], Any], row: Row) -> Any:
    try:
        return key(row)
    except Exception as error:
        raise UserCodeError(f"The key function raised {type(error).__name__}: {error}") from error


def _column(row: Row, name: str) -> Any:
    try:
        return row[name]
    except KeyError:
        raise ColumnNotFound(f"A row has no column {name!r}.", hint=did_you_mean(name, row)) from None


def _milliseconds(time: Any, column: str) -> int | None:
    if time is None or (type(time) is int and -END_OF_TIME < time < END_OF_TIME):
        return time
    if isinstance(time, datetime):
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (aware - _EPOCH) // _MILLISECOND
    raise DataError(
        f"{shown(time)} in column {column!r} is not an event time.", hint="use timestamps, or milliseconds since 1970"
    )
