"""Lines and fields of CSV."""

from __future__ import annotations

import functools
import json
import mmap
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.python_values import date_texts, moment_text, moment_texts, python_values
from freezeframe.errors import BadInput
from freezeframe.script.formats.json_lines import json_form

# CSV delimiter detection, the line number of a malformed row, and text behind a closing quote.
#
# The reader itself is PyArrow's; it does not say at which line of the file a row begins, and
# quoted newlines make rows and lines differ. It also lets text behind a closing quote pass.

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_OTHER_DELIMITERS = (b";", b"\t", b"|")
_HEADER_BYTES_MAX = 2**20
_QUOTED = rb'(?<![^,;\t|])"[^"]*(?:""[^"]*)*"'
_QUOTED_NAMES = re.compile(_QUOTED)
_HEADER = re.compile(rb"(?:" + _QUOTED + rb"|[^\r\n])*")
_NEWLINE = re.compile(rb"\r\n|\r|\n")
_QUOTE = b'"'[0]
_BLOCK_BYTES = 8 * 2**20
_CLOSING = re.compile(rb'[^"]*(?:""[^"]*)*"(?!")')


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row of the file: the line on which it begins (from 1) and the number of its fields.

    ``is_closed`` is false for a last row that ends inside a quoted field.
    """

    line: int
    fields: int
    is_closed: bool = True


def find_delimiter(file: Path) -> bytes:
    """A comma, unless the header has none and has semicolons, tabs or bars: then what it has most of.

    In a ``.tsv`` file it is a tab, if the header has one.
    """
    with file.open("rb") as content:
        start = content.read(_HEADER_BYTES_MAX).removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")
    header = _HEADER.match(start)
    counts = Counter(_QUOTED_NAMES.sub(b"", header[0] if header else b""))
    if file.suffix.casefold() == ".tsv" and counts[ord("\t")]:
        return b"\t"
    return b"," if counts[ord(",")] else max(b",", *_OTHER_DELIMITERS, key=lambda item: counts[ord(item)])


def is_escaped(file: Path, escape: str) -> bool:
    """Whether a file has the escape character anywhere."""
    if not escape or not file.stat().st_size:
        return False
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(escape.encode()) >= 0


def line_of_row(file: Path, row: int) -> int | None:
    """The line (from 1) on which a row begins; the header is row 0. None if the file has not as many."""
    return next((found.line for number, found in enumerate(_rows(file)) if number == row), None)


def misquoted_line(file: Path, start: int, stop: int, delimiter: bytes) -> int | None:
    """The first line (from 1) on which text follows a closing quote; None if there is none.

    The bytes from ``start`` to ``stop`` are looked at, which begin with a row and end with one.
    """
    if start == stop:
        return None
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if start == 0 and content[:3] == BYTE_ORDER_MARK:
            start = len(BYTE_ORDER_MARK)
        if content.find(b'"', start, stop) < 0:
            return None
    quoting = _Quoting(np.memmap(file, np.uint8, "r")[start:stop], delimiter)
    place = quoting.first_misplaced()
    if place is None:
        return None
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return 1 + sum(1 for _ in _NEWLINE.finditer(content, 0, start + place))


class _Quoting:
    """The quotes of whole rows of a CSV file."""

    def __init__(self, content: npt.NDArray[np.uint8], delimiter: bytes) -> None:
        self._content = content
        self._ends = delimiter + b"\r\n"
        self._around = np.zeros(256, bool)  # what may stand beside a field's quotes
        self._around[[*self._ends, _QUOTE]] = True

    def first_misplaced(self) -> int | None:
        """Where the first closing quote is that text follows."""
        content, last, is_quoted = self._content, len(self._content) - 1, False
        for begin in range(0, len(content), _BLOCK_BYTES):
            quotes = begin + np.flatnonzero(content[begin : begin + _BLOCK_BYTES] == _QUOTE)
            openings, closings = quotes[int(is_quoted) :: 2], quotes[1 - int(is_quoted) :: 2]
            if not self._around[content[openings[openings > 0] - 1]].all():
                # A quote within a plain field is a letter: only who reads on field by field can tell.
                return self._first_misplaced_by_field()
            wrong = closings[~self._around[content[np.minimum(closings + 1, last)]]]
            if len(wrong):
                return int(wrong[0])
            is_quoted ^= len(quotes) % 2 == 1
        return None

    def _first_misplaced_by_field(self) -> int | None:
        content = self._content.data
        opening = re.compile(rb"(?:\A|[" + re.escape(self._ends) + rb'])"')
        place = 0
        while (found := opening.search(content, place)) and (close := _CLOSING.match(content, found.end())):
            place = close.end()
            if place < len(content) and content[place] not in self._ends:
                return place - 1
        return None


@functools.cache
def _field(delimiter: bytes) -> re.Pattern[bytes]:
    """One field and what ends it. Quotes count only at a field's beginning; inside them "" is a quote."""
    end = re.escape(delimiter)
    quoted = rb'(?P<quoted>"[^"]*(?:""[^"]*)*(?P<close>"|\Z))?'
    return re.compile(quoted + rb"[^" + end + rb"\r\n]*(?P<end>" + end + rb"|\r\n|\r|\n|\Z)")


