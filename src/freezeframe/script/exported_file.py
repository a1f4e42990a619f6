"""The snapshot files beside a stream, written again after each update, for scripts that open them.

The stream is the truth and such a file a copy of its rows, replaced whole: the file that the stream adopted
(``{stream}.snapshot.parquet`` or ``.csv``), in the format and the order of columns that it had, and the file
that gluestick's functions leave. A record beside the tenant's log says what was written, so that our own
copy is not mistaken for a change by another program; a file that another program changed is left alone, and
adopted next.
Rules: ``docs/reference/gluestick.md``, "Existing files" and "The files that are left".
"""

from __future__ import annotations

import csv
import fcntl
import hashlib
import io
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.frames.untyped import parquet_schema
from freezeframe.errors import StorageUnavailable
from freezeframe.log.scan.file_statistics import bounded_columns
from freezeframe.script.current_job import is_working_copy
from freezeframe.script.formats.written_rows import csv_text
from freezeframe.storage import LocalStorage
from freezeframe.storage.local import make_private
from freezeframe.storage.read_ahead import reads_of
from freezeframe.store import Stream
from freezeframe.store.model.directory import OURS
from freezeframe.store.table.reader import in_schema, sort_rows

ADOPTED_NOTE = "adoptedFile"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileState:
    """The SHA-256 of a file's content, and the version of its stream that the content is of."""

    sha256: str
    version: int


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What is known of an adopted file: what it held last, and what is being written in its place.

    A crash can come between the record and the file, so either of the two may be there.
    """

    name: str
    held: FileState
    pending: FileState | None = None

    def holds(self, sha256: str) -> bool:
        """Return whether the content is one that the stream has given or taken."""
        return sha256 in {self.held.sha256, self.pending.sha256 if self.pending else None}


def known_file(directory: Path, stream: Stream) -> KnownFile | None:
    """Return the recorded state of the stream's adopted file; None if it adopted none."""
    note = stream.notes().get(ADOPTED_NOTE)
    if note is None:
        return None
    adopted = json.loads(note)
    taken = FileState(adopted["sha256"], adopted["version"])
    record = _record(directory, stream)
    if record.get("file") != adopted["file"] or record["held"]["version"] < taken.version:
        return _recognise(directory, stream, KnownFile(adopted["file"], taken))
    pending = record.get("pending")
    return KnownFile(adopted["file"], FileState(**record["held"]), FileState(**pending) if pending else None)


def _recognise(directory: Path, stream: Stream, taken: KnownFile) -> KnownFile:
    """Return the state without a record: a working copy has none, though the file may be our own export.

    A file with exactly the bytes that an export would write holds exactly the stream's rows.
    """
    path, version = directory / taken.name, stream.stream_version()
    if not path.is_file():
        return taken
    found = file_sha256(path)
    if taken.holds(found) or hashlib.sha256(rows_as_file(path, stream, version)).hexdigest() != found:
        return taken
    return KnownFile(taken.name, FileState(found, version))


def export(directory: str | os.PathLike[str], stream: Stream) -> None:
    """Write the stream's newest rows to the file that it adopted; does nothing if it adopted none.

    The update that came before is committed, so a file that cannot be written is a warning in the log.
    """
    folder = Path(directory)
    if stream.stream_version() < 0 or ADOPTED_NOTE not in stream.notes():
        return
    try:
        with alone(folder, stream):
            _write(folder, stream)
    except (StorageUnavailable, OSError):
        _logger.warning("Committed, but the file of %s could not be written.", stream.name, exc_info=True)


def own_exports(directory: Path) -> frozenset[str]:
    """Return the files that ``export`` wrote and no other program changed since, as far as recorded."""
    found = set()
    for path in (directory / OURS / "exported").rglob("*.json"):
        with reads_of(str(path)):
            record = json.loads(path.read_text(encoding="utf-8"))
        file = directory / record["file"]
        states = (record["held"], record["pending"])
        if file.is_file() and file_sha256(file) in {state["sha256"] for state in states if state}:
            found.add(record["file"])
    return frozenset(found)


def file_sha256(path: Path) -> str:
    """Return the digest of a file's bytes, in hexadecimal."""
    with reads_of(str(path)), path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _write(directory: Path, stream: Stream) -> None:
    """Replace the file by the newest version's rows, unless it has them or was changed by others."""
    known, version = known_file(directory, stream), stream.stream_version()
    # In a job, an adoption and the updates after it are one version.
    if known is None or (known.held.version == version and not is_working_copy(directory)):
        return
    path = directory / known.name
    if not path.is_file():
        return  # the file was deleted by the user
    found = file_sha256(path)
    if not known.holds(found):
        return
    content = rows_as_file(path, stream, version)
    new = FileState(hashlib.sha256(content).hexdigest(), version)
    if known.held == new:
        return
    held = known.pending if known.pending and known.pending.sha256 == found else known.held
    storage = LocalStorage(directory)
    # Write the intent, then the file, then the result: after a crash the hash tells which was reached.
    storage.replace(_record_name(stream), record_text(known.name, held, new))
    storage.replace(known.name, content)
    storage.replace(_record_name(stream), record_text(known.name, new, None))


def rows_as_file(path: Path, stream: Stream, version: int) -> bytes:
    """Return the stream's rows as a file of the path's kind; where one is there, in its order of columns."""
    return _content(path, sort_rows(stream.read(stream_version=version, as_="arrow"), stream.key()))


