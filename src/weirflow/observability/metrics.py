"""What flows measure of themselves, for Prometheus: counters as they work, gauges when someone looks.

A registry of Weirflow's own holds everything unless a flow is given another one. Flows of the same name are one in the
figures: their counters, bytes and rows are added, and the greatest epoch and the longest time of a shard count. With
the last of them their series go.
"""

from __future__ import annotations

import threading
from collections import Counter as Tally
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakKeyDictionary, WeakSet, finalize

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

REGISTRY = CollectorRegistry()
"""Where flows are measured that were given no registry."""

_TICK_SECONDS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 60)
_TICKS = ("committed", "failed", "replayed")
_CHECKPOINTS = ("saved", "failed")
_CHECKPOINT_SECONDS = (0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300)


@dataclass(frozen=True)
class FlowGauges:
    """A flow at one moment.

    Attributes:
        epoch: the number of its last tick.
        state_bytes: of all operators.
        view_bytes: of the operators between each view and what it reads; what views share is counted for each.
        recall: for each approximate vector view, which share of the nearest documents it lists.
        waiting: for each watched view, the deltas that its readers have not taken yet.
        log_bytes: of the log's files; None for a flow in memory.
        shards: of a partitioned flow, for each stage and shard the rows it keeps and the seconds it took last.
    """

    epoch: int = 0
    state_bytes: int = 0
    view_bytes: Mapping[str, int] = field(default_factory=dict)
    recall: Mapping[str, float] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    log_bytes: int | None = None
    shards: Mapping[tuple[int, int], tuple[int, float]] = field(default_factory=dict)


class GaugeSource(Protocol):
    """What is asked for its gauges, from any thread, as long as it lives."""

    name: str

    def gauges(self) -> FlowGauges | None:
        """The current gauges; None when it is closed."""


class FlowMetrics:
    """The counters of one flow, resolved once so that a tick costs microseconds.

    Args:
        name: the flow's.
        registry: where they are; None for Weirflow's own.
    """

    def __init__(self, name: str, registry: CollectorRegistry | None = None) -> None:
        self._flow = name
        self._registry = REGISTRY if registry is None else registry
        families = self._families = _families(self._registry)
        with families.joined(name):
            self._committed, self._failed, self._replayed = (families.ticks.labels(name, one) for one in _TICKS)
            self._seconds = families.tick_seconds.labels(name)
            self._rows_in = families.rows_in.labels(name)
            self._rows_out = families.rows_out.labels(name)
            self._late = families.rows_late.labels(name)
            self._dropped = families.rows_dropped.labels(name)
            self._evicted = families.dedup_evicted.labels(name)
            self._saved, self._unsaved = (families.checkpoints.labels(name, one) for one in _CHECKPOINTS)
            self._checkpoint_seconds = families.checkpoint_seconds.labels(name)
            self._checkpoint_bytes = families.checkpoint_bytes.labels(name)
        # Only noted: garbage may be collected at any moment, also while this thread holds a lock of the registry.
        self._forgotten = finalize(self, families.forgotten.append, name)
        self._forgotten.atexit = False

    def close(self) -> None:
        """Take the flow's series out of the registry, unless another flow of its name is left. Twice is once."""
        if self._forgotten.detach() is not None:
            self._families.leave(self._flow)

    def show_gauges(self, flow: GaugeSource) -> None:
        """Ask the flow for its gauges from now on; that does not keep it alive."""
        self._families.flows.add(flow)

    def tick(self, seconds: float, *, rows_in: int, rows_out: int, late: int, dropped: int) -> None:
        """A tick was committed."""
        self._committed.inc()
        self._seconds.observe(seconds)
        self._rows_in.inc(rows_in)
        self._rows_out.inc(rows_out)
        if late:
            self._late.inc(late)
        if dropped:
            self._dropped.inc(dropped)

    def dedup_evicted(self, number: int) -> None:
        """Sources that drop repeated deltas have forgotten this many, to remember newer ones."""
        if number:
            self._evicted.inc(number)

    def tick_failed(self) -> None:
        """A tick failed and changed nothing."""
        self._failed.inc()

    def tick_replayed(self) -> None:
        """A tick came with a token that was seen before."""
        self._replayed.inc()

    def checkpoint(self, seconds: float, nbytes: int) -> None:
        """A checkpoint was saved and wrote this many bytes of runs."""
        self._saved.inc()
        self._checkpoint_seconds.observe(seconds)
        self._checkpoint_bytes.inc(nbytes)

    def checkpoint_failed(self) -> None:
        """A checkpoint could not be saved."""
        self._unsaved.inc()

    def text(self) -> str:
        """The figures of flows of this name, in Prometheus' text format."""
        return generate_latest(_OneFlow(self._registry, self._flow)).decode()


def metrics_text(registry: CollectorRegistry | None = None) -> str:
    """All figures of a registry, by default Weirflow's own, in Prometheus' text format."""
    return generate_latest(REGISTRY if registry is None else registry).decode()


