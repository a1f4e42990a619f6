"""Several files and folders deleted as one change."""

from __future__ import annotations

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.models.file_deletions import FileDeletion, FilesDeleted
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.service.file_deletions import delete_files
from freezeframe.service.files import Author

router = tenant_router("files")


@router.post("/file-deletions")
def delete_many(caller: TenantCalling, order: FileDeletion) -> FilesDeleted:
    """Remove files and folders in one version of the tenant, all of them or none; the past stays."""
    tenant = caller.tenant("snapshots:delete")
    gone = delete_files(tenant, order.paths, order.folders, Author(caller.who, order.message))
    for path in gone:
        caller.note("file.delete", path)
    return FilesDeleted(tenant_version=tenant.version, paths=gone)
