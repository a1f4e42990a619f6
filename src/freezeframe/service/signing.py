"""The service's secret, and what it signs: the cursors of pages, sign-ins and the audit.

All processes and machines of one service need the same secret. API keys do not depend on it.
"""

import base64
import hashlib
import hmac
import json
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from freezeframe.errors import FreezeframeError, InvalidOption, SetupError
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
        """Return the signature of a content, 32 bytes."""
        return hmac.digest(hmac.digest(self._secret, label, "sha256"), content, "sha256")

    def is_signed(self, label: bytes, content: bytes, signature: bytes) -> bool:
        """Return whether a signature, or the beginning of one, is that of the content."""
        return bool(signature) and hmac.compare_digest(signature, self.sign(label, content)[: len(signature)])

    def to_text(self, label: bytes, value: Any, bound: bytes = b"", length: int = SIGNATURE_BYTES) -> str:
        """Return a JSON value and ``length`` bytes of its signature as text, which only ``bound`` reads."""
        content = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=asdict).encode()
        signature = self.sign(label, bound + content)[:length]
        return base64.urlsafe_b64encode(signature + content).decode().rstrip("=")

    def from_text(self, label: bytes, text: str, bound: bytes = b"", length: int = SIGNATURE_BYTES) -> Any:
        """Return the value in a text of ``to_text``; ValueError if it is of another secret or ``bound``."""
        raw = base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
        signature, content = raw[:length], raw[length:]
        if len(signature) == length and self.is_signed(label, bound + content, signature):
            return json.loads(content)
        raise ValueError("the text is not signed by this service")


def load_secret(settings: Settings, root: str) -> ServiceSecret:
    """Load the secret from the file of the settings, else from the store's root; create it if missing."""
    path = secret_path(settings, root)
    _make(path)
    secret = _read_secret(path)
    if len(secret) < SECRET_BYTES:
        raise SetupError(
            f"The service's secret {path} is too short.",
            cause=f"It has {len(secret)} bytes.",
            remedy=f"Put at least {SECRET_BYTES} random bytes into it.",
        )
    return ServiceSecret(secret)


def secret_path(settings: Settings, root: str) -> Path:
    """Return the file with the secret."""
    return settings.service_secret_file or _default_place(root)


def _read_secret(path: Path) -> bytes:
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
            remedy=f"chmod 600 {path}; if others may have read it, replace its bytes.",
        )
    return content


def _default_place(root: str) -> Path:
    if "://" in root:
        raise SetupError(
            f"A service of {root} needs a separate secret file.",
            cause="In the bucket other machines could read it.",
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


# A cursor is bound to what was listed; given to another list, or for another tenant, it is refused.

_CURSOR_SIGNATURE_BYTES = 16
_CURSORS = b"freezeframe cursors"


_Position = TypeVar("_Position")
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


class Cursors:
    """Makes and reads the cursors of one service; all its workers have the same secret."""

    def __init__(self, secret: ServiceSecret) -> None:
        self._secret = secret

    def encode(self, listing: str, position: Any) -> str | None:
        """Return the cursor of the page that begins at a position in a list; None stays None.

        A position is a JSON value, or a dataclass of such.
        """
        if position is None:
            return None
        return self._secret.to_text(_CURSORS, position, _digest(listing), _CURSOR_SIGNATURE_BYTES)

    def read_as(self, kind: type[_Position], listing: str, cursor: str | None) -> _Position | None:
        """Return the position, of this type, that ``encode`` was given; None stays None."""
        position = self.read(listing, cursor)
        found: _Position | None = None if position is None else _adapter(kind).validate_python(position)
        return found

    def read(self, listing: str, cursor: str | None) -> Any:
        """Return the JSON value that ``encode`` was given; None stays None."""
        if cursor is None:
            return None
        try:
            return self._secret.from_text(_CURSORS, cursor, _digest(listing), _CURSOR_SIGNATURE_BYTES)
        except ValueError:
            raise InvalidOption(
                "The cursor does not belong to this list.",
                cause="It is from another list or tenant, from other parameters, or incomplete.",
                remedy="Pass next_cursor of the previous page unchanged, with the same parameters.",
            ) from None


def _digest(listing: str) -> bytes:
    return hashlib.sha256(listing.encode()).digest()