class _Families:
    """The metrics of one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lock = threading.Lock()
        self._users: Tally[str] = Tally()
        self.forgotten: deque[str] = deque()
        """The names of flows that were never closed and are gone."""
        registry.register(_Departures(self))  # the first, so that a scrape begins with it

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"weirflow_{name}", text, ("flow", *labels), registry=registry)

        def seconds(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"weirflow_{name}_seconds", text, ("flow",), buckets=buckets, registry=registry)

        self.ticks = counter("ticks", "Ticks, by how they ended.", "outcome")
        self.tick_seconds = seconds("tick", "How long committed ticks took.", _TICK_SECONDS)
        self.rows_in = counter("rows_in", "Rows of the deltas given to sources.")
        self.rows_out = counter("rows_out", "Rows of the deltas of views.")
        self.rows_late = counter("rows_late", "Rows that came too late.")
        self.rows_dropped = counter("rows_dropped", "Rows of deltas that repeat earlier ones.")
        self.dedup_evicted = counter("dedup_evicted", "Deltas that dedup has forgotten, which are not noticed again.")
        self.checkpoints = counter("checkpoints", "Checkpoints, by how they ended.", "outcome")
        self.checkpoint_seconds = seconds("checkpoint", "How long saved checkpoints took.", _CHECKPOINT_SECONDS)
        self.checkpoint_bytes = counter("checkpoint_bytes", "Bytes of runs that checkpoints wrote.")
        self.flows = _Flows()
        registry.register(self.flows)

    @contextmanager
    def joined(self, name: str) -> Iterator[None]:
        """A flow begins to be measured in the block, in which no other one of its name takes its series away."""
        self.leave_forgotten()
        with self._lock:
            yield
            self._users[name] += 1

    def leave(self, name: str) -> None:
        """A flow of this name is gone; the last one takes its series along."""
        with self._lock:
            self._users[name] -= 1
            if self._users[name]:
                return
            del self._users[name]
            for metric, outcomes in ((self.ticks, _TICKS), (self.checkpoints, _CHECKPOINTS)):
                for outcome in outcomes:
                    metric.remove(name, outcome)
            for one in (self.tick_seconds, self.checkpoint_seconds):
                one.remove(name)
            rows = (self.rows_in, self.rows_out, self.rows_late, self.rows_dropped)
            for each in (*rows, self.dedup_evicted, self.checkpoint_bytes):
                each.remove(name)

    def leave_forgotten(self) -> None:
        """The same for all flows that were never closed and are gone."""
        while self.forgotten:
            with suppress(IndexError):  # another thread was faster
                self.leave(self.forgotten.popleft())


class _Departures(Collector):
    """Has nothing to show: sees to it that no scrape shows flows that are gone."""

    def __init__(self, families: _Families) -> None:
        self._families = families

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        self._families.leave_forgotten()
        return []


class _Flows(Collector):
    """Asks the live flows for their gauges, whenever someone scrapes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flows: WeakSet[GaugeSource] = WeakSet()

    def add(self, flow: GaugeSource) -> None:
        with self._lock:
            self._flows.add(flow)

    def describe(self) -> Iterable[Metric]:
        return _gauge_families({})

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            flows = list(self._flows)
        found: defaultdict[str, list[FlowGauges]] = defaultdict(list)
        for flow in flows:
            gauges = flow.gauges()
            if gauges is not None:
                found[flow.name].append(gauges)
        return _gauge_families(found)


def _gauge_families(found: Mapping[str, list[FlowGauges]]) -> list[Metric]:
    epoch = GaugeMetricFamily("weirflow_epoch", "The number of the last tick.", labels=["flow"])
    state = GaugeMetricFamily("weirflow_state_bytes", "Bytes of all state.", labels=["flow"])
    log = GaugeMetricFamily("weirflow_log_bytes", "Bytes of the log's files.", labels=["flow"])
    views = GaugeMetricFamily(
        "weirflow_view_state_bytes", "Bytes of a view's operators, shared ones too.", labels=["flow", "view"]
    )
    recall = GaugeMetricFamily(
        "weirflow_vector_recall",
        "Which share of the nearest documents an approximate vector view lists, as last measured.",
        labels=["flow", "view"],
    )
    waiting = GaugeMetricFamily(
        "weirflow_watch_waiting", "Deltas that readers have not taken yet.", labels=["flow", "view"]
    )
    rows = GaugeMetricFamily(
        "weirflow_shard_rows", "Rows that a shard of a stage keeps.", labels=["flow", "stage", "shard"]
    )
    seconds = GaugeMetricFamily(
        "weirflow_shard_seconds", "How long a shard of a stage took last.", labels=["flow", "stage", "shard"]
    )
    for name, flows in sorted(found.items()):
        for stage, shard in sorted({place for one in flows for place in one.shards}):
            kept, took = zip(*(one.shards[stage, shard] for one in flows if (stage, shard) in one.shards), strict=True)
            rows.add_metric([name, str(stage), str(shard)], sum(kept))
            seconds.add_metric([name, str(stage), str(shard)], max(took))
        epoch.add_metric([name], max(one.epoch for one in flows))
        state.add_metric([name], sum(one.state_bytes for one in flows))
        logs = [one.log_bytes for one in flows if one.log_bytes is not None]
        if logs:
            log.add_metric([name], sum(logs))
        for family, parts in ((views, [one.view_bytes for one in flows]), (waiting, [one.waiting for one in flows])):
            for view in sorted({view for part in parts for view in part}):
                family.add_metric([name, view], sum(part.get(view, 0) for part in parts))
        for view in sorted({view for one in flows for view in one.recall}):
            recall.add_metric([name, view], min(one.recall[view] for one in flows if view in one.recall))
    return [epoch, state, log, views, recall, waiting, rows, seconds]


class _OneFlow:
    """A registry as far as one flow is concerned."""

    def __init__(self, registry: CollectorRegistry, flow: str) -> None:
        self._registry = registry
        self._flow = flow

    def collect(self) -> Iterable[Metric]:
        for metric in self._registry.collect():
            samples = [sample for sample in metric.samples if sample.labels.get("flow") == self._flow]
            if metric.name.startswith("weirflow_") and samples:
                part = Metric(metric.name, metric.documentation, metric.type, metric.unit)
                part.samples = samples
                yield part


_lock = threading.Lock()
_known: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()


def _families(registry: CollectorRegistry) -> _Families:
    """The registry's metrics, made at the first call: a name can be registered once."""
    with _lock:
        if registry not in _known:
            _known[registry] = _Families(registry)
        return _known[registry]
