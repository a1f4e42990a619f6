"""Reads CSV files as text columns; nothing is interpreted or repaired.

PyArrow reads them: quoted newlines, delimiters and quotes are part of a value. An empty field is
NULL, an empty quoted one (``""``) the empty text; "NA" and "null" are text like any other. A file that
is packed (``.gz``), or has quotes behind an escape character, is read from a temporary copy. This module
finds what PyArrow does not report: the delimiter, the line of a malformed row, text behind a closing quote.
"""

import functools
import gzip
import itertools
import mmap
import os
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from freezeframe.errors import UnreadableInput
from freezeframe.script.formats.input_parts import PART_BYTES, InputPart, divide
from freezeframe.storage.local import temporary_file
from freezeframe.storage.read_ahead import reads_of
from freezeframe.store.schema.schema_evolution import require_few_columns

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
        return UnreadableInput(
            f"{self.name!r} {problem}", cause=cause, remedy=remedy, file=self.name, **details
        )


def read_csv_text(file: Path, escape: str = "") -> pa.Table:
    r"""Return the file's rows, every column ``string``, in the order of its header.

    A byte order mark and CRLF are understood; blank lines are skipped. Fields are separated by commas, or by
    what the header has in their place (``find_delimiter``). A column without a
    name is called ``Unnamed: {position}``, as pandas does. A file with only a header is a
    table without rows, and one whose name ends with ``.gz`` is unpacked. ``escape`` is what stands before a
    quote in a quoted field, if not a quote: ``\\`` in what Spark writes.
    """
    with reads_of(str(file)), _opened(file, escape) as source:
        return _read_csv_text(source)


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
            path = temporary_file(stack, _folder(stack) / file.stem, unpacked(file))
        if is_escaped(path, escape):
            path = temporary_file(stack, _folder(stack) / path.name, _unescaped(path, escape))
        separator = excel_separator(path)
        if separator:
            path = temporary_file(stack, _folder(stack) / path.name, _without_first_line(path))
        source = _Source(path, str(file), separator or find_delimiter(path))
        require_few_columns(_header_counts(path)[source.delimiter[0]] + 1, f"{source.name!r} has")
        yield source


def _folder(held: ExitStack) -> Path:
    return Path(held.enter_context(tempfile.TemporaryDirectory()))


def unpacked(file: Path) -> Iterator[bytes]:
    """Yield what a packed file holds."""
    try:
        with gzip.open(file) as packed:
            yield from iter(functools.partial(packed.read, _PIECE_BYTES), b"")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableInput(
            f"{str(file)!r} cannot be unpacked.", cause=str(error), remedy=_REMEDY, file=str(file)
        ) from error


def _without_first_line(file: Path) -> Iterator[bytes]:
    """Yield a file whose first line is blank, so that lines keep their numbers."""
    with file.open("rb") as content:
        content.readline()
        yield b"\n"
        yield from iter(functools.partial(content.read, _PIECE_BYTES), b"")


def _unescaped(file: Path, escape: str) -> Iterator[bytes]:
    """Yield a file in which a quote stands for the escape character before a quote in a quoted field.

    Elsewhere Spark writes that character as it is.
    """
    mark = re.escape(escape.encode())
    ends = re.escape(find_delimiter(file) + b"\r\n")
    start = rb"(?:\A|(?<=\A" + BYTE_ORDER_MARK + rb")|(?<=[" + ends + rb"]))"
    plain_text = rb'[^"' + mark + rb"]*"
    quoted = re.compile(start + rb'"' + plain_text + rb"(?:" + mark + rb"." + plain_text + rb')*"', re.DOTALL)
    escaped = re.compile(mark + rb"(.)", re.DOTALL)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        position = 0
        for field in quoted.finditer(content):
            yield content[position : field.start()]
            yield escaped.sub(_as_doubled, field[0])
            position = field.end()
        yield content[position:]


def _as_doubled(escaped: re.Match[bytes]) -> bytes:
    return b'""' if escaped[1] == b'"' else escaped[1]


def place_of_row(file: Path, row: int) -> str:
    """Return a row's line for messages, or its number where the line is costly to find."""
    line = None
    if row < _LINES_COUNTED_MAX and file.suffix.casefold() != ".gz":
        line = line_of_row(file, row + 1)
    return f"row {row + 1}" if line is None else f"line {line}"


class LongRow(Exception):
    """A row is longer than a block."""


def block_sizes() -> Iterator[int]:
    """Yield sizes of blocks in bytes to read a file in, the next one where a row is longer than the last."""
    size = _PIECE_BYTES
    while size < _BLOCK_BYTES_MAX:
        yield size
        size *= 8
    yield _BLOCK_BYTES_MAX