def ragged_row(file: Path) -> tuple[CsvRow, int] | None:
    """The first row that has not as many fields as the header, with the header's number of them."""
    header = 0
    for row in _rows(file):
        header = header or row.fields
        if row.fields != header:
            return row, header
    return None


def unclosed_row(file: Path) -> CsvRow | None:
    """The last row if the file ends inside one of its quoted fields; None if it does not."""
    return next((row for row in _rows(file) if not row.is_closed), None)


def undecodable_line(file: Path) -> int | None:
    """The first line (from 1) that is not UTF-8; None if all are."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None


def _rows(file: Path) -> Iterator[CsvRow]:
    delimiter = find_delimiter(file)
    field = _field(delimiter)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        position = len(BYTE_ORDER_MARK) if content[:3] == BYTE_ORDER_MARK else 0
        line, first_line, fields = 1, 1, 0
        while position < len(content):
            match = field.match(content, position)
            if match is None:  # pragma: no cover - the pattern matches anything, even nothing
                return
            line += len(_NEWLINE.findall(match["quoted"] or b""))
            fields += 1
            if match["end"] != delimiter:
                is_blank = fields == 1 and match.start("end") == match.start()
                if not is_blank:
                    yield CsvRow(first_line, fields, is_closed=match["close"] != b"")
                line += 1
                first_line, fields = line, 0
            position = match.end()
        if fields:  # the file ends with a delimiter
            yield CsvRow(first_line, fields + 1)


# Rows as the text of a CSV file, as pandas' ``to_csv(index=False)`` writes it, but without its losses.
#
# A missing value is an empty field and the empty text a quoted one, so that both come back; times are
# ISO 8601 with their offset. NaN is ``NaN``, which is not missing. Lists, structs and maps are JSON, as in
# JSON
# Lines, and binary is base64. Who knows the columns' types reads every value back (``written_values``).

_NEEDS_QUOTES = r'[",\r\n]'
_DELIMITERS = r"[;\t|]"


def csv_text(rows: pa.Table) -> str:
    """The rows below a header, each line ended by a newline."""
    # A reader takes another delimiter in a header without a comma for that of the file.
    needs_quotes = _NEEDS_QUOTES if rows.num_columns > 1 else f"{_NEEDS_QUOTES}|{_DELIMITERS}"
    names = pa.chunked_array([pa.array(rows.column_names, pa.string())])
    header = ",".join(_quote(names, needs_quotes).to_pylist())
    if not rows.num_columns or not rows.num_rows:
        return f"{header}\n"
    fields = [pc.fill_null(_csv_text_field(column), "") for column in rows.columns]
    lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*fields, ","), "\n", "")
    return f"{header}\n{''.join(map(_join_texts, lines.chunks))}"


def csv_pieces(schema: pa.Schema, tables: Iterable[pa.Table], piece_rows: int) -> Iterator[bytes]:
    """The file of the rows, some at a time."""
    header = csv_text(schema.empty_table())
    if "" in schema.names:
        raise _unwritable("A column has no name.", "A reader gives such a column a name of its own.")
    yield header.encode()
    for table in tables:
        if table.num_columns == 1 and table.column(0).null_count:
            cause = f"The line of a missing value in the only column, {schema.names[0]!r}, is blank."
            raise _unwritable("A row would be lost.", cause)
        for start in range(0, len(table), piece_rows):
            yield csv_text(table.slice(start, piece_rows)).removeprefix(header).encode()


def _unwritable(problem: str, cause: str) -> BadInput:
    return BadInput(f"{problem} CSV cannot hold it.", cause=cause, remedy="Export Parquet or JSON Lines.")


def _join_texts(lines: pa.Array) -> str:
    """The concatenated texts, as the array holds them."""
    offsets = np.frombuffer(lines.buffers()[1], np.int32)
    first, last = (int(offsets[lines.offset + at]) for at in (0, len(lines)))
    return str(lines.buffers()[2].slice(first, last - first).to_pybytes(), "utf-8")


def _csv_text_field(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    text = _as_text(column)
    # No number has a comma, a quote or a newline, nor is its text empty.
    return text if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) else _quote(text)


def _quote(text: pa.ChunkedArray, needs_quotes: str = _NEEDS_QUOTES) -> pa.ChunkedArray:
    quotes = pc.or_(pc.match_substring_regex(text, needs_quotes), pc.equal(text, ""))
    if not pc.any(quotes, min_count=0).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(quotes, pc.binary_join_element_wise('"', doubled, '"', ""), text)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "True", "False")
    if pa.types.is_floating(kind):
        text = pc.replace_substring_regex(column.cast(pa.string()), r"^(-?\d+)$", r"\1.0")
        return pc.if_else(pc.is_nan(column), "NaN", text)
    if pa.types.is_timestamp(kind):
        return moment_texts(column)
    if pa.types.is_nested(kind):
        return _texts(column, lambda value: json.dumps(value, ensure_ascii=False))
    if pa.types.is_binary(kind):
        return _texts(column, str)
    return date_texts(column) if pa.types.is_date(kind) else column.cast(pa.string())


def _texts(column: pa.ChunkedArray, write: Callable[[Any], str]) -> pa.ChunkedArray:
    """What ``write`` makes of each value in the form of JSON."""
    form = json_form(column.type)
    values = python_values(column, moment_text)
    texts = [None if value is None else write(form(value)) for value in values]
    return pa.chunked_array([pa.array(texts, pa.string())])
