"""Streams of a tenant at a version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import InvalidOption, MissingColumn, StreamNotFound
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.script.adoption import LegacyFile
from freezeframe.script.exported_file import file_sha256
from freezeframe.script.formats.input_parts import UnpackLimits
from freezeframe.script.transfer import UNPACKED_MEMORY_BYTES_MAX
from freezeframe.service.base.received_file import received_file
from freezeframe.store import Receipt, Stream, Tenant
from freezeframe.store.model.update_options import Author
from freezeframe.store.schema.columns import (
    VALID_TO,
    arrow_columns,
    delta_columns,
    read_system_columns,
    type_names,
)
from freezeframe.store.schema.schema_evolution import is_undecided

# Streams as the service describes them: schema, some rows, exports.
#
# Rows are read by PyArrow in this process. An override is carried out here too, up to a limit of bytes;
# whatever else changes rows is a job.

ExportKind = Literal["csv", "parquet", "jsonl"]
EXPORT_TYPES: dict[ExportKind, str] = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
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
        """The moment as arguments of ``Stream.read``."""
        return {"version": self.version, "as_of": self.as_of, "stream_version": self.stream_version}


class Column(NamedTuple):
    """A column by Delta's type, and whether no value has decided the type yet."""

    name: str
    type: str
    is_undecided: bool


@dataclass(frozen=True, slots=True)
class StreamDetail:
    """A stream now: the tenant's version that made it so, its own, key, rows and columns (Delta's types)."""

    stream: str
    version: int
    stream_version: int
    key: tuple[str, ...]
    rows: int
    columns: tuple[Column, ...]


def stream_detail(stream: Stream) -> StreamDetail:
    """Description of a stream."""
    schema = stream.columns()
    types = type_names(delta_columns(schema, None))
    columns = tuple(Column(field.name, types[field.name], is_undecided(field)) for field in schema)
    return StreamDetail(
        stream.name, stream.version(), stream.stream_version(), stream.key(), stream.row_count(), columns
    )


def snapshot_name(stream: str, kind: str) -> str:
    """The name under which a stream appears among files: ``Account.snapshot.csv``."""
    return f"{stream}.snapshot.{kind}"


def stream_of(name: str) -> tuple[str, ExportKind] | None:
    """The stream and the kind that a file's name means; None for any other file."""
    for suffix in SNAPSHOT_SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix) and "/" not in name:
            return name.removesuffix(suffix), "csv" if suffix.endswith("csv") else "parquet"
    return None


def override(
    tenant: Tenant, name: str, kind: ExportKind, content: IO[bytes], author: Author, key: Sequence[str] = ()
) -> Receipt:
    """Make the rows of a file the stream's whole content, in this process.

    Types of the stream's columns hold where the values fit. The caller has looked at the content's size.
    """
    stream = tenant.stream(name)
    if stream.has_history():
        raise InvalidOption(
            f"The stream {name!r} keeps its rows' past.",
            cause="To replace its content rows have to be closed, which is a job's work.",
            remedy="Import the rows as a full extract: mode=full.",
        )
    message = author.message or f"replace {name}"
    with (
        received_file(content, kind, snapshot_name(name, kind)) as file,
        tenant.job(who=author.who, message=message) as job,
    ):
        target_stream = job.stream(name)
        known = target_stream.columns() if stream.stream_version() >= 0 else None
        limits = UnpackLimits.of(tenant.context.settings, UNPACKED_MEMORY_BYTES_MAX)
        rows = LegacyFile(file, file_sha256(file)).read(known, limits)
        used = tuple(key) or (target_stream.key() if stream.stream_version() >= 0 else ())
        target_stream.update(rows, used or None, override=True)
    return job.receipt.streams[stream.name]


def require_stream(tenant: Tenant, name: str) -> Stream:
    """The stream, which must be there now."""
    stream = tenant.stream(name)
    if stream.stream_version() < 0:
        there = ", ".join(tenant.streams())
        raise StreamNotFound(
            f"There is no stream {name!r}.",
            cause=f"The tenant's streams are: {there}." if there else "The tenant has no streams.",
            remedy="Check the name; an import makes a stream.",
            stream=name,
        )
    return stream


# A stream's table at a version or time, for the service's column-wise readers.


def stream_snapshot(tenant: Tenant, stream: str, moment: Moment) -> Snapshot:
    """The stream's table now, or at a moment; errors as of ``Stream.read``."""
    return tenant.stream(stream).snapshot(**moment.arguments())


def shown_columns(snapshot: Snapshot) -> pa.Schema:
    """The columns that readers see: without those that the stream keeps itself."""
    return read_system_columns(snapshot.metadata).removed_from(arrow_columns(snapshot.schema))


def require_columns(columns: pa.Schema, names: Sequence[str]) -> None:
    """Refuse a name that is not a column."""
    for name in names:
        if name not in columns.names:
            raise MissingColumn(
                f"There is no column {name!r}.",
                cause=f"The columns are {', '.join(columns.names)}.",
                remedy="Name one of them; upper and lower case matter.",
                column=name,
            )


def row_batches(
    snapshot: Snapshot, names: Sequence[str], where: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of the snapshot that meet ``where``, a batch at a time, of some columns only."""
    if read_system_columns(snapshot.metadata).has_history:
        holds = pc.field(VALID_TO).is_null()
        where = holds if where is None else holds & where
    return rows.read_batches(snapshot, list(names), where)
