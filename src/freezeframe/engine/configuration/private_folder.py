"""An owner-only folder for tokens and sockets."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from freezeframe.errors import SetupError
from freezeframe.storage.local import make_private

if TYPE_CHECKING:
    from pathlib import Path


def private_folder(path: Path) -> Path:
    """Create the folder if absent, and check that no other user can write into it."""
    make_private(path)
    status = path.stat()
    if status.st_uid != os.getuid():
        raise SetupError(
            f"The folder {path} belongs to another user, and a token would be kept in it.",
            remedy="Set FREEZEFRAME_STATE_DIR to a folder of your own.",
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        path.chmod(0o700)
    return path
