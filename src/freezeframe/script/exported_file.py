"""The snapshot files beside a stream, written again after each update, for scripts that open them.

The stream is the truth and such a file a copy of its rows, replaced whole: the file that the stream adopted
(``{stream}.snapshot.parquet`` or ``.csv``), in the format and the order of columns that it had, and the file
that gluestick's functions leave. A record beside the tenant's log says what was written, so that our own
copy is not mistaken for a change by another program; a file that another program changed is left alone, and
adopted next.
Rules: ``docs/reference/gluestick.md``, "Existing files" and "The files that are left".
"""

import csv
import fcntl
import hashlib
import io
import json
import logging
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

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
from freezeframe.store.stream_content import stream_notes
from freezeframe.store.table.reader import in_schema

PARQUET, CSV = ".snapshot.parquet", ".snapshot.csv"
ADOPTED_NOTE = "adoptedFile"
_RECORDS = f"{OURS}/exported"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileState:
    """The SHA-256 of a file's content, and the version of its stream that the content is of."""

    sha256: str
    version: int


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What is known of a file that we write: what it held last, and what is being written in its place.

    A crash can come between the record and the file, so either of the two may be there.
    """

    name: str
    held: FileState
    pending: FileState | None = None

    def holds(self, sha256: str) -> bool:
        """Return whether the content is one that was written or adopted."""
        return sha256 in {self.held.sha256, self.pending.sha256 if self.pending else None}

    def present(self, sha256: str | None) -> FileState:
        """Return which of the two states the file has, also after a crash."""
        return self.pending if self.pending and self.pending.sha256 == sha256 else self.held


def _adopted_record(stream: Stream) -> str:
    return f"{_RECORDS}/{stream.name}.json"


def _left_record(name: str) -> str:
    return f"{_RECORDS}/left/{name}.json"


def _recorded(directory: Path, record: str) -> KnownFile | None:
    try:
        found = json.loads(LocalStorage(directory).read(record))
    except (FileNotFoundError, ValueError):
        return None
    pending = found["pending"]
    return KnownFile(found["file"], FileState(**found["held"]), FileState(**pending) if pending else None)


def _record_text(name: str, held: FileState, pending: FileState | None) -> bytes:
    states = {"held": asdict(held), "pending": asdict(pending) if pending else None}
    return json.dumps({"file": name, **states}, ensure_ascii=False).encode()


def known_file(directory: Path, stream: Stream) -> KnownFile | None:
    """Return the recorded state of the stream's adopted file; None if it adopted none."""
    note = stream_notes(stream).get(ADOPTED_NOTE)
    if note is None:
        return None
    adopted = json.loads(note)
    original = KnownFile(adopted["file"], FileState(adopted["sha256"], adopted["version"]))
    recorded = _recorded(directory, _adopted_record(stream))
    if recorded is None or recorded.name != original.name or recorded.held.version < original.held.version:
        return _recognise(directory, stream, original)
    return recorded


def _recognise(directory: Path, stream: Stream, original: KnownFile) -> KnownFile:
    """Return the state without a record: a working copy has none, though the file may be our own export.

    A file with exactly the bytes that an export would write holds exactly the stream's rows.
    """
    path, version = directory / original.name, stream.stream_version
    if not path.is_file():
        return original
    found = file_sha256(path)
    if original.holds(found) or hashlib.sha256(rows_as_file(path, stream, version)).hexdigest() != found:
        return original
    return KnownFile(original.name, FileState(found, version))


def is_left(directory: Path, name: str, sha256: str) -> bool:
    """Return whether a file of that content is our own copy."""
    known = _recorded(directory, _left_record(name))
    return known is not None and known.holds(sha256)


def left_version(directory: Path, name: str) -> int | None:
    """Return the version of its stream that a file held when it was left; None for one that never was."""
    known = _recorded(directory, _left_record(name))
    return None if known is None else known.held.version


def own_exports(directory: Path) -> frozenset[str]:
    """Return the files that we wrote and no other program changed since, as far as recorded."""
    found = set()
    for path in (directory / _RECORDS).rglob("*.json"):
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


