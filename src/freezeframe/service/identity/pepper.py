"""The pepper: the service's secret, without which stored key hashes are worthless.

Signatures of cursors come from it as well. All workers and machines of one service need the same.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from freezeframe.errors import SetupError
from freezeframe.settings import Settings
from freezeframe.storage.local import make_private

PEPPER_BYTES = 32
_FILE = Path("_freezeframe") / "service.secret"


def load_pepper(settings: Settings, root: str) -> bytes:
    """The secret in the file that the settings name, else in the store's root, where it is made once.

    Raises:
        SetupError: it cannot be made or read, others may read it, or it is too short.
    """
    path = settings.service_secret_file or _default_place(root)
    try:
        _make(path)
        content = path.read_bytes()
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise SetupError(
            f"The service's secret cannot be read from {path}.",
            cause=str(error),
            remedy="Check who may read it, or set service_secret_file.",
        ) from error
    if mode & 0o077:
        raise SetupError(
            f"The service's secret {path} can be read by others.",
            cause=f"Its mode is {mode:o}.",
            remedy=f"chmod 600 {path}, and make new keys if somebody may have read it.",
        )
    if len(content) < PEPPER_BYTES:
        raise SetupError(
            f"The service's secret {path} is too short.",
            cause=f"It has {len(content)} bytes.",
            remedy=f"Put at least {PEPPER_BYTES} random bytes into it; keys have to be made anew.",
        )
    return content


def _default_place(root: str) -> Path:
    if "://" in root:
        raise SetupError(
            f"A service of {root} needs a secret of its own place.",
            cause="Other machines could read it in the bucket.",
            remedy="Set service_secret_file (FREEZEFRAME_SERVICE_SECRET_FILE) to a file of mode 0600.",
        )
    return Path(root).resolve() / _FILE


def _make(path: Path) -> None:
    """Create the file whole unless it exists; one of any number of processes succeeds."""
    if path.exists():
        return
    make_private(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(PEPPER_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
