"""The scratch folder of a proof, opened by each of its processes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from freezeframe.engine.protocol.table_engine import TableEngine
from freezeframe.script.tenant.stores import storage_at
from freezeframe.settings import Settings, load_settings
from freezeframe.storage import PrefixStorage, Storage
from freezeframe.store import Tenant
from freezeframe.store.diff.arrow_engine import ArrowEngine

_SCRATCH = "freezeframe-prove-"


def open_storage(root: str) -> Storage:
    """The storage at a directory or an ``s3://bucket/prefix``, with the user's settings."""
    return storage_at(root, load_settings())


@dataclass(frozen=True, slots=True)
class Place:
    """The folder ``folder`` of the storage that ``opener`` makes of ``root``; can be sent to other processes.

    ``opener`` is a function of a module; tests pass one whose storage breaks a promise.
    """

    root: str
    folder: str
    opener: Callable[[str], Storage] = open_storage

    def storage(self) -> Storage:
        """The folder as a storage, opened anew."""
        return PrefixStorage(self.opener(self.root), self.folder)

    def within(self, name: str) -> Place:
        """A folder in it."""
        return replace(self, folder=f"{self.folder}/{name}")

    def tenant(self, **options: Any) -> Tenant:
        """The folder as a tenant's directory, opened anew."""
        return tenant_on(self.storage(), **options)


def tenant_on(storage: Storage, engine: TableEngine | None = None, **options: Any) -> Tenant:
    """A tenant on any storage, without Spark but with ``engine``; ``options`` are settings."""
    return Tenant(storage, engine or ArrowEngine(storage), _settings(tuple(sorted(options.items()))))


@cache
def _settings(options: tuple[tuple[str, Any], ...]) -> Settings:
    """Made once: they look through the environment each time, which takes longer than to open a tenant."""
    chosen: dict[str, Any] = {"engine": "auto", "gc_grace_seconds": 0, "lease_dead_seconds": 0}
    return Settings(**chosen | dict(options))


@contextmanager
def scratch(root: str, opener: Callable[[str], Storage] = open_storage) -> Iterator[Place]:
    """A new folder of the storage, which is deleted with all that is in it when the block ends.

    Raises:
        OSError, StorageUnavailable: the storage takes no file at all, so that nothing can be shown on it.
    """
    place = Place(root, f"{_SCRATCH}{uuid.uuid4().hex[:12]}", opener)
    place.storage().put_if_absent("begun", b"")
    place.storage().delete("begun", durable=False)
    try:
        yield place
    finally:
        clear(place)


def clear(place: Place) -> None:
    """Delete all that is below the place."""
    storage = place.storage()
    for status in list(storage.list_below("")):
        storage.delete(status.name, durable=False)
    storage.prune("")
