"""Plain copies of files in a tenant's own directory, for scripts that open them by name.

A directory given to ``update_snapshot`` is itself one tenant's store, and scripts read
``tenant-config.json`` there with ``open()``. The blobs are the truth; a copy is derived again from
the newest version whenever the file changes. A sealed file has none. In a store of many tenants
nobody opens a tenant's folder, so there are none either.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from freezeframe.errors import FreezeframeError
from freezeframe.storage import Storage
from freezeframe.store.blobs.blob_store import Blob, blob_chunks
from freezeframe.store.directory.paths import tenant_of
from freezeframe.store.tenant_log.log import TenantLog

_ROUNDS_MAX = 10
_logger = logging.getLogger(__name__)


def derive_copies(storage: Storage, log: TenantLog, paths: Iterable[str]) -> None:
    """Update the copies of these files to the newest version; a failure affects only the copy."""
    if tenant_of(storage.root):
        return
    for path in paths:
        try:
            if storage.local_path(path) is None:
                return
            _derive(storage, log, path)
        except FreezeframeError:
            _logger.warning(
                "The plain copy of %r could not be written; the file itself is kept", path, exc_info=True
            )


def _derive(storage: Storage, log: TenantLog, path: str) -> None:
    held = log.current_state().files.get(path)
    for _ in range(_ROUNDS_MAX):
        if held is None or held.sealed:
            storage.delete(path)
            folder = path.rpartition("/")[0]
            if folder:
                storage.prune(folder)
        else:
            storage.replace(path, blob_chunks(storage, Blob(held.blob, held.sha256, held.size)))
        # Check again after writing, so that a slow writer does not leave an old copy over a newer one.
        now = log.current_state().files.get(path)
        if now == held:
            return
        held = now
