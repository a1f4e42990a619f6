"""The pepper: the service's secret, without which stored key hashes are worthless.

Signatures of cursors, invitations, sign-ins and audit entries are derived from it as well. All processes and
machines of one service need the same. A rotation keeps the secrets from before in a second file beside it
(``.accepted``): hashes of keys and audit entries are checked with all of them, the rest only for some hours.
Both files are read again when they change, so running processes follow a rotation.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from freezeframe.errors import FreezeframeError, InvalidOption, SetupError
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.storage.local import make_folder

PEPPER_BYTES = 32
_FILE = Path("_freezeframe") / "service.secret"
_MS_PER_HOUR = 3_600_000
_NEVER_MS = 2**53


@dataclass(frozen=True, slots=True)
class AcceptedSecret:
    """A secret beside the current one: an earlier one, or with ``is_next`` the one of the next rotation.

    Until ``until_ms`` (milliseconds since 1970 UTC) it is accepted for everything, afterwards for key hashes
    and audit entries only.
    """

    secret: bytes = field(repr=False)
    until_ms: int
    is_next: bool = False

    def to_json(self) -> dict[str, Any]:
        """The record in the file of accepted secrets."""
        return {"secret": self.secret.hex(), "until_ms": self.until_ms, "is_next": self.is_next}


@dataclass(frozen=True, slots=True)
class Secrets:
    """The current secret, and the others that are accepted."""

    current: bytes = field(repr=False)
    accepted: tuple[AcceptedSecret, ...] = ()


class Pepper:
    """Keys derived from the service's secrets; ``load`` is called for each use."""

    def __init__(self, load: Callable[[], Secrets]) -> None:
        self._load = load

    @classmethod
    def of(cls, secret: bytes) -> Pepper:
        """A pepper of one secret that does not change."""
        found = Secrets(secret)
        return cls(lambda: found)

    def current(self, label: bytes) -> bytes:
        """The key of that label for new hashes and signatures."""
        return hmac.digest(self._load().current, label, "sha256")

    def accepted(self, label: bytes, *, lasting: bool = False) -> tuple[bytes, ...]:
        """The keys of that label to check with, the current one first.

        With ``lasting`` those of all secrets that are kept, else of those whose time is not over.
        """
        found, now = self._load(), time.time() * 1000
        kept = [one.secret for one in found.accepted if lasting or one.until_ms > now]
        return tuple(hmac.digest(one, label, "sha256") for one in dict.fromkeys((found.current, *kept)))

    def signatures(self, label: bytes, content: bytes) -> tuple[bytes, ...]:
        """The signatures of a content that are accepted, 32 bytes each; the first is the one to give."""
        return tuple(hmac.digest(key, content, "sha256") for key in self.accepted(label))


def load_pepper(settings: Settings, root: str) -> Pepper:
    """The secrets in the file that the settings name, else in the store's root, where it is made once.

    Raises:
        SetupError: a file cannot be made or read, others may read it, or it is damaged or too short.
    """
    file = _SecretFile(secret_path(settings, root))
    _make(file.path)
    file.load()
    return Pepper(file.load)


def secret_path(settings: Settings, root: str) -> Path:
    """The file with the current secret.

    Raises:
        SetupError: the store is in a bucket and the settings name no file.
    """
    return settings.service_secret_file or _default_place(root)


def prepare_rotation(path: Path) -> None:
    """Draw the next secret, which all processes accept from then on; one that is drawn already stays.

    Raises:
        SetupError: as ``load_pepper``.
        StorageUnavailable, StorageFull: the file cannot be written.
    """
    with _locked(path):
        found = _SecretFile(path).load()
        if _prepared(found) is None:
            following = AcceptedSecret(secrets.token_bytes(PEPPER_BYTES), _NEVER_MS, is_next=True)
            _write_accepted(path, (following, *_earlier(found)))


