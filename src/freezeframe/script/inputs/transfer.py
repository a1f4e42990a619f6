"""Import and export of a stream: ``{stream}.snapshot.csv``, ``.parquet`` or ``.jsonl``.

CSV and JSON Lines say nothing of types, so a schema file goes with them,
``{stream}.snapshot.schema.json``: the key, and the columns as Delta writes them. With it, every value must be
exact in its column's type; without it nothing is guessed that could lose a letter (``inference``). A Parquet
file has the same in its metadata. This sits above the store because readers of input files do.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, Unpack, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe import progress
from freezeframe.errors import InputNotFound, InvalidOption, SchemaDriftError, TooLarge, UnreadableInput
from freezeframe.log import Snapshot
from freezeframe.log.scan.rows import count as row_count
from freezeframe.script.formats.columnar_files import ArrowFormat, ParquetFormat
from freezeframe.script.formats.csv_rows import CsvFormat
from freezeframe.script.formats.input_parts import BYTES_LIMIT, UNLIMITED, UnpackLimits
from freezeframe.script.formats.json_rows import JsonFormat
from freezeframe.script.formats.row_format import RowFormat
from freezeframe.script.inputs.stream_files import CSV_EXTENSIONS, file_extension
from freezeframe.script.types.known_types import NO_CSV_OPTIONS, CsvOptions, DateColumns
from freezeframe.script.types.typed_columns import KnownTypes
from freezeframe.storage.local import failure, write_durably
from freezeframe.store.model.receipt import Receipt
from freezeframe.store.model.update_options import Names, UpdateOptions, replaces_rows
from freezeframe.store.schema.columns import arrow_columns, delta_columns, stored_key
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.stream import Stream
from freezeframe.store.table.reader import read_row_batches, read_sorted, row_columns
from freezeframe.store.table.workbook import require_fits
from freezeframe.store.table.written_rows import PIECE_ROWS, FileKind, file_pieces
from freezeframe.store.tenant_log.history import Point

MEMORY_BYTES_MAX = 32 * 1024 * 1024
UNPACKED_MEMORY_BYTES_MAX = 256 * 1024 * 1024
_MIDDLE = ".snapshot."
_METADATA_KEY = b"freezeframe.stream"
_TEXT_SUFFIXES = (".csv", ".jsonl", ".ndjson", ".json")
_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatchReader)


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """What a schema file says: the columns and their types, those without a value marked, and the key."""

    columns: pa.Schema
    key: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> StreamSchema:
        """Return the schema of a stream's rows at one version."""
        return cls(row_columns(snapshot), stored_key(snapshot.metadata) or ())

    @classmethod
    def parse(cls, text: bytes) -> StreamSchema:
        """Return the schema that ``to_json`` gave."""
        record = json.loads(text)
        return cls(arrow_columns(record["schema"]), tuple(map(str, record["key"])))

    def to_json(self) -> bytes:
        """Return the content of a schema file."""
        record = {"key": list(self.key), "schema": delta_columns(self.columns, None)}
        return json.dumps(record, ensure_ascii=False, indent=2).encode() + b"\n"

    def of_parquet(self) -> pa.Schema:
        """Return the columns for a Parquet file, with this schema in its metadata."""
        plain = [field.remove_metadata() for field in self.columns]
        return pa.schema(plain, metadata={_METADATA_KEY: self.to_json()})


def export_stream(
    stream: Stream,
    folder: str | os.PathLike[str],
    kind: FileKind = "csv",
    *,
    version: Point | None = None,
    stream_version: int | None = None,
) -> Path:
    """Write the stream's rows to a new ``{stream}.snapshot.{kind}`` in ``folder``.

    They are those of now, of a version of the tenant (``version``), or of one of the stream's own.
    Beside a CSV or JSON Lines file its schema file is written, first; a Parquet file holds it. Both appear
    whole or not at all. ``import_stream`` takes them back without a key. An Excel workbook (``xlsx``) is for
    people, and is not taken back.
    Rows are in the order of the key, but those of a stream of many bytes in that of its files: such a
    stream is never held in memory.

    Raises:
        InvalidOption: an unknown kind, or the file is there already.
        BadInput: a CSV file or a workbook cannot hold the rows.
        TooLarge: there are more rows or columns than a workbook has.
        StreamNotFound, VersionNotFound: there is no such stream or version.
        StorageUnavailable: the file could not be written.
    """
    target = new_file(stream.name, folder, kind)
    snapshot = stream.snapshot(version=version, stream_version=stream_version)
    if kind in ("parquet", "xlsx"):
        _publish(target, stream_pieces(snapshot, kind))
        return target
    beside = schema_file(target)
    try:
        _publish(beside, [StreamSchema.of(snapshot).to_json()])
        _publish(target, stream_pieces(snapshot, kind))
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return target


