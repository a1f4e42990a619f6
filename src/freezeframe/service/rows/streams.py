"""A tenant's streams at a version: their description, batches of rows, and values as JSON."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict, Field

from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import BadInput, InvalidOption, StreamNotFound
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.script.adoption import FoundSnapshotFile
from freezeframe.script.formats.input_parts import UnpackLimits
from freezeframe.script.inputs.transfer import UNPACKED_MEMORY_BYTES_MAX
from freezeframe.store import Receipt, Stream, Tenant
from freezeframe.store.model.directory import snapshot_paths
from freezeframe.store.model.json_fields import json_scalar
from freezeframe.store.model.update_options import Author, Update
from freezeframe.store.schema.columns import (
    VALID_TO,
    arrow_columns,
    delta_columns,
    read_system_columns,
    type_names,
)
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.snapshot_files import adoption_note, file_sha256
from freezeframe.store.table.written_rows import FileKind

_SAFE_INTEGER = 2**53


def json_value(value: Any) -> Any:
    """Return a value for JSON, as exports have it, but text for integers beyond 2^53."""
    if isinstance(value, int):
        return value if abs(value) < _SAFE_INTEGER else str(value)
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(name): json_value(item) for name, item in value.items()}
    return json_scalar(value)


# An error names a received file as its sender does, never by where it lay.

_CHUNK_BYTES = 1024 * 1024


@contextmanager
def received_file(content: IO[bytes], kind: str, name: str) -> Iterator[Path]:
    """Write the content to a temporary file with the ending ``kind``; errors mention ``name``."""
    with tempfile.TemporaryDirectory(prefix="freezeframe-") as folder:
        path = Path(folder) / f"rows.{kind}"
        with path.open("wb") as target:
            shutil.copyfileobj(content, target, _CHUNK_BYTES)
        try:
            yield path
        except BadInput as error:
            error.problem = error.problem.replace(str(path), name)
            error.cause = error.cause.replace(str(path), name)
            error.details.pop("file", None)
            raise


# Rows are read by PyArrow in this process. An override is carried out here too, up to a limit of bytes;
# whatever else changes rows is a job.

EXPORT_TYPES: dict[FileKind, str] = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
ARROW_TYPE = "application/vnd.apache.arrow.stream"
SNAPSHOT_SUFFIXES: tuple[str, ...] = (".snapshot.csv", ".snapshot.parquet")


@dataclass(frozen=True, slots=True)
class Moment:
    """Point in time of a read: now, a tenant version, a time, or a stream version."""

    version: int | None = None
    as_of: datetime | None = None
    stream_version: int | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the moment as arguments of ``Stream.read``."""
        return {"version": self.version, "as_of": self.as_of, "stream_version": self.stream_version}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream."""

    name: str
    type: Annotated[str, Field(description="Delta's name of the type.", examples=["string", "decimal(10,2)"])]
    is_undecided: Annotated[bool, Field(description="Whether no value has decided the type yet.")]


@dataclass(frozen=True, slots=True)
class StreamDetail:
    """A stream now."""

    __pydantic_config__ = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "stream": "Account",
                    "version": 12,
                    "stream_version": 4,
                    "key": ["Id"],
                    "rows": 120,
                    "columns": [{"name": "Id", "type": "string", "is_undecided": False}],
                }
            ]
        }
    )

    stream: str
    version: Annotated[int, Field(description="The version of the tenant that made the stream so.")]
    stream_version: Annotated[int, Field(description="The stream's own version, which its `ETag` holds.")]
    key: tuple[str, ...]
    rows: int
    columns: tuple[Column, ...]


def stream_detail(stream: Stream) -> StreamDetail:
    """Describe a stream."""
    schema = stream.schema
    types = type_names(delta_columns(schema, None))
    columns = tuple(Column(field.name, types[field.name], is_undecided(field)) for field in schema)
    return StreamDetail(
        stream.name, stream.version, stream.stream_version, stream.key, stream.count(), columns
    )


def snapshot_name(stream: str, kind: str) -> str:
    """Return the name under which a stream appears among files: ``Account.snapshot.csv``."""
    return f"{stream}.snapshot.{kind}"


def stream_of(name: str) -> tuple[str, FileKind] | None:
    """Return the stream and the kind that a file's name means; None for any other file."""
    for suffix in SNAPSHOT_SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix) and "/" not in name:
            return name.removesuffix(suffix), "csv" if suffix.endswith("csv") else "parquet"
    return None


def override(
    tenant: Tenant,
    name: str,
    kind: FileKind,
    content: IO[bytes],
    author: Author,
    key: Sequence[str] = (),
    *,
    keeps_file: bool = False,
) -> Receipt:
    """Make the rows of a file the stream's whole content, in this process.

    Types of the stream's columns hold where the values fit. The caller has looked at the content's size.
    With ``keeps_file`` the file is kept, too, as the one that the stream adopted.
    """
    stream = tenant.stream(name)
    if stream.has_history:
        raise InvalidOption(
            f"The stream {name!r} keeps a history of its rows.",
            cause="Only a job can replace its content.",
            remedy="Import the rows as a full extract: mode=full.",
        )
    message = author.message or f"replace {name}"
    with (
        received_file(content, kind, snapshot_name(name, kind)) as file,
        tenant.job(who=author.who, message=message) as job,
    ):
        target_stream = job.stream(name)
        known = target_stream.schema if stream.stream_version >= 0 else None
        limits = UnpackLimits.of(tenant.context.settings, UNPACKED_MEMORY_BYTES_MAX)
        sha256 = file_sha256(file)
        rows = FoundSnapshotFile(file, sha256).read(known, limits)
        used = tuple(key) or (target_stream.key if stream.stream_version >= 0 else ())
        path, version = snapshot_name(name, kind), target_stream.stream_version + 1
        notes = (adoption_note(path, sha256, version),) if keeps_file else ()
        target_stream.apply(Rows(rows), Update(key=used, mode="overwrite", notes=notes))
        if keeps_file:
            for other in filter(job.files.exists, {*snapshot_paths(name)} - {path}):
                job.files.delete(other)
            with file.open("rb") as bytes_of_file:
                job.files.write(path, bytes_of_file)
    return job.receipt.streams[stream.name]


def require_stream(tenant: Tenant, name: str) -> Stream:
    """Return the stream, which must be there now."""
    stream = tenant.stream(name)
    if stream.stream_version < 0:
        there = ", ".join(tenant.streams())
        raise StreamNotFound(
            f"There is no stream {name!r}.",
            cause=f"The tenant's streams are: {there}." if there else "The tenant has no streams.",
            remedy="Check the name; an import makes a stream.",
            stream=name,
        )
    return stream


def stream_snapshot(tenant: Tenant, stream: str, moment: Moment) -> Snapshot:
    """Return the stream's table now, or at a moment; errors as of ``Stream.read``."""
    return tenant.stream(stream).snapshot(**moment.arguments())


def shown_columns(snapshot: Snapshot) -> pa.Schema:
    """Return the columns that readers see: without those that the stream keeps itself."""
    return read_system_columns(snapshot.metadata).removed_from(arrow_columns(snapshot.delta_schema))


def row_batches(
    snapshot: Snapshot, names: Sequence[str], where: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """Return the rows of the snapshot that meet ``where``, a batch at a time, of some columns only."""
    if read_system_columns(snapshot.metadata).has_history:
        holds = pc.field(VALID_TO).is_null()
        where = holds if where is None else holds & where
    return rows.read_batches(snapshot, list(names), where)
