"""The kind of a directory or bucket: one tenant's log or a store's registry, never both.

Asked when it is opened, and once more before the first entry of either is written.
"""

from __future__ import annotations

from freezeframe.errors import InvalidOption
from freezeframe.storage import Storage
from freezeframe.store.directory.paths import REGISTRY_FOLDER, TENANT_LOG_FOLDER, tenant_of


def is_store(storage: Storage) -> bool:
    """Whether the storage has a store's registry."""
    return next(iter(storage.list_from(REGISTRY_FOLDER)), None) is not None


def is_tenant(storage: Storage) -> bool:
    """Whether the storage has a tenant's log, or is the folder of a store's tenant."""
    return bool(tenant_of(storage.root)) or next(iter(storage.list_from(TENANT_LOG_FOLDER)), None) is not None


def require_no_store(storage: Storage) -> None:
    """Refuse to use a store of many tenants as the directory of one."""
    if is_store(storage):
        raise InvalidOption(
            f"{storage.root} is a store of many tenants, not one tenant's directory.",
            cause="A registry of tenants is in it.",
            remedy="Name the store by --root and the tenant by --tenant; in Python: "
            "freezeframe.open(root).tenant(id).",
        )


def require_no_tenant(storage: Storage) -> None:
    """Refuse to use one tenant's directory as a store of many."""
    if not is_tenant(storage):
        return
    if is_store(storage):
        raise InvalidOption(
            f"{storage.root} is a store of many tenants, and one tenant's directory at the same time.",
            cause="A registry of tenants and a tenant's log are in it.",
            remedy="freezeframe doctor --root with this path says how to move the tenant out, whole.",
        )
    raise InvalidOption(
        f"{storage.root} is one tenant's directory, not a store of many.",
        cause="A tenant log is in it.",
        remedy="Name it by --dir (in Python: freezeframe.open_tenant), or name another directory.",
    )
