"""The service's secret: it signs cursors, sign-ins and the audit.

All processes and machines of one service need the same. Keys do not depend on it.
"""

from __future__ import annotations

import hmac
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from freezeframe.errors import FreezeframeError, SetupError
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.storage.local import make_folder

SECRET_BYTES = 32
SIGNATURE_BYTES = 32
_FILE = Path("_freezeframe") / "service.secret"


class ServiceSecret:
    """Signs texts of several kinds, each with a key that is derived from the secret and the kind's label."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, label: bytes, content: bytes) -> bytes:
        """The signature of a content, 32 bytes."""
        return hmac.digest(hmac.digest(self._secret, label, "sha256"), content, "sha256")

    def is_signed(self, label: bytes, content: bytes, signature: bytes) -> bool:
        """Whether a signature, or the beginning of one, is that of the content."""
        return bool(signature) and hmac.compare_digest(signature, self.sign(label, content)[: len(signature)])


def load_secret(settings: Settings, root: str) -> ServiceSecret:
    """The secret in the file that the settings name, else in the store's root, where it is made once."""
    path = secret_path(settings, root)
    _make(path)
    secret = _read(path)
    if len(secret) < SECRET_BYTES:
        raise SetupError(
            f"The service's secret {path} is too short.",
            cause=f"It has {len(secret)} bytes.",
            remedy=f"Put at least {SECRET_BYTES} random bytes into it.",
        )
    return ServiceSecret(secret)


def secret_path(settings: Settings, root: str) -> Path:
    """The file with the secret."""
    return settings.service_secret_file or _default_place(root)


def _read(path: Path) -> bytes:
    try:
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
            remedy=f"chmod 600 {path}; if somebody may have read it, replace its bytes.",
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
    try:
        make_folder(path.parent)
        with suppress(FileExistsError):
            LocalStorage(path.parent).put_if_absent(path.name, secrets.token_bytes(SECRET_BYTES))
    except (OSError, FreezeframeError) as error:
        raise SetupError(
            f"The service's secret cannot be made at {path}.",
            cause=str(error),
            remedy="Check who may write there, or set service_secret_file.",
        ) from error
