"""Frames of changes, each row with the kind of its change, as deltas; computed on Spark's executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from weirflow.errors import ConfigError, DataError
from weirflow.flows.view_schema import view_schema
from weirflow.ivm.zset.delta import WEIGHT, DeltaBatch


def weighted_frame(native: Any, op: str) -> Any:
    """A native frame of the rows with their weights, by the kinds of change in the column ``op``.

    Raises:
        ConfigError: there is no such column.
    """
    from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark
    from weirflow.spark.frames.mapped import mapped_frame  # noqa: PLC0415 - imports pyspark

    schema = view_schema(frame_schema(native))
    if op not in schema.names:
        raise ConfigError(f"There is no column {op!r} with the kind of each change.")
    rest = [(field.name, field.type) for field in schema if field.name != op]
    return mapped_frame(native, _DeltaMaker(op), pa.schema([*rest, (WEIGHT, pa.int64())]))


@dataclass(frozen=True)
class _DeltaMaker:
    op: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            try:
                delta = DeltaBatch.from_changes(rows.cast(view_schema(rows.schema)), op=self.op)
            except ConfigError as error:  # a kind that is not known is a matter of the rows
                raise DataError(error.message, hint=error.hint) from error
            yield pa.Table.from_batches([delta.to_arrow()])
