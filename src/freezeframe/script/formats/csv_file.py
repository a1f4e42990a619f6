"""Reads one CSV file as text columns; nothing is interpreted or repaired.

Read by PyArrow: quoted newlines, delimiters and quotes are part of a value. An empty field is
NULL, an empty quoted one (``""``) the empty text; "NA" and "null" are text like any other. A file that
is packed (``.gz``), or has quotes behind an escape character, is read from a temporary copy.
"""

from __future__ import annotations

import gzip
import mmap
import os
import re
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from freezeframe.errors import UnreadableInput
from freezeframe.script.formats.csv_lines import (
    BYTE_ORDER_MARK,
    find_delimiter,
    is_escaped,
    line_of_row,
    misquoted_line,
    ragged_row,
    unclosed_row,
    undecodable_line,
)
from freezeframe.script.formats.input_parts import InputPart
from freezeframe.storage.read_ahead import reads_of

_BLOCK_BYTES = 8 * 2**20
_BLOCK_BYTES_MAX = 2**31 - 1
_LINES_COUNTED_MAX = 100_000
_PIECE_BYTES = 2**20  # PyArrow reads some thirty blocks ahead
# Of a header that no newline follows, and no row.
_LACKS_NEWLINE = "cannot infer number of columns"
_REMEDY = "Repair the file, or have the sync write it again."


@dataclass(frozen=True, slots=True)
class _Source:
    """A CSV file: where its plain text is, its name for messages, and its delimiter."""

    path: Path
    name: str
    delimiter: bytes

    def unreadable(self, problem: str, cause: str, remedy: str = _REMEDY, **details: Any) -> UnreadableInput:
        """The error for this file; ``problem`` goes on behind its name."""
        return UnreadableInput(
            f"{self.name!r} {problem}", cause=cause, remedy=remedy, file=self.name, **details
        )


def read_csv_text(file: Path, escape: str = "") -> pa.Table:
    r"""The file's rows, every column ``string``, in the order of its header.

    A byte order mark and CRLF are understood; blank lines are skipped. Fields are separated by commas, or by
    what the header has in their place (``find_delimiter``). A column without a
    name is called ``Unnamed: {position}``, as pandas does. A file with only a header is a
    table without rows.

    Args:
        file: the file; one whose name ends with ``.gz`` is unpacked.
        escape: what stands before a quote in a quoted field, if not a quote: ``\\`` in what Spark writes.
    """
    with reads_of(str(file)), _opened(file, escape) as source:
        return _read_csv_text(source)


def read_csv_texts(files: Iterable[Path], escape: str = "") -> pa.Table:
    """The rows of several files, in their order; a column that a file lacks is NULL there."""
    return pa.concat_tables((read_csv_text(file, escape) for file in files), promote_options="default")


def _read_csv_text(source: _Source) -> pa.Table:
    if _is_empty(source.path):
        raise source.unreadable("is empty.", "It has no header line.")
    _check_quotes(source, 0, source.path.stat().st_size)
    try:
        table = _parse(source)
        header = table.column_names  # decoded here: a name may not be UTF-8
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise _diagnose(source, error) from error
    _check_is_closed(source, table)
    names = _check_names(source, header)
    return _with_last_field(source, table).rename_columns(names)


@contextmanager
def _opened(file: Path, escape: str) -> Iterator[_Source]:
    """The file, or a copy of it that needs neither unpacking nor an escape character."""
    with ExitStack() as stack:
        path = file
        if file.suffix.casefold() == ".gz":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            path = _unpacked(file, folder / file.stem)
        if is_escaped(path, escape):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            path = _unescaped(path, folder / path.name, escape)
        yield _Source(path, str(file), find_delimiter(path))


def _unpacked(file: Path, copy: Path) -> Path:
    try:
        with gzip.open(file) as packed, copy.open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableInput(
            f"{str(file)!r} cannot be unpacked.", cause=str(error), remedy=_REMEDY, file=str(file)
        ) from error
    return copy


