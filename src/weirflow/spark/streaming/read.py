"""Reads files, tables and other sources as streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from weirflow.errors import ConfigError

_INFERRED = frozenset({"parquet", "json", "csv", "orc", "avro", "xml"})
_GLOB = frozenset("*?[{")


@dataclass(frozen=True)
class StreamRead:
    """What is read as a stream.

    Attributes:
        format: the source; None for Spark's default, or a table's own.
        paths: files and folders, if it has any.
        table: the table's name, in place of paths.
        schema: the columns; None to have them found: by the source, or by looking at the files that are there.
        options: those of the source.
    """

    format: str | None = None
    paths: tuple[str, ...] = ()
    table: str | None = None
    schema: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def open(self, session: Any) -> Any:
        """The native streaming frame."""
        if self.table is not None:
            return self._reader(session).table(self.table)
        if not self.paths:
            return self._reader(session).load()
        schema = self.schema
        if schema is None and self.format in _INFERRED:
            found = session.read.format(self.format).options(**self.options)
            schema = found.load(list(self.paths)).schema
        reader = self._reader(session)
        if schema is not None:
            reader = reader.schema(schema)
        # Spark takes one path for a stream.
        return reduce(lambda one, other: one.unionByName(other), [reader.load(_folder(path)) for path in self.paths])

    def _reader(self, session: Any) -> Any:
        reader = session.readStream.options(**self.options)
        if self.schema is not None:
            reader = reader.schema(self.schema)
        return reader.format(self.format) if self.format is not None else reader


def as_stream(read: StreamRead | None, session: Any) -> Any:
    """A batch read as a stream of the same rows and what comes later; refused if there is nothing to read again."""
    if read is None:
        raise ConfigError(
            "This frame does not come straight from files or a table, so there is nothing to read as a stream.",
            hint="call to_streaming() on what read_parquet, read_csv, read_json or read_table returned, "
            "then filter and select; or use session.read_stream",
        )
    if read.table is not None and session.catalog.getTable(read.table).isTemporary:
        raise ConfigError(
            f"The view {read.table} is made of rows that do not stream.",
            hint="read the files or the table it is made of as a stream, with session.read_stream",
        )
    return read.open(session)


def _folder(path: str) -> str:
    """A path that Spark reads as a stream also if it is one file: as a pattern that only this name fits."""
    head, slash, name = path.rstrip("/").rpartition("/")
    if "." not in name or _GLOB & set(path):
        return path
    return f"{head}{slash}[{name[0]}]{name[1:]}"
