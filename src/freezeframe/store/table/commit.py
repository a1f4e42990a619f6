"""Commits of a stream's table."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import UnsupportedTable
from freezeframe.log import Snapshot
from freezeframe.log.format.action_columns import file_keys, to_adds
from freezeframe.log.format.actions import Action, Add, CommitInfo, DomainMetadata, Metadata, Remove
from freezeframe.log.format.schema import fields_by_path
from freezeframe.log.primitives.options import engine_info
from freezeframe.log.primitives.paths import canonical_path
from freezeframe.log.scan.data_files import SHA256_TAG, VectorFile, file_name, vector_name
from freezeframe.log.segments.commit_content import sign_content
from freezeframe.log.table.row_deletion import removal
from freezeframe.store.model.directory import TablePlace
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import (
    DeltaSchema,
    Notes,
    Properties,
    column_id_max,
    guarded_protocol,
    is_mapped,
    join_protocols,
    table_metadata,
)
from freezeframe.store.table.staging import DataFile


@dataclass(frozen=True, slots=True)
class TableChange:
    """What an update does to a table: its new columns (None: as they are), and its files.

    With ``replaces_files`` all live files go and ``added`` are the whole new content; without it
    those go that ``removed`` names (as the log does). ``marks`` are the actions that put the deletion
    vectors of ``vector_file`` in force. ``notes`` and ``properties`` are written with ``schema`` only.
    ``plan`` says in a few words how the update was carried out and why.
    """

    operation: str
    key: tuple[str, ...]
    schema: DeltaSchema | None
    added: tuple[DataFile, ...]
    replaces_files: bool
    counts: Counts
    notes: Notes = ()
    properties: Properties = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    marks: tuple[Action, ...] = ()
    vector_file: VectorFile | None = None
    plan: str = ""

    @property
    def new_paths(self) -> tuple[str, ...]:
        """The files new in this commit, relative to the table's folder."""
        vectors = (self.vector_file.name,) if self.vector_file else ()
        return (*(file.path for file in self.added), *vectors)

    @property
    def new_bytes(self) -> int:
        """Total bytes of the new files."""
        vectors = len(self.vector_file.content) if self.vector_file else 0
        return sum(file.size for file in self.added) + vectors

    @property
    def with_vectors(self) -> bool:
        """Whether readers need deletion vector support after the commit."""
        return self.vector_file is not None


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """Identity of a commit: the attempt's unique id, the job id, if any, and the time."""

    write_id: str
    timestamp_ms: int
    job_id: str | None = None


def commit_text(base: Snapshot, rewrite: TableChange, identity: CommitIdentity) -> str:
    """Return the text of ``_delta_log/N.json`` for version ``base.version + 1``, one action a line."""
    # In-commit timestamps require commitInfo as the first action (protocol, "In-Commit Timestamps").
    parameters = {"key": ",".join(rewrite.key), "plan": rewrite.plan}
    metrics = {**row_metrics(rewrite.counts), "numTargetFilesAdded": str(len(rewrite.added))}
    info = CommitInfo(commit_info(rewrite.operation, parameters, identity, metrics))
    return sign_content(info, tuple(_actions(base, rewrite, identity))).decode()


def _actions(base: Snapshot, rewrite: TableChange, identity: CommitIdentity) -> Iterator[Action]:
    is_new = base.version < 0
    if rewrite.schema is not None:
        needed = guarded_protocol(rewrite.schema, with_vectors=rewrite.with_vectors)
        protocol = needed if is_new else join_protocols(base.protocol, needed)
        if is_new or protocol != base.protocol:
            yield protocol
        stored = None if is_new else base.metadata
        yield table_metadata(
            rewrite.schema, rewrite.key, stored, identity.timestamp_ms, rewrite.notes, rewrite.properties
        )
    if not is_new:
        yield from _removes(base, rewrite, identity.timestamp_ms)
    yield from rewrite.marks
    yield from map(file_action, rewrite.added)


def file_action(file: DataFile) -> Add:
    """Return the add action of a data file."""
    return Add(
        path=quote(file.path),
        size=file.size,
        modification_time=file.modified_ms,
        stats=file.statistics,
        tags={SHA256_TAG: file.sha256},
    )


def _removes(base: Snapshot, rewrite: TableChange, timestamp_ms: int) -> Iterator[Remove]:
    files = base.files
    if not rewrite.replaces_files:
        files = files.filter(pc.is_in(files["path"], pa.array(rewrite.removed, pa.string())))
    for add in to_adds(files):
        yield removal(add, timestamp_ms)


