"""Preview of an import: columns, counts, and some of the changed rows.

The rows go the way of the real update, with nothing kept at its end (``Stream.preview``), as far as that
is possible without Spark and within ``PREVIEW_BYTES_MAX``. Of a longer file the beginning is looked at:
its columns and their types. What could not be counted is said in words, never guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from freezeframe.errors import FreezeframeError, InvalidOption, TooManyDeletions
from freezeframe.identifiers import StreamName
from freezeframe.script.formats.input_parts import UnpackLimits
from freezeframe.script.inputs.transfer import (
    UNPACKED_MEMORY_BYTES_MAX,
    StreamSchema,
    file_rows,
    schema_of,
    with_exported_key,
)
from freezeframe.script.types.known_types import NO_CSV_OPTIONS, CsvOptions
from freezeframe.service.rows.differences import ChangedRow, changed_rows
from freezeframe.service.rows.streams import received_file
from freezeframe.store import Tenant
from freezeframe.store.diff.row_changes import DELETE, INSERT, UPDATE, RowChanges, compare_tables
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import (
    UpdateOptions,
    replaces_rows,
    require_possible,
    update_from,
)
from freezeframe.store.schema.columns import delta_columns, type_names
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.stream import Stream
from freezeframe.store.table.keys import KeyNumbers, keys_as
from freezeframe.store.transaction.scope import Scope
from freezeframe.store.updates.plan import require_few_deletions

PREVIEW_BYTES_MAX = 16 * 1024 * 1024
EXAMPLES_MAX = 10
_OF_FULL = frozenset({"mode", "deletes", "max_delete_ratio"})
_UNCUT_KINDS = frozenset({"parquet", "arrow"})


@dataclass(frozen=True, slots=True)
class ImportColumn:
    """A column of the file, of the stream, or of both; a type that is null is not there or not decided."""

    name: str
    fate: Literal["known", "new", "other type", "not in the file"]
    file_type: str | None
    stream_type: str | None
    is_key: bool


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """Why the import would be refused."""

    title: str
    cause: str
    remedy: str
    code: str

    @classmethod
    def of(cls, error: FreezeframeError) -> ImportProblem:
        """Return the problem that an error of the import means."""
        return cls(error.problem, error.cause, error.remedy, error.code)


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """What the import would do to the stream as it is now; nothing was kept."""

    columns: tuple[ImportColumn, ...]
    key: tuple[str, ...]
    rows: Annotated[int, Field(description="Rows of the file, or of the part that was sent.")]
    counts: Annotated[Counts | None, Field(description="Null where rows were not counted.")]
    uncounted: Annotated[str, Field(description="Why rows were not counted; empty where they were.")]
    examples: Annotated[
        tuple[ChangedRow, ...], Field(description="At most ten rows, those whose cells change first.")
    ]
    problem: ImportProblem | None


@dataclass(frozen=True, slots=True)
class ImportFile:
    """The bytes of a file, or of its beginning, and of what kind they are."""

    kind: str
    content: IO[bytes]
    is_beginning: bool = False


def import_preview(
    tenant: Tenant,
    name: str,
    file: ImportFile,
    key: Sequence[str],
    update: UpdateOptions,
    csv: CsvOptions = NO_CSV_OPTIONS,
) -> ImportPreview:
    """Preview the import of a file into the stream; nothing is stored."""
    require_possible(tuple(key) or None, update)
    stream = Stream(StreamName(name), Scope(tenant.context))
    is_there = stream.stream_version >= 0
    stored = stream.schema if is_there else pa.schema([])
    limits = UnpackLimits.of(tenant.context.settings, UNPACKED_MEMORY_BYTES_MAX)
    rows, known = _rows(file, stored, limits, name, csv)
    columns_of_key, update = with_exported_key(known, tuple(key) or None, update, is_new=not is_there)
    used = tuple(columns_of_key or ()) or (stream.key if is_there else ())
    columns = _columns(rows.schema, stored, used)
    result = ImportPreview(columns, used, len(rows), None, "", (), None)
    missing = [item for item in used if item not in rows.column_names]
    replaces = replaces_rows(update)
    if missing or (not used and not replaces):
        return replace(result, problem=ImportProblem.of(_no_key(missing)))
    if is_there and not replaces and set(used) != set(stream.key):
        return replace(result, problem=ImportProblem.of(_other_key(used, stream.key)))
    if file.is_beginning:
        reason = (
            f"Only the beginning was looked at: previews count files of up to {PREVIEW_BYTES_MAX:,} bytes."
        )
        return replace(result, uncounted=reason)
    return _count(stream, rows, result, update)


def _count(stream: Stream, rows: pa.Table, result: ImportPreview, update: UpdateOptions) -> ImportPreview:
    """Count a full extract as an upsert and the rows that it lacks: then no stored file is merged."""
    is_full = update.get("mode") == "full"
    counted: Any = {name: value for name, value in update.items() if not is_full or name not in _OF_FULL}
    stored = stream.count() if stream.stream_version >= 0 else 0
    try:
        receipt = stream.preview(rows, result.key or None, **counted)
    except InvalidOption as error:
        return replace(result, uncounted=f"{error.problem} The job counts them.")
    except FreezeframeError as error:
        return replace(result, problem=ImportProblem.of(error))
    changes = RowChanges(receipt.changed_rows("arrow"), result.key)
    counts = Counts(receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted)
    if not is_full:
        return replace(result, counts=counts, examples=_examples(changes))
    deleted = stored - receipt.updated - receipt.unchanged
    counts = replace(counts, deleted=deleted)
    gone = _missing_rows(stream, rows, result.key) if deleted else None
    problem = None
    try:
        require_few_deletions(update_from(result.key, **update), lost=deleted, live=stored)
    except TooManyDeletions as error:
        problem = ImportProblem.of(error)
    return replace(result, counts=counts, examples=_examples(changes, gone), problem=problem)


def _rows(
    file: ImportFile, stored: pa.Schema, limits: UnpackLimits, name: str, csv: CsvOptions
) -> tuple[pa.Table, StreamSchema | None]:
    if file.is_beginning and file.kind in _UNCUT_KINDS:
        raise InvalidOption(
            f"The beginning of a file of the kind {file.kind} tells nothing.",
            cause="It is read whole or not at all.",
            remedy="Send the whole file, or import it without a preview.",
        )
    with received_file(file.content, file.kind, f"rows.{file.kind}") as path:
        if file.is_beginning:
            _cut_to_whole_lines(path, has_quoted_lines=file.kind == "csv")
        return file_rows(path, stored=stored, limits=limits, stream=name, csv=csv), schema_of(path)


def _cut_to_whole_lines(path: Path, *, has_quoted_lines: bool) -> None:
    """Drop the last line if it may be cut off; a header without an end stays."""
    content = np.frombuffer(path.read_bytes(), np.uint8)
    if not len(content):
        return  # the reader reports an empty file
    ends = content == ord("\n")
    if has_quoted_lines:
        # A line break inside of quotes ends no line: an odd number of quotes comes before it.
        ends &= ~np.logical_xor.accumulate(content == ord('"'))
    last = len(ends) - int(ends[::-1].argmax()) - 1
    if len(ends) and ends[last] and last > 0:
        path.write_bytes(content[: last + 1].tobytes())


def _columns(file: pa.Schema, stream: pa.Schema, key: Sequence[str]) -> tuple[ImportColumn, ...]:
    ours, theirs = _type_names(file), _type_names(stream)
    undecided = {field.name for field in stream if is_undecided(field)}
    found = []
    for name in dict.fromkeys((*file.names, *stream.names)):
        mine = None if name in ours and pa.types.is_null(file.field(name).type) else ours.get(name)
        stored = None if name in undecided else theirs.get(name)
        fate: Literal["known", "new", "other type", "not in the file"] = "known"
        if name not in ours:
            fate = "not in the file"
        elif name not in theirs:
            fate = "new"
        elif mine is not None and stored is not None and mine != stored:
            fate = "other type"
        found.append(ImportColumn(name, fate, mine, stored, name in key))
    return tuple(found)


def _type_names(schema: pa.Schema) -> dict[str, str]:
    decided = pa.schema(
        [pa.field(item.name, pa.string() if pa.types.is_null(item.type) else item.type) for item in schema]
    )
    return type_names(delta_columns(decided, None))


def _missing_rows(stream: Stream, rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return some of the stored rows whose key the file lacks."""
    stored: pa.Table = stream.read(as_="arrow")
    keys = keys_as(rows.select(list(key)), stored.schema)
    found, _ = KeyNumbers(keys).found_in(stored.select(list(key)))
    missing = np.setdiff1d(np.arange(len(stored)), found, assume_unique=True)
    return stored.take(pa.array(missing[:EXAMPLES_MAX]))


