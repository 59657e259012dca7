"""``LakeTable``: a Delta or Iceberg table, appended to, replaced, or merged into by key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from weirflow.errors import ConfigError
from weirflow.streaming.query.batches import BatchGate
from weirflow.streaming.sinks.sink import StreamSink, Taker
from weirflow.types import Delivery, OutputMode

if TYPE_CHECKING:
    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.query.spec import QuerySpec

FORMATS = {
    "delta": "each commit holds the query's id and its batch",
    "iceberg": "each snapshot holds the query's id and its batch",
}
"""By the format's name: why rows arrive exactly once."""


@dataclass(frozen=True)
class LakeTable(StreamSink):
    """A table of one of the formats."""

    has_folders: bool = True

    @override
    def promise(self, mode: OutputMode) -> tuple[Delivery, str]:
        merged = mode is OutputMode.UPDATE
        return Delivery.EXACTLY_ONCE, "a repeated batch merges to the same rows" if merged else FORMATS[self.name]

    @override
    def refusals(self, spec: QuerySpec) -> Iterator[tuple[str, str]]:
        if spec.mode is not OutputMode.UPDATE:
            yield from super().refusals(spec)
        elif not spec.keys:
            yield (
                f"An update of a {self.name} table is merged by its key, and none is given.",
                "name the columns that identify a row with keys(...)",
            )

    @override
    def check(self, spec: QuerySpec) -> None:
        if "path" not in spec.options and spec.table is None:
            raise ConfigError(
                f"No {self.name} table is given.", hint='name it with table(...), or set option("path", ...)'
            )
        if spec.partition_by and spec.keys:
            raise ConfigError(
                "A table into which rows are merged already has its partitions.", hint="leave partition_by out"
            )

    @override
    def taker(self, spec: QuerySpec, host: StreamHost, query_id: Callable[[], str]) -> Taker | None:
        if spec.mode is not OutputMode.UPDATE:
            return None
        from weirflow.spark.streaming.upsert import merging, table_at  # noqa: PLC0415 - imports pyspark

        table = table_at(self.name, spec.table, spec.options.get("path"))
        merge = merging(table, spec.keys)
        if host.connect:
            return merge
        main = spec.frame.sparkSession

        def merge_and_show(batch: Any, number: int) -> None:
            merge(batch, number)
            main.catalog.refreshTable(table)  # which may hold on to what was there before

        return BatchGate(merge_and_show, f"The merge into {table}")
