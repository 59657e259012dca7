"""``PartitionedIncrementalFlow``: a flow whose shards run on the executors of a Session's Spark."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Count, Lifetime, Name, Seconds, Sql, Uri, checked
from weirflow.errors import ConfigError
from weirflow.ivm.compiler.program import Mode
from weirflow.ivm.flow.query import explain_query
from weirflow.ivm.flow.source import Source
from weirflow.ivm.flow.state import FlowState
from weirflow.ivm.partitioned.flow import PartitionedFlow
from weirflow.session.fed_flow import STREAMS, FedFlow
from weirflow.session.feeds import Feeds, check_name
from weirflow.session.kept_flows import KeptFlows
from weirflow.session.late_rows import CountLate
from weirflow.session.leadership import Leadership
from weirflow.session.spark_stages import SparkStages
from weirflow.streaming.checkpoints import spark_uri
from weirflow.types import Placement, Profile, one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirflow.checkpoint.storage import CheckpointStorage
    from weirflow.ivm.partitioned.core import Shards
    from weirflow.metadata import Node
    from weirflow.session.session import Session
    from weirflow.spark.frame import DataFrame

LEASE_SECONDS = 10.0


@checked
class PartitionedIncrementalFlow(FedFlow, PartitionedFlow):
    """A flow in shards; ``session.flow(name, partitions=N)`` opens one. See docs/partitioned-flows.md for what differs.

    Each tick is one Spark job. Deltas may be Spark frames of any size: their rows go from executor to executor. Views
    come back as frames, too. The process that has the flow open coordinates it, under a lease where the Session's
    profile has a metadata store: if it dies, the next one goes on where it was, with the tick it had begun.

    Args:
        session: whose Spark runs the shards.
        partitions: how many shards a new flow has; one that is there keeps its own, see ``rescale``.
        name: what the flow is called.
        path: the folder or URI that keeps it, which all executors and this process reach. None takes the Session's: its
            ``path`` or ``checkpoint_uri``, or for ``dev-local`` a temporary folder that goes with the flow.
        metadata: the metadata store of the lease; None takes the Session's.
        lease_seconds: after how long another process may take over from one that is silent.
        wait: for how many seconds to wait for the lease if another process has it; None does not wait.
        options: those of ``PartitionedFlow``.
    """

    def __init__(
        self,
        session: Session,
        *,
        partitions: Shards | None = None,
        name: Name = "flow",
        path: Uri | None = None,
        metadata: Uri | None = None,
        lease_seconds: Lifetime = LEASE_SECONDS,
        wait: Seconds | None = None,
        **options: Any,
    ) -> None:
        self._session = session
        self._temporary: str | None = None
        self._leadership: Leadership | None = None
        self._stages = SparkStages(session)
        try:
            uri = self._place(name, path)
            shards = partitions if partitions is not None else self._stages.parallelism
            store = self._metadata(None if metadata is None else str(metadata))
            self._leadership = None if store is None else Leadership(store, uri, name, lease_seconds, wait)
            lease = None if self._leadership is None else self._leadership.lease
            super().__init__(uri, shards, self._stages, name=name, lease=lease, **options)
        except BaseException:
            self._let_go()
            raise
        self._feeds = Feeds(self)

    def frame(self, view: Name, *, epoch: Count | None = None) -> DataFrame:
        """All rows of a view or source as a Spark frame; its rows stay on the executors.

        With ``epoch``, those of an earlier tick, which come by this process; see ``snapshot``.
        """
        with self._lock:
            if epoch not in (None, self.epoch):
                return self._session.from_arrow(self.snapshot(view, epoch=epoch))
            schema = self.schema(view)
            work = self._read_task(view)
            number = self._coordinator.commit.number
            native = self._stages.rows(schema, self.partitions, work)
            # Its files stay as long as it is in use.
            self._coordinator.pin(number)
            weakref.finalize(native, self._coordinator.unpin, number)
            return self._session._wrapped(native)  # noqa: SLF001 - a frame of this Session

    def frames(self, names: Sequence[Name]) -> tuple[int, dict[str, DataFrame]]:
        """All rows of several views or sources, at the same epoch, as Spark frames."""
        with self._lock:
            return self.epoch, {name: self.frame(name) for name in names}

    def too_late(self, source: Name, rows: DataFrame) -> int:
        """How many of these rows of a source would go to the late side output; they are counted where they are."""
        with self._lock:
            work = CountLate(self.source(source), self._coordinator.commit.watermarks.get(source))
            return sum(map(int, self._stages.over(rows, work)))

    def explain_query(self, query: Sql, *, mode: Mode | str = Mode.AUTO) -> str:
        """How a query would be maintained if it were a view; raises what ``register_view`` would."""
        with self._lock:
            self._define()
            state = FlowState(self._stages.engine)
            for name in self.readable:
                state.add_source(Source(name, self._schema(name)))
            return explain_query(state, query, one_of(Mode, mode, "No mode of a view is called"))

    def alive_nodes(self) -> tuple[Node, ...]:
        """The processes that coordinate flows of the metadata store and were heard of lately; none without a store."""
        return () if self._leadership is None else self._leadership.store.alive_nodes()

    def close(self) -> None:
        """Stop what is attached, end all watches, let the lease go. What was ticked stays, but in a temporary flow."""
        if not self._is_own:  # Spark, too, belongs to the process that this one was forked from
            super().close()
            return
        self._require_outside()
        try:
            self._feeds.close()
        finally:
            try:
                super().close()
            finally:
                self._let_go()

    # Inner workings

    def _place(self, name: str, path: str | Path | None) -> str:
        if path is not None:
            return str(path if "://" in str(path) else Path(path).expanduser().absolute())
        check_name(name)
        root = KeptFlows(self._session).root
        if root is not None:
            return f"{root}/{name}"
        if self._session.settings.placement is Placement.DISTRIBUTED:
            raise ConfigError(
                "A partitioned flow needs a place that this process and all executors reach.",
                hint="pass path= with a shared folder or an object store, or use the profile distributed-durable",
            )
        self._temporary = tempfile.mkdtemp(prefix="weirflow-flow-")
        return self._temporary

    def _metadata(self, given: str | None) -> str | None:
        """Where leases are kept: as given, or as the Session's profile has it."""
        settings, profile = self._session.settings, self._session.describe().profile
        if given is not None:
            return given
        if profile is Profile.SINGLE_NODE_DURABLE and settings.path is not None:
            return str(settings.path / "metadata.db")
        if profile is Profile.DISTRIBUTED_DURABLE and settings.metadata_url is not None:
            return settings.metadata_url.get_secret_value()
        return None

    def _let_go(self) -> None:
        self._stages.close()
        if self._leadership is not None:
            self._leadership.end()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _kept_in(self) -> CheckpointStorage | None:
        return super()._kept_in() if self._temporary is None else None

    def _stream_place(self, name: str) -> str | None:
        """Beside the flow; for one at a URI, where Spark need not reach, only if the Session is durable."""
        uri = self._coordinator.uri
        if "://" in uri and self._session.describe().profile is Profile.DEV_LOCAL:
            return None
        return spark_uri(f"{uri}/{STREAMS}/{name}")
