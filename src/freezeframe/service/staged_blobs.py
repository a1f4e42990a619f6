"""Staged blobs: bytes that were sent before the request that publishes them, outside of the tenant.

A blob is whole or absent. The request that names it makes it a file, or the input of an import; otherwise it
expires. Inputs of queued imports are kept beside the blobs until their job has ended.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Self

from freezeframe.clock import moment, now_ms
from freezeframe.errors import (
    FreezeframeError,
    IdempotencyConflict,
    NotFound,
    RateLimited,
    StorageUnavailable,
    TooLarge,
)
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.settings import Settings
from freezeframe.storage.local import failure, make_folder, sync_folder, write_durably
from freezeframe.storage.safe_open import open_regular
from freezeframe.store.model.directory import uploads_folder

_ID = re.compile(r"[0-9a-f]{32}")
_RECORD, _CONTENT, _INPUT = "upload.json", "content", "input"
_READ_BYTES = 1024 * 1024
_SWEPT_EVERY_SECONDS = 60.0
_AGAIN_SECONDS = 60


@dataclass(frozen=True, slots=True)
class StagedBlob:
    """A blob; ``path`` is the file that it was announced for, whose bytes it will replace, or empty."""

    id: str
    tenant: str
    path: str
    size: int
    sha256: str
    expires_ms: int

    @property
    def expires(self) -> datetime:
        """When the blob is removed, unless a request publishes it before."""
        return moment(self.expires_ms)


@dataclass(frozen=True, slots=True)
class ImportContent:
    """The bytes that an import brings, at their beginning, with their SHA-256.

    ``file``: where they lie on the disk of the blobs, so that they need not be copied.
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
    """Return None: without a queue no job is known."""


