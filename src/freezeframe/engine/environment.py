"""The variables that name a process its Spark server, and the private folder of tokens and sockets.

``SPARK_REMOTE`` is Spark's own. A run, and a process whose session the library made, set it to the address
of a server of ours and say so in a second variable: then the setting ``spark`` still decides.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING

from freezeframe.errors import SetupError
from freezeframe.storage.local import make_private

if TYPE_CHECKING:
    from pathlib import Path

REMOTE = "SPARK_REMOTE"
OWN_REMOTE = "FREEZEFRAME_OWN_REMOTE"


def foreign_remote(environment: Mapping[str, str]) -> str:
    """Return the user's server in ``SPARK_REMOTE``; empty without one.

    Spark's ``local[2]`` there names none: it asks for a server on this machine, which ``auto`` is.
    """
    remote = environment.get(REMOTE, "")
    return "" if remote == environment.get(OWN_REMOTE) or remote.startswith("local") else remote


def own_remote(url: str) -> dict[str, str]:
    """Return the variables that name a server of ours."""
    return {REMOTE: url, OWN_REMOTE: url}


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
