"""Snapshot files of hotglue and gluestick, taken over as streams: on first use, or a whole folder.

A directory that scripts have used so far holds one ``{stream}.snapshot.csv`` or ``.parquet`` for each
stream. Such a file is adopted where it lies: reading reads it, and the first update makes the stream of it,
in a commit of its own, which records the file's SHA-256. The file stays, and is written again after updates
(``store.snapshot_files``). A file that another program has changed since (a target writes its id map anew at
every job) is adopted again. Rules: ``docs/reference/gluestick.md``, "Existing files".
"""

import csv
import json
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freezeframe import progress
from freezeframe.engine.frames.batch import check_batch
from freezeframe.engine.frames.frames import (
    Library,
    marked_columns,
    nullable_in_pandas,
    to_frame,
    with_nullable,
)
from freezeframe.engine.frames.row_hashes import table_hashes
from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import (
    AlreadyExists,
    BadInput,
    ConflictError,
    InputNotFound,
    InvalidOption,
    MissingColumn,
    UnreadableInput,
    VersionNotFound,
)
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log.format.schema import delta_to_arrow
from freezeframe.log.scan.data_skipping import as_expression, columns_of
from freezeframe.script.current_job import job_at
from freezeframe.script.formats.columnar_files import ParquetFormat
from freezeframe.script.formats.csv_file import find_delimiter
from freezeframe.script.formats.csv_rows import CsvFormat
from freezeframe.script.formats.input_parts import UNLIMITED, UnpackLimits
from freezeframe.script.inputs.transfer import file_rows, import_stream, schema_file
from freezeframe.script.tenants import shared_engine
from freezeframe.script.types.typed_columns import KnownTypes
from freezeframe.settings import load_settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Stream, Tenant
from freezeframe.store.model.directory import CSV, PARQUET, is_working_copy
from freezeframe.store.model.update_options import Mode, NullKeys, Update
from freezeframe.store.snapshot_files import (
    LEFT_NOTE,
    adoption_note,
    file_sha256,
    file_with_content,
    is_left,
    known_file,
    leave_file,
    left_version,
    refresh_copy,
)
from freezeframe.store.table.reader import spark_rows, with_columns
from freezeframe.store.tenant import Job

# If both exist, gluestick reads the Parquet file.
_SUFFIXES = (PARQUET, CSV)
GLUESTICK_LOCK = ".hg.partial_written.lock"
_TRIES_MAX = 5


@dataclass(frozen=True, slots=True)
class FoundSnapshotFile:
    """A snapshot file, and the SHA-256 that its content had when it was found."""

    path: Path
    sha256: str

    def read(self, known: pa.Schema | None, limits: UnpackLimits = UNLIMITED) -> pa.Table:
        """Return the rows; ``known`` types win over a CSV file's text, where every value is exact in them."""
        if self.path.suffix == ".csv":
            table = CsvFormat().whole([self.path], KnownTypes(known))
        else:
            table = _whole_numbers(ParquetFormat(limits).whole([self.path]), known)
            table = with_nullable(table, nullable_in_pandas(pq.read_schema(self.path)))
        if file_sha256(self.path) != self.sha256:
            raise ConflictError(
                f"{str(self.path)!r} was changed while it was read.",
                cause="Another program uses the same directory.",
                remedy="Run the call again when it is done.",
                file=str(self.path),
            )
        return table


