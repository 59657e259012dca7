"""A view's deltas as Parquet files: an append-only changelog that any tool can read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import override

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.sealed import refused
from weirflow.errors import ConfigError, SinkConflict
from weirflow.failpoints import failpoint
from weirflow.ivm.flow.sinks.sink import Guarantee, SinkTarget
from weirflow.ivm.zset.delta import WEIGHT, DeltaBatch

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.ivm.flow.sinks.sink import Deltas

EPOCH = "_epoch"
_NAME = re.compile(r"(\d{20})-(\d{20})\.parquet")
_OWNER = b"weirflow.owner"
_HINT = "restore the file from a copy, or pass resync=True to replace what is there with the view's current rows"


class ParquetTarget(SinkTarget):
    """Files ``<first epoch>-<last epoch>.parquet`` with the view's columns, ``_weight`` and ``_epoch``.

    A file is there whole or not at all, and the name of the last one says how far the sink is.

    Args:
        where: a folder or any other storage URI.
    """

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, where: str | Path) -> None:
        self._storage = open_checkpoint_storage(str(where), private=False)
        self._owner = b""
        self._schema = pa.schema([])

    @override
    def describe(self) -> str:
        return f"Parquet files in {self._storage.uri}"

    @override
    def open(self, owner: str, schema: pa.Schema) -> None:
        self._owner = owner.encode()
        self._schema = changelog_schema(schema).with_metadata({_OWNER: self._owner})
        try:
            _encoded(self._schema.empty_table())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            raise ConfigError(f"Parquet has no type for a column of the view: {error}.") from error

    @override
    def position(self) -> int | None:
        files = self._files()
        if not files:
            return None
        last = max(files, key=lambda name: files[name])
        if self._metadata(last).get(_OWNER) != self._owner:
            raise SinkConflict(
                f"The files in {self._storage.uri} were written by another flow, or by another definition of the view.",
                hint="write to another folder, or pass resync=True to replace them with the view's current rows",
            )
        return files[last]

    @override
    def write(self, after: int, upto: int, deltas: Deltas) -> None:
        table = changelog(self._schema, deltas)
        failpoint("sink.before_file")
        self._storage.put_if_absent(f"{after + 1:020d}-{upto:020d}.parquet", _encoded(table))

    @override
    def replace(self, epoch: int, rows: DeltaBatch) -> None:
        files = self._files()
        # The newest first: what a crash leaves is a changelog up to an earlier epoch.
        for name in sorted(files, key=lambda name: files[name], reverse=True):
            failpoint("sink.before_replace")
            self._storage.delete(name)
        self.write(-1, epoch, [(epoch, rows)])

    def _metadata(self, name: str) -> dict[bytes, bytes]:
        try:
            return pq.read_schema(pa.BufferReader(pa.py_buffer(self._storage.map(name)))).metadata or {}
        except (pa.ArrowException, OSError) as error:
            where = f"{self._storage.uri}/{name}"
            raise refused(where, str(error).rstrip("."), _HINT) from error

    def _files(self) -> dict[str, int]:
        """The names of the files, with the last epoch of each."""
        found = ((info.name, _NAME.fullmatch(info.name)) for info in self._storage.list())
        return {name: int(match[2]) for name, match in found if match}


def changelog_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a view's changelog; ``ConfigError`` if the view's own are in the way."""
    for name in (WEIGHT, EPOCH):
        if name in schema.names:
            raise ConfigError(
                f"The view has a column {name!r}, which the changelog adds.", hint="give it another name in the view"
            )
    require_distinct(schema)
    return schema.append(pa.field(WEIGHT, pa.int64())).append(pa.field(EPOCH, pa.int64()))


def require_distinct(schema: pa.Schema) -> None:
    """``ConfigError`` if two columns have one name, as far as Spark can tell."""
    folded = [name.casefold() for name in schema.names]
    repeated = next((name for name, one in zip(schema.names, folded, strict=True) if folded.count(one) > 1), None)
    if repeated is not None:
        raise ConfigError(f"The view has several columns {repeated!r}.", hint="give each a name of its own")


def changelog(schema: pa.Schema, deltas: Deltas) -> pa.Table:
    """The deltas one after the other, each row with its weight and epoch."""
    parts = []
    for epoch, delta in deltas:
        rows = delta.to_arrow()
        epochs = pa.repeat(pa.scalar(epoch, pa.int64()), rows.num_rows)
        parts.append(pa.RecordBatch.from_arrays([*rows.columns, epochs], schema=schema))
    return pa.Table.from_batches(parts, schema)


def _encoded(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return memoryview(sink.getvalue())