def _unescaped(file: Path, copy: Path, escape: str) -> Path:
    """Write a copy in which a quote stands for the escape character before a quote in a quoted field.

    Elsewhere Spark writes that character as it is.
    """
    mark = re.escape(escape.encode())
    ends = re.escape(find_delimiter(file) + b"\r\n")
    start = rb"(?:\A|(?<=\A" + BYTE_ORDER_MARK + rb")|(?<=[" + ends + rb"]))"
    plain_text = rb'[^"' + mark + rb"]*"
    quoted = re.compile(start + rb'"' + plain_text + rb"(?:" + mark + rb"." + plain_text + rb')*"', re.DOTALL)
    escaped = re.compile(mark + rb"(.)", re.DOTALL)
    with (
        file.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
        copy.open("wb") as plain,
    ):
        place = 0
        for field in quoted.finditer(content):
            plain.write(content[place : field.start()])
            plain.write(escaped.sub(_as_doubled, field[0]))
            place = field.end()
        plain.write(content[place:])
    return copy


def _as_doubled(escaped: re.Match[bytes]) -> bytes:
    return b'""' if escaped[1] == b'"' else escaped[1]


def place_of_row(file: Path, row: int) -> str:
    """Where a row of a file is, for messages: its line, or its number where the line is costly to find."""
    line = None
    if row < _LINES_COUNTED_MAX and file.suffix.casefold() != ".gz":
        line = line_of_row(file, row + 1)
    return f"row {row + 1}" if line is None else f"line {line}"


class LongRow(Exception):
    """A row is longer than a block."""


def block_sizes() -> Iterator[int]:
    """Sizes of blocks in bytes to read a file in, the next one where a row is longer than the last."""
    size = _PIECE_BYTES
    while size < _BLOCK_BYTES_MAX:
        yield size
        size *= 8
    yield _BLOCK_BYTES_MAX


def csv_text_pieces(
    part: InputPart, block_bytes: int, escape: str = "", *, is_checked: bool = False
) -> Iterator[pa.Table]:
    """The rows that ``read_csv_text`` gives of a part, piece by piece, for files that are larger than memory.

    ``is_checked`` spares the look for text behind closing quotes.
    """
    with reads_of(str(part.file)), _opened(part.file, escape) as source:
        if not is_checked:
            is_copy = source.path != part.file
            stop = source.path.stat().st_size if is_copy else part.stop
            _check_quotes(source, 0 if is_copy else part.start, stop)
        yield from _csv_text_pieces(source, part, block_bytes)


def _csv_text_pieces(source: _Source, part: InputPart, block_bytes: int) -> Iterator[pa.Table]:
    if part.start == 0 and _is_empty(source.path):
        yield _read_csv_text(source)
        return
    try:
        with _open(source, part, block_bytes) as batches:
            names = _check_names(source, batches.schema.names)
            held = pa.Table.from_batches([], batches.schema)
            for batch in batches:
                yield held.rename_columns(names)
                held = pa.Table.from_batches([batch])
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        if "straddling" in str(error):
            raise LongRow(str(error)) from error
        if _LACKS_NEWLINE in str(error):
            yield _read_csv_text(source)
            return
        raise _diagnose(source, error) from error
    if part.is_last:
        # Errors at a file's end occur in its last piece.
        _check_is_closed(source, held)
        held = _with_last_field(source, held)
    yield held.rename_columns(names)


@contextmanager
def _open(source: _Source, part: InputPart, block_bytes: int) -> Iterator[Any]:
    options = _options(source, block_bytes)
    if part.is_whole:
        with pyarrow.csv.open_csv(source.path, **options) as batches:
            yield batches
        return
    if part.start:
        with pyarrow.csv.open_csv(source.path, **options) as whole:
            # With a leading newline, a part of blank lines is a part without rows, not an empty file.
            options["read_options"].column_names = whole.schema.names
    with part.section() as section, pyarrow.csv.open_csv(section, **options) as batches:
        yield batches


def _check_quotes(source: _Source, start: int, stop: int) -> None:
    """Refuse text behind a closing quote, which PyArrow takes for a part of the value."""
    line = misquoted_line(source.path, start, stop, source.delimiter)
    if line is not None:
        raise source.unreadable(
            f"has text behind a closing quote in line {line}.",
            "A quote in a quoted field must be doubled; Spark writes a backslash before it instead.",
            'Have it written with doubled quotes, or pass escape="\\\\" for a file that Spark wrote.',
            line=line,
        )


