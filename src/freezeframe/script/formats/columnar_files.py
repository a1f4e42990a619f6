"""Arrow, Feather and Parquet files of others."""

import json
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.frames.rows import Rows, arrow_names
from freezeframe.errors import BadInput, SchemaDriftError, UnreadableInput
from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile
from freezeframe.script.formats.input_parts import (
    PART_BYTES,
    UNLIMITED,
    UNPACKED_PART_BYTES,
    InputPart,
    Unpacking,
    UnpackLimits,
    divide,
)
from freezeframe.script.formats.row_format import RowFormat
from freezeframe.script.types.typed_columns import KnownTypes
from freezeframe.storage.read_ahead import reads_of
from freezeframe.store.schema.schema_evolution import (
    TYPES_ALONE,
    evolve,
    is_undecided,
    require_few_columns,
)
from freezeframe.store.table.reader import in_schema

# A message's metadata is a flatbuffer (Arrow's Message.fbs): a table is an offset to its fields, a
# compressed buffer begins with the length that it had.

_MESSAGE_HEADER, _BATCH_OF_DICTIONARY = 2, 1
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3
_BUFFER_BYTES = 16


def message_sizes(content: IO[bytes], start: int) -> Iterator[tuple[int, int]]:
    """Yield rows and bytes of each batch of rows from ``start`` on; those of a dictionary are not rows."""
    content.seek(start)
    reader = pa.ipc.MessageReader.open_stream(pa.PythonFile(content, mode="r"))
    for message in reader:
        if message.type not in {"record batch", "dictionary"}:
            continue
        metadata = message.metadata.to_pybytes()
        batch = _inner(metadata, _inner(metadata, 0, None), _MESSAGE_HEADER)
        is_dictionary = message.type == "dictionary"
        if is_dictionary:
            batch = _inner(metadata, batch, _BATCH_OF_DICTIONARY)
        position = _field(metadata, batch, _LENGTH)
        rows = struct.unpack_from("<q", metadata, position)[0] if position else 0
        yield (0 if is_dictionary else rows), _unpacked_bytes(metadata, batch, message.body)


def _unpacked_bytes(metadata: bytes, batch: int, body: pa.Buffer) -> int:
    if not _field(metadata, batch, _COMPRESSION):
        return int(body.size)
    size, view = 0, memoryview(body)
    buffers = _inner(metadata, batch, _BUFFERS)
    for number in range(struct.unpack_from("<I", metadata, buffers)[0]):
        offset, length = struct.unpack_from("<qq", metadata, buffers + 4 + number * _BUFFER_BYTES)
        if length:
            size_before = struct.unpack_from("<q", view, offset)[0]
            size += length if size_before < 0 else size_before
    return size


def _field(metadata: bytes, table: int, number: int) -> int:
    """Return where a field of a table is; 0 where it has none."""
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, fields)[0]
    position = 4 + 2 * number
    offset = struct.unpack_from("<H", metadata, fields + position)[0] if position < size else 0
    return table + offset if offset else 0


def _inner(metadata: bytes, table: int, number: int | None) -> int:
    """Return where the table or vector begins that a field (None: the root) points to."""
    position = table if number is None else _field(metadata, table, number)
    if number is not None and not position:
        raise struct.error("a message without its table")
    return position + int(struct.unpack_from("<I", metadata, position)[0])


# Bytes from outside may claim anything of their buffers, so every batch is validated in full. A stream has
# to end with its end mark: without one it looks like a stream that was cut off between batches.

_FILE_MAGIC = b"ARROW1"
_FILE_START = 8  # behind the magic bytes a file is a stream, and then its footer
_STREAM_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class TypedFormat(RowFormat):
    """Files that say the types of their columns: no value is surveyed."""

    is_surveyed = False

    def survey(self, part: InputPart, known: KnownTypes, *, keeps: bool = False) -> bool:  # noqa: ARG002 - the base's
        """Check that the file can be reached; return whether its rows may be read at once."""
        part.require_unchanged()
        return keeps

    def schema(self, joined: pa.Schema, known: KnownTypes) -> pa.Schema:  # noqa: ARG002 - the base's
        """Return the columns of all parts."""
        return joined


