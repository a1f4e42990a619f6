"""The snapshot files beside a stream, written again after each commit of it, for scripts that open them.

The stream is the truth and such a file a copy of its rows, replaced whole: the file that the stream adopted
(``{stream}.snapshot.parquet`` or ``.csv``), in the format and the order of columns that it had, and the file
that gluestick's functions leave. A record beside the tenant's log says what was written, so that our own
copy is not mistaken for a change by another program; a file that another program changed is left alone, and
adopted next.
Rules: ``docs/reference/gluestick.md``, "Existing files" and "The files that are left".
"""

import csv
import fcntl
import glob
import hashlib
import io
import json
import logging
import os
import tempfile
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.frames.frames import pandas_metadata
from freezeframe.engine.frames.rows import Rows
from freezeframe.engine.frames.untyped import parquet_schema
from freezeframe.errors import AlreadyExists, FreezeframeError
from freezeframe.identifiers import StreamName
from freezeframe.log.scan.file_statistics import bounded_columns
from freezeframe.storage import LocalStorage, Storage
from freezeframe.storage.local import make_private
from freezeframe.storage.read_ahead import reads_of
from freezeframe.store.files import Files
from freezeframe.store.model.directory import CSV, OURS, PARQUET, is_working_copy, snapshot_paths
from freezeframe.store.model.update_options import Update
from freezeframe.store.stream import Stream
from freezeframe.store.table.reader import in_schema
from freezeframe.store.table.written_rows import csv_text
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.scope import Scope
from freezeframe.store.transaction.transaction import Transaction

ADOPTED_NOTE = "adoptedFile"
LEFT_NOTE = "leftFile"
_RECORDS = f"{OURS}/exported"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileState:
    """The SHA-256 of a file's content (empty: removed with its stream), and the stream's version of it."""

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
    if stream.stream_version < 0:  # dropped, and its note with it
        return _recorded(directory, _adopted_record(stream))
    note = stream.notes.get(ADOPTED_NOTE)
    if note is None:
        return None
    adopted = json.loads(note)
    original = KnownFile(adopted["file"], FileState(adopted["sha256"], adopted["version"]))
    recorded = _recorded(directory, _adopted_record(stream))
    if recorded is None or recorded.name != original.name or recorded.held.version < original.held.version:
        # A working copy has no record, though the file may be our own export: one with exactly the bytes that
        # an export would write holds exactly the stream's rows.
        path, version = directory / original.name, stream.stream_version
        if not path.is_file():
            return original
        found = file_sha256(path)
        if original.holds(found) or hashlib.sha256(rows_as_file(path, stream, version)).hexdigest() != found:
            return original
        return KnownFile(original.name, FileState(found, version))
    return recorded


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


# Writing: what came before is committed, so a file that cannot be written is a warning in the log. Only an
# erasure looks at what is left, and names it.


def refresh_copies(context: TenantContext, streams: Collection[str], *, is_erasure: bool = False) -> None:
    """Bring the files beside streams that changed up to date; those of dropped streams are removed.

    With ``export_adopted_files`` off this is done only for an erasure.
    """
    folder = _local_folder(context.storage)
    if folder is not None and (is_erasure or context.settings.export_adopted_files):
        for name in streams:
            refresh_copy(folder, Stream(StreamName(name), Scope(context)))


def refresh_copy(directory: str | os.PathLike[str], stream: Stream) -> None:
    """Bring the files of one stream up to date that it adopted, or that were left, and are still ours."""
    folder = Path(directory)
    names = [
        name
        for name in snapshot_paths(stream.name)
        if (folder / name).is_file() or _was_written(folder, name)
    ]
    if names:
        _alone(folder, stream, lambda: _refresh(folder, stream, names))


def _copies_not_refreshed(stream: Stream) -> tuple[str, ...]:
    """Return the names of the stream's snapshot files whose content may differ from its newest rows."""
    folder = _local_folder(stream.scope.storage)
    if folder is None or not folder.is_dir():
        return ()
    there = sorted(path for path in folder.glob(f"{glob.escape(stream.name)}.snapshot.*") if path.is_file())
    return tuple(path.name for path in there if not _is_up_to_date(folder, path, stream))