def _examples(changes: RowChanges, gone: pa.Table | None = None) -> tuple[ChangedRow, ...]:
    """Return some rows of each fate, those whose cells change first; ``gone`` are the rows that would go."""
    # Where there is more than one fate, none of them takes all places.
    shares = {UPDATE: 6, INSERT: 2, DELETE: 2}
    parts = {kind: changes.of(kind) for kind in shares}
    if gone is not None:
        parts[DELETE] = compare_tables(gone, gone.slice(0, 0), changes.key)
    is_mixed = sum(len(part) > 0 for part in parts.values()) > 1
    found = (
        row
        for kind, part in parts.items()
        for row in changed_rows(part.slice(0, shares[kind] if is_mixed else EXAMPLES_MAX))
    )
    return tuple(islice(found, EXAMPLES_MAX))


def _no_key(missing: Sequence[str]) -> InvalidOption:
    if missing:
        return InvalidOption(
            f"The file has no column {', '.join(missing)}, which the key needs.",
            remedy="Choose another key, or correct the file's header.",
        )
    return InvalidOption(
        "An import needs a key.",
        remedy="Name the columns that identify a row; or pass override=True to replace all rows.",
    )


def _other_key(requested: Sequence[str], stored: Sequence[str]) -> InvalidOption:
    return InvalidOption(
        f"The stream cannot be updated by the key {', '.join(requested)}.",
        cause=f"Its own key is {', '.join(stored) or 'none'}.",
        remedy="Use the stream's key.",
    )