class BlobWriter:
    """Takes the bytes of a blob, piece by piece."""

    def __init__(self, content: IO[bytes], bytes_max: int) -> None:
        self._content = content
        self._bytes_max = bytes_max
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        """The SHA-256 of what was written."""
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Add a piece."""
        self.size += len(chunk)
        if self.size > self._bytes_max:
            raise too_large(self._bytes_max)
        self._digest.update(chunk)
        try:
            self._content.write(chunk)
        except OSError as error:
            raise failure("write", "a staged blob", error) from error


JobFate = Callable[[str, str, str], bool | None]
"""Whether the job of an environment, a tenant and an id has ended; None: it is unknown."""


class StagedBlobs:
    """The blobs of one service, in a folder that all its workers share, with a subfolder for each tenant.

    A tenant is named by its folder in the store, which no other tenant ever has, and whose removal takes
    along what waits here (``store.waiting``). ``has_ended`` tells of jobs whose input is kept.
    """

    def __init__(self, folder: Path, settings: Settings, has_ended: JobFate = _unknown) -> None:
        self._folder = folder
        self._has_ended = has_ended
        self.bytes_max = settings.service_upload_bytes_max
        self._waiting_max = settings.service_tenant_uploads_max
        self._kept_ms = int(settings.service_upload_hours * 3_600_000)
        self._swept = 0.0
        self._lock = threading.Lock()

    @classmethod
    def of_store(cls, root: str, settings: Settings, has_ended: JobFate = _unknown) -> Self:
        """Return the blobs of the service of a store."""
        place = uploads_folder(root if "://" in root else str(Path(root).resolve()), settings)
        return cls(place, settings, has_ended)

    @contextmanager
    def stage(self, tenant: str, blob_id: str, path: str = "") -> Iterator[BlobWriter]:
        """Receive the bytes of a blob, which is durable when the block ends, and discarded if it raises."""
        self.require_place(tenant, blob_id)
        with _part(self._place(tenant, blob_id)) as part:
            with _new_file(part / _CONTENT) as content:
                writer = BlobWriter(content, self.bytes_max)
                yield writer
            blob = StagedBlob(blob_id, tenant, path, writer.size, writer.sha256, now_ms() + self._kept_ms)
            _write_record(part, asdict(blob))
            if not self._claim(part, self._place(tenant, blob_id)):
                if self.get(tenant, blob_id).sha256 == blob.sha256:
                    return
                raise IdempotencyConflict(
                    "Other bytes were sent with this Idempotency-Key before.",
                    cause=f"Blob {blob_id} holds them.",
                    remedy="Send other bytes with a key of their own.",
                )

    def require_place(self, tenant: str, blob_id: str) -> None:
        """Refuse a blob before anything is written for it."""
        self.sweep()
        place = self._place(tenant, blob_id)
        with suppress(FileNotFoundError):
            waiting = sum(1 for _ in (self._folder / tenant).iterdir()) if self._waiting_max else -1
            if waiting >= self._waiting_max and not place.exists():
                raise RateLimited(
                    f"{self._waiting_max:,} staged blobs and inputs of imports of the tenant exist already.",
                    cause="That is the limit for a tenant (service_tenant_uploads_max).",
                    remedy=f"Publish or remove some; try again in {_AGAIN_SECONDS} seconds or later.",
                    retry_after_seconds=_AGAIN_SECONDS,
                )

    def get(self, tenant: str, blob_id: str) -> StagedBlob:
        """Return the blob of that id."""
        try:
            blob = StagedBlob(**_record(self._place(tenant, blob_id)))
        except (OSError, ValueError, TypeError):
            raise _not_found(blob_id) from None
        if blob.tenant != tenant or blob.expires_ms < now_ms():
            raise _not_found(blob_id)
        return blob

    @contextmanager
    def publish(self, tenant: str, *blob_ids: str) -> Iterator[Callable[[str], Iterator[bytes]]]:
        """Keep the blobs from other requests, and open a block with the bytes of each by its id.

        They are removed when the block ends without an error, and stay where it raises.
        """
        taken = []
        try:
            for blob_id in dict.fromkeys(blob_ids):
                self.get(tenant, blob_id)
                try:
                    self._place(tenant, blob_id).rename(self._published(tenant, blob_id))
                except OSError:
                    raise _not_found(blob_id) from None
                taken.append(blob_id)
            yield lambda blob_id: _chunks(self._published(tenant, blob_id))
        except BaseException:
            for blob_id in taken:
                with suppress(OSError):  # its bytes were sent again meanwhile
                    self._published(tenant, blob_id).rename(self._place(tenant, blob_id))
            raise
        for blob_id in taken:
            shutil.rmtree(self._published(tenant, blob_id), ignore_errors=True)

    @contextmanager
    def open_import(self, tenant: str, blob_id: str) -> Iterator[ImportContent]:
        """Open a blob for an import; remove it when the block ends without an error."""
        blob = self.get(tenant, blob_id)
        with self.publish(tenant, blob_id), ExitStack() as opened:
            place = self._published(tenant, blob_id)
            try:
                content = opened.enter_context(open_regular(place, _CONTENT))
            except OSError:
                raise _not_found(blob_id) from None
            yield ImportContent(content, blob.sha256, place / _CONTENT)

    def waiting(self, tenant: str) -> list[tuple[str, int]]:
        """Return the path and size of each blob of a tenant; inputs of jobs have no path."""
        place = self._folder / tenant
        return [_waiting(path) for path in place.glob("*") if not self._is_over(path)]

    def remove(self, blob: StagedBlob) -> None:
        """Remove the blob."""
        shutil.rmtree(self._place(blob.tenant, blob.id), ignore_errors=True)

    def keep_input(self, job: InputOwner, name: str, content: ImportContent) -> tuple[Path, bool]:
        """Keep the input of a job that is to run later; its folder, and whether it was made by this call.

        It stays until the job has ended. The same input of the same job is kept once, in the same folder.
        """
        self.sweep()
        place = self._place(job.folder, job.name)
        with _part(place) as part:
            make_folder(part / _INPUT)
            kept = part / _INPUT / name
            if content.file is not None:
                kept.hardlink_to(content.file)
            # Not a link that took the file's place.
            if content.file is None or not os.path.samestat(kept.lstat(), os.fstat(content.content.fileno())):
                kept.unlink(missing_ok=True)
                content.content.seek(0)
                with _new_file(kept) as file:
                    shutil.copyfileobj(content.content, file)
            sync_folder(part / _INPUT)
            _write_record(part, {**asdict(job), "expires_ms": now_ms() + self._kept_ms})
            return place / _INPUT, self._claim(part, place)

    def _place(self, tenant: str, blob_id: str) -> Path:
        if not (_ID.fullmatch(blob_id) and _ID.fullmatch(tenant)):
            raise _not_found(blob_id)
        return self._folder / tenant / blob_id

    def _published(self, tenant: str, blob_id: str) -> Path:
        """Return where a blob is while a request publishes it."""
        place = self._place(tenant, blob_id)
        return place.with_name(f"{place.name}.published")

    def _claim(self, part: Path, place: Path) -> bool:
        """Give the folder its name, for which several requests may race; False: another one has it."""
        if self._is_over(place):
            shutil.rmtree(place, ignore_errors=True)
        try:
            part.rename(place)
        except OSError as error:
            if error.errno in {errno.EEXIST, errno.ENOTEMPTY}:
                return False
            raise
        sync_folder(place.parent)
        return True

    def sweep(self) -> None:
        """Remove expired blobs and inputs of jobs that have ended, at most once in a while."""
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
        """Return whether a blob or input is no longer needed: it has expired, or its job has ended."""
        try:
            record = _record(place)
            is_late = record["expires_ms"] < now_ms()
        except (OSError, ValueError, KeyError, TypeError):
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


def _record(place: Path) -> dict[str, Any]:
    with open_regular(place, _RECORD) as file:
        record = json.load(file)
    if not isinstance(record, dict):
        raise TypeError(_RECORD)
    return record


@contextmanager
def _part(place: Path) -> Iterator[Path]:
    """Make a folder beside ``place`` that no other request has, and remove what is left of it."""
    part = place.with_name(f"{place.name}.{secrets.token_hex(8)}")
    try:
        make_folder(part)
        yield part
    except OSError as error:
        raise failure("create", str(place), error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):  # others wait for the tenant
            place.parent.rmdir()


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file for its owner alone, which is durable when the block ends."""
    path.touch(mode=0o600)
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _chunks(place: Path) -> Iterator[bytes]:
    try:
        with open_regular(place, _CONTENT) as content:
            while chunk := content.read(_READ_BYTES):
                yield chunk
    except OSError as error:
        raise StorageUnavailable(
            "The staged blob cannot be read.", cause=str(error), remedy="Try again."
        ) from error


def _waiting(place: Path) -> tuple[str, int]:
    try:
        record = _record(place)
        if "size" in record:
            return record["path"], int(record["size"])
        seen = [path.lstat() for path in (place / _INPUT).glob("*")]
        # A file that is also a blob is counted there.
        return "", sum(item.st_size for item in seen if item.st_nlink == 1)
    except (OSError, ValueError, KeyError, TypeError):
        return "", 0  # it is being made, or was removed meanwhile


def _modified_ms(place: Path) -> float:
    try:
        return place.lstat().st_mtime * 1000
    except OSError:
        return now_ms()


def _not_found(blob_id: str) -> NotFound:
    return NotFound(
        f"There is no staged blob {blob_id!r}.",
        cause="It was published, removed, or has expired.",
        remedy="Send its bytes again.",
    )


def too_large(bytes_max: int) -> TooLarge:
    """Return the refusal of a blob that is larger than the service takes."""
    return TooLarge(
        f"A staged blob has at most {bytes_max:,} bytes.",
        cause="That is the service's limit (service_upload_bytes_max).",
        remedy="Send less, or import it with the command.",
        bytes_max=bytes_max,
    )
