"""What the log of a flow says: ticks, and changes of what the flow is made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from weirflow.errors import ConfigError, StorageError
from weirflow.ivm.zset.batch import Batch, one_array
from weirflow.ivm.zset.buffers import raw_values
from weirflow.rows.arrays import from_numpy
from weirflow.sql.settings import SqlSettings  # noqa: TC001 - read when files are

if TYPE_CHECKING:
    from weirflow.ivm.durability.parts import Parts


class SourceChange(msgspec.Struct, frozen=True, array_like=True):
    """What a tick did to one source, and what its input remembers of it."""

    rows: bytes
    watermark: int | None
    digest: bytes | None


class Tick(msgspec.Struct, frozen=True, tag="tick", array_like=True):
    """A committed tick, and the place in a stream (its name, its origin, where) that brought it."""

    epoch: int
    token: str | None
    changes: dict[str, SourceChange]
    position: tuple[str, str, str] | None = None


class DefineSource(msgspec.Struct, frozen=True, tag="source", array_like=True):
    """A source was registered."""

    name: str
    schema: bytes
    key: list[str]
    dedup: int
    lateness: tuple[str, str] | None
    keep: bool = True


class DefineView(msgspec.Struct, frozen=True, tag="view", array_like=True):
    """A view was registered."""

    name: str
    sql: str
    mode: str
    stored: bool


class ReplaceView(msgspec.Struct, frozen=True, tag="replace", array_like=True):
    """A view was rebuilt with all that reads it: with another definition, or with its own."""

    epoch: int
    name: str
    sql: str
    mode: str
    stored: bool


class DefinePlannedView(DefineView, frozen=True, tag="planned view", array_like=True):
    """A view was registered with a plan or settings, which versions before them must not take for one without."""

    plan: str | None
    settings: SqlSettings | None = None


class ReplacePlannedView(ReplaceView, frozen=True, tag="planned replace", array_like=True):
    """As ``ReplaceView``, with plans: the view's own, and those of other views that were read anew over it."""

    plan: str | None
    others: dict[str, str | None]
    settings: SqlSettings | None = None
    settings_of_others: dict[str, SqlSettings | None] = {}


class ForceDiff(msgspec.Struct, frozen=True, tag="force", array_like=True):
    """A view, or every one with those to come (None), is recomputed from then on."""

    epoch: int
    view: str | None


class DropRelation(msgspec.Struct, frozen=True, tag="drop", array_like=True):
    """A source or view was dropped."""

    name: str


Entry = (
    Tick | DefineSource | DefineView | DefinePlannedView | ReplaceView | ReplacePlannedView | ForceDiff | DropRelation
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)


def encode_entry(entry: Entry) -> bytes:
    """The entry as bytes, which ``decode_entry`` can read; ``ConfigError`` if there is no such thing."""
    try:
        data = _encoder.encode(entry)
        if not isinstance(entry, Tick):
            _decoder.decode(data)
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise ConfigError(f"This cannot be written to a flow's log: {error}") from error
    return data


def decode_entry(data: bytes, number: int, where: str) -> Entry:
    """The entry of a record; ``StorageError`` if it is none that this version knows."""
    try:
        entry: Entry = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise StorageError(
            f"Record {number} of the log {where} cannot be read: {error}",
            uri=where,
            hint="a later version of Weirflow may have written it",
        ) from error
    return entry


def encode_rows(rows: Batch) -> bytes:
    """Weighted rows as an Arrow stream."""
    schema, head = _stream_head(rows.types)
    data: bytes = head + _record_batch(rows, schema).serialize().to_pybytes()
    return data


def write_stream(batches: Sequence[Batch], sink: Parts) -> None:
    """Many weighted rows as an Arrow stream, which ``decode_rows`` and ``decode_batches`` read."""
    schema, _ = _stream_head(batches[0].types)
    with pa.ipc.new_stream(sink, schema) as writer:
        for rows in batches:
            writer.write_batch(_record_batch(rows, schema))


def _record_batch(rows: Batch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [*rows.columns, from_numpy(rows.weights)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@lru_cache(maxsize=1024)
def _stream_head(types: tuple[pa.DataType, ...]) -> tuple[pa.Schema, bytes]:
    """The schema of rows of these types with their weights, and how their stream begins."""
    schema = pa.schema([(f"c{index}", type_) for index, type_ in enumerate((*types, pa.int64()))])
    return schema, schema.serialize().to_pybytes()


def decode_batches(data: bytes | memoryview) -> list[Batch]:
    """The rows in an Arrow stream, in the pieces in which they were written."""
    pieces = [batch.columns for batch in pa.ipc.open_stream(data)]
    return [Batch(tuple(columns), raw_values(weights)) for *columns, weights in pieces]


def decode_rows(data: bytes) -> Batch:
    """The rows in an Arrow stream."""
    *columns, weights = pa.ipc.open_stream(data).read_all().columns
    return Batch(tuple(one_array(column) for column in columns), raw_values(one_array(weights)))


def encode_schema(schema: pa.Schema) -> bytes:
    """An Arrow schema as bytes."""
    data: bytes = schema.serialize().to_pybytes()
    return data


def decode_schema(data: bytes) -> pa.Schema:
    """The Arrow schema in bytes."""
    return pa.ipc.read_schema(pa.py_buffer(data))
