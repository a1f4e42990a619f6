"""Pending data of a tenant in a service: uploads, and files of queued imports.

They hold the tenant's data before it is in any version, so they go with the tenant, and with an erasure:
nobody can tell what is in half a file.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.local import failure
from freezeframe.store.directory.paths import OURS, TENANTS_FOLDER, tenant_of

_UPLOADS = "uploads"


def uploads_folder(root: str, settings: Settings) -> Path:
    """The folder of a store's pending uploads, with a subfolder per tenant.

    For a store in a bucket it is in the state folder of each machine that serves it.
    """
    if Path(root).is_absolute():
        return Path(root) / OURS / _UPLOADS
    return settings.state_dir / "service" / _UPLOADS


def remove_waiting(storage: Storage, settings: Settings) -> None:
    """Remove a tenant's pending uploads on this machine, given the tenant's storage.

    Raises:
        StorageUnavailable: a file could not be removed; the same call goes on from there.
    """
    folder = tenant_of(storage.root)
    if not folder:
        return
    place = uploads_folder(storage.root.removesuffix(f"/{TENANTS_FOLDER}/{folder}"), settings) / folder
    try:
        shutil.rmtree(place)
    except FileNotFoundError:
        return
    except OSError as error:
        raise failure("remove", str(place), error) from error
