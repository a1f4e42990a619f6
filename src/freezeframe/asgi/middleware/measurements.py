"""What the service tells of itself in numbers, for Prometheus; no tenant's name is among them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Measurements:
    """Requests by route and status, their times, and the queue's length.

    With several workers ``directory`` is where prometheus-client keeps what they count together.
    """

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory
        self._registry = CollectorRegistry()
        labels = ["method", "route", "status"]
        self._requests = Counter(
            "freezeframe_requests", "Requests that were answered.", labels, registry=self._registry
        )
        self._seconds = Histogram(
            "freezeframe_request_seconds",
            "How long answers took.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._jobs = Gauge(
            "freezeframe_jobs",
            "Jobs in the queue.",
            ["status"],
            registry=self._registry,
            multiprocess_mode="mostrecent",
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def jobs(self, status: str, count: int) -> None:
        """Say how many jobs have a status."""
        self._jobs.labels(status).set(count)

    def text(self) -> bytes:
        """All numbers, in Prometheus's text format."""
        if self._directory is None:
            return generate_latest(self._registry)
        joined = CollectorRegistry()
        MultiProcessCollector(joined, self._directory)  # type: ignore[no-untyped-call]
        return generate_latest(joined)
