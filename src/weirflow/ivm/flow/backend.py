"""``FlowBackend``: what a flow is run by, in this process or elsewhere; ``Capability``: what only some of them do."""

# ruff: noqa: ARG002 - what is refused needs no arguments

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from weirflow.errors import ConfigError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime
    from pathlib import Path

    import pyarrow as pa

    from weirflow.ivm.compiler.session_tables import SessionTable
    from weirflow.ivm.compiler.view import Mode, View
    from weirflow.ivm.flow.describe import FlowInfo
    from weirflow.ivm.flow.evolution.plan import EvolutionPlan
    from weirflow.ivm.flow.outputs.watch import Watch, WatchTerms
    from weirflow.ivm.flow.position import Position
    from weirflow.ivm.flow.sinks.sink import Sink, SinkTarget, SinkTerms
    from weirflow.ivm.flow.source import Source
    from weirflow.ivm.flow.summary import StepSummary
    from weirflow.ivm.kernel.deadline import Deadline
    from weirflow.ivm.zset.delta import DeltaBatch
    from weirflow.observability.metrics import FlowGauges
    from weirflow.sql.settings import SqlSettings
    from weirflow.types import ClockKind, SourceSpread


class Capability(StrEnum):
    """What some backends do and others do not."""

    CHECKPOINTS = "checkpoints"
    """Saves the flow anywhere, and goes on from what was saved."""
    FRAMES = "frames"
    """Deltas may be Spark frames whose rows stay where they are, and so do the rows of views that are read."""
    SHARDS = "shards"
    """Spreads the rows over shards, as many as are asked for and in the way that is asked for."""


_REFUSED = {
    Capability.CHECKPOINTS: (
        "is kept by its commits; it is not saved elsewhere, nor restored from there",
        "open it by its path or name: it continues where it was",
    ),
    Capability.FRAMES: ("has its rows in one process, not on Spark's executors", "use snapshot() or stream()"),
    Capability.SHARDS: (
        "runs in one process, and has no shards to spread rows over",
        "leave that out, or make a flow in shards: session.flow(name, partitions=N), or CREATE FLOW with partitions",
    ),
}


def refused(capability: Capability, flow: str) -> ConfigError:
    """The error for what a flow cannot do where it runs."""
    what, hint = _REFUSED[capability]
    return ConfigError(f"The flow {flow!r} {what}.", hint=hint)


