"""Folders renamed or moved as one change."""

from __future__ import annotations

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.models.folder_moves import FolderMove, FolderMoved
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.identifiers import FilePath
from freezeframe.service import folder_moves
from freezeframe.service.files import Author

router = tenant_router("files")


@router.post("/folder-moves")
def move_folder(caller: TenantCalling, order: FolderMove) -> FolderMoved:
    """Give a folder another path with all that is below it, in one version of the tenant."""
    tenant = caller.tenant("snapshots:write")
    move = folder_moves.FolderMove(str(FilePath(order.path)), str(FilePath(order.target)))
    with caller.noting("folder.move", move.source, target=move.target):
        moved = folder_moves.move_folder(tenant, move, Author(caller.who, order.message))
    return FolderMoved(path=move.target, files=moved)