@dataclass(frozen=True, slots=True)
class ArrowFormat(TypedFormat):
    """An Arrow or Feather file, or a stream of Arrow in a file, in types that a stream keeps."""

    limits: UnpackLimits = UNLIMITED

    def parts(self, file: Path, part_bytes: int = PART_BYTES) -> Sequence[InputPart]:  # noqa: ARG002 - the base's
        """Return the file as one part."""
        return divide(file, [0])

    def joined(self, parts: Sequence[InputPart], _: Any, known: KnownTypes) -> pa.Schema:  # noqa: ARG002 - the base's
        """Return the columns of the only file; encodings are undone."""
        (file,) = (part.file for part in parts)
        with reads_of(str(file)), file.open("rb") as content:
            return _schema(_open(content, str(file)), str(file))

    def tables(self, part: InputPart, _: Any, joined: pa.Schema, known: KnownTypes) -> Iterator[pa.Table]:  # noqa: ARG002 - the base's
        """Yield each batch of the file."""
        with reads_of(str(part.file)), part.file.open("rb") as content:
            for batch in arrow_batches(content, str(part.file), self.limits):
                yield _supported_rows(pa.Table.from_batches([batch])).cast(joined)


def require_arrow(content: IO[bytes], name: str, limits: UnpackLimits = UNLIMITED) -> None:
    """Validate all rows; the content is rewound afterwards."""
    _schema(_open(content, name), name)
    for _ in arrow_batches(content, name, limits):
        pass
    content.seek(0)