def commit_info(
    operation: str,
    parameters: Mapping[str, str],
    identity: CommitIdentity,
    metrics: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the fields of the ``commitInfo`` of a commit; without ``metrics`` it moves no rows."""
    return {
        "timestamp": identity.timestamp_ms,
        "inCommitTimestamp": identity.timestamp_ms,
        "operation": operation,
        "operationParameters": dict(parameters),
        **({} if metrics is None else {"operationMetrics": dict(metrics)}),
        "isBlindAppend": False,
        "engineInfo": engine_info(),
        "txnId": identity.write_id,
        "writeId": identity.write_id,
        "jobId": identity.job_id,
    }


def row_metrics(counts: Counts) -> dict[str, str]:
    """Counts under the names that Delta's own ``MERGE`` gives them."""
    return {
        "numTargetRowsInserted": str(counts.inserted),
        "numTargetRowsUpdated": str(counts.updated),
        "numTargetRowsDeleted": str(counts.deleted),
        "numTargetRowsCopied": str(counts.unchanged),
    }


# Several updates of a stream in one job become one commit of its table; restoring is the reverse
# direction. Data files are neither read nor written: the commit adds or removes references.

_OURS = "freezeframe."
_MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
_COLUMN_MAPPING = "delta.columnMapping.mode"
# A table whose every commit has a time of its own has no version at which that began.
_ENABLEMENT = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")


def net_commit(base: Snapshot, final: Snapshot, info: Mapping[str, Any], identity: CommitIdentity) -> str:
    """Return the text of the commit that changes a table from ``base`` to ``final``.

    ``info`` are the fields of its ``commitInfo``. The protocol is never lowered, a table keeps its
    identity, and numbers of mapped columns are never given twice.
    """
    actions = (*_heads(base, final), *_files(base, final, identity))
    return sign_content(CommitInfo(dict(info)), actions).decode()


def replacing_commit(
    base: Snapshot,
    final: Snapshot,
    files: Iterable[DataFile],
    info: Mapping[str, Any],
    identity: CommitIdentity,
) -> str:
    """Return the text of the commit that makes a table what another one is, whose rows are in ``files``."""
    gone = () if base.version < 0 else (removal(add, identity.timestamp_ms) for add in to_adds(base.files))
    actions = (*_heads(base, final), *gone, *map(file_action, files))
    return sign_content(CommitInfo(dict(info)), actions).decode()


def drop_commit(base: Snapshot, info: Mapping[str, Any], identity: CommitIdentity) -> str:
    """Return the text of the commit that removes all rows, the key and the notes of a table."""
    stored = base.metadata
    kept = {name: text for name, text in stored.configuration.items() if not name.startswith(_OURS)}
    removals = (removal(add, identity.timestamp_ms) for add in to_adds(base.files))
    return sign_content(CommitInfo(dict(info)), (replace(stored, configuration=kept), *removals)).decode()


def is_same_table(base: Snapshot, final: Snapshot) -> bool:
    """Return whether the two snapshots are equal for readers."""
    if base.version < 0 or _metadata(base, final) != base.metadata:
        return False
    mine, theirs = file_keys(base.files), file_keys(final.files)
    return len(mine) == len(theirs) and set(mine.to_pylist()) == set(theirs.to_pylist())


def commit_fields(content: str) -> dict[str, Any]:
    """Return the fields of a commit's ``commitInfo``, which is its first line."""
    head, _, _ = content.partition("\n")
    fields: dict[str, Any] = json.loads(head)["commitInfo"]
    return fields


def restamp(content: str, timestamp_ms: int, metrics: Mapping[str, str] | None = None) -> str:
    """Return the commit with another timestamp; its actions and their digest are unchanged.

    ``metrics`` are its operation's, where they were not known before.
    """
    head, _, rest = content.partition("\n")
    record = json.loads(head)
    record["commitInfo"] |= {"timestamp": timestamp_ms, "inCommitTimestamp": timestamp_ms}
    if metrics is not None:
        record["commitInfo"]["operationMetrics"] = dict(metrics)
    return f"{json.dumps(record, ensure_ascii=False, separators=(',', ':'))}\n{rest}"


def _heads(base: Snapshot, final: Snapshot) -> Iterator[Action]:
    is_new = base.version < 0
    protocol = final.protocol if is_new else join_protocols(base.protocol, final.protocol)
    if is_new or protocol != base.protocol:
        yield protocol
    metadata = _metadata(base, final)
    if is_new or metadata != base.metadata:
        yield metadata
    yield from _domains(base, final)


def _metadata(base: Snapshot, final: Snapshot) -> Metadata:
    """Return the metadata of ``final``, adapted to the table at ``base``."""
    wanted = final.metadata
    if base.version < 0:
        return wanted
    stored = base.metadata.configuration
    began = {key: stored[key] for key in _ENABLEMENT if key in stored}  # a clone does not say it
    configuration = {**wanted.configuration, **began}
    if _COLUMN_MAPPING in stored:
        # Column mapping cannot be disabled again, and column ids are never reused.
        configuration.setdefault(_COLUMN_MAPPING, stored[_COLUMN_MAPPING])
        largest = max(int(item.get(_MAX_COLUMN_ID, 0)) for item in (stored, configuration))
        schema = _map_columns(final.delta_schema, largest)
        configuration[_MAX_COLUMN_ID] = str(max(largest, column_id_max(schema)))
        text: str | None = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    else:
        text = wanted.schema_string
    return Metadata(
        id=base.metadata.id,
        schema_string=text,
        name=wanted.name,
        description=wanted.description,
        format=wanted.format,
        partition_columns=wanted.partition_columns,
        configuration=configuration,
        created_time=base.metadata.created_time,
    )


def _map_columns(schema: DeltaSchema, largest: int) -> DeltaSchema:
    """Return the schema with a physical name for each column; one from before the mapping is its own."""
    if is_mapped(schema):
        return schema
    copy: dict[str, Any] = json.loads(json.dumps(schema))
    for number, (_, column) in enumerate(fields_by_path(copy), start=largest + 1):
        mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": column["name"]}
        column["metadata"] = {**(column.get("metadata") or {}), **mapping}
    return copy


def _domains(base: Snapshot, final: Snapshot) -> Iterator[DomainMetadata]:
    mine, theirs = base.domains, final.domains
    for name, domain in theirs.items():
        if mine.get(name) != domain:
            yield domain
    for name in mine.keys() - theirs.keys():
        yield DomainMetadata(name, mine[name].configuration, removed=True)


def _files(base: Snapshot, final: Snapshot, identity: CommitIdentity) -> Iterator[Action]:
    gone = _lacking(base.files, final.files) if base.version >= 0 else base.files
    for add in to_adds(gone):
        yield removal(add, identity.timestamp_ms)
    for add in to_adds(_lacking(final.files, base.files)):
        yield replace(add, data_change=True)  # in a state the flag is off for all files


def _lacking(files: pa.Table, other: pa.Table) -> pa.Table:
    """Return the rows of ``files`` without a row of the same file and deletion vector in ``other``."""
    known = file_keys(other)
    if isinstance(known, pa.ChunkedArray):
        known = known.combine_chunks()
    return files.filter(pc.invert(pc.is_in(file_keys(files), value_set=known)))


# A clone is a table of a single commit: no history, every file relative to the table's folder, a new table
# for any Delta reader.

_IN_FILE = "u"
_ABSOLUTE = "p"


@dataclass(frozen=True, slots=True)
class PortableFile:
    """A file of a table: its path in the table's folder; SHA-256 and size in bytes where the log has them."""

    path: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class PortableStream:
    """``content`` is the text of the table's only commit, which names ``files`` and no others."""

    content: str
    files: tuple[PortableFile, ...]


def portable_stream(
    snapshot: Snapshot, identity: CommitIdentity, operation: str, files: Iterable[DataFile] | None = None
) -> PortableStream:
    """Return the stream's state as a new table; with ``files`` these are its rows."""
    adds = tuple(to_adds(snapshot.files) if files is None else map(file_action, files))
    info = CommitInfo(commit_info(operation, {"sourceVersion": str(snapshot.version)}, identity))
    content = sign_content(info, tuple(_table_actions(snapshot, adds, identity))).decode()
    return PortableStream(content, table_files(adds, snapshot))


def own_configuration(metadata: Metadata) -> dict[str, str]:
    """Return the properties of a table that hold for its clone too."""
    return {key: text for key, text in metadata.configuration.items() if key not in _ENABLEMENT}


def _table_actions(snapshot: Snapshot, adds: tuple[Add, ...], identity: CommitIdentity) -> Iterator[Action]:
    stored, kept = snapshot.metadata, own_configuration(snapshot.metadata)
    yield snapshot.protocol
    yield replace(stored, id=str(uuid.uuid4()), created_time=identity.timestamp_ms, configuration=kept)
    yield from snapshot.domains.values()
    for add in adds:
        path = quote(_inside(snapshot, add.path))
        yield replace(add, path=canonical_path(path), data_change=True)


def table_files(adds: Iterable[Add], table: TablePlace) -> tuple[PortableFile, ...]:
    """Return the data files and deletion vectors that these actions of the table name."""
    found: dict[str, PortableFile] = {}
    for add in adds:
        path = _inside(table, add.path)
        found[path] = PortableFile(path, add.size, (add.tags or {}).get(SHA256_TAG))
        vector = add.deletion_vector
        if vector is not None and vector.storage_type == _ABSOLUTE:
            raise _outside(vector.path_or_inline_dv)
        if vector is not None and vector.storage_type == _IN_FILE:
            # Several vectors may share a file.
            found[vector_name(vector)] = PortableFile(_inside(table, vector_name(vector)))
    return tuple(found.values())


def _inside(table: TablePlace, path: str) -> str:
    """Return the file's path below the table's folder."""
    name = file_name(table.storage, table.table, path)
    if isinstance(name, Path) or not name.startswith(f"{table.table}/"):
        raise _outside(path)
    return name.removeprefix(f"{table.table}/")


def _outside(path: str) -> UnsupportedTable:
    return UnsupportedTable(
        "A table with files outside of its folder cannot be copied.",
        cause=f"It names {path!r}.",
        remedy="Write its rows anew with an update that replaces them (override=True).",
        path=path,
    )
