"""Prometheus metrics of a worker, at an address of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from freezeframe.control.job import QueuedJob
from freezeframe.engine.server.server import running_servers
from freezeframe.errors import InvalidOption, SetupError
from freezeframe.observation import Operation, observe_with
from freezeframe.settings import Settings

_SECONDS = (0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600)


class _SparkServers(Collector):
    """The warm Spark servers of this machine, looked for once for each answer."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def collect(self) -> Iterator[Metric]:
        """See ``Collector``."""
        found = running_servers(self._settings)
        clients = sum(item.clients or 0 for item in found)
        memory = sum(item.memory_bytes or 0 for item in found)
        for name, help_text, value in (
            ("freezeframe_spark_up", "Warm Spark servers that stand here.", len(found)),
            ("freezeframe_spark_memory_bytes", "Memory of the warm Spark servers.", memory),
            ("freezeframe_spark_clients", "Processes that use a warm Spark server.", clients),
        ):
            yield GaugeMetricFamily(name, help_text, value)


class WorkerMeasurements:
    """Attempts of jobs, what their updates wrote, and the warm Spark servers of this machine."""

    def __init__(self, settings: Settings) -> None:
        self.registry = CollectorRegistry()
        self._attempts = Histogram(
            "freezeframe_job_seconds",
            "How long attempts of jobs took here, by how they ended.",
            ["status"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        of_updates = ["environment", "engine"]
        self._updates = Counter(
            "freezeframe_updates",
            "Updates of streams by jobs, by the engine that carried them out.",
            of_updates,
            registry=self.registry,
        )
        self._written = Counter(
            "freezeframe_written_bytes", "Bytes that they wrote.", of_updates, registry=self.registry
        )
        self.registry.register(_SparkServers(settings))

    def observe(self, operation: Operation) -> None:
        """Count an operation that has ended."""
        if operation.name == "job":
            self._attempts.labels(operation.outcome).observe(operation.seconds)

    def count_job(self, job: QueuedJob) -> None:
        """Count the updates of a job that has ended, from its receipt."""
        receipt = (job.outcome or {}).get("receipt") or {}
        if receipt.get("repeated"):  # an earlier attempt wrote them
            return
        for update in receipt.get("streams", {}).values():
            labels = (job.environment, update["engine"] or "none")
            self._updates.labels(*labels).inc()
            self._written.labels(*labels).inc(update["bytes_written"])


@dataclass(frozen=True, slots=True)
class MetricsServer:
    """An HTTP server of the metrics at ``port``; ``count_job`` takes ended jobs, ``close`` stops it."""

    port: int
    count_job: Callable[[QueuedJob], None]
    close: Callable[[], None]


def serve_worker_metrics(address: str, settings: Settings) -> MetricsServer:
    """Answer with the worker's numbers at ``host:port``."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidOption(
            f"{address!r} is not an address.", remedy="Pass HOST:PORT, such as 127.0.0.1:9750."
        )
    measurements = WorkerMeasurements(settings)
    try:
        server, thread = start_http_server(int(port), host.strip("[]"), measurements.registry)
    except OSError as error:
        raise SetupError(
            f"The worker's numbers cannot be served at {address}.",
            cause=str(error),
            remedy="Pass another address by --metrics.",
        ) from error
    forget = observe_with(measurements.observe)

    def close() -> None:
        forget()
        server.shutdown()
        server.server_close()
        thread.join()

    return MetricsServer(int(server.server_port), measurements.count_job, close)
