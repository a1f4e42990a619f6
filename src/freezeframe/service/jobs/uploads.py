"""Resumable uploads: bytes are stored outside of the tenant until all have arrived.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal

from freezeframe.clock import now_ms
from freezeframe.errors import (
    ConflictError,
    FreezeframeError,
    NotFound,
    RateLimited,
    StorageUnavailable,
    TooLarge,
    UnreadableRequest,
)
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.base.timestamps import rfc3339
from freezeframe.settings import Settings
from freezeframe.storage.local import failure, make_folder, sync_folder, write_durably

_ID = re.compile(r"[0-9a-f]{32}")
_RECORD, _CONTENT, _INPUT = "upload.json", "content", "input"
_READ_BYTES = 1024 * 1024
_SWEPT_EVERY_SECONDS = 60.0
_AGAIN_SECONDS = 60
Purpose = Literal["file", "batch", "import"]


@dataclass(frozen=True, slots=True)
class AnnouncedUpload:
    """What an upload is to bring: ``length`` bytes, with that SHA-256 where it is given.

    They become the tenant's file ``path``, or for the purpose ``import`` wait for an import that names them.
    """

    path: str
    length: int
    sha256: str = ""
    sealed: bool | None = None
    purpose: Purpose = "file"


@dataclass(frozen=True, slots=True)
class Upload:
    """A pending upload: its owner, its purpose, and its offset."""

    id: str
    tenant: str
    principal: str
    path: str
    length: int
    sha256: str
    sealed: bool | None
    expires_ms: int
    offset: int = 0
    purpose: Purpose = "file"
    """``batch``, ``import``: no file appears; the bytes wait for the request that names the upload."""

    @property
    def is_complete(self) -> bool:
        """Whether all bytes are there."""
        return self.offset == self.length

    def to_json(self) -> dict[str, Any]:
        """The upload's state as JSON."""
        return {
            "id": self.id,
            "purpose": self.purpose,
            "path": self.path,
            "length": self.length,
            "offset": self.offset,
            "expires": rfc3339(self.expires_ms),
        }


@dataclass(frozen=True, slots=True)
class ImportContent:
    """The bytes that an import brings, at their beginning, with their SHA-256.

    ``file``: where they lie on the disk of the uploads, so that they need not be copied.
    """

    content: IO[bytes]
    sha256: str
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class InputOwner:
    """The job that an input is of: its tenant's folder in the store, and its names in the queue."""

    folder: str
    name: str
    """32 hexadecimal digits that no other input of the tenant has."""
    environment: EnvironmentName
    tenant: TenantId
    job_id: str


def _unknown(environment: str, tenant: str, job_id: str) -> None:
    """None: without a queue no job is known."""


class UploadWriter:
    """Appends chunks to an upload."""

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


JobFate = Callable[[str, str, str], bool | None]
"""Whether the job of an environment, a tenant and an id has ended; None: nobody knows of it."""


