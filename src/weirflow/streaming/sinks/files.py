"""``Files``: a folder of files, whose log names those of each batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from weirflow.errors import ConfigError, StreamConflict, StreamRefused
from weirflow.streaming.savepoints.files import begin_sink_log, last_sink_batch, storage_of_spark
from weirflow.streaming.sinks.sink import StreamSink
from weirflow.types import Delivery, OutputMode

if TYPE_CHECKING:
    from weirflow.streaming.query.spec import QuerySpec
    from weirflow.streaming.savepoints.named import QuerySavepoint

FORMATS = ("parquet", "json", "csv", "orc", "text", "avro")


@dataclass(frozen=True)
class Files(StreamSink):
    """A folder of files of a format."""

    delivery: Delivery = Delivery.EXACTLY_ONCE
    why: str = "the folder's log names the files of each batch"
    has_folders: bool = True

    @override
    def refusals(self, spec: QuerySpec) -> Iterator[tuple[str, str]]:
        if spec.mode is OutputMode.UPDATE:
            yield (
                f"Files are only ever added, so a {self.name} folder cannot take updates of existing rows.",
                "use OutputMode.APPEND with a watermark, or a delta or iceberg table with keys()",
            )
        if spec.mode is OutputMode.COMPLETE:
            yield (
                f"Files are only ever added, so a {self.name} folder cannot be rewritten after each batch.",
                "use OutputMode.APPEND with a watermark, or a delta or iceberg table",
            )
        yield from super().refusals(spec)

    @override
    def check(self, spec: QuerySpec) -> None:
        if "path" not in spec.options and spec.table is None:
            raise ConfigError(f"No folder is given for the {self.name} files.", hint='set option("path", ...)')

    def prepare(self, spec: QuerySpec, savepoint: QuerySavepoint) -> None:
        """See ``StreamSink``: the folder is to have just the batches that the savepoint has."""
        if spec.checkpoint is not None and savepoint.is_at(spec.checkpoint):
            return
        path = spec.options.get("path")
        if path is None:
            raise StreamRefused(
                "There is no way to tell whether a table of files is as it was at the savepoint.",
                hint='write to a folder with option("path", ...)',
            )
        folder = storage_of_spark(path)
        last = last_sink_batch(folder)
        if last is None:
            begin_sink_log(folder, savepoint.batch)
        elif last != savepoint.batch:
            raise StreamConflict(
                f"{path} has the batches up to {last}, and the savepoint {savepoint.name!r} is of batch "
                f"{savepoint.batch}: rows would be lost or doubled.",
                hint="write to an empty folder",
            )