def _check_names(source: _Source, header: Sequence[str]) -> list[str]:
    names = [name or f"Unnamed: {place}" for place, name in enumerate(header)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise source.unreadable(
            f"has several columns named {', '.join(map(repr, twice))}.",
            "Their values could not be told apart.",
            columns=twice,
        )
    return names


def _is_empty(file: Path) -> bool:
    with file.open("rb") as content:
        return not content.read(_BLOCK_BYTES).removeprefix(BYTE_ORDER_MARK).strip(b"\r\n")


def _parse(source: _Source) -> pa.Table:
    try:
        return _parse_in_blocks(source, source.path, _BLOCK_BYTES)
    except pa.ArrowInvalid as error:
        if "straddling" in str(error):
            # A row is longer than a block: one block for all of it.
            size = min(source.path.stat().st_size + 1, _BLOCK_BYTES_MAX)
            return _parse_in_blocks(source, source.path, size)
        if _LACKS_NEWLINE in str(error):
            # PyArrow requires a newline after a header without rows.
            content = pa.BufferReader(source.path.read_bytes() + b"\n")
            return _parse_in_blocks(source, content, _BLOCK_BYTES)
        raise


def _parse_in_blocks(source: _Source, content: Path | pa.BufferReader, block_bytes: int) -> pa.Table:
    return pyarrow.csv.read_csv(content, **_options(source, block_bytes))


def _options(source: _Source, block_bytes: int) -> dict[str, Any]:
    delimiter = source.delimiter.decode()
    return {
        "read_options": pyarrow.csv.ReadOptions(block_size=block_bytes),
        "parse_options": pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": pyarrow.csv.ConvertOptions(
            default_column_type=pa.string(),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    }


def _check_is_closed(source: _Source, table: pa.Table) -> None:
    """Refuse a file that ends inside a quoted field, which PyArrow lets pass.

    Such a file's last bytes are a separator, a quote and the whole last value. Few others
    look so (a quoted newline can); those are scanned for certainty.
    """
    value = table.column(table.num_columns - 1)[-1].as_py() if len(table) else None
    if value is None:
        return
    unclosed = b'"' + value.replace('"', '""').encode()
    tail = _last_bytes(source.path, len(unclosed) + 1)
    if tail[1:] != unclosed or tail[:1] not in source.delimiter + b"\r\n":
        return
    row = unclosed_row(source.path)
    if row is not None:
        raise source.unreadable(
            f"ends inside a quoted field, in the row that begins at line {row.line}.",
            "The file was cut off, or a quote was never closed.",
            line=row.line,
        )


def _with_last_field(source: _Source, table: pa.Table) -> pa.Table:
    # After a quoted field, PyArrow takes an empty field at the very end of a file for a quoted one.
    place = table.num_columns - 1
    if not len(table) or _last_bytes(source.path, 1) != source.delimiter:
        return table
    column = table.column(place)
    chunks = [*column.slice(0, len(column) - 1).chunks, pa.nulls(1, pa.string())]
    return table.set_column(place, table.field(place), pa.chunked_array(chunks))


def _last_bytes(file: Path, count: int) -> bytes:
    with file.open("rb") as content:
        size = content.seek(0, os.SEEK_END)
        content.seek(max(0, size - count))
        return content.read()


def _diagnose(source: _Source, error: Exception) -> UnreadableInput:
    line = undecodable_line(source.path)
    if line is not None:
        return source.unreadable(
            f"is not UTF-8: line {line} is the first that is not.",
            "The sync wrote another encoding, or the file is damaged.",
            "Have it written in UTF-8.",
            line=line,
        )
    ragged = ragged_row(source.path)
    if ragged is not None:
        row, expected = ragged
        return source.unreadable(
            f"has {row.fields} fields in line {row.line}, and {expected} in its header.",
            "A field with a delimiter or newline may be unquoted, or the file was cut off.",
            line=row.line,
            fields=row.fields,
            expected=expected,
        )
    return source.unreadable("cannot be read as CSV.", str(error).splitlines()[0])
