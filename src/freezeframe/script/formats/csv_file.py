"""Reads one CSV file as text columns; nothing is interpreted or repaired.

Read by PyArrow: quoted newlines, delimiters and quotes are part of a value. An empty field is
NULL, an empty quoted one (``""``) the empty text; "NA" and "null" are text like any other.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from freezeframe.errors import UnreadableInput
from freezeframe.script.formats.csv_lines import (
    BYTE_ORDER_MARK,
    find_delimiter,
    ragged_row,
    unclosed_row,
    undecodable_line,
)
from freezeframe.script.formats.input_parts import InputPart
from freezeframe.storage.passing_failures import reads_of

_BLOCK_BYTES = 8 * 2**20
_BLOCK_BYTES_MAX = 2**31 - 1
_PIECE_BYTES = 2**20  # PyArrow reads some thirty blocks ahead
_REMEDY = "Repair the file, or have the sync write it again."


def read_csv_text(file: Path) -> pa.Table:
    """The file's rows, every column ``string``, in the order of its header.

    A byte order mark and CRLF are understood; blank lines are skipped. Fields are separated by commas, or by
    what the header has in their place (``find_delimiter``). A column without a
    name is called ``Unnamed: {position}``, as pandas does. A file with only a header is a
    table without rows.

    Raises:
        UnreadableInput: empty, not UTF-8, a row with too few or too many fields (its line is
            named), an unfinished quoted field at the end, or two columns of one name.
    """
    with reads_of(str(file)):
        return _read_csv_text(file)


def read_csv_texts(files: Iterable[Path]) -> pa.Table:
    """The rows of several files, in their order; a column that a file lacks is NULL there."""
    return pa.concat_tables(map(read_csv_text, files), promote_options="default")


def _read_csv_text(file: Path) -> pa.Table:
    if _is_empty(file):
        raise UnreadableInput(
            f"{str(file)!r} is empty.", cause="It has no header line.", remedy=_REMEDY, file=str(file)
        )
    try:
        table = _parse(file)
        header = table.column_names  # decoded here: a name may not be UTF-8
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise _diagnose(file, error) from error
    _check_is_closed(file, table)
    names = _check_names(file, header)
    return _with_last_field(file, table).rename_columns(names)


class LongRow(Exception):
    """A row is longer than a block."""


def block_sizes() -> Iterator[int]:
    """Sizes of blocks in bytes to read a file in, the next one where a row is longer than the last."""
    size = _PIECE_BYTES
    while size < _BLOCK_BYTES_MAX:
        yield size
        size *= 8
    yield _BLOCK_BYTES_MAX


def csv_text_pieces(part: InputPart, block_bytes: int) -> Iterator[pa.Table]:
    """The rows that ``read_csv_text`` gives of a part, piece by piece, for files that are larger than memory.

    Raises:
        UnreadableInput: as it does, when the reading comes to it.
        LongRow: a row is longer than ``block_bytes``.
    """
    with reads_of(str(part.file)):
        yield from _csv_text_pieces(part, block_bytes)


def _csv_text_pieces(part: InputPart, block_bytes: int) -> Iterator[pa.Table]:
    file = part.file
    if part.start == 0 and _is_empty(file):
        yield _read_csv_text(file)
        return
    try:
        with _open(part, block_bytes) as batches:
            names = _check_names(file, batches.schema.names)
            held = pa.Table.from_batches([], batches.schema)
            for batch in batches:
                yield held.rename_columns(names)
                held = pa.Table.from_batches([batch])
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        if "straddling" in str(error):
            raise LongRow(str(error)) from error
        raise _diagnose(file, error) from error
    if part.is_last:
        # Errors at a file's end occur in its last piece.
        _check_is_closed(file, held)
        held = _with_last_field(file, held)
    yield held.rename_columns(names)


@contextmanager
def _open(part: InputPart, block_bytes: int) -> Iterator[Any]:
    options = _options(part.file, block_bytes)
    if part.is_whole:
        with pyarrow.csv.open_csv(part.file, **options) as batches:
            yield batches
        return
    if part.start:
        with pyarrow.csv.open_csv(part.file, **options) as whole:
            # With a leading newline, a part of blank lines is a part without rows, not an empty file.
            options["read_options"].column_names = whole.schema.names
    with part.section() as section, pyarrow.csv.open_csv(section, **options) as batches:
        yield batches


def _check_names(file: Path, header: Sequence[str]) -> list[str]:
    names = [name or f"Unnamed: {place}" for place, name in enumerate(header)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UnreadableInput(
            f"{str(file)!r} has several columns named {', '.join(map(repr, twice))}.",
            cause="Their values could not be told apart.",
            remedy=_REMEDY,
            file=str(file),
            columns=twice,
        )
    return names


def _is_empty(file: Path) -> bool:
    with file.open("rb") as content:
        return not content.read(_BLOCK_BYTES).removeprefix(BYTE_ORDER_MARK).strip(b"\r\n")


def _parse(file: Path) -> pa.Table:
    try:
        return _parse_in_blocks(file, file, _BLOCK_BYTES)
    except pa.ArrowInvalid as error:
        if "straddling" in str(error):
            # A row is longer than a block: one block for all of it.
            return _parse_in_blocks(file, file, min(file.stat().st_size + 1, _BLOCK_BYTES_MAX))
        if "cannot infer number of columns" in str(error):
            # PyArrow requires a newline after a header without rows.
            return _parse_in_blocks(file, pa.BufferReader(file.read_bytes() + b"\n"), _BLOCK_BYTES)
        raise


def _parse_in_blocks(file: Path, source: Path | pa.BufferReader, block_bytes: int) -> pa.Table:
    return pyarrow.csv.read_csv(source, **_options(file, block_bytes))


def _options(file: Path, block_bytes: int) -> dict[str, Any]:
    delimiter = find_delimiter(file).decode()
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


def _check_is_closed(file: Path, table: pa.Table) -> None:
    """Refuse a file that ends inside a quoted field, which PyArrow lets pass.

    Such a file's last bytes are a separator, a quote and the whole last value. Few others
    look so (a quoted newline can); those are scanned for certainty.
    """
    value = table.column(table.num_columns - 1)[-1].as_py() if len(table) else None
    if value is None:
        return
    unclosed = b'"' + value.replace('"', '""').encode()
    tail = _last_bytes(file, len(unclosed) + 1)
    if tail[1:] != unclosed or tail[:1] not in find_delimiter(file) + b"\r\n":
        return
    row = unclosed_row(file)
    if row is not None:
        raise UnreadableInput(
            f"{str(file)!r} ends inside a quoted field, in the row that begins at line {row.line}.",
            cause="The file was cut off, or a quote was never closed.",
            remedy=_REMEDY,
            file=str(file),
            line=row.line,
        )


def _with_last_field(file: Path, table: pa.Table) -> pa.Table:
    # After a quoted field, PyArrow takes an empty field at the very end of a file for a quoted one.
    place = table.num_columns - 1
    if not len(table) or _last_bytes(file, 1) != find_delimiter(file):
        return table
    column = table.column(place)
    chunks = [*column.slice(0, len(column) - 1).chunks, pa.nulls(1, pa.string())]
    return table.set_column(place, table.field(place), pa.chunked_array(chunks))


def _last_bytes(file: Path, count: int) -> bytes:
    with file.open("rb") as content:
        size = content.seek(0, os.SEEK_END)
        content.seek(max(0, size - count))
        return content.read()


def _diagnose(file: Path, error: Exception) -> UnreadableInput:
    line = undecodable_line(file)
    if line is not None:
        return UnreadableInput(
            f"{str(file)!r} is not UTF-8: line {line} is the first that is not.",
            cause="The sync wrote another encoding, or the file is damaged.",
            remedy="Have it written in UTF-8.",
            file=str(file),
            line=line,
        )
    ragged = ragged_row(file)
    if ragged is not None:
        row, expected = ragged
        return UnreadableInput(
            f"{str(file)!r} has {row.fields} fields in line {row.line}, and {expected} in its header.",
            cause="A field with a delimiter or newline may be unquoted, or the file was cut off.",
            remedy=_REMEDY,
            file=str(file),
            line=row.line,
            fields=row.fields,
            expected=expected,
        )
    return UnreadableInput(
        f"{str(file)!r} cannot be read as CSV.",
        cause=str(error).splitlines()[0],
        remedy=_REMEDY,
        file=str(file),
    )
