"""Inputs of jobs that are kept for a time: each distinct file once, compressed, and sealed if there is a key.

    _freezeframe/inputs/<erasure>-<day>/<digest>          the content of a file
    _freezeframe/inputs/<erasure>-<day>/<job>-<time>.json what one run of a job had

A folder is kept until the end of a day and belongs to the newest erasure of its time. So its name alone
says when it goes, whole: no record outlives a content, and what a job beside an erasure still writes is never
read.
"""

import hashlib
import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO

from freezeframe.clock import moment, now_ms
from freezeframe.errors import ConflictError, CorruptData, FreezeframeError, NotFound, SealingUnavailable
from freezeframe.identifiers import FilePath
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import map_concurrently
from freezeframe.store.blobs.blob_store import CHUNK_BYTES, Measured
from freezeframe.store.blobs.sealing import DataKey, data_key, seal, unseal
from freezeframe.store.model.directory import INPUTS_FOLDER, root_stamp

_DAY = "%Y%m%d"
_FOLDER_LENGTH = 20 + 1 + 8
_WRITERS_MAX = 16
_SHARED_PART = 10
"""Jobs share contents within a tenth of the time for which these are kept, and so much longer they may be."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A kept file: the name of its content, and the SHA-256 and the size of its bytes."""

    content: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class KeptInputs:
    """The kept inputs of a tenant, whose newest erasure is the version ``erased``.

    ``key`` opens its data key; None: there is no master key.
    """

    storage: Storage
    erased: int
    key: Callable[[], DataKey] | None = field(default=None, repr=False)

    def folder(self, days: int) -> str:
        """Return the folder of what is kept from now on for so many days."""
        step = max(1, days // _SHARED_PART)
        last = moment(now_ms()).date() + timedelta(days=days)
        last += timedelta(days=-last.toordinal() % step)
        return f"{self.erased:020d}-{last.strftime(_DAY)}"

    def keep(self, folder: str, files: Mapping[str, Path]) -> dict[str, KeptFile]:
        """Keep files by their names in the job; a content that the folder has is not written again.

        Raises:
            ConflictError: a file changed while it was kept, twice.
        """
        there = {item.name for item in self.storage.list_from(f"{INPUTS_FOLDER}/{folder}")}

        def put(path: Path) -> KeptFile:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
                sealed = self.key and self.key().digest(digest)
                kept = KeptFile(sealed or digest.hex(), digest.hex(), file.tell())
                if kept.content not in there:
                    file.seek(0)
                    self._write(f"{folder}/{kept.content}", _unchanged(path, file, digest))
            return kept

        def put_again(path: Path) -> KeptFile:
            try:
                return put(path)
            except ConflictError:
                return put(path)

        return dict(zip(files, map_concurrently(put_again, list(files.values()), _WRITERS_MAX), strict=True))

    def record(self, folder: str, job_id: str, record: Mapping[str, Any]) -> None:
        """Keep what one run of a job had, durably; it begins to count with this."""
        name = f"{folder}/{_job(job_id)}-{root_stamp(datetime.now(UTC))}.json"
        self._write(name, [json.dumps(record).encode()])

    def names(self) -> list[str]:
        """Return the names of all that is there."""
        return [status.name for status in self.storage.list_below(INPUTS_FOLDER)]

    def find(self, job_id: str, names: Sequence[str] | None = None) -> tuple[str, dict[str, Any]]:
        """Return the folder and the record of the newest run of a job; ``names`` spare a listing.

        Raises:
            NotFound: there is none, or no longer.
        """
        mark, listed = _job(job_id), self.names() if names is None else names
        found = [name for name in listed if name.rpartition("/")[2].startswith(mark)]
        there = [name for name in found if not is_over(name, self.erased)]
        if not there:
            raise NotFound(
                f"The input of the job {job_id} is not kept.",
                cause="Its time is over, or rows of the tenant were erased since."
                if found
                else "The setting keep_inputs_days was 0 when it ran, its time is over, or rows of the "
                "tenant were erased since.",
                remedy="Set keep_inputs_days, so that the input of later jobs is kept.",
                code="INPUT_NOT_KEPT",
                job_id=job_id,
            )
        name = max(there, key=lambda item: item.rpartition("/")[2])
        try:
            return name.partition("/")[0], json.loads(b"".join(self._read(name)))
        except ValueError as error:
            raise _damaged(name, str(error)) from error

    def chunks(self, folder: str, file: KeptFile) -> Iterator[bytes]:
        """Yield the bytes of a kept file; damage is told at its end at the latest."""
        name = f"{folder}/{file.content}"
        measured = Measured(self._read(name))
        yield from measured
        if measured.digest.hex() != file.sha256:
            raise _damaged(name, f"Its SHA-256 is not {file.sha256}.")

    def _write(self, name: str, content: Iterable[bytes]) -> None:
        stored = _compressed(content)
        if self.key is not None:
            key = self.key()
            stored = seal(stored, key.secret, key.tenant, FilePath(name))
        with suppress(FileExistsError):  # another job brought the same bytes at once
            self.storage.put_if_absent(f"{INPUTS_FOLDER}/{name}", stored)

    def _read(self, name: str) -> Iterator[bytes]:
        unpacking, path = zlib.decompressobj(), FilePath(name)
        try:
            stored = _stored(self.storage, f"{INPUTS_FOLDER}/{name}")
            first = next(stored, b"")
            if not first.startswith(_PLAIN):
                if self.key is None:
                    raise SealingUnavailable(
                        "The kept inputs of jobs are sealed.",
                        cause="There was a master key when they were kept, and none is set now.",
                        remedy="Set master_key_file or master_key_command.",
                    )
                key = self.key()
                stored = unseal(itertools.chain((first,), stored), key.secret, key.tenant, path)
                first = next(stored, b"")
            for chunk in itertools.chain((first[len(_PLAIN) :],), stored):
                rest = chunk
                while rest:
                    yield unpacking.decompress(rest, CHUNK_BYTES)
                    rest = unpacking.unconsumed_tail
        except (FileNotFoundError, zlib.error) as error:
            raise _damaged(name, str(error)) from None
        if not unpacking.eof:
            raise _damaged(name, "It ends too early.")


def open_inputs(storage: Storage, settings: Settings, erased: int, *, create: bool = False) -> KeptInputs:
    """Return the kept inputs of a tenant; where there is a master key they are sealed with its data key.

    To write them, ``create`` makes a data key if there is none.
    """
    has_master = settings.master_key_file is not None or settings.master_key_command
    key = cache(partial(data_key, storage, settings, create=create))  # reading what is plain needs none
    return KeptInputs(storage, erased, key if has_master else None)


def kept_files(record: Mapping[str, Any]) -> dict[str, KeptFile]:
    """Return the files of the record of a job, by their names in it, which lead to no other folder."""
    for name in record["files"]:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise CorruptData(
                f"The kept input of the job {record['job_id']} names a file outside of its folder: {name!r}.",
                cause="Its record was changed.",
                remedy="Restore the tenant's directory from a backup.",
            )
    return {name: KeptFile(**item) for name, item in record["files"].items()}


def is_over(name: str, erased: int, now: int | None = None) -> bool:
    """Return whether the time of a kept file is over, by its name below the folder of inputs.

    So it is after its day, or if rows of the tenant were erased since: then all that is kept goes. What is
    newer than ``erased`` stays: who asks may have read an older state.
    """
    erasure, _, day = name[:_FOLDER_LENGTH].partition("-")
    today = moment(now_ms() if now is None else now).strftime(_DAY)
    return not erasure.isdecimal() or int(erasure) < erased or day < today


_PLAIN = b"FREEZEFRAME-INPUT-1\n"


def _unchanged(path: Path, file: BinaryIO, digest: bytes) -> Iterator[bytes]:
    """Yield the bytes of a file, and refuse them at the end if they are not those of the digest."""
    measured = Measured(iter(partial(file.read, CHUNK_BYTES), b""))
    yield from measured
    if measured.digest != digest:
        raise ConflictError(
            f"{path} changed while it was kept.",
            cause="Another process writes to it.",
            remedy="Begin the job when its input is complete.",
        )


def _compressed(content: Iterable[bytes]) -> Iterator[bytes]:
    packing = zlib.compressobj(1)
    yield _PLAIN
    for chunk in content:
        yield packing.compress(chunk)
    yield packing.flush()


def _stored(storage: Storage, name: str) -> Iterator[bytes]:
    offset = 0
    while chunk := storage.read(name, offset, CHUNK_BYTES):
        yield chunk
        offset += len(chunk)


def _job(job_id: str) -> str:
    return hashlib.sha256(job_id.encode(errors="surrogatepass")).hexdigest()[:32]


def _damaged(name: str, cause: str) -> FreezeframeError:
    return CorruptData(
        f"A kept input of a job ({INPUTS_FOLDER}/{name}) is damaged.",
        cause=cause,
        remedy="Restore the tenant's directory from a backup.",
        file=name,
    )