def csv_text_pieces(
    part: InputPart, block_bytes: int, escape: str = "", *, is_checked: bool = False
) -> Iterator[pa.Table]:
    """Yield the rows of a part as ``read_csv_text`` has them, for files that are larger than memory.

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
    require_few_columns(len(header), f"{source.name!r} has")  # long names hid it before
    names = [name or f"Unnamed: {position}" for position, name in enumerate(header)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise source.unreadable(
            f"has several columns named {', '.join(map(repr, twice))}.",
            "Their values could not be distinguished.",
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
    row = next((row for row in _rows(source.path) if not row.is_closed), None)
    if row is not None:
        raise source.unreadable(
            f"ends inside a quoted field, in the row that begins at line {row.line}.",
            "The file was cut off, or a quote was never closed.",
            line=row.line,
        )


def _with_last_field(source: _Source, table: pa.Table) -> pa.Table:
    # After a quoted field, PyArrow takes an empty field at the very end of a file for a quoted one.
    position = table.num_columns - 1
    if not len(table) or _last_bytes(source.path, 1) != source.delimiter:
        return table
    column = table.column(position)
    chunks = [*column.slice(0, len(column) - 1).chunks, pa.nulls(1, pa.string())]
    return table.set_column(position, table.field(position), pa.chunked_array(chunks))


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


# The reader itself is PyArrow's; it does not say at which line of the file a row begins, and
# quoted newlines make rows and lines differ. It also lets text behind a closing quote pass.

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_OTHER_DELIMITERS = (b";", b"\t", b"|")
_HEADER_BYTES_MAX = 2**20
_QUOTED = rb'(?<![^,;\t|])"[^"]*(?:""[^"]*)*"'
_QUOTED_NAMES = re.compile(_QUOTED)
_SEPARATOR = re.compile(rb"(?:" + BYTE_ORDER_MARK + rb')?"?sep=([^\r\n"])"?\r?\n', re.IGNORECASE)
_HEADER = re.compile(rb"(?:" + _QUOTED + rb"|[^\r\n])*")
_NEWLINE = re.compile(rb"\r\n|\r|\n")
_QUOTE = b'"'[0]
_CLOSING = re.compile(rb'[^"]*(?:""[^"]*)*"(?!")')


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row of the file: the line on which it begins (from 1) and the number of its fields.

    ``is_closed`` is false for a last row that ends inside a quoted field.
    """

    line: int
    fields: int
    is_closed: bool = True


def excel_separator(file: Path) -> bytes:
    """Return what the first line of Excel, such as ``sep=;``, says is between fields; empty without one."""
    with file.open("rb") as content:
        found = _SEPARATOR.match(content.read(len(BYTE_ORDER_MARK) + 10))
    return found[1] if found else b""


def find_delimiter(file: Path) -> bytes:
    """Return a comma, unless the header has none and has semicolons, tabs or bars: then what it has most of.

    In a ``.tsv`` file it is a tab, if the header has one.
    """
    counts = _header_counts(file)
    if file.suffix.casefold() == ".tsv" and counts[ord("\t")]:
        return b"\t"
    return b"," if counts[ord(",")] else max(b",", *_OTHER_DELIMITERS, key=lambda item: counts[ord(item)])


def _header_counts(file: Path) -> Counter[int]:
    """Return how often each byte is in the header (or its first MiB) outside of quoted names."""
    with file.open("rb") as content:
        start = content.read(_HEADER_BYTES_MAX).removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")
    header = _HEADER.match(start)
    return Counter(_QUOTED_NAMES.sub(b"", header[0] if header else b""))


def is_escaped(file: Path, escape: str) -> bool:
    """Return whether a file has the escape character anywhere."""
    if not escape or not file.stat().st_size:
        return False
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(escape.encode()) >= 0


def line_of_row(file: Path, row: int) -> int | None:
    """Return the line (from 1) on which a row begins; the header is row 0. None if there are fewer rows."""
    return next((found.line for number, found in enumerate(_rows(file)) if number == row), None)


def line_in_part(part: InputPart, row: int, escape: str = "") -> int | None:
    """Return the line of the file on which a row of the part begins; the first of its rows is row 0."""
    with reads_of(str(part.file)), _opened(part.file, escape) as source:
        rows = _rows(source.path, part.start)
        found = next(itertools.islice(rows, row if part.start else row + 1, None), None)
        return None if found is None else part.lines_before() + found.line


