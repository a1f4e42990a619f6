"""CSV delimiter detection, and the line number of a malformed row.

The reader itself is PyArrow's; it does not say at which line of the file a row begins, and
quoted newlines make rows and lines differ.
"""

from __future__ import annotations

import functools
import mmap
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_OTHER_DELIMITERS = (b";", b"\t", b"|")
_HEADER_BYTES_MAX = 2**20
_QUOTED = re.compile(rb'"[^"]*"')
_NEWLINE = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row of the file: the line on which it begins (from 1) and the number of its fields.

    ``is_closed`` is false for a last row that ends inside a quoted field.
    """

    line: int
    fields: int
    is_closed: bool = True


def find_delimiter(file: Path) -> bytes:
    """A comma, unless the header has none and has semicolons, tabs or bars: then what it has most of."""
    with file.open("rb") as content:
        header = content.readline(_HEADER_BYTES_MAX).partition(b"\r")[0]
    counts = Counter(_QUOTED.sub(b"", header).partition(b'"')[0])
    return b"," if counts[ord(",")] else max(b",", *_OTHER_DELIMITERS, key=lambda one: counts[ord(one)])


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
