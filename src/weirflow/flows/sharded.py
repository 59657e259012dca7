"""``PartitionedIncrementalFlow``: a flow whose shards run on the executors of a Session's Spark."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Lifetime, Name, Seconds, Shards, Uri, checked
from weirflow.errors import ConfigError
from weirflow.extensions import STAGE_EXECUTORS
from weirflow.flows.feeds.feeds import check_name
from weirflow.flows.kept_flows import KeptFlows
from weirflow.flows.leadership import Leadership
from weirflow.flows.spark_flow import CLOCK_EVERY, SparkFlow
from weirflow.flows.stages import SparkStages
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.types import Placement, Profile

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession
    from weirflow.ivm.sharded.executor import StageExecutor
    from weirflow.metadata import Node

LEASE_SECONDS = 10.0
SPARK = "spark"


@checked
class PartitionedIncrementalFlow(SparkFlow, PartitionedFlow):
    """A flow in shards; ``session.flow(name, partitions=N)`` opens one. See docs/partitioned-flows.md for what differs.

    Each tick is one Spark job, or shares one with ticks of other threads. Deltas may be Spark frames of any size; their
    rows go from executor to executor. Views can be read as frames, too. The process that has the flow open coordinates
    it. It holds a lease if the Session's profile has a metadata store. If it dies, the next process continues with the
    tick that had begun.

    Args:
        session: whose Spark runs the shards.
        partitions: how many shards a new flow has; an existing flow keeps its number, see ``rescale``.
        name: the name of the flow.
        path: the folder or URI that keeps it, which all executors and this process can reach. None takes the Session's:
            its ``path`` or ``checkpoint_uri``, or for ``dev-local`` a temporary folder that is deleted with the flow.
        metadata: the metadata store of the lease; None takes the Session's.
        lease_seconds: after how long another process may take over from one that is silent.
        wait: for how many seconds to wait for the lease if another process has it; None does not wait.
        clock_every: the seconds between two ticks that let time pass, if views depend on the system's clock.
        executor: what runs the shards' tasks: ``spark``, or an executor that another package adds; see
            docs/extending.md.
        options: those of ``PartitionedFlow``.
    """

    def __init__(
        self,
        session: FlowSession,
        *,
        partitions: Shards | None = None,
        name: Name = "flow",
        path: Uri | None = None,
        metadata: Uri | None = None,
        lease_seconds: Lifetime = LEASE_SECONDS,
        wait: Seconds | None = None,
        clock_every: Lifetime = CLOCK_EVERY,
        executor: Name = SPARK,
        **options: Any,
    ) -> None:
        with ExitStack() as held:
            stages = SparkStages(session)
            held.callback(stages.close)
            runs: StageExecutor = stages
            if executor != SPARK:
                runs = STAGE_EXECUTORS.make(executor, stages)
                held.callback(runs.close)
            temporary = path is None and _is_temporary(session, name)
            if temporary:
                path = tempfile.mkdtemp(prefix="weirflow-flow-")
                held.callback(shutil.rmtree, path, ignore_errors=True)
            uri = _place(session, name, path)
            store = _metadata(session, None if metadata is None else str(metadata))
            leadership = None if store is None else Leadership(store, uri, name, lease_seconds, wait)
            if leadership is not None:
                held.callback(leadership.end)
            super().__init__(
                uri,
                stages.parallelism if partitions is None else partitions,
                runs,
                name=name,
                lease=None if leadership is None else leadership.lease,
                temporary=temporary,
                **options,
            )
            # Spark need not reach a URI unless the Session is durable.
            elsewhere = "://" in uri and session.describe().profile is Profile.DEV_LOCAL
            self._wire(session, stages.reader, None if elsewhere else uri, held.pop_all(), clock_every=clock_every)
            self._leadership = leadership

    def alive_nodes(self) -> tuple[Node, ...]:
        """The processes that coordinate flows in the metadata store and have reported lately; none without a store."""
        return () if self._leadership is None else self._leadership.store.alive_nodes()


def _is_temporary(session: FlowSession, name: str) -> bool:
    """Whether a flow without a path has no place but one that goes with it."""
    check_name(name)
    if KeptFlows(session).root is not None:
        return False
    if session.settings.placement is Placement.DISTRIBUTED:
        raise ConfigError(
            "A partitioned flow needs a place that this process and all executors can reach.",
            hint="pass path= with a shared folder or an object store, or use the profile distributed-durable",
        )
    return True


def _place(session: FlowSession, name: str, path: str | Path | None) -> str:
    if path is None:
        return f"{KeptFlows(session).root}/{name}"
    return str(path if "://" in str(path) else Path(path).expanduser().absolute())


def _metadata(session: FlowSession, given: str | None) -> str | None:
    """Where leases are kept: as given, or as the Session's profile has it."""
    settings, profile = session.settings, session.describe().profile
    if given is not None:
        return given
    if profile is Profile.SINGLE_NODE_DURABLE and settings.path is not None:
        return str(settings.path / "metadata.db")
    if profile is Profile.DISTRIBUTED_DURABLE and settings.metadata_url is not None:
        return settings.metadata_url.get_secret_value()
    return None