def _is_up_to_date(folder: Path, path: Path, stream: Stream) -> bool:
    current = FileState(file_sha256(path), stream.stream_version)
    records = (known_file(folder, stream), _recorded(folder, _left_record(path.name)))
    return any(known and known.name == path.name and current == known.held for known in records)


def _local_folder(storage: Storage) -> Path | None:
    """Return the tenant's folder on a disk; None in a bucket, where no script opens files."""
    path = storage.local_path(OURS)
    return None if path is None else path.parent


def _was_written(folder: Path, name: str) -> bool:
    stream = name.removesuffix(CSV).removesuffix(PARQUET)
    return any((folder / record).is_file() for record in (f"{_RECORDS}/{stream}.json", _left_record(name)))


def _refresh(folder: Path, stream: Stream, names: list[str]) -> None:
    adopted = known_file(folder, stream)
    if adopted is not None:
        _write(folder, stream, _adopted_record(stream), adopted)
    for name in names:
        left = _recorded(folder, _left_record(name))
        if left is not None:
            _write(folder, stream, _left_record(name), left)


def _write(directory: Path, stream: Stream, record: str, known: KnownFile) -> None:
    """Replace the file by the newest version's rows, unless it has them or another program changed it."""
    version, path = stream.stream_version, directory / known.name
    found = file_sha256(path) if path.is_file() else ""
    if not (known.holds(found) or (found and _is_passed_over(path) and record == _left_record(known.name))):
        return  # another program changed it, and it is adopted next; or the user deleted it
    if version < 0:
        if found:
            _remove(directory, record, known)
        return
    # In a job, an adoption and the updates after it are one version.
    if known.present(found) == FileState(found, version) and not is_working_copy(directory):
        if not (directory / record).is_file():
            LocalStorage(directory).replace(record, _record_text(known.name, known.held, None))
        return
    content = rows_as_file(path, stream, version)
    new = FileState(hashlib.sha256(content).hexdigest(), version)
    if known.held != new or found != new.sha256:
        _replace(directory, record, known.name, content, (known.present(found), new))


def _remove(directory: Path, record: str, known: KnownFile) -> None:
    """Remove the file of a dropped stream; if the stream is restored, it is written again."""
    storage = LocalStorage(directory)
    storage.delete(known.name)
    storage.replace(record, _record_text(known.name, FileState("", known.held.version), None))


def leave_file(directory: str | os.PathLike[str], stream: Stream, suffix: str) -> None:
    """Write the stream's newest rows to its file of that kind, and keep it up to date from then on.

    A file that the stream adopted is the only one then, except that CSV is written where it is requested.
    A file of another program is left as it is. In a run the stream notes its kind, for the next run's copy.
    """
    folder = Path(directory)
    adopted = known_file(folder, stream)
    if stream.stream_version < 0 or (adopted is not None and adopted.name.endswith((suffix, CSV))):
        return
    _alone(folder, stream, lambda: _leave(folder, stream, f"{stream.name}{suffix}"))
    if is_working_copy(folder) and stream.notes.get(LEFT_NOTE) != suffix:
        nothing = Rows(stream.schema.empty_table())
        stream.apply(nothing, Update(key=stream.key, notes=((LEFT_NOTE, suffix),)))


def _leave(folder: Path, stream: Stream, name: str) -> None:
    path, known = folder / name, _recorded(folder, _left_record(name))
    if not path.is_file():
        known = KnownFile(name, FileState("", -1))
    if known is None and _is_passed_over(path):
        known = KnownFile(name, FileState(file_sha256(path), -1))
    if known is not None:
        _write(folder, stream, _left_record(name), known)


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
    except (FreezeframeError, OSError):
        _logger.warning("Committed, but the file of %s could not be written.", stream.name, exc_info=True)


# A tenant's own files can have a stream's snapshot names, too: a run gives them to its script, and hotglue's
# clients upload them. Stream and file are one content then: of the file as long as the stream is as it
# adopted it, or when the file was written since and is adopted next; else of the stream.


def adoption_note(path: str, sha256: str, version: int) -> tuple[str, str]:
    """Return the note of a commit that makes the file's rows the stream's version."""
    return ADOPTED_NOTE, json.dumps({"file": path, "sha256": sha256, "version": version})


