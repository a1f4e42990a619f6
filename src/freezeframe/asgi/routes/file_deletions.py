"""Several files and folders deleted as one change."""

from __future__ import annotations

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.models.file_deletions import FileDeletion, FilesDeleted
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.service.file_deletions import delete_files, selected
from freezeframe.service.files import Author

router = tenant_router("files")


@router.post("/file-deletions")
def delete_many(caller: TenantCalling, order: FileDeletion) -> FilesDeleted:
    """Remove files and folders in one version of the tenant, all of them or none; the past stays."""
    tenant = caller.tenant("snapshots:delete")
    named = selected(tenant.files, order.paths, order.folders)
    with caller.noting("file.delete", *named, **({"folders": order.folders} if order.folders else {})):
        gone = delete_files(tenant, order.paths, order.folders, Author(caller.who, order.message))
    return FilesDeleted(tenant_version=tenant.version, paths=gone)
