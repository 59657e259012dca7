"""What a server measures of itself, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 60, 600)


class Measures:
    """Counts requests. Labels are our own words, never a caller's."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "weirflow_server_requests",
            "Requests by what they were and how they ended.",
            ("what", "outcome"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "weirflow_server_request_seconds",
            "How long requests took, watches aside.",
            ("what",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._under_way = Gauge(
            "weirflow_server_under_way", "Requests and watches that are under way.", ("kind",), registry=self._registry
        )

    def begun(self, *, lasting: bool) -> None:
        """One more is under way."""
        self._under_way.labels("watch" if lasting else "request").inc()

    def ended(self, what: str, outcome: str, seconds: float, *, lasting: bool, counted: bool) -> None:
        """A request has ended; ``counted`` says whether it was under way, or refused before."""
        if counted:
            self._under_way.labels("watch" if lasting else "request").dec()
        self._requests.labels(what, outcome).inc()
        if not lasting:
            self._seconds.labels(what).observe(seconds)

    def text(self) -> str:
        """All of it, in Prometheus' text format."""
        return generate_latest(self._registry).decode()