def adopted_by(stream: Stream, files: Files, path: str) -> FileState | None:
    """Return the state of the tenant's file of that path if it is as the stream adopted it; else None."""
    note = json.loads(stream.notes.get(ADOPTED_NOTE, "null"))
    if note is None or note["file"] != path:
        return None
    entry = files.entry(path)
    sha256 = hashlib.sha256(files.read(path)).hexdigest() if entry.sealed else entry.sha256
    return FileState(sha256, note["version"]) if note["sha256"] == sha256 else None


def file_with_content(stream: Stream, files: Files) -> str | None:
    """Return the path of the tenant's file that has the stream's content; None: its own rows are newer."""
    path = next(filter(files.exists, snapshot_paths(stream.name)), None)
    if path is None or stream.stream_version < 0:
        return path
    adopted = adopted_by(stream, files, path)
    return path if adopted is None or adopted.version == stream.stream_version else None


def require_own_file(path: str, state: TenantState) -> None:
    """Refuse a file that would be taken for a stream's content: the next job adopts its rows.

    For people's doors; a job's script writes such a file on purpose.
    """
    stream = next((name for name in state.streams if path in snapshot_paths(name)), None)
    if stream is not None:
        raise AlreadyExists(
            f"The file {path} would become the content of the stream {stream}.",
            cause="It has the name of the stream's snapshot file, which the next job takes for its rows.",
            remedy=f"Import it into the stream {stream} (mode full replaces all rows), or use another name.",
            path=path,
            stream=stream,
        )


def rewrite_files(transaction: Transaction, name: StreamName) -> None:
    """Write the tenant's file that the stream adopted anew, in a transaction that erases some of its rows."""
    scope = Scope(transaction.context, transaction)
    stream, files = Stream(name, scope), Files(scope)
    there = filter(files.exists, snapshot_paths(stream.name))
    for path in [path for path in there if adopted_by(stream, files, path)]:
        rows = stream.read(as_="arrow")
        with tempfile.TemporaryDirectory(prefix="freezeframe-") as folder:
            copy = Path(folder) / path
            copy.write_bytes(files.read(path))
            content = file_of_rows(copy, rows)
        files.write(path, content)
        version = stream.stream_version
        note = adoption_note(path, hashlib.sha256(content).hexdigest(), version)
        transaction.update(name, Rows(rows.slice(0, 0)), Update(key=stream.key, notes=(note,)))


def files_not_rewritten(stream: Stream) -> tuple[str, ...]:
    """Return the snapshot files of a stream, also those beside it, whose rows may not be its newest ones."""
    files = Files(stream.scope)
    there = filter(files.exists, snapshot_paths(stream.name))
    foreign = [path for path in there if adopted_by(stream, files, path) is None]
    return tuple(dict.fromkeys((*foreign, *_copies_not_refreshed(stream))))


def rows_as_file(path: Path, stream: Stream, version: int) -> bytes:
    """Return the stream's rows as a file of the path's kind; where one is there, in its order of columns."""
    return file_of_rows(path, stream.read(stream_version=version, as_="arrow"))


def file_of_rows(path: Path, rows: pa.Table) -> bytes:
    """Return the rows as the file's format has them; columns that it knows stay in their order."""
    is_csv = path.suffix == ".csv"
    with reads_of(str(path)):
        first: list[str] = []
        compression = "zstd"
        if path.is_file():
            first = _header(path) if is_csv else pq.read_schema(path).names
            compression = "" if is_csv else _compression(path)
    names = [name for name in first if name in rows.column_names]
    rows = rows.select([*names, *(name for name in rows.column_names if name not in names)])
    if is_csv:
        return csv_text(rows).encode()
    buffer = io.BytesIO()
    held = in_schema(rows, parquet_schema(rows.schema))
    bounded = bounded_columns(held.schema)
    with pq.ParquetWriter(
        buffer, held.schema, compression=compression, store_schema=False, write_statistics=bounded
    ) as writer:
        writer.write_table(held)
        writer.add_key_value_metadata(pandas_metadata(rows))
    return buffer.getvalue()


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])


def _compression(path: Path) -> str:
    file = pq.read_metadata(path)
    codec = file.row_group(0).column(0).compression if file.num_row_groups and file.num_columns else "ZSTD"
    return "none" if codec == "UNCOMPRESSED" else str(codec).lower()
