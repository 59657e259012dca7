"""Deltas that are given to a flow in shards: their rows to files for the shards that they go to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError
from weirflow.ivm.flow.source import digest_of
from weirflow.ivm.sharded.worker.moving import SplitRows, decode_moved, reader, split

if TYPE_CHECKING:
    from weirflow.ivm.sharded.coordinator import Coordinator
    from weirflow.ivm.sharded.executor import StageExecutor
    from weirflow.ivm.sharded.jobs import Deltas
    from weirflow.ivm.sharded.worker.reports import RowsRef

_INLINE = 1 << 20


def is_frame(data: Any) -> bool:
    """Whether it is a Spark frame, of whichever kind."""
    return hasattr(data, "mapInArrow")


@dataclass
class Incoming:
    """The deltas of one tick.

    Attributes:
        rows: for each source and shard, where the rows are.
        digests: of deltas of which repetitions are to be noticed, by their sources.
        dropped: how many rows are not there because a delta repeats an earlier one.
    """

    rows: Deltas = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)
    dropped: int = 0

    def add(self, name: str, data: Any, coordinator: Coordinator, executor: StageExecutor) -> None:
        """Put the rows of a delta where their shards find them; the source is defined."""
        definition, shards = coordinator.definition, coordinator.commit.shards
        source, epoch = definition.sources[name], coordinator.commit.epoch + 1
        if is_frame(data):
            if source.dedup:
                raise ConfigError(
                    f"The source {name!r} notices repeated deltas, which cannot be done for frames.",
                    hint="give the tick a token=, or register the source without dedup=",
                )
            work = SplitRows(coordinator.uri, definition.encoded, name, shards, epoch)
            for part in executor.over(data, work):
                for _, shard, ref in decode_moved(part):
                    self._put(name, shard, ref)
            return
        given = reader(source).weighted(data)
        if source.dedup:
            digest = digest_of(given)
            if digest in coordinator.commit.digests.get(name, []):
                self.dropped += len(given)
                return
            self.digests[name] = digest
        everywhere = definition.is_everywhere(name)
        for shard, own in split(given, definition.columns[name], 1 if everywhere else shards).items():
            ref = coordinator.files.write_rows(own, epoch, _INLINE)
            for target in range(shards) if everywhere else [shard]:
                self._put(name, target, ref)

    def _put(self, name: str, shard: int, ref: RowsRef) -> None:
        self.rows.setdefault(name, {}).setdefault(shard, []).append(ref)