def stream_pieces(snapshot: Snapshot, kind: FileKind) -> Iterator[bytes]:
    """Yield the file of a stream's rows at one version in pieces; few batches are in memory at a time.

    Rows are in the order of the key, but those of a stream of many bytes in that of its files.
    """
    if kind == "xlsx":
        require_fits(row_count(snapshot), row_columns(snapshot).names)
    if snapshot.size > MEMORY_BYTES_MAX:
        progress.begin("writing", "rows")
        rows = read_row_batches(snapshot)
    else:
        table = read_sorted(snapshot, stored_key(snapshot.metadata) or ())
        progress.begin("writing", "rows", len(table))
        rows = table.to_reader(PIECE_ROWS)
    yield from file_pieces(kind, _count_rows(rows), StreamSchema.of(snapshot).of_parquet())


def new_file(name: str, folder: str | os.PathLike[str], kind: FileKind) -> Path:
    """Return the path of the file that an export of the stream of this name makes."""
    if Path(folder).is_file():
        raise InvalidOption(f"{folder} is a file.", remedy="Name a folder; it is made if it is not there.")
    if kind not in get_args(FileKind):
        raise InvalidOption(
            f"kind cannot be {kind!r}.", remedy=f"Use one of {', '.join(get_args(FileKind))}."
        )
    target = Path(folder) / f"{name}{_MIDDLE}{kind}"
    if target.exists() or target.is_symlink():
        raise InvalidOption(f"{target} is there already.", remedy="Remove it, or name another folder.")
    return target


def import_stream(
    stream: Stream,
    file: str | os.PathLike[str],
    key: str | tuple[str, ...] | list[str] | None = None,
    *,
    schema_from: str | os.PathLike[str] | None = None,
    types: Mapping[str, Any] | None = None,
    parse_dates: DateColumns = None,
    escape: str = "",
    memory_bytes_max: int = MEMORY_BYTES_MAX,
    limits: UnpackLimits = UNLIMITED,
    **options: Unpack[UpdateOptions],
) -> Receipt:
    """Bring the rows of a CSV, Parquet, JSON Lines or Arrow file into the stream, typed by a schema file.

    ``schema_from`` is by default the schema file beside an exported file, where there is one. Without
    ``key`` the schema file's counts, then the stream's own; rows that were exported from a stream without a
    key become a new stream without one. ``types``, ``parse_dates`` and ``escape`` are those of
    ``read_csv_folder``, for CSV files. ``options`` are those of ``Stream.update``. A file of more than
    ``memory_bytes_max`` bytes is streamed: it is never held in memory. With ``limits`` neither is one that
    unpacks to more than ``UNPACKED_MEMORY_BYTES_MAX``.

    Raises:
        InputNotFound: there is no such file.
        TooLarge: it unpacks to more than a limit.
        InvalidOption: its name ends with none of the suffixes, or an option is not for its kind.
        UnreadableInput: it is damaged, or a value is not exact in its type of ``types``; the place is named.
        SchemaDriftError: a value or column does not fit the schema file, or the stream.
    """
    path = Path(file)
    known = schema_of(_existing(path), schema_from)
    stored = stream.schema if stream.stream_version >= 0 else None
    csv = CsvOptions(types, parse_dates, escape)
    kind = _kind(path, limits, csv)
    columns = known.columns if known is not None and kind in _TEXT_SUFFIXES else None
    source = _Source(path, kind, stream.name, csv, columns, stored)
    held = _read_held(source, limits) if path.stat().st_size <= memory_bytes_max else None
    if held is None:
        progress.begin("reading", "rows")
        rows = _count_rows(_streamed(source, limits))
        rows = rows if columns is None else _fit_reader(path, rows, columns)
    else:
        rows = held if columns is None else _fit(path, held, columns)
    import_key, update = with_exported_key(known, key, options, is_new=stored is None)
    return stream.update(rows, import_key, **update)


