"""Migration of old snapshot files."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.errors import AlreadyExists, BadInput, InputNotFound, InvalidOption, UnreadableInput
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.script.adoption.legacy import GLUESTICK_LOCK, export_adopted, snapshot_file_stream
from freezeframe.script.formats.csv_lines import find_delimiter
from freezeframe.script.formats.parquet_files import read_parquet_files
from freezeframe.script.formats.unpacking import UNLIMITED
from freezeframe.script.inputs.transfer import file_rows, import_stream, schema_file
from freezeframe.script.tenant.left_file import CSV, PARQUET
from freezeframe.store import Tenant
from freezeframe.store.job import Job
from freezeframe.store.run_tenant import JobTenant

# Migration of a directory of snapshot files: each becomes a stream of a tenant, other files its files.


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A snapshot file, the stream that it becomes, and the stream's key (empty: none)."""

    stream: str
    path: Path
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Migration:
    """Content of a directory: snapshot files by stream, and other files by their paths in the tenant."""

    snapshots: tuple[SnapshotFile, ...]
    files: tuple[tuple[str, Path], ...]

    def carried_out(self, job: Job) -> list[int]:
        """Bring everything into a job; the numbers of rows of the streams, in their order."""
        rows = [_import(job, snapshot) for snapshot in self.snapshots]
        for path, file in self.files:
            with file.open("rb") as content:
                job.files.write(path, content)
        return rows


def plan_migration(folder: str | os.PathLike[str], key: Sequence[str], tenant: Tenant | None) -> Migration:
    """Find the ``{stream}.snapshot.csv`` and ``.parquet`` files and the other files of a directory.

    ``key`` becomes the key of each stream that has all of its columns; other streams have no key. Where a
    stream has both kinds of files, the Parquet file counts, as for gluestick. ``tenant`` None: there is none.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputNotFound(f"There is no directory {root}.", remedy="Check the path.", path=str(root))
    if (root / "_freezeframe").exists():
        raise InvalidOption(
            f"{root} is a freezeframe directory already.",
            cause="It has a log of its own (_freezeframe).",
            remedy="Use freezeframe tenant export and import to move it.",
        )
    named = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if _is_plain(path)}
    snapshots, files = {}, {}
    for name, path in named.items():
        if name.endswith(GLUESTICK_LOCK):
            raise UnreadableInput(
                f"{path} is a snapshot that was being written.",
                cause="gluestick renames the good file so while it writes, and was cut off.",
                remedy="Restore the file from a backup, or remove this one to begin anew.",
                file=str(path),
            )
        stream = snapshot_file_stream(name)
        if stream is None:
            files[str(FilePath(name))] = path
        elif not name.endswith(CSV) or f"{stream}{PARQUET}" not in named:
            snapshots[str(StreamName(stream))] = path
    for path in snapshots.values():
        files.pop(schema_file(path).name, None)  # it belongs to the rows and is not migrated as a file
    if not (snapshots or files):
        raise InputNotFound(f"There is nothing in {root}.", remedy="Check the path.", path=str(root))
    if tenant is not None:
        _require_new(tenant, [*snapshots], [*files])
    found = [SnapshotFile(stream, path, _key_of(path, tuple(key))) for stream, path in snapshots.items()]
    return Migration(tuple(found), tuple(files.items()))


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _require_new(tenant: Tenant, streams: Sequence[str], files: Sequence[str]) -> None:
    held = {*tenant.streams()} & {*streams}
    held |= {item.path for item in tenant.files.list(recursive=True)} & {*files}
    if held:
        raise AlreadyExists(
            f"The tenant already has {', '.join(sorted(held))}.",
            cause="A migration never replaces what a tenant has.",
            remedy="Migrate into a new tenant, or use freezeframe import.",
        )


def _key_of(path: Path, key: tuple[str, ...]) -> tuple[str, ...]:
    return key if key and {*key} <= {*_columns(path)} else ()


def _columns(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        try:
            return list(pq.read_schema(path).names)
        except pa.ArrowException:
            return list(read_parquet_files([path]).column_names)  # raises the file's error
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        return next(csv.reader(text, delimiter=find_delimiter(path).decode()), [])


def _import(job: Job, one: SnapshotFile) -> int:
    stream, schema = job.stream(one.stream), schema_file(one.path)
    try:
        if one.key:
            known = schema if one.path.suffix == ".csv" and schema.is_file() else None
            import_stream(stream, one.path, one.key, schema_from=known)
        else:
            stream.update(file_rows(one.path, None, None, UNLIMITED), override=True)
    except UnreadableInput:
        raise
    except BadInput as error:
        raise type(error)(
            f"{one.path}: {error.problem}",
            cause=error.cause,
            remedy=error.remedy,
            **{**error.details, "file": str(one.path)},
        ) from error
    return stream.row_count()


# Adopted snapshot files in a run's working copy: refreshed before the run.
#
# What a tenant keeps as a file is what its stream adopted last; the rows since then are the stream's. So
# a run's copy is written anew from the stream before the script begins, for scripts that open it, and what
# freezeframe wrote there itself is not a change of the file. What the script wrote is one, and is kept.
# Rules: ``docs/reference/gluestick.md``, "Existing files".


def refresh_copies(folder: Path, tenant: JobTenant, paths: Collection[str]) -> None:
    """Write those of the checked-out files that streams adopted anew, as of the job's beginning.

    The job has not read the streams by that: it meets no conflict over one that its script leaves alone.
    """
    names = {snapshot_file_stream(path) for path in paths} & set(tenant.streams())
    if names:
        view = tenant.at(tenant.version)
        for name in sorted(filter(None, names)):
            export_adopted(folder, view.stream(name))
