"""Prometheus metrics of the service; no tenant's name is among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from freezeframe.control.job import JobStatus
from freezeframe.observation import Operation
from freezeframe.service.overview.overview import EnvironmentSize

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Measurements:
    """Counters and histograms: requests by route and status, commits by outcome, the queue.

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
        self._waiting = Gauge(
            "freezeframe_queue_age_seconds",
            "How long the job that has waited longest could have been running.",
            registry=self._registry,
            multiprocess_mode="mostrecent",
        )
        self._tenants = Gauge(
            "freezeframe_tenants",
            "Tenants by what they hold at most.",
            ["environment"],
            registry=self._registry,
            multiprocess_mode="mostrecent",
        )
        self._stored = Gauge(
            "freezeframe_stored_bytes",
            "Bytes of the newest versions of these tenants.",
            ["environment"],
            registry=self._registry,
            multiprocess_mode="mostrecent",
        )
        self._commits = Histogram(
            "freezeframe_commit_seconds",
            "How long commits of the service took, by what came of them.",
            ["outcome"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._retries = Counter(
            "freezeframe_commit_retries",
            "Tries that commits repeated, because another one was quicker.",
            registry=self._registry,
        )

    def observe(self, operation: Operation) -> None:
        """Count an operation that has ended."""
        if operation.name == "commit":
            self._commits.labels(operation.outcome).observe(operation.seconds)
            self._retries.inc(operation.retries)

    def count_response(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def queue(self, counts: Mapping[JobStatus, int], waiting_seconds: float) -> None:
        """Set the number of jobs by status and the age of the oldest queued one."""
        for status, count in counts.items():
            self._jobs.labels(status).set(count)
        self._waiting.set(waiting_seconds)

    def stored(self, environments: Sequence[EnvironmentSize]) -> None:
        """Set the number of tenants and their bytes by environment."""
        for environment in environments:
            self._tenants.labels(environment.environment).set(environment.tenants)
            self._stored.labels(environment.environment).set(environment.bytes)

    def text(self) -> bytes:
        """All numbers, in Prometheus's text format."""
        if self._directory is None:
            return generate_latest(self._registry)
        joined = CollectorRegistry()
        MultiProcessCollector(joined, self._directory)  # type: ignore[no-untyped-call]
        return generate_latest(joined)