def with_exported_key(
    known: StreamSchema | None, key: Names | None, options: UpdateOptions, *, is_new: bool
) -> tuple[Names | None, UpdateOptions]:
    """Return key and options of an import: without a key that of the exported stream counts."""
    if key is not None or known is None:
        return key, options
    if known.key or not is_new or options.get("mode") == "full" or replaces_rows(options):
        return known.key or None, options
    return None, {**options, "override": True}


@dataclass(frozen=True, slots=True)
class _Source:
    """A file to import: what its name ends with, the stream that it is for, and how its CSV is read."""

    path: Path
    kind: str
    stream: str
    csv: CsvOptions
    columns: pa.Schema | None
    """The types of its schema file, if it has one and is text."""
    stored: pa.Schema | None
    """The types of the stream."""

    @property
    def known(self) -> KnownTypes:
        """What is known of its columns."""
        return self.csv.known(self.stream, self.stored if self.columns is None else self.columns)


def _read_held(source: _Source, limits: UnpackLimits) -> pa.Table | None:
    """Return the rows in memory; None if they are within the limits but too large for memory."""
    if limits.bytes_max <= UNPACKED_MEMORY_BYTES_MAX or limits is UNLIMITED:
        return _rows(source, limits)
    try:
        return _rows(source, replace(limits, bytes_max=UNPACKED_MEMORY_BYTES_MAX))
    except TooLarge as error:
        if error.details["limit"] != BYTES_LIMIT:
            raise
        return None


def file_rows(
    path: Path,
    columns: pa.Schema | None = None,
    stored: pa.Schema | None = None,
    limits: UnpackLimits = UNLIMITED,
    stream: str = "",
    csv: CsvOptions = NO_CSV_OPTIONS,
) -> pa.Table:
    """Return the rows that an import of the file brings in; ``columns`` are the types of a schema file.

    Without one, a column of text or JSON is of its ``stored`` type wherever every value is exact in it.
    """
    kind = _kind(_existing(path), limits, csv)
    return _rows(_Source(path, kind, stream, csv, columns, stored), limits)


def _format(source: _Source, limits: UnpackLimits) -> RowFormat:
    if source.kind == ".csv":
        return CsvFormat(source.csv.escape)
    if source.kind in _TEXT_SUFFIXES:
        return JsonFormat(source.columns, limits)
    return ParquetFormat(limits) if source.kind == ".parquet" else ArrowFormat(limits)


def _rows(source: _Source, limits: UnpackLimits) -> pa.Table:
    rows = _format(source, limits).whole([source.path], source.known)
    return _without_undecided(source.path, rows) if source.kind == ".parquet" else rows


def _streamed(source: _Source, limits: UnpackLimits) -> pa.RecordBatchReader:
    rows = _format(source, limits).streamed(source.path, source.known)
    return _without_undecided(source.path, rows) if source.kind == ".parquet" else rows


def _kind(path: Path, limits: UnpackLimits, csv: CsvOptions) -> str:
    """Return which of five kinds a file is of; what is packed has no limits."""
    kind = file_extension(path)
    is_csv = kind in CSV_EXTENSIONS and (limits is UNLIMITED or not kind.endswith(".gz"))
    if not is_csv and kind not in _KINDS:
        raise InvalidOption(
            f"{path.name!r} is of no kind that can be imported.",
            remedy="Name a .csv, .tsv, .parquet, .jsonl, .ndjson, .json or .arrow file.",
        )
    if csv.is_given and not is_csv and (kind not in _TEXT_SUFFIXES or csv.escape):
        raise InvalidOption(
            f"{path.name!r} is not a CSV file.",
            cause="escape= is for CSV, types= and parse_dates= for CSV and JSON; other files have types.",
            remedy="Leave them out.",
        )
    return ".csv" if is_csv else kind


def schema_file(file: Path) -> Path:
    """Return the path of an exported file's schema."""
    return file.with_name(f"{file.name.rpartition(_MIDDLE)[0]}{_MIDDLE}schema.json")