@dataclass(frozen=True, slots=True)
class Adoption:
    """A file whose content its stream does not have yet, and how it is taken over.

    The file is the stream's whole content if there is no stream yet, if no other program has changed the
    stream since the file was adopted last, or if the stream has no key. Otherwise both sides
    changed: only the rows that are new or different in the file are brought in, by key.
    """

    stream: Stream
    file: FoundSnapshotFile
    version: int
    key: tuple[str, ...]
    adopted_version: int | None
    noted_version: int
    """The version of the stream that the note of the adoption names as the file's own."""

    @property
    def replaces(self) -> bool:
        """Whether the file is the stream's whole content."""
        return self.version < 0 or not self.key or self.adopted_version == self.version

    def take_over(self, key: tuple[str, ...], null_keys: NullKeys, known: pa.Schema | None) -> None:
        """Commit the file's rows to the stream; a new stream gets ``key``; the last of equal keys wins."""
        with _naming(self.file):
            self.stream.apply(*self._change(self._rows(known), key, null_keys))

    def view(self, known: pa.Schema | None = None) -> pa.Table:
        """Return the stream's rows as they would be after the adoption; nothing is written."""
        with _naming(self.file):
            table = self._rows(known)
            if not self.replaces:
                joined: pa.Table = self.stream.preview_and_read(*self._change(table, (), "match"))
                return joined
            unique = check_batch(table, self.key, null_keys="match").rows if self.key else table
        fields = [
            pa.field(field.name, pa.string() if pa.types.is_null(field.type) else field.type)
            for field in unique.schema
        ]
        return with_nullable(unique.cast(pa.schema(fields)), marked_columns(unique.schema))

    def _rows(self, known: pa.Schema | None) -> pa.Table:
        return self.file.read(self.stream.schema if self.version >= 0 else known)

    def _change(self, table: pa.Table, key: tuple[str, ...], null_keys: NullKeys) -> tuple[Rows, Update]:
        # With a history, what the file lacks is closed and not forgotten.
        whole: Mode = "full" if self.version >= 0 and self.stream.has_history else "overwrite"
        update = Update(
            key=self.key if self.version >= 0 else key,
            mode=whole if self.replaces else "upsert",
            max_delete_ratio=1.0,
            nulls="overwrite",
            null_keys=null_keys,
            expected_version=self.version,
            notes=(adoption_note(self.file.path.name, self.file.sha256, self.noted_version),),
        )
        return Rows(table if self.replaces else self._changed_rows(table)), update

    def _changed_rows(self, table: pa.Table) -> pa.Table:
        unique = check_batch(table, self.key, null_keys="match").rows
        if self.adopted_version is None or self.adopted_version < 0:
            return unique
        try:
            known = self.stream.read(stream_version=self.adopted_version, as_="arrow")
        except VersionNotFound:  # gc or an erasure removed it; rows that are equal now change nothing
            known = self.stream.read(as_="arrow")
        before = set(table_hashes(known))
        return unique.filter(
            pa.array([table_hash not in before for table_hash in table_hashes(unique)], pa.bool_())
        )


def pending_adoption(directory: str | os.PathLike[str], stream: Stream) -> Adoption | None:
    """Return the file of that stream that is still to be adopted, or None."""
    file = _find(Path(directory), stream.name)
    version = stream.stream_version
    if file is None:
        if version < 0:
            _refuse_cut_off(Path(directory), stream.name)
        return None
    known = known_file(Path(directory), stream)
    if known is not None and known.holds(file.sha256):
        return None
    key = stream.key if version >= 0 else ()
    adopted_version = known.held.version if known else left_version(Path(directory), file.path.name)
    # In a run the updates after it are part of the same version, so none is the file's own.
    noted_version = version if is_working_copy(directory) else version + 1
    return Adoption(stream, file, version, key, adopted_version, noted_version)


def adopt(directory: str | os.PathLike[str], stream: Stream, update: Update, rows: Rows) -> None:
    """Adopt the stream's file, before ``update`` with ``rows`` is carried out."""
    for tries_left in reversed(range(_TRIES_MAX)):
        adoption = pending_adoption(directory, stream)
        if adoption is None:
            return
        try:
            known = column_types(rows) if adoption.version < 0 else None
            adoption.take_over(_adoption_key(update), update.null_keys, known)
            _keep_in_run(Path(directory), adoption.file)
        except ConflictError:
            if not tries_left:
                raise
        else:
            return