def arrow_batches(
    content: IO[bytes], name: str, limits: UnpackLimits = UNLIMITED
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a stream or file, each validated in full; ``name`` is for messages."""
    unpacking = Unpacking(Path(name).name, content.seek(0, os.SEEK_END), limits)
    if limits is not UNLIMITED:
        _require_within(content, name, unpacking)
    reader = _open(content, name)
    if limits is not UNLIMITED and isinstance(reader, pa.ipc.RecordBatchFileReader):
        # Only the stream in the file was checked; its footer may point elsewhere.
        content.seek(_FILE_START)
        with _reading(name):
            reader = pa.ipc.open_stream(pa.PythonFile(content, mode="r"))
    is_file = isinstance(reader, pa.ipc.RecordBatchFileReader)
    with _reading(name):
        found = map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader)
        for batch in found:
            batch.validate(full=True)
            yield from (batch,) if limits is UNLIMITED else unpacking.decode(batch)


def _require_within(content: IO[bytes], name: str, unpacking: Unpacking) -> None:
    content.seek(0)
    is_file = content.read(len(_FILE_MAGIC)) == _FILE_MAGIC
    rows = size = 0
    with _reading(name):
        for some, more in message_sizes(content, _FILE_START if is_file else 0):
            rows, size = rows + some, size + more
            unpacking.expect(rows, size)


def _open(content: IO[bytes], name: str) -> Any:
    with reads_of(name):
        size = content.seek(0, os.SEEK_END)
        content.seek(max(0, size - len(_STREAM_END)))
        end = content.read()
        content.seek(0)
        is_file = content.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        content.seek(0)
    if not is_file and end != _STREAM_END:
        raise _unreadable(name, "It has no end mark: it was cut off, or is not an Arrow stream.")
    with _reading(name):
        source = pa.PythonFile(content, mode="r")
        return pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)


def _schema(reader: Any, name: str) -> pa.Schema:
    with _reading(name):
        names = reader.schema.names  # a damaged name may not be UTF-8, which shows only on access
        require_few_columns(len(names), f"{name!r} has")
        return _supported_rows(pa.Table.from_batches([], reader.schema)).schema


def _supported_rows(table: pa.Table) -> pa.Table:
    return Rows(table.replace_schema_metadata()).to_arrow()


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        with reads_of(name):
            yield
    except (pa.ArrowException, OSError, ValueError, MemoryError, struct.error) as error:
        raise _unreadable(name, str(error).split("\n", 1)[0][:300] or type(error).__name__) from error


def _unreadable(name: str, cause: str) -> UnreadableInput:
    return UnreadableInput(
        f"{name!r} cannot be read as Arrow.",
        cause=cause,
        remedy="Write it again, and close the writer.",
        file=name,
    )


# Texts and binary values are read as dictionaries: a value that is there a million times is stored once,
# until it is known how many bytes all of them need.

_ROWS_MAX = 65_536
_BITS = {"BOOLEAN": 1, "INT32": 32, "INT64": 64, "INT96": 64, "FLOAT": 32, "DOUBLE": 64}


def parquet_batches(file: Path, limits: UnpackLimits) -> Iterator[pa.RecordBatch]:
    """Yield the rows, in the columns of the file; texts and binary values may be dictionaries."""
    unpacking = Unpacking(file.name, file.stat().st_size, limits)
    with pq.ParquetFile(file) as described:
        metadata = described.metadata
        unpacking.expect(metadata.num_rows, announced_bytes(metadata))
        bits = sum(map(_width_bits, _leaves(metadata)))
        rows = max(1, min(_ROWS_MAX, UNPACKED_PART_BYTES * 8 // max(1, bits)))
        texts = [leave.path for leave in _leaves(metadata) if leave.physical_type == "BYTE_ARRAY"]
    with ForeignParquetFile(file, read_dictionary=texts, page_checksum_verification=True) as parquet:
        for number in range(metadata.num_row_groups):  # nested texts have one dictionary for each group
            for batch in parquet.iter_batches(rows, row_groups=[number]):
                yield from unpacking.decode(batch)


def announced_bytes(metadata: pq.FileMetaData) -> int:
    """Return the least that the file unpacks to: its pages, or values of fixed width as often as they are."""
    size = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for position, leaf in enumerate(_leaves(metadata)):
            chunk = group.column(position)
            size += max(chunk.total_uncompressed_size, chunk.num_values * _width_bits(leaf) // 8)
    return size


def _leaves(metadata: pq.FileMetaData) -> list[pq.ColumnSchema]:
    return [metadata.schema.column(position) for position in range(metadata.num_columns)]


def _width_bits(leaf: pq.ColumnSchema) -> int:
    if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(leaf.length) * 8
    return _BITS.get(leaf.physical_type, 32)


_ROWS = 100_000
# What pandas calls an index without a name when it writes it: a position, not data.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True, slots=True)
class ParquetFormat(TypedFormat):
    """Parquet files.

    Types that differ between files are joined where every value stays the same (int and long, long and
    decimal, date and timestamp ...), as for a stream. ``limits`` are for whole files.
    """

    limits: UnpackLimits = UNLIMITED

    def parts(self, file: Path, part_bytes: int = UNPACKED_PART_BYTES) -> Sequence[InputPart]:
        """Return parts of whole row groups, of about ``part_bytes`` unpacked; one part if limits are set."""
        with opened_parquet(file) as parquet:
            groups = parquet.num_row_groups
            sizes = [parquet.metadata.row_group(group).total_byte_size for group in range(groups)]
        cuts, size = [0], 0
        for group, more in enumerate(sizes):
            if size and size + more > part_bytes:
                cuts, size = [*cuts, group], 0
            size += more
        return divide(file, cuts if self.limits == UNLIMITED else [0], end=groups)

    def joined(self, parts: Sequence[InputPart], _: Any, known: KnownTypes) -> pa.Schema:  # noqa: ARG002 - the base's
        """Return the columns of all files; values are read only where types do not decide."""
        files = list(dict.fromkeys(part.file for part in parts))
        schema: pa.Schema | None = None
        for file in files:
            with opened_parquet(file) as parquet:
                empty = _convert_types(file, parquet)
                try:
                    schema = evolve(schema, empty, values=TYPES_ALONE).target
                except BadInput:
                    types = {item.name: item.type for item in schema or ()}
                    odd = [item.name for item in empty.schema if types.get(item.name, item.type) != item.type]
                    schema = _meet_schema(files, file, schema, _parquet_rows(file, parquet.read(odd)))
                    schema = _meet_schema(files, file, schema, empty.drop_columns(odd))
        return pa.schema([(f.name, pa.null() if is_undecided(f) else f.type) for f in schema or ()])

    def tables(self, part: InputPart, survey: Any, joined: pa.Schema, _: KnownTypes) -> Iterator[pa.Table]:
        """Yield the rows of the part's row groups."""
        part.require_unchanged()
        with opened_parquet(part.file) as parquet:
            groups = list(range(part.start, part.stop))
            if self.limits != UNLIMITED:  # not `is`: workers have a copy
                batches = parquet_batches(part.file, self.limits)
            elif survey:
                batches = iter(parquet.read_row_groups(groups).to_batches())
            else:
                batches = parquet.iter_batches(_ROWS, groups)
            for batch in batches:
                yield in_schema(_parquet_rows(part.file, pa.Table.from_batches([batch])), joined)


def require_parquet(content: IO[bytes], name: str, limits: UnpackLimits = UNLIMITED) -> None:
    """Validate a Parquet file's footer; the content is rewound afterwards."""
    with _reading_parquet(name, "Have the file written again, and send it whole."):
        metadata = pq.read_metadata(content)
    size = content.seek(0, os.SEEK_END)
    Unpacking(name, size, limits).expect(metadata.num_rows, announced_bytes(metadata))
    content.seek(0)


def _meet_schema(files: Sequence[Path], file: Path, schema: pa.Schema | None, table: pa.Table) -> pa.Schema:
    try:
        try:
            # Always the wider type, so that the order of the files does not matter.
            return evolve(schema, table, values=TYPES_ALONE).target
        except SchemaDriftError:
            return evolve(schema, table).target
    except BadInput as error:
        raise SchemaDriftError(
            f"{str(file)!r} does not fit the stream's earlier files: {error.problem}",
            cause=error.cause,
            remedy="Have the sync write all files of a stream with the same types.",
            files=[str(file) for file in files],
        ) from error


def _convert_types(file: Path, parquet: pq.ParquetFile) -> pa.Table:
    """Return the columns without rows; unsigned ones are ``int64`` if all their values are."""
    empty = _parquet_rows(file, parquet.schema_arrow.empty_table())
    names = [field.name for field in parquet.schema_arrow if field.type == pa.uint64()]
    batches = parquet.iter_batches(_ROWS, columns=names) if names else ()
    tables = (_parquet_rows(file, pa.Table.from_batches([batch])) for batch in batches)
    wide = {item.name: item for table in tables for item in table.schema if item.type != pa.int64()}
    return pa.schema([wide.get(item.name, item) for item in empty.schema]).empty_table()


@contextmanager
def opened_parquet(file: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file for the block, whose reading errors name the file."""
    with (
        _reading_parquet(str(file), "Have the sync write the file again.", file=str(file)),
        ForeignParquetFile(file, page_checksum_verification=True) as opened,
    ):
        require_few_columns(len(opened.schema_arrow), f"{str(file)!r} has")
        yield opened


@contextmanager
def _reading_parquet(name: str, remedy: str, **details: str) -> Iterator[None]:
    try:
        with reads_of(name):
            yield
    except (pa.ArrowException, OSError) as error:
        raise UnreadableInput(
            f"{name!r} cannot be read as Parquet.", cause=str(error).splitlines()[0], remedy=remedy, **details
        ) from error


def _parquet_rows(file: Path, table: pa.Table) -> pa.Table:
    try:
        names = arrow_names(table.schema)
        index = [name for name in _index_columns(table.schema) if name in names]
        return Rows(table.drop_columns(index)).to_arrow()
    except BadInput as error:
        error.details["file"] = str(file)
        raise


def _index_columns(schema: pa.Schema) -> list[str]:
    said_by_pandas = (schema.metadata or {}).get(b"pandas")
    columns = json.loads(said_by_pandas).get("index_columns", []) if said_by_pandas else []
    return [name for name in columns if isinstance(name, str) and _UNNAMED_INDEX.fullmatch(name)]