# Writing: the update that came before is committed, so a file that cannot be written is a warning in the log.


def export(directory: str | os.PathLike[str], stream: Stream) -> None:
    """Write the stream's newest rows to the file that it adopted; do nothing if it adopted none."""
    folder = Path(directory)
    if stream.stream_version >= 0 and ADOPTED_NOTE in stream_notes(stream):
        _alone(folder, stream, lambda: _export(folder, stream))


def _export(directory: Path, stream: Stream) -> None:
    """Replace the file by the newest version's rows, unless it has them or another program changed it."""
    known, version = known_file(directory, stream), stream.stream_version
    # In a job, an adoption and the updates after it are one version.
    if known is None or (known.held.version == version and not is_working_copy(directory)):
        return
    path = directory / known.name
    if not path.is_file():
        return  # the user deleted it
    found = file_sha256(path)
    if not known.holds(found):
        return
    content = rows_as_file(path, stream, version)
    new = FileState(hashlib.sha256(content).hexdigest(), version)
    if known.held != new:
        _replace(directory, _adopted_record(stream), known.name, content, (known.present(found), new))


def leave_file(directory: str | os.PathLike[str], stream: Stream, suffix: str) -> None:
    """Write the stream's newest rows to its file of that kind.

    A file that the stream adopted is kept up to date by ``export``, and is the only one then, except that
    CSV is written where it is requested. A file of another program is left as it is.
    """
    folder = Path(directory)
    adopted = known_file(folder, stream)
    if stream.stream_version < 0 or (adopted is not None and adopted.name.endswith((suffix, CSV))):
        return
    _alone(folder, stream, lambda: _leave(folder, stream, f"{stream.name}{suffix}"))


def refresh_left(directory: str | os.PathLike[str], stream: Stream) -> None:
    """Bring those files up to date that were left before and are still ours."""
    folder = Path(directory)
    for name in (f"{stream.name}{suffix}" for suffix in (PARQUET, CSV)):
        if (folder / name).is_file() and left_version(folder, name) is not None:
            _alone(folder, stream, partial(_leave, folder, stream, name))


def _leave(folder: Path, stream: Stream, name: str) -> None:
    path, known, version = folder / name, _recorded(folder, _left_record(name)), stream.stream_version
    found = file_sha256(path) if path.is_file() else None
    if found is not None and not (known is not None and known.holds(found)) and not _is_passed_over(path):
        return  # it is adopted next
    content = rows_as_file(path, stream, version)
    new = FileState(hashlib.sha256(content).hexdigest(), version)
    if found != new.sha256 or known is None or known.held != new:
        held = new if known is None else known.present(found)
        _replace(folder, _left_record(name), name, content, (held, new))


def _is_passed_over(path: Path) -> bool:
    """Return whether the file is never adopted: a CSV file beside a Parquet file does not count."""
    return path.name.endswith(CSV) and path.with_name(path.name.removesuffix(CSV) + PARQUET).is_file()


def _replace(
    folder: Path, record: str, name: str, content: bytes, states: tuple[FileState, FileState]
) -> None:
    """Write the intent, then the file, then the result: after a crash the hash tells which was reached."""
    held, new = states
    storage = LocalStorage(folder)
    storage.replace(record, _record_text(name, held, new))
    storage.replace(name, content)
    storage.replace(record, _record_text(name, new, None))


def _alone(directory: Path, stream: Stream, write: Callable[[], None]) -> None:
    """Let one writer work at a time: each writes the newest rows, so the last file is the newest."""
    path = directory / _RECORDS / f"{stream.name}.lock"
    try:
        make_private(path.parent)
        path.touch(mode=0o600)
        with path.open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            write()
    except (StorageUnavailable, OSError):
        _logger.warning("Committed, but the file of %s could not be written.", stream.name, exc_info=True)


def rows_as_file(path: Path, stream: Stream, version: int) -> bytes:
    """Return the stream's rows as a file of the path's kind; where one is there, in its order of columns."""
    return _content(path, stream.read(stream_version=version, as_="arrow"))


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
