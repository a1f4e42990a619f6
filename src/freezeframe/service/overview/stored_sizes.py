"""How many tenants each environment has and what they hold: numbers that name no tenant."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from freezeframe.errors import FreezeframeError, ReportDamage, TenantNotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.access.stores import Stores
from freezeframe.service.limits.stored_bytes import StoredBytes

_logger = logging.getLogger(__name__)

_PERIOD_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class EnvironmentSize:
    """The tenants of an environment, and the bytes that they hold together."""

    environment: str
    tenants: int
    bytes: int


class StoredSizes:
    """Counts the tenants of a store on a thread of its own, at most every five minutes."""

    def __init__(self, stores: Stores, stored_bytes: StoredBytes) -> None:
        self._stores = stores
        self._stored_bytes = stored_bytes
        self._begun = -math.inf
        self._looking = threading.Lock()

    def count_in_background(self, tell: Callable[[Sequence[EnvironmentSize]], None]) -> bool:
        """Begin to count, and call ``tell`` at the end; False if this process just did."""
        if not self._looking.acquire(blocking=False):
            return False
        if time.monotonic() < self._begun + _PERIOD_SECONDS:
            self._looking.release()
            return False
        self._begun = time.monotonic()

        def run() -> None:
            try:
                tell(self.count())
            except FreezeframeError as error:
                _logger.warning("The stored bytes were not counted: %s", error)
            finally:
                self._looking.release()

        threading.Thread(target=run, name="freezeframe-sizes", daemon=True).start()
        return True

    def count(self) -> list[EnvironmentSize]:
        """Each environment; of a tenant that has not changed nothing is read.

        Raises:
            TryAgain: the store cannot be reached.
        """
        found = []
        for environment in self._stores.environments():
            held = list(self._held(environment))
            found.append(EnvironmentSize(environment, len(held), sum(held)))
        return found

    def _held(self, environment: EnvironmentName) -> Iterator[int]:
        store = self._stores.environment(environment)
        for names in store.tenant_pages():
            for name in names:
                started = time.monotonic()
                try:
                    yield self._stored_bytes.held(store.tenant(TenantId(name)))
                except (TenantNotFound, ReportDamage) as error:
                    _logger.warning("The bytes of the tenant %s were not counted: %s", name, error)
                # Requests come first: half of the time is theirs alone.
                time.sleep(time.monotonic() - started)