def adopt_written(folder: Path, tenant: Job, paths: Iterable[str]) -> None:
    """Make the snapshot files that a script wrote itself the content of their streams, in its job.

    So a stream shows what an unchanged script keeps. A file beside a stream with rows of its own waits for
    the next update. One that the stream cannot take stays a file, and the run's report says why: the
    script's work is done, and hotglue would have kept it. The first file of a name without a stream is one
    of a script whose imports were not replaced, and the report says that its rows have no history.
    """
    written = {name: path for path in paths if (name := snapshot_file_stream(path))}
    known = set(tenant.streams())
    unknown = (path for name, path in written.items() if name not in known)
    new = sorted(path for path in unknown if not tenant.files.exists(path))
    if new:
        progress.remark(
            f"Kept as files, so without a history of rows: {', '.join(new)}. In the script import "
            "freezeframe.gluestick in place of gluestick, and freezeframe in place of lib.util, for streams."
        )
    names = sorted(written.keys() & known)
    if not names:
        return
    committed = tenant.at(tenant.version)
    for name in names:
        adoption = pending_adoption(folder, tenant.stream(name))
        if adoption is None or not adoption.replaces:
            continue
        try:  # nothing of this job comes after it, so the version will be the file's own
            version = committed.stream(name).stream_version + 1
            replace(adoption, noted_version=version).take_over((), "match", None)
        except BadInput as error:
            progress.remark(f"The stream {name} stays as it was: {error.problem}")


def snapshot_file_stream(path: str) -> str | None:
    """Return the stream that a file of that path would be a snapshot file of; None for any other file."""
    suffix = next((item for item in _SUFFIXES if path.endswith(item)), None)
    return None if suffix is None or "/" in path else path.removesuffix(suffix)


def export_adopted(directory: str | os.PathLike[str], stream: Stream) -> None:
    """Write the files beside the stream again in a run, whose commit comes later; elsewhere that does it."""
    if is_working_copy(directory) and load_settings().export_adopted_files:
        refresh_copy(directory, stream)


def leave(directory: str | os.PathLike[str], stream: Stream, *, as_csv: bool) -> None:
    """Leave the stream's rows as the file that gluestick would, unless ``export_adopted_files`` is off."""
    if load_settings().export_adopted_files:
        leave_file(directory, stream, CSV if as_csv else PARQUET)


def _keep_in_run(directory: Path, file: FoundSnapshotFile) -> None:
    """Make what was adopted the tenant's file in a run: the next run must not take older content for new."""
    job = job_at(directory.resolve())
    if job is None:
        return
    held = next((item for item in job.files.list() if item.path == file.path.name), None)
    if held is None or held.sealed or held.sha256 != file.sha256:
        with file.path.open("rb") as content:
            job.files.write(file.path.name, content)


def preview(
    directory: str | os.PathLike[str],
    stream: Stream,
    rows: Rows,
    update: Update,
    sort_columns: Sequence[str],
    dtype_backend: str | None,
) -> Any:
    """Return the stream's rows after its file's adoption and the update; nothing is stored."""
    adoption = pending_adoption(directory, stream)
    if adoption is None:
        return stream.preview_and_read(rows, update, sort_columns, dtype_backend)
    with tempfile.TemporaryDirectory(prefix="freezeframe-") as folder:
        # The merge needs stored rows to start from, and the tenant's own directory must stay as it is.
        scratch = Tenant(LocalStorage(Path(folder)), shared_engine(), load_settings())
        adopted = scratch.stream(stream.name)
        known = column_types(rows) if adoption.version < 0 else None
        key = adoption.key if adoption.version >= 0 else _adoption_key(update)
        with _naming(adoption.file):
            stored = Update(key=key, mode="overwrite", null_keys=update.null_keys)
            adopted.apply(Rows(adoption.view(known)), stored)
        return adopted.preview_and_read(rows, update, sort_columns, dtype_backend)


def as_frame(
    table: pa.Table,
    columns: Sequence[str] | None,
    where: Any,
    as_: Library,
    dtype_backend: str | None = None,
) -> Any:
    """Return the rows of a view as a reader of the stream would get them."""
    if where is not None:
        expression = as_expression(where, table.schema)
        columns_of(expression, table.schema)
        table = table.filter(expression)
    if columns is not None:
        MissingColumn.refuse(columns, table.column_names)
        table = table.select(list(columns))
    if as_ == "spark":
        return spark_rows(table, shared_engine().session)
    return to_frame(table, as_, dtype_backend)


