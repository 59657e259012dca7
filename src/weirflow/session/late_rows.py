"""``CountLate``: how many rows of a frame come too late for their source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.ivm.partitioned.moving import reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from weirflow.ivm.flow.source import Source


@dataclass(frozen=True)
class CountLate:
    """Counts the rows of some Arrow batches that are older than a watermark; runs where they are."""

    source: Source
    watermark: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        """The number, as text."""
        source = reader(self.source)
        source.watermark = self.watermark
        yield str(sum(int(source.too_late(source.weighted(batch)).sum()) for batch in batches)).encode()
