"""Batches on their way: to a client none too large for a message, from a client none that is not sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.errors import ConfigError
from weirflow.server.results.parts import BATCH_BYTES
from weirflow.wire.arrow import require_sound

if TYPE_CHECKING:
    import pyarrow.flight as fl


def sliced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of a few megabytes at most, unless a single row has more."""
    for batch in batches:
        rows = batch.num_rows if batch.nbytes <= 2 * BATCH_BYTES else batch.num_rows * BATCH_BYTES // batch.nbytes
        if rows == batch.num_rows:
            yield from [batch] if rows else []
            continue
        for start in range(0, batch.num_rows, max(rows, 1)):
            yield batch.slice(start, max(rows, 1))


class Sent:
    """Batches that a client sends, each looked at before it is given on. They are read once."""

    def __init__(self, reader: fl.MetadataRecordBatchReader) -> None:
        self._reader = reader

    @property
    def schema(self) -> pa.Schema:
        """Their columns; ``ConfigError`` if the client has sent none."""
        try:
            return self._reader.schema
        except (OSError, pa.ArrowException) as error:
            raise ConfigError(f"No rows were sent: {error}.") from None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for chunk in self._reader:
                if chunk.data is not None:
                    require_sound(chunk.data)
                    yield chunk.data
        except (OSError, pa.ArrowException) as error:
            raise ConfigError(f"The rows that were sent cannot be read: {error}.") from None

    def table(self, most: int) -> pa.Table:
        """All of them; ``ConfigError`` if they have more bytes together than they may."""
        size = 0
        batches = []
        for batch in self:
            size += batch.nbytes
            if size > most:
                raise ConfigError(
                    f"The rows have more than {most} bytes, which is the most that one call may send.",
                    hint="send them in several calls",
                )
            batches.append(batch)
        return pa.Table.from_batches(batches, self.schema)
