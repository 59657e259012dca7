"""``PartitionedFlow``: views over changing sources, kept up to date shard by shard."""

from __future__ import annotations

from typing import Any

from weirflow.ivm.partitioned.definitions import PartitionedDefinitions
from weirflow.ivm.partitioned.reading import PartitionedReading
from weirflow.ivm.partitioned.ticking import PartitionedTicking


class PartitionedFlow(PartitionedDefinitions, PartitionedTicking, PartitionedReading):
    """Sources, SQL views over them, and ticks that bring deltas, as ``IncrementalFlow`` has them, in shards.

    Each tick is one job over all shards. What it did is published in one commit; only then are watches told. A tick
    that was begun is remembered first: whoever opens the flow next runs it again. Methods may be called from several
    threads; ticks run one after the other.

    Args:
        uri: where the flow is kept, a storage that all executors reach.
        partitions: how many shards a new flow has; one that is there has its own, see ``rescale``.
        executor: what runs the stages.
        name: what errors and metrics call the flow.
        lease: that makes this process the flow's coordinator.
        history: of how many epochs deltas are kept here for ``watch_output(from_epoch=...)``.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.pending:
            self._refeed()

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.name} epoch {self.epoch}: {self.partitions} shards, "
            f"{len(self.sources)} sources, {len(self.views)} views>"
        )