def rotate_pepper(path: Path, overlap_hours: float) -> None:
    """Make the next secret the current one; the present one is accepted for ``overlap_hours`` for everything.

    Raises:
        InvalidOption: the overlap is negative.
        SetupError: as ``load_pepper``.
        StorageUnavailable, StorageFull: a file cannot be written.
    """
    if overlap_hours < 0:
        raise InvalidOption("The overlap is negative.", remedy="Pass at least 0 hours.")
    with _locked(path):
        found = _SecretFile(path).load()
        until = int(time.time() * 1000 + overlap_hours * _MS_PER_HOUR)
        following = _prepared(found) or secrets.token_bytes(PEPPER_BYTES)
        kept = (AcceptedSecret(found.current, until), *_earlier(found))
        # A reader takes the current secret first, so the accepted ones are written first, with both in them.
        _write_accepted(path, (AcceptedSecret(following, _NEVER_MS, is_next=True), *kept))
        LocalStorage(path.parent).replace(path.name, following)
        _write_accepted(path, kept)


def _prepared(found: Secrets) -> bytes | None:
    """The next secret; one that is the current one already is left by a rotation that was cut off."""
    return next((one.secret for one in found.accepted if one.is_next and one.secret != found.current), None)


def _earlier(found: Secrets) -> list[AcceptedSecret]:
    return [one for one in found.accepted if not one.is_next]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One rotation at a time; the lock ends with the process."""
    try:
        handle = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise SetupError(
            f"The service's secret {path} cannot be rotated.", cause=str(error), remedy="Check the folder."
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class _SecretFile:
    """The file of the current secret with that of the accepted ones, read again when one of them changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._accepted = accepted_path(path)
        self._known: tuple[Any, Secrets] | None = None

    def load(self) -> Secrets:
        """The secrets as they are now.

        Raises:
            SetupError: as ``load_pepper``.
        """
        state = (_state(self.path), _state(self._accepted))
        if self._known is None or self._known[0] != state:
            current = _read(self.path)
            if len(current) < PEPPER_BYTES:
                raise SetupError(
                    f"The service's secret {self.path} is too short.",
                    cause=f"It has {len(current)} bytes.",
                    remedy=f"Put at least {PEPPER_BYTES} random bytes into it; keys have to be made anew.",
                )
            self._known = (state, Secrets(current, _read_accepted(self._accepted)))
        return self._known[1]


def accepted_path(path: Path) -> Path:
    """The file with the secrets that are accepted beside the one in ``path``."""
    return path.with_name(f"{path.name}.accepted")


def _state(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)


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
            remedy=f"chmod 600 {path}; if somebody may have read it, freezeframe key rotate-pepper.",
        )
    return content


def _read_accepted(path: Path) -> tuple[AcceptedSecret, ...]:
    if not path.exists():
        return ()
    content = _read(path)
    try:
        return tuple(
            AcceptedSecret(bytes.fromhex(one["secret"]), int(one["until_ms"]), bool(one["is_next"]))
            for one in json.loads(content)
        )
    except (ValueError, KeyError, TypeError) as error:
        raise SetupError(
            f"The accepted secrets in {path} cannot be read.",
            cause=f"The file is damaged ({type(error).__name__}).",
            remedy="Restore it from a backup or another machine of the service; without it, keys from before "
            "the last rotation have to be made anew.",
        ) from error


def _write_accepted(path: Path, accepted: tuple[AcceptedSecret, ...]) -> None:
    known = {one.secret: one for one in reversed(accepted)}
    kept = [one for one in accepted if known[one.secret] is one]
    content = json.dumps([one.to_json() for one in kept]).encode()
    LocalStorage(path.parent).replace(accepted_path(path).name, content)


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
            LocalStorage(path.parent).put_if_absent(path.name, secrets.token_bytes(PEPPER_BYTES))
    except (OSError, FreezeframeError) as error:
        raise SetupError(
            f"The service's secret cannot be made at {path}.",
            cause=str(error),
            remedy="Check who may write there, or set service_secret_file.",
        ) from error