def misquoted_line(file: Path, start: int, stop: int, delimiter: bytes) -> int | None:
    """Return the first line (from 1) on which text follows a closing quote; None if there is none.

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
    position = quoting.first_misplaced()
    if position is None:
        return None
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return 1 + sum(1 for _ in _NEWLINE.finditer(content, 0, start + position))


class _Quoting:
    """The quotes of whole rows of a CSV file."""

    def __init__(self, content: npt.NDArray[np.uint8], delimiter: bytes) -> None:
        self._content = content
        self._ends = delimiter + b"\r\n"
        self._around = np.zeros(256, bool)  # what may stand beside a field's quotes
        self._around[[*self._ends, _QUOTE]] = True

    def first_misplaced(self) -> int | None:
        """Return where the first closing quote is that text follows."""
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
        position = 0
        while (found := opening.search(content, position)) and (
            close := _CLOSING.match(content, found.end())
        ):
            position = close.end()
            if position < len(content) and content[position] not in self._ends:
                return position - 1
        return None


@functools.cache
def _field(delimiter: bytes) -> re.Pattern[bytes]:
    """Match one field and its end. Quotes count only at a field's beginning; inside them "" is a quote."""
    end = re.escape(delimiter)
    quoted = rb'(?P<quoted>"[^"]*(?:""[^"]*)*(?P<close>"|\Z))?'
    return re.compile(quoted + rb"[^" + end + rb"\r\n]*(?P<end>" + end + rb"|\r\n|\r|\n|\Z)")


def ragged_row(file: Path) -> tuple[CsvRow, int] | None:
    """Return the first row that has not as many fields as the header, with the header's number of them."""
    header = 0
    for row in _rows(file):
        header = header or row.fields
        if row.fields != header:
            return row, header
    return None


def undecodable_line(file: Path) -> int | None:
    """Return the first line (from 1) that is not UTF-8; None if all are."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None


def _rows(file: Path, start: int = 0) -> Iterator[CsvRow]:
    """Yield the rows from the position of one on, whose line is 1."""
    delimiter = find_delimiter(file)
    field = _field(delimiter)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        position = start or (len(BYTE_ORDER_MARK) if content[:3] == BYTE_ORDER_MARK else 0)
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


_LINE_FEED = b"\n"[0]
_Positions = npt.NDArray[np.intp]


def csv_parts(
    file: Path, part_bytes: int = PART_BYTES, block_bytes: int = _BLOCK_BYTES, escape: str = ""
) -> tuple[InputPart, ...]:
    """Return a CSV file in parts of whole rows, of about ``part_bytes``; ``block_bytes`` are read at once.

    It is one part if a quote stands within a field that is not quoted: then only who reads it from its
    beginning knows which newlines end a row. So it is if it is packed or has the escape character.
    """
    with reads_of(str(file)):
        is_one = file.stat().st_size <= part_bytes or file.suffix.casefold() == ".gz"
        is_one = is_one or is_escaped(file, escape) or bool(excel_separator(file))
        return divide(file, [0] if is_one else _csv_cuts(file, part_bytes, block_bytes))


def _csv_cuts(file: Path, part_bytes: int, block_bytes: int) -> list[int]:
    cuts, is_quoted = [0], False
    # Bytes allowed before an opening quote; a quote before a quote escapes it.
    before_quote = np.frombuffer(find_delimiter(file) + b'\r\n"', np.uint8)
    for position, block, before in _blocks(file, block_bytes):
        quotes = np.flatnonzero(block == _QUOTE)
        openings = quotes[int(is_quoted) :: 2]
        if not np.isin(np.where(openings > 0, block[openings - 1], before), before_quote).all():
            return [0]
        while (wanted := cuts[-1] + part_bytes - position) < len(block):
            cut = _row_end(block, max(0, wanted), quotes, is_quoted=is_quoted)
            if cut is None:
                break
            cuts.append(position + cut)
        is_quoted ^= len(quotes) % 2 == 1
    return cuts if cuts[-1] < file.stat().st_size or len(cuts) == 1 else cuts[:-1]


def _row_end(block: npt.NDArray[np.uint8], begin: int, quotes: _Positions, *, is_quoted: bool) -> int | None:
    """Return the position behind the first newline from ``begin`` on that is not in a quoted field."""
    newlines = begin + np.flatnonzero(block[begin:] == _LINE_FEED)
    outside = newlines[(np.searchsorted(quotes, newlines) + is_quoted) % 2 == 0]
    return int(outside[0]) + 1 if len(outside) else None


def _blocks(file: Path, block_bytes: int) -> Iterator[tuple[int, npt.NDArray[np.uint8], int]]:
    """Yield each block with its offset and the byte before it; a byte order mark counts as newlines."""
    position, before = 0, _LINE_FEED
    with file.open("rb") as content:
        while block := content.read(block_bytes):
            if position == 0 and block.startswith(BYTE_ORDER_MARK):
                block = b"\n" * len(BYTE_ORDER_MARK) + block[len(BYTE_ORDER_MARK) :]
            yield position, np.frombuffer(block, np.uint8), before
            position, before = position + len(block), block[-1]