def _content(path: Path, rows: pa.Table) -> bytes:
    """Return the rows as the file's format has them; columns that it knows stay in their order."""
    is_csv = path.suffix == ".csv"
    with reads_of(str(path)):
        first, compression = _form(path, is_csv=is_csv)
    names = [name for name in first if name in rows.column_names]
    rows = rows.select([*names, *(name for name in rows.column_names if name not in names)])
    if is_csv:
        return csv_text(rows).encode()
    buffer = io.BytesIO()
    held = in_schema(rows, parquet_schema(rows.schema))
    bounded = bounded_columns(held.schema)
    pq.write_table(held, buffer, compression=compression, store_schema=False, write_statistics=bounded)
    return buffer.getvalue()


def _form(path: Path, *, is_csv: bool) -> tuple[list[str], str]:
    """Return the columns and the compression of the existing file; without one no columns, and ZSTD."""
    if not path.is_file():
        return [], "zstd"
    return (_header(path), "") if is_csv else (pq.read_schema(path).names, _compression(path))


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])


def _compression(path: Path) -> str:
    file = pq.read_metadata(path)
    codec = file.row_group(0).column(0).compression if file.num_row_groups and file.num_columns else "ZSTD"
    return "none" if codec == "UNCOMPRESSED" else str(codec).lower()


def _record(directory: Path, stream: Stream) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(LocalStorage(directory).read(_record_name(stream)))
    except (FileNotFoundError, ValueError):
        return {}
    return record


def _record_name(stream: Stream) -> str:
    return f"{OURS}/exported/{stream.name}.json"


def record_text(name: str, held: FileState, pending: FileState | None) -> bytes:
    """Return the record of a file of ours."""
    states = {"held": held, "pending": pending}
    record = {
        which: {"sha256": state.sha256, "version": state.version} if state else None
        for which, state in states.items()
    }
    return json.dumps({"file": name, **record}, ensure_ascii=False).encode()


@contextmanager
def alone(directory: Path, stream: Stream) -> Iterator[None]:
    """One writer of the file at a time: each writes the newest rows, so the last one's are the newest."""
    path = directory / OURS / "exported" / f"{stream.name}.lock"
    make_private(path.parent)
    path.touch(mode=0o600)
    with path.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


PARQUET, CSV = ".snapshot.parquet", ".snapshot.csv"

_logger = logging.getLogger(__name__)


def leave_file(directory: str | os.PathLike[str], stream: Stream, suffix: str) -> None:
    """Write the stream's newest rows to its file of that kind; a failure is a warning.

    The update that came before is committed. A file that the stream adopted is kept up to date by
    ``export``, and is the only one then, save that CSV is written where it is asked for. A file of
    somebody else's is left as it is.
    """
    folder = Path(directory)
    adopted = known_file(folder, stream)
    if stream.stream_version() < 0 or (adopted is not None and adopted.name.endswith((suffix, CSV))):
        return
    _write_left(folder, stream, suffix)


def refresh_left(directory: str | os.PathLike[str], stream: Stream) -> None:
    """Bring those files up to date that were left before and are still ours."""
    for suffix in (PARQUET, CSV):
        path = Path(directory) / f"{stream.name}{suffix}"
        if path.is_file() and left_version(path.parent, path.name) is not None:
            _write_left(path.parent, stream, suffix)


def is_left(directory: Path, name: str, sha256: str) -> bool:
    """Return whether a file of that content is our own copy."""
    known = _find_known(directory, name)
    return known is not None and known.holds(sha256)


def left_version(directory: Path, name: str) -> int | None:
    """Return the version of its stream that a file held when it was left; None for one that never was."""
    known = _find_known(directory, name)
    return None if known is None else known.held.version


def _write_left(folder: Path, stream: Stream, suffix: str) -> None:
    try:
        with alone(folder, stream):
            _replace(folder, stream, f"{stream.name}{suffix}")
    except (StorageUnavailable, OSError):
        _logger.warning("Committed, but the file of %s could not be written.", stream.name, exc_info=True)


def _replace(folder: Path, stream: Stream, name: str) -> None:
    path, known, version = folder / name, _find_known(folder, name), stream.stream_version()
    found = file_sha256(path) if path.is_file() else None
    if found is not None and not (known is not None and known.holds(found)) and not _is_passed_over(path):
        return  # it is adopted next
    content = rows_as_file(path, stream, version)
    new = FileState(hashlib.sha256(content).hexdigest(), version)
    if found == new.sha256 and known is not None and known.held == new:
        return
    held = _present(known, found) or new
    storage = LocalStorage(folder)
    # Write the intent, then the file, then the result, as ``exported_file`` does.
    storage.replace(_left_record_name(name), record_text(name, held, new))
    storage.replace(name, content)
    storage.replace(_left_record_name(name), record_text(name, new, None))


def _present(known: KnownFile | None, found: str | None) -> FileState | None:
    """Return which of the two recorded contents the file has, also after a crash."""
    if known is None or known.pending is None or known.pending.sha256 != found:
        return None if known is None else known.held
    return known.pending


def _is_passed_over(path: Path) -> bool:
    """Return whether nobody adopts the file: a CSV file beside a Parquet file does not count."""
    return path.name.endswith(CSV) and path.with_name(path.name.removesuffix(CSV) + PARQUET).is_file()


def _find_known(folder: Path, name: str) -> KnownFile | None:
    try:
        record = json.loads(LocalStorage(folder).read(_left_record_name(name)))
    except (FileNotFoundError, ValueError):
        return None
    pending = record["pending"]
    return KnownFile(name, FileState(**record["held"]), FileState(**pending) if pending else None)


def _left_record_name(name: str) -> str:
    return f"{OURS}/exported/left/{name}.json"
