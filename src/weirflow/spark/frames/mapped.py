"""A frame whose rows are made from those of another, batch by batch, by code of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from weirflow.errors import QueryError
from weirflow.spark.compat import arrow_schema
from weirflow.spark.frames.arrow import spark_table
from weirflow.spark.jobs.relayed_errors import relayed

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.Table]]
"""Makes rows from the batches of one partition; it is pickled."""


def mapped_frame(native: Any, work: Work, schema: pa.Schema) -> Any:
    """A native frame of such columns. What ``work`` raises comes out as it is, if it is a ``QueryError``."""
    columns = from_arrow_schema(spark_table(schema.empty_table()).schema, prefer_timestamp_ntz=True)
    return native.mapInArrow(_Function(work, columns), columns)


@dataclass(frozen=True)
class _Function:
    work: Work
    columns: StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(self.columns)
        try:
            for rows in self.work(batches):
                yield from rows.cast(schema).to_batches()
        except QueryError as error:
            raise relayed(error) from error