class Uploads:
    """The uploads of one service, in a folder that all its workers share; each tenant's in one of its own.

    A tenant is named by its folder in the store, which no other tenant ever has, and whose removal takes
    along what waits here (``store.waiting``). ``has_ended`` tells of jobs whose input is kept.
    """

    def __init__(self, folder: Path, settings: Settings, has_ended: JobFate = _unknown) -> None:
        self._folder = folder
        self._has_ended = has_ended
        self._bytes_max = settings.service_upload_bytes_max
        self._waiting_max = settings.service_tenant_uploads_max
        self._kept_ms = int(settings.service_upload_hours * 3_600_000)
        self._swept = 0.0
        self._lock = threading.Lock()

    def create(
        self,
        tenant: str,
        principal: str,
        announced: AnnouncedUpload,
        upload_id: str | None = None,
    ) -> Upload:
        """Begin an upload of what is ``announced``.

        One of the same ``upload_id`` that was begun before is given as it stands.

        Raises:
            TooLarge: it is longer than the service takes.
            RateLimited: as many of the tenant are under way as may be.
            StorageUnavailable: it cannot be begun.
        """
        if announced.length > self._bytes_max:
            raise TooLarge(
                f"An upload of {announced.length:,} bytes is too large.",
                cause=f"The service takes at most {self._bytes_max:,} (service_upload_bytes_max).",
                remedy="Send less, or import it with the command.",
            )
        self._sweep()
        expires_ms = now_ms() + self._kept_ms
        chosen = upload_id or secrets.token_hex(16)
        with suppress(NotFound):
            return self.get(tenant, chosen)
        upload = Upload(chosen, tenant, principal, **asdict(announced), expires_ms=expires_ms)
        place = self._place(tenant, upload.id)
        try:
            make_folder(place)
            (place / _CONTENT).touch(mode=0o600)
            _write_record(place, asdict(upload))
        except OSError as error:
            raise failure("create", str(place), error) from error
        self._require_place(upload)
        return upload

    def require_place(self, tenant: str, upload_id: str) -> None:
        """Refuse an upload before anything is written for it; ``create`` decides.

        Raises:
            RateLimited: as many of the tenant are under way as may be, and none of that id.
        """
        self._sweep()
        if self._is_full(tenant, self._waiting_max - 1) and not self._place(tenant, upload_id).exists():
            raise self._refusal()

    def _require_place(self, upload: Upload) -> None:
        """Give up the upload, which is begun, where the tenant has too many; of two at once both may be."""
        if self._is_full(upload.tenant, self._waiting_max):
            self.remove(upload)
            raise self._refusal()

    def _is_full(self, tenant: str, most: int) -> bool:
        """Whether there is a limit, and the tenant has more than ``most`` uploads and inputs."""
        with suppress(FileNotFoundError):
            return bool(self._waiting_max) and sum(1 for _ in (self._folder / tenant).iterdir()) > most
        return False

    def _refusal(self) -> RateLimited:
        return RateLimited(
            f"{self._waiting_max:,} uploads and inputs of imports of the tenant wait already.",
            cause="The service keeps no more of one tenant (service_tenant_uploads_max).",
            remedy=f"Finish or end some; ask again in {_AGAIN_SECONDS} seconds or later.",
            retry_after_seconds=_AGAIN_SECONDS,
        )

    def get(self, tenant: str, upload_id: str) -> Upload:
        """The upload and how far it has come.

        Raises:
            NotFound: the tenant has none of that id (any more).
        """
        place = self._place(tenant, upload_id)
        try:
            record = json.loads((place / _RECORD).read_text(encoding="utf-8"))
            record["offset"] = (place / _CONTENT).stat().st_size
            upload = Upload(**record)
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            raise _not_found(upload_id) from None
        if upload.tenant != tenant or upload.expires_ms < now_ms():
            raise _not_found(upload_id)
        return upload

    @contextmanager
    def open_append(self, upload: Upload, offset: int) -> Iterator[UploadWriter]:
        """Append bytes at the upload's offset; those that arrived before an error are durable.

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
        """The bytes of a complete upload, after their digest was compared with the announced one.

        Raises:
            UnreadableRequest: their SHA-256 is another one; the upload is to be begun anew.
        """
        if upload.sha256:
            self._digest(upload)
        return _chunks(self._file(upload))

    def complete(self, tenant: str, upload_id: str, purpose: Purpose) -> Upload:
        """The upload of that purpose, all of whose bytes are there.

        Raises:
            NotFound: the tenant has none of that id.
            ConflictError: it is not complete, or has another purpose.
        """
        upload = self.get(tenant, upload_id)
        if upload.purpose != purpose or not upload.is_complete:
            raise ConflictError(
                f"The upload {upload_id!r} cannot be used for this.",
                cause=f"Its purpose is {upload.purpose}, not {purpose}."
                if upload.purpose != purpose
                else f"It has {upload.offset:,} of its {upload.length:,} bytes.",
                remedy=f"Begin one whose Upload-Metadata has the purpose {purpose}, and send all of it.",
            )
        return upload

    @contextmanager
    def open_import(self, tenant: str, upload_id: str) -> Iterator[ImportContent]:
        """The bytes of a complete upload for an import; left without an error, the upload is removed.

        Raises:
            NotFound: the tenant has none of that id.
            ConflictError: it is not complete, or has another purpose.
            UnreadableRequest: its bytes are not the announced ones; it is to be begun anew.
        """
        upload = self.complete(tenant, upload_id, "import")
        digest = self._digest(upload)
        with self._file(upload).open("rb") as content:
            yield ImportContent(content, digest, self._file(upload))
        self.remove(upload)

    def _digest(self, upload: Upload) -> str:
        """The SHA-256 of an upload, which is the announced one if one was announced."""
        with self._file(upload).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if upload.sha256 and digest != upload.sha256:
            self.remove(upload)
            raise UnreadableRequest(
                "The bytes are not the announced ones.",
                cause=f"Their SHA-256 is {digest}, not {upload.sha256}.",
                remedy="Upload the file anew; nothing was published.",
            )
        return digest

    def waiting(self, tenant: str) -> list[tuple[str, int]]:
        """What waits for a tenant: the path and announced length of each upload; inputs of jobs have none."""
        place = self._folder / tenant
        return [_announced(one) for one in place.glob("*") if not self._is_over(one)]

    def remove(self, upload: Upload) -> None:
        """Remove the upload and its bytes."""
        shutil.rmtree(self._place(upload.tenant, upload.id), ignore_errors=True)

    def keep_input(self, job: InputOwner, name: str, content: ImportContent) -> tuple[Path, bool]:
        """Keep the input of a job that is to run later; its folder, and whether it was made by this call.

        It stays until the job has ended. The same input of the same job is kept once, in the same folder.

        Raises:
            StorageUnavailable: it cannot be kept.
        """
        self._sweep()
        place = self._place(job.folder, job.name)
        is_new, part = not place.exists(), place / secrets.token_hex(8)
        record = {**asdict(job), "expires_ms": now_ms() + self._kept_ms}
        try:
            make_folder(place / _INPUT)
            _write_record(place, record)
            if content.file is not None:
                part.hardlink_to(content.file)
            else:
                part.touch(mode=0o600)
                with part.open("wb") as file:
                    shutil.copyfileobj(content.content, file)
                    file.flush()
                    os.fsync(file.fileno())
            part.replace(place / _INPUT / name)
            sync_folder(place / _INPUT)
        except BaseException as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            if is_new:
                shutil.rmtree(place, ignore_errors=True)
            if not isinstance(error, OSError):
                raise
            raise failure("create", str(place), error) from error
        return place / _INPUT, is_new

    @contextmanager
    def _alone(self, upload: Upload) -> Iterator[Any]:
        """The content, opened for appending by one process at a time."""
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
        return self._place(upload.tenant, upload.id) / _CONTENT

    def _place(self, tenant: str, upload_id: str) -> Path:
        if not (_ID.fullmatch(upload_id) and _ID.fullmatch(tenant)):
            raise _not_found(upload_id)
        return self._folder / tenant / upload_id

    def _sweep(self) -> None:
        """Remove expired uploads, at most once in a while."""
        with self._lock:
            if time.monotonic() - self._swept < _SWEPT_EVERY_SECONDS:
                return
            self._swept = time.monotonic()
        for place in self._folder.glob("*/*") if self._folder.is_dir() else ():
            if self._is_over(place):
                shutil.rmtree(place, ignore_errors=True)
                with suppress(OSError):  # others wait for the tenant
                    place.parent.rmdir()

    def _is_over(self, place: Path) -> bool:
        """Whether the upload is no longer needed: it has expired, or the job whose input it is has ended."""
        try:
            record = json.loads((place / _RECORD).read_text(encoding="utf-8"))
            is_late = record["expires_ms"] < now_ms()
        except (OSError, ValueError, KeyError):
            return int(_modified_ms(place)) + self._kept_ms < now_ms()
        if "job_id" not in record:
            return bool(is_late)
        try:
            ended = self._has_ended(record["environment"], record["tenant"], record["job_id"])
        except FreezeframeError:
            return False
        return bool(is_late) if ended is None else ended


def _write_record(place: Path, record: Mapping[str, Any]) -> None:
    """Write the record durably, and with it the names of all that the folder has so far."""
    part = place / secrets.token_hex(8)
    write_durably(part, json.dumps(record).encode())
    part.replace(place / _RECORD)
    sync_folder(place)


def _chunks(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as content:
            while chunk := content.read(_READ_BYTES):
                yield chunk
    except OSError as error:
        raise StorageUnavailable(
            "The upload cannot be read.", cause=str(error), remedy="Try again."
        ) from error


def _announced(place: Path) -> tuple[str, int]:
    try:
        record = json.loads((place / _RECORD).read_text(encoding="utf-8"))
        if "length" in record:
            return record["path"], int(record["length"])
        seen = [one.stat() for one in (place / _INPUT).glob("*")]
        # A file that is also an upload is counted there.
        return "", sum(one.st_size for one in seen if one.st_nlink == 1)
    except (OSError, ValueError, KeyError):
        return "", 0  # it is being made, or was removed meanwhile


def _modified_ms(place: Path) -> float:
    try:
        return place.stat().st_mtime * 1000
    except OSError:
        return now_ms()


def _not_found(upload_id: str) -> NotFound:
    return NotFound(
        f"There is no upload {upload_id!r}.",
        cause="It was finished, given up, or its time is over.",
        remedy="Begin a new one.",
    )
