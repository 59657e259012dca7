"""``PartitionedFlow``: a flow in shards, on whatever runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.arguments import Count, Name, Shards, checked
from weirflow.ivm.flow.flow import Flow
from weirflow.ivm.sharded.backend import ShardedBackend
from weirflow.types import ClockKind, one_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from weirflow.ivm.sharded.executor import StageExecutor
    from weirflow.metadata import Lease


@checked
class PartitionedFlow(Flow):
    """Sources, SQL views over them, and ticks that bring deltas, as ``IncrementalFlow`` has them, in shards.

    Each tick is one job over all shards. What it did is published in one commit; only then are watches told. A tick
    that was begun is remembered first: whoever opens the flow next runs it again. Methods may be called from several
    threads; ticks run one after the other, and those that wait share a job and its commit, each with its own epoch.

    Args:
        uri: where the flow is kept, a storage that all executors reach.
        partitions: how many shards a new flow has; one that is there has its own, see ``rescale``.
        executor: what runs the stages.
        name: what errors and metrics call the flow.
        lease: that makes this process the flow's coordinator.
        history: of how many epochs deltas are kept here for ``watch_output(from_epoch=...)``.
        temporary: whether nobody goes on with the flow, so that no sink has to remember how far it is.
        registry: where the flow's metrics are; None for Weirflow's own.
        clock: as ``IncrementalFlow``'s.
        at: the number of the commit to go on from, as it was; what came behind it is undone. None for the last one.
        spread_policy: which shard a row goes to: ``even``, or one that another distribution adds. A flow that is there
            keeps its own.
    """

    def __init__(
        self,
        uri: str,
        partitions: Shards,
        executor: StageExecutor,
        *,
        name: Name = "flow",
        lease: Lease | None = None,
        history: Count = 1000,
        temporary: bool = False,
        registry: CollectorRegistry | None = None,
        clock: ClockKind | str = ClockKind.SYSTEM,
        at: Count | None = None,
        spread_policy: Name | None = None,
    ) -> None:
        backend = ShardedBackend(
            uri,
            partitions,
            executor,
            name,
            lease,
            history=history,
            temporary=temporary,
            registry=registry,
            clock=one_of(ClockKind, clock, "No clock is called"),
            at=at,
            policy=spread_policy,
        )
        super().__init__(backend)
