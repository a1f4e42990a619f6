"""Uploads that go on after an interruption: bytes wait outside of the tenant until all are there.

The rules are those of tus 1.0 (core, creation, termination, expiration). They are kept here, in some
hundred lines over plain files, because a tus server as a library publishes what it has received by
itself: length and digest, the tenant, its rights and its version would come after the fact.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from freezeframe.errors import ConflictError, NotFound, StorageUnavailable, TooLarge, UnreadableRequest
from freezeframe.service.moments import rfc3339
from freezeframe.settings import Settings
from freezeframe.storage.local import failure

_ID = re.compile(r"[0-9a-f]{32}")
_RECORD, _CONTENT, _INPUT = "upload.json", "content", "input"
_READ_BYTES = 1024 * 1024
_SWEPT_EVERY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload under way: whose it is, what is to become of it, and how far it has come."""

    id: str
    environment: str
    tenant: str
    principal: str
    path: str
    length: int
    sha256: str
    sealed: bool | None
    expires_ms: int
    offset: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether all bytes are there."""
        return self.offset == self.length

    def to_json(self) -> dict[str, Any]:
        """What is told of it."""
        return {
            "id": self.id,
            "path": self.path,
            "length": self.length,
            "offset": self.offset,
            "expires": rfc3339(self.expires_ms),
        }


class UploadWriter:
    """Where the bytes of an upload go, one chunk after the other."""

    def __init__(self, content: IO[bytes], offset: int, length: int) -> None:
        self._content = content
        self._length = length
        self.offset = offset

    def write(self, chunk: bytes) -> None:
        """Add a chunk.

        Raises:
            TooLarge: there are more bytes than were announced.
        """
        if self.offset + len(chunk) > self._length:
            raise TooLarge(
                f"The upload was announced with {self._length:,} bytes, and there are more.",
                remedy="Begin a new upload with the right length.",
            )
        self._content.write(chunk)
        self.offset += len(chunk)


class Uploads:
    """The uploads of one service, in a folder that all its workers share."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._bytes_max = settings.service_upload_bytes_max
        self._kept_ms = int(settings.service_upload_hours * 3_600_000)
        self._swept = 0.0
        self._lock = threading.Lock()

    def create(
        self,
        environment: str,
        tenant: str,
        principal: str,
        path: str,
        length: int,
        *,
        sha256: str = "",
        sealed: bool | None = None,
    ) -> Upload:
        """Begin an upload of ``length`` bytes that is to become the tenant's file ``path``.

        Raises:
            TooLarge: it is longer than the service takes.
            StorageUnavailable: it cannot be begun.
        """
        if length > self._bytes_max:
            raise TooLarge(
                f"An upload of {length:,} bytes is too large.",
                cause=f"The service takes at most {self._bytes_max:,} (service_upload_bytes_max).",
                remedy="Send less, or import it with the command.",
            )
        self._sweep()
        expires_ms = _now_ms() + self._kept_ms
        upload = Upload(
            secrets.token_hex(16), environment, tenant, principal, path, length, sha256, sealed, expires_ms
        )
        place = self._folder / upload.id
        try:
            place.mkdir(mode=0o700, parents=True)
            (place / _CONTENT).touch(mode=0o600)
            (place / _RECORD).write_text(json.dumps(asdict(upload)), encoding="utf-8")
        except OSError as error:
            raise failure("create", str(place), error) from error
        return upload

    def get(self, environment: str, tenant: str, upload_id: str) -> Upload:
        """The upload and how far it has come.

        Raises:
            NotFound: the tenant has none of that id (any more).
        """
        place = self._place(upload_id)
        try:
            record = json.loads((place / _RECORD).read_text(encoding="utf-8"))
            record["offset"] = (place / _CONTENT).stat().st_size
            upload = Upload(**record)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            raise _not_found(upload_id) from None
        if (upload.environment, upload.tenant) != (environment, tenant) or upload.expires_ms < _now_ms():
            raise _not_found(upload_id)
        return upload

    @contextmanager
    def appending(self, upload: Upload, offset: int) -> Iterator[UploadWriter]:
        """Add bytes where the upload stands; those that came before an error stay and are durable.

        Raises:
            ConflictError: it stands elsewhere, or somebody else adds to it at this moment.
        """
        with self._alone(upload) as content:
            stands = content.seek(0, os.SEEK_END)
            if stands != offset:
                raise ConflictError(
                    f"The upload stands at byte {stands}, not at {offset}.",
                    cause="Another request added to it, or the answer of one was lost.",
                    remedy="Ask for its offset (HEAD) and go on from there.",
                    offset=stands,
                )
            writer = UploadWriter(content, offset, upload.length)
            try:
                yield writer
            finally:
                content.flush()
                os.fsync(content.fileno())

    def content(self, upload: Upload) -> Iterator[bytes]:
        """The bytes of a complete upload, once they are proved to be the announced ones.

        Raises:
            UnreadableRequest: their SHA-256 is another one; the upload is to be begun anew.
        """
        if upload.sha256:
            with self._file(upload).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != upload.sha256:
                self.remove(upload)
                raise UnreadableRequest(
                    "The bytes are not the announced ones.",
                    cause=f"Their SHA-256 is {digest}, not {upload.sha256}.",
                    remedy="Upload the file anew; nothing was published.",
                )
        return _chunks(self._file(upload))

    def remove(self, upload: Upload) -> None:
        """Forget the upload and its bytes."""
        shutil.rmtree(self._folder / upload.id, ignore_errors=True)

    def kept_folder(self, environment: str, tenant: str) -> Path:
        """A new folder for the input of a tenant's job that is to run later; it goes when its time is over.

        Raises:
            StorageUnavailable: it cannot be made.
        """
        self._sweep()
        place = self._folder / secrets.token_hex(16)
        record = {"environment": environment, "tenant": tenant, "expires_ms": _now_ms() + self._kept_ms}
        try:
            (place / _INPUT).mkdir(mode=0o700, parents=True)
            (place / _RECORD).write_text(json.dumps(record), encoding="utf-8")
        except OSError as error:
            raise failure("create", str(place), error) from error
        return place / _INPUT

    def remove_all(self, environment: str, tenant: str) -> int:
        """Remove all that waits for a tenant, uploads and input of jobs; how many there were."""
        found = [one for one in self._folder.glob("*") if _owner(one) == (environment, tenant)]
        for place in found:
            shutil.rmtree(place, ignore_errors=True)
        return len(found)

    @contextmanager
    def _alone(self, upload: Upload) -> Iterator[Any]:
        """The content, opened to be added to, by one at a time."""
        try:
            with self._file(upload).open("ab") as content:
                try:
                    fcntl.flock(content, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise ConflictError(
                        "Somebody else adds to this upload at this moment.",
                        remedy="Ask for its offset (HEAD) in a moment and go on from there.",
                    ) from None
                yield content
        except FileNotFoundError:
            raise _not_found(upload.id) from None
        except OSError as error:
            raise failure("write", upload.id, error) from error

    def _file(self, upload: Upload) -> Path:
        return self._folder / upload.id / _CONTENT

    def _place(self, upload_id: str) -> Path:
        if not _ID.fullmatch(upload_id):
            raise _not_found(upload_id)
        return self._folder / upload_id

    def _sweep(self) -> None:
        """Remove uploads whose time is over, once in a while."""
        with self._lock:
            if time.monotonic() - self._swept < _SWEPT_EVERY_SECONDS:
                return
            self._swept = time.monotonic()
        for place in self._folder.glob("*") if self._folder.is_dir() else ():
            try:
                expires_ms = json.loads((place / _RECORD).read_text(encoding="utf-8"))["expires_ms"]
            except (OSError, ValueError, KeyError):
                expires_ms = int(_modified_ms(place)) + self._kept_ms
            if expires_ms < _now_ms():
                shutil.rmtree(place, ignore_errors=True)


def _chunks(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as content:
            while chunk := content.read(_READ_BYTES):
                yield chunk
    except OSError as error:
        raise StorageUnavailable(
            "The upload cannot be read.", cause=str(error), remedy="Try again."
        ) from error


def _owner(place: Path) -> tuple[str, str] | None:
    try:
        record = json.loads((place / _RECORD).read_text(encoding="utf-8"))
        return record["environment"], record["tenant"]
    except (OSError, ValueError, KeyError):
        return None


def _modified_ms(place: Path) -> float:
    try:
        return place.stat().st_mtime * 1000
    except OSError:
        return _now_ms()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _not_found(upload_id: str) -> NotFound:
    return NotFound(
        f"There is no upload {upload_id!r}.",
        cause="It was finished, given up, or its time is over.",
        remedy="Begin a new one.",
    )
