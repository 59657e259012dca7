"""Parts of a result: files in Arrow's streaming format, which a task writes and a client fetches."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from weirflow.errors import QueryError, ResultTooLarge, StorageError
from weirflow.server.results.place import Place

BATCH_BYTES = 2 << 20
"""About how large the batches of a part are: some clients take messages of 16 MB at most, and tiny ones cost time."""
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class Part(msgspec.Struct, frozen=True):
    """A file of a result.

    Attributes:
        name: below the place of the spool.
        number: which part of the result it is, in the order of its rows.
        rows: how many there are.
        size: in bytes.
        crc32: of all bytes.
    """

    name: str
    number: int
    rows: int
    size: int
    crc32: int


@dataclass(frozen=True)
class PartWriter:
    """What a task does with the rows of a partition; it is pickled, and brings its own way to the place.

    Attributes:
        place: the spool's.
        folder: the result's, below it.
        schema: the columns of the result, as the server has promised them.
        limit: how many bytes a part may have.
    """

    place: str
    folder: str
    schema: pa.Schema
    limit: int

    def __call__(self, number: int, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        """Write the rows, if there are any; says what was written, as ``read_report`` reads it."""
        part = self.write(number, batches)
        if part is not None:
            yield msgspec.msgpack.encode(part)

    def write(self, number: int, batches: Iterable[pa.RecordBatch]) -> Part | None:
        """Write a part; None if there is no row. What fails leaves a file that nobody names."""
        rest = bounded(batches, self.schema)
        first = next(rest, None)
        if first is None:
            return None
        # Several attempts at a task may write at the same time.
        name = f"{self.folder}/{number:06d}-{uuid.uuid4().hex}.arrow"
        stream = _Stream(self.schema, self.limit)
        try:
            Place(self.place).write(name, stream.chunks(first, rest))
        except StorageError as error:
            raise QueryError(
                error.message, hint=f"look after the spool at {self.place}, or have another one"
            ) from error
        return Part(name, number, stream.rows, stream.size, stream.crc32)


def read_report(report: bytes) -> Part:
    """What a task says that it has written."""
    return msgspec.msgpack.decode(report, type=Part)


class _Stream:
    """Batches as the bytes of a stream, which are counted as they pass."""

    def __init__(self, schema: pa.Schema, limit: int) -> None:
        self._schema = schema
        self._limit = limit
        self.rows = self.size = self.crc32 = 0

    def chunks(self, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[memoryview]:
        yield self._counted(self._schema.serialize())
        yield self._batch(first)
        for batch in rest:
            yield self._batch(batch)
        yield self._counted(_END_OF_STREAM)

    def _batch(self, batch: pa.RecordBatch) -> memoryview:
        self.rows += batch.num_rows
        return self._counted(batch.serialize())

    def _counted(self, content: pa.Buffer | bytes) -> memoryview:
        view = memoryview(content)
        self.crc32 = zlib.crc32(view, self.crc32)
        self.size += view.nbytes
        if self.size > self._limit:
            raise ResultTooLarge(
                f"A part of the result is larger than {self._limit} bytes, which is the most that is allowed.",
                hint="ask for fewer rows or columns, or have the server allow more",
            )
        return view


def bounded(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of a good size, with the columns of a schema; empty ones are left out."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        fitting = batch if batch.schema.equals(schema) else fitted(batch, schema)
        if fitting.nbytes > 2 * BATCH_BYTES:
            yield from _joined(waiting)
            waiting, size = [], 0
            yield from _sliced(fitting)
            continue
        waiting.append(fitting)
        size += fitting.nbytes
        if size >= BATCH_BYTES:
            yield from _joined(waiting)
            waiting, size = [], 0
    yield from _joined(waiting)


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the columns of a schema, by their places: names may be there twice."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _joined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if batches:
        yield batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _sliced(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(batch.num_rows * BATCH_BYTES // batch.nbytes, 1)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