class FlowBackend(Protocol):
    """Runs one flow. All that goes in and comes out is plain data, or a handle of something that may be elsewhere.

    Arguments are what they are said to be: ``Flow`` has looked at them, and documents what is raised. Methods may be
    called from several threads. A closed backend raises ``FlowError``.

    Attributes:
        name: the flow's.
        capabilities: what it does beyond what all do.
        path: the folder of this machine that keeps the flow; None if there is none.
        closed: whether it was closed.
        identity: tells the flow from all others; the same after a restart if the flow survives one.
    """

    name: str
    identity: str
    capabilities: frozenset[Capability] = frozenset()
    path: Path | None = None
    closed: bool = False

    @property
    def settings(self) -> SqlSettings:
        """Those with which SQL is read now, and which a view that is registered now keeps."""

    @property
    def partitions(self) -> int:
        """How many shards there are."""
        return 1

    @property
    def epoch(self) -> int:
        """The number of the last tick."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Nobody but the thread that enters ticks or changes the flow in the block."""

    def require_outside(self, what: str) -> None:
        """``FlowReentered`` if a function that a tick calls wants to do this, in the tick's thread."""

    def close(self) -> None:
        """Let go of all that the flow holds. May be repeated."""

    # What the flow is made of

    @property
    def sources(self) -> Mapping[str, Source]:
        """The sources, as they were declared."""

    @property
    def views(self) -> Mapping[str, View]:
        """The views, as they were declared, also those that wait."""

    @property
    def waiting(self) -> dict[str, str]:
        """The views that wait, and what for."""

    def source(self, name: str) -> Source:
        """One of ``sources``."""

    def define_source(self, source: Source, spread: SourceSpread | None) -> None:
        """Declare a source, whose rows are spread in a certain way if the backend has SHARDS."""

    def define_view(self, name: str, view: View) -> None:
        """Declare a view."""

    def replace_view(self, name: str, view: View) -> EvolutionPlan:
        """Let a view be another one."""

    def refresh_view(self, name: str) -> EvolutionPlan:
        """Compute a view afresh."""

    def force_diff(self, view: str | None) -> None:
        """Have a view, or all, recomputed and compared."""

    def drop(self, name: str) -> None:
        """Remove a source or view."""

    def snapshot_of(self, table: SessionTable) -> str:
        """The name of the relation that holds what a table of a Session had; it is made if there is none."""

    def sweep(self) -> None:
        """Remove what was read of tables and no view reads any more."""

    # Ticks

    @property
    def pending(self) -> bool:
        """Whether a tick failed and waits."""

    def tick(self, deltas: Mapping[str, Any], deadline: Deadline, *, token: str | None = None) -> StepSummary:
        """Apply deltas, by the names of their sources."""

    def feed(self, deltas: Mapping[str, Any], deadline: Deadline, position: Position) -> StepSummary:
        """Apply deltas that bring a stream to a position."""

    def position(self, stream: str) -> Position | None:
        """Where a stream is."""

    def epoch_of(self, token: str) -> int | None:
        """The tick that had a token, if it was one of the last."""

    def retry(self, deadline: Deadline) -> StepSummary:
        """Run the tick that waits."""

    def discard(self) -> None:
        """Give up the tick that waits, if there is one."""

    @property
    def clock(self) -> datetime | None:
        """The clock's reading; None before the first, or when closed."""

    @property
    def clock_kind(self) -> ClockKind:
        """What moves the clock."""

    @property
    def follows_clock(self) -> bool:
        """Whether a view reads the clock."""

    def is_due(self, moment: int) -> bool:
        """Whether a row may have to be looked at again if the clock came to this many microseconds since 1970."""

    def advance(self, to: datetime | None, deadline: Deadline, *, keep: bool) -> StepSummary:
        """Bring the clock to a moment, or to the system's time; what fails is kept for ``retry``, or not."""

    def too_late(self, source: str, rows: Any) -> int:
        """How many of these rows would be too late."""

    # What comes out

    @property
    def readable(self) -> tuple[str, ...]:
        """The sources and views whose rows are kept."""

    def rows(self, names: Sequence[str], epoch: int | None) -> tuple[int, dict[str, pa.Table]]:
        """The rows of sources and views now, and the epoch; or after an earlier one."""

    def stream(self, name: str) -> tuple[int, pa.RecordBatchReader]:
        """The epoch, and the rows of a source or view at it, in batches; ticks do not wait while they are read."""

    def query(self, sql: str, tables: Mapping[str, Any]) -> pa.Table:
        """The rows of a query over sources, views and some tables."""

    def schema(self, name: str) -> pa.Schema:
        """The columns of a source or view."""

    def watch(self, view: str, terms: WatchTerms) -> Watch:
        """A handle from which the deltas of a view are read."""

    def on_delta(self, view: str, callback: Callable[[int, DeltaBatch], None]) -> None:
        """Call a function with the deltas of a view."""

    def sink(self, view: str, to: str | Path | Callable[..., object] | SinkTarget, terms: SinkTerms) -> Sink:
        """Write the deltas of a view somewhere; returns a handle."""

    def describe(self) -> FlowInfo:
        """What the flow is."""

    def explain(self, view: str | None) -> str:
        """How a view, or everything, is maintained."""

    def explain_query(self, sql: str, mode: Mode) -> str:
        """How a query would be maintained."""

    def metrics(self) -> str:
        """What the flow has done, in Prometheus' text format."""

    def gauges(self) -> FlowGauges | None:
        """What the flow holds; None when closed."""

    # What a capability stands for

    def save(self, uri: str | Path | None, *, full: bool) -> str:
        """Save the flow; returns the checkpoint's name."""
        raise refused(Capability.CHECKPOINTS, self.name)

    def restore(self, uri: str | Path, epoch: int | None) -> EvolutionPlan:
        """Go on from what was saved."""
        raise refused(Capability.CHECKPOINTS, self.name)

    def plan(self, sources: Mapping[str, Source], views: Mapping[str, View]) -> EvolutionPlan:
        """What restoring this flow into one of these sources and views would do."""
        raise refused(Capability.CHECKPOINTS, self.name)

    def rescale(self, partitions: int, spread: Mapping[str, SourceSpread]) -> None:
        """Spread the flow over another number of shards, and some sources in another way."""
        raise refused(Capability.SHARDS, self.name)

    def frames(self, names: Sequence[str]) -> tuple[int, dict[str, Any]]:
        """The rows of sources and views now, as native frames that stay readable; and the epoch."""
        raise refused(Capability.FRAMES, self.name)