def column_types(rows: Rows) -> pa.Schema:
    """Return the columns in the types that a stream would keep."""
    if rows.is_spark:
        return delta_to_arrow(json.loads(rows.frame.schema.json()))
    return rows.to_arrow().schema


def _adoption_key(update: Update) -> tuple[str, ...]:
    # Rows that are about to be replaced need not fit the key of those that come.
    return () if update.mode == "overwrite" else update.key


def _find(directory: Path, stream: str) -> FoundSnapshotFile | None:
    for suffix in _SUFFIXES:
        path = directory / f"{stream}{suffix}"
        try:
            sha256 = file_sha256(path)
            if not is_left(directory, path.name, sha256):
                return FoundSnapshotFile(path, sha256)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            continue
    return None


def _refuse_cut_off(directory: Path, stream: str) -> None:
    for suffix in _SUFFIXES:
        path = directory / f"{stream}{suffix}{GLUESTICK_LOCK}"
        if path.is_file():
            raise UnreadableInput(
                f"The snapshot of {stream!r} is there only as {path.name!r}.",
                cause="gluestick uses this name while it writes: it was interrupted, or is still writing.",
                remedy="Restore the file from a backup, or delete this one to start empty.",
                file=str(path),
            )


def _whole_numbers(table: pa.Table, known: pa.Schema | None) -> pa.Table:
    """Convert floats back to the stream's integers: pandas makes floats of integers beside missing values."""
    types, integers = {field.name: field.type for field in known or ()}, {}
    for field, column in zip(table.schema, table.columns, strict=True):
        wanted = types.get(field.name)
        if wanted is None or not pa.types.is_integer(wanted) or not pa.types.is_floating(field.type):
            continue
        try:
            whole = column.cast(wanted)
        except pa.ArrowInvalid:
            continue
        if pc.all(pc.equal(whole.cast(field.type), column), min_count=0).as_py():
            integers[field.name] = whole
    return with_columns(table, integers)


@contextmanager
def _naming(file: FoundSnapshotFile) -> Iterator[None]:
    """Name the file in an error about its rows."""
    try:
        yield
    except UnreadableInput:
        raise
    except BadInput as error:
        raise type(error)(
            f"{str(file.path)!r} cannot be adopted: {error.problem}",
            cause=error.cause,
            remedy="Correct the file, or move it out of the directory.",
            **{**error.details, "file": str(file.path)},
        ) from error


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
        """Bring everything into a job; the numbers of rows of the streams, in their order.

        Each snapshot file stays, as the one that its stream adopted, for scripts that open it.
        """
        rows = [_import(job, snapshot) for snapshot in self.snapshots]
        kept = [(snapshot.path.name, snapshot.path) for snapshot in self.snapshots]
        for path, file in (*kept, *self.files):
            with file.open("rb") as content:
                job.files.write(path, content)
        return rows


