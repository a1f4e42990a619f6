"""The store of a service: one root, opened once for each environment, without Spark."""

from __future__ import annotations

import sys
import threading
from typing import Any

from freezeframe.control.jobs.job import QueuedJob
from freezeframe.identifiers import EnvironmentName
from freezeframe.script.tenant.stores import storage_at
from freezeframe.settings import Settings
from freezeframe.store.diff.arrow_engine import ArrowEngine
from freezeframe.store.directory.proof_report import last_proof_report
from freezeframe.store.snapshot_store import Store

_DEFAULT_ENVIRONMENT = EnvironmentName("default")


class Stores:
    """The environments of one root; each is opened by the first call that asks for it."""

    def __init__(self, root: str, settings: Settings) -> None:
        self.root = root
        self.settings = settings
        self._storage = storage_at(root, settings)
        self._engine = ArrowEngine(self._storage)
        # The service has no Spark, whatever the size of a stream.
        self._searching = settings.model_copy(update={"engine": "auto", "searched_rows_max": sys.maxsize})
        self._lock = threading.Lock()
        self._stores: dict[EnvironmentName, Store] = {}

    def environment(self, name: EnvironmentName) -> Store:
        """The store of one environment, whether or not it has tenants yet."""
        known = self._stores.get(name)
        if known is not None:
            return known
        with self._lock:
            if name not in self._stores:
                self._stores[name] = Store(self._storage, self._engine, self._searching, name)
            return self._stores[name]

    def environments(self) -> tuple[EnvironmentName, ...]:
        """The environments that have tenants, in order."""
        return tuple(map(EnvironmentName, self.environment(_DEFAULT_ENVIRONMENT).environments()))

    def is_current(self, job: QueuedJob) -> bool:
        """Whether a job belongs to the tenant that has the id now, not to an earlier one."""
        folder = self.environment(EnvironmentName(job.environment)).folder(job.tenant)
        return job.incarnation in {"", folder}

    def proof_report(self) -> dict[str, Any] | None:
        """The report of the last ``freezeframe prove`` on the store; None: there is none.

        Raises:
            CorruptData: it is damaged.
        """
        return last_proof_report(self._storage)

    def require_readable(self) -> None:
        """Read the registry once, so that a failing storage is found before the first request.

        Raises:
            StorageUnavailable, CorruptLog, FormatTooNew: as opening a store.
        """
        self.environments()