def schema_of(file: Path, schema_from: str | os.PathLike[str] | None = None) -> StreamSchema | None:
    """Return the schema of a file: the one named, the one that an export left beside it or in it, or None."""
    if schema_from is not None:
        return read_schema(Path(schema_from))
    if file_extension(file) == ".parquet":
        with contextlib.suppress(pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError):
            return StreamSchema.parse((pq.read_metadata(file).metadata or {})[_METADATA_KEY])
        return None
    beside = schema_file(file)
    is_exported = _MIDDLE in file.name and file_extension(file) in _TEXT_SUFFIXES
    return read_schema(beside) if is_exported and beside.is_file() else None


def read_schema(file: Path) -> StreamSchema:
    """Return the schema in a schema file."""
    try:
        return StreamSchema.parse(_existing(file).read_bytes())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableInput(
            f"{file} is not a schema file.",
            cause=f"It cannot be parsed ({error}).",
            remedy="Use the file that export_stream wrote, or leave schema_from out.",
            file=str(file),
        ) from error


def _fit(path: Path, rows: pa.Table, columns: pa.Schema) -> pa.Table:
    odd = sorted(set(rows.column_names) ^ set(columns.names))
    if odd:
        raise _misfit(path, f"Only one of the two has the columns {odd}.", odd)
    fitted = rows.select(columns.names)
    kinds = {field.name: _fitting(fitted.schema.field(field.name).type, field) for field in columns}
    wrong = [name for name, kind in kinds.items() if kind is None]
    if wrong:
        raise _misfit(path, f"Values of the columns {wrong} are not exact in their types.", wrong)
    return fitted.cast(pa.schema(list(kinds.items())))


def _fit_reader(path: Path, rows: pa.RecordBatchReader, columns: pa.Schema) -> pa.RecordBatchReader:
    """Return the rows with exactly these columns and types; whether they fit is known before the first."""
    fitted = _fit(path, rows.schema.empty_table(), columns)
    tables = (pa.Table.from_batches([batch]).select(columns.names).cast(fitted.schema) for batch in rows)
    batches = (batch for table in tables for batch in table.to_batches())
    return pa.RecordBatchReader.from_batches(fitted.schema, batches)


def _fitting(found: pa.DataType, wanted: pa.Field) -> pa.DataType | None:
    """Return the type of a column found with one type and wanted with another; None if it does not fit."""
    if is_undecided(wanted):
        return found
    return wanted.type if pa.types.is_null(found) or found.equals(wanted.type) else None


def _misfit(path: Path, cause: str, columns: list[str]) -> SchemaDriftError:
    return SchemaDriftError(
        f"{path.name!r} does not fit its schema file.",
        cause=cause,
        remedy="Correct the file or the schema file; nothing was written.",
        columns=columns,
    )


def _count_rows(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the same rows, with progress reported as they are consumed."""

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            progress.advance(len(batch))
            yield batch

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def _without_undecided(path: Path, rows: _Rows) -> _Rows:
    """Remove the types of exported columns of a Parquet file that had no value, and have none."""
    footer, known = pq.read_metadata(path), schema_of(path)
    undecided = {field.name for field in known.columns if is_undecided(field)} if known is not None else set()
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            statistics = column.statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count < group.num_rows:
                undecided.discard(column.path_in_schema)
    if not undecided:
        return rows
    kinds = {field.name: pa.null() if field.name in undecided else field.type for field in rows.schema}
    schema = pa.schema(list(kinds.items()))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
            columns = [
                pa.nulls(len(batch)) if name in undecided else batch.column(name) for name in schema.names
            ]
            yield pa.record_batch(columns, schema=schema)

    if isinstance(rows, pa.Table):
        return pa.Table.from_batches(batches(), schema)
    return pa.RecordBatchReader.from_batches(schema, batches())


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputNotFound(f"There is no file {path}.", remedy="Check the path.", file=str(path))
    return path


_KINDS = (".csv", ".parquet", ".jsonl", ".ndjson", ".json", ".arrow")
IMPORTED = frozenset((*_KINDS, *CSV_EXTENSIONS))
"""What the names of files end with that can be imported."""


def _publish(target: Path, content: Iterable[bytes]) -> None:
    """Write a file under another name, and rename it when it is whole."""
    temporary = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_durably(temporary, content)
        temporary.replace(target)
    except OSError as error:
        raise failure("write", str(target), error) from error
    finally:
        with contextlib.suppress(NotADirectoryError):  # then there is no such file either
            temporary.unlink(missing_ok=True)