def plan_migration(folder: str | os.PathLike[str], key: Sequence[str], tenant: Tenant | None) -> Migration:
    """Find the ``{stream}.snapshot.csv`` and ``.parquet`` files and the other files of a directory.

    ``key`` becomes the key of each stream that has all of its columns; other streams have no key. Where a
    stream has both kinds of files, the Parquet file counts, as for gluestick, and the other one is kept.
    ``tenant`` None: there is none.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputNotFound(f"There is no directory {root}.", remedy="Check the path.", path=str(root))
    if (root / "_freezeframe").exists():
        raise InvalidOption(
            f"{root} is a freezeframe directory already.",
            cause="It has a log of its own (_freezeframe).",
            remedy="Use freezeframe tenant clone, or copy the folder.",
        )
    plain = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
    named = {path.relative_to(root).as_posix(): path for path in plain}
    snapshots, files = {}, {}
    for name, path in named.items():
        if name.endswith(GLUESTICK_LOCK):
            raise UnreadableInput(
                f"{path} is an incomplete snapshot.",
                cause="gluestick uses this name while it writes, and was interrupted.",
                remedy="Restore the file from a backup, or delete this one to start empty.",
                file=str(path),
            )
        stream = snapshot_file_stream(name)
        if stream is None:
            files[str(FilePath(name))] = path
        elif name.endswith(CSV) and f"{stream}{PARQUET}" in named:
            files[name] = path
        else:
            snapshots[str(StreamName(stream))] = path
    for path in snapshots.values():
        files.pop(schema_file(path).name, None)  # it belongs to the rows and is not migrated as a file
    if not (snapshots or files):
        raise InputNotFound(f"There is nothing in {root}.", remedy="Check the path.", path=str(root))
    if tenant is not None:
        _require_new(tenant, [*snapshots], [*files])
    found = tuple(
        SnapshotFile(stream, path, tuple(key) if key and {*key} <= {*_columns(path)} else ())
        for stream, path in snapshots.items()
    )
    return Migration(found, tuple(files.items()))


def _require_new(tenant: Tenant, streams: Sequence[str], files: Sequence[str]) -> None:
    held = {*tenant.streams()} & {*streams}
    held |= {item.path for item in tenant.files.list(recursive=True)} & {*files}
    if held:
        raise AlreadyExists(
            f"The tenant already has {', '.join(sorted(held))}.",
            cause="A migration never replaces what a tenant has.",
            remedy="Migrate into a new tenant, or use freezeframe import.",
        )


def _columns(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        try:
            return list(pq.read_schema(path).names)
        except pa.ArrowException:
            return list(ParquetFormat().whole([path]).column_names)  # raises the file's error
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        return next(csv.reader(text, delimiter=find_delimiter(path).decode()), [])


def _import(job: Job, snapshot: SnapshotFile) -> int:
    stream, schema = job.stream(snapshot.stream), schema_file(snapshot.path)
    notes = (adoption_note(snapshot.path.name, file_sha256(snapshot.path), 0),)
    try:
        if snapshot.key:
            known = schema if snapshot.path.suffix == ".csv" and schema.is_file() else None
            import_stream(stream, snapshot.path, snapshot.key, schema_from=known)
            stream.apply(Rows(stream.schema.empty_table()), Update(key=snapshot.key, notes=notes))
        else:
            rows = Rows(file_rows(snapshot.path, None, None, UNLIMITED))
            stream.apply(rows, Update(key=(), mode="overwrite", notes=notes))
    except UnreadableInput:
        raise
    except BadInput as error:
        raise type(error)(
            f"{snapshot.path}: {error.problem}",
            cause=error.cause,
            remedy=error.remedy,
            **{**error.details, "file": str(snapshot.path)},
        ) from error
    return stream.count()


# What a tenant keeps as a file is what its stream adopted last; the rows since then are the stream's. So
# a run's copy is written anew from the stream before the script begins, for scripts that open it, and what
# freezeframe wrote there itself is not a change of the file. What the script wrote is one, and is kept.
# A file that gluestick's functions left in an earlier run is written as well: scripts look whether it is
# there to learn whether they run for the first time.
# Rules: ``docs/reference/gluestick.md``, "Existing files".


def refresh_copies(folder: Path, tenant: Job, paths: Collection[str]) -> None:
    """Write the files beside streams, adopted or left, as of the job's beginning.

    The job has not read the streams by that: it meets no conflict over one that its script leaves alone.
    """
    adopted, names = {snapshot_file_stream(path) for path in paths}, tenant.streams()
    view = tenant.at(tenant.version) if names else tenant
    for name in names:
        stream = view.stream(name)
        if name not in adopted:
            if suffix := stream.notes.get(LEFT_NOTE):
                leave(folder, stream, as_csv=suffix == CSV)
        elif file_with_content(stream, view.files) is None:
            export_adopted(folder, stream)
