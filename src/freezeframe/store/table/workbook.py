"""Rows as an Excel workbook (``.xlsx``) with one sheet, written in constant memory by XlsxWriter.

Text stays text: ``007`` keeps its zeros, and what begins with ``=`` is no formula. Excel keeps 15 digits, so
integers and decimals of more are text. Dates and times are Excel's, those with a zone in UTC, to the
millisecond; what Excel has no value for (dates before March 1900, NaN, lists, binary) is text as in CSV.
"""

import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import pyarrow as pa

from freezeframe.engine.frames.python_values import moment_text, python_values
from freezeframe.errors import BadInput, TooLarge
from freezeframe.extras import requires_extra

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.worksheet import Worksheet

ROWS_MAX = 1_048_575
"""So many rows fit below the header."""
COLUMNS_MAX = 16_384
LETTERS_MAX = 32_767
"""So many letters fit into a cell."""
_DIGITS_MAX = 15
_SAFE = 10**_DIGITS_MAX
_FIRST_DAY = date(1900, 3, 1)  # before it Excel counts a day that never was
_PIECE_BYTES = 256 * 1024
_NO_XML = re.compile("[\ufffe\uffff]")

Texts = Callable[[pa.ChunkedArray], pa.ChunkedArray]


def require_fits(rows: int, columns: Sequence[str]) -> None:
    """Refuse more rows or columns than a sheet has."""
    if rows > ROWS_MAX or len(columns) > COLUMNS_MAX:
        raise TooLarge(
            f"{rows:,} rows of {len(columns):,} columns do not fit into a workbook.",
            cause=f"Excel has {ROWS_MAX:,} rows below the header, and {COLUMNS_MAX:,} columns.",
            remedy="Export CSV, JSON Lines or Parquet.",
        )


def workbook_pieces(
    schema: pa.Schema, tables: Iterable[pa.Table], piece_rows: int, as_text: Texts
) -> Iterator[bytes]:
    """Yield the workbook of the rows; it is written to a temporary file first, and refused as a whole.

    ``as_text`` writes a column as CSV has it.
    """
    with requires_extra("excel"):
        import xlsxwriter  # noqa: PLC0415 - of an extra

    with tempfile.TemporaryDirectory(prefix="freezeframe-") as folder:
        path = Path(folder) / "rows.xlsx"
        with xlsxwriter.Workbook(path, {"constant_memory": True, "tmpdir": folder}) as book:
            sheet = book.add_worksheet("Rows")
            bold = book.add_format({"bold": True})
            for at, name in enumerate(schema.names):
                _write_text(sheet, 0, at, name, bold)
            sheet.freeze_panes(1, 0)
            writers = [_writer(book, sheet, at, field.type) for at, field in enumerate(schema)]
            number = 0
            for table in tables:
                for start in range(0, len(table), piece_rows):
                    piece = table.slice(start, piece_rows)
                    columns = [_cells(column, as_text) for column in piece.columns]
                    for number, row in enumerate(zip(*columns, strict=True), number + 1):  # noqa: B020 - goes on
                        for at, value in enumerate(row):
                            if type(value) is str:
                                _write_text(sheet, number, at, value)
                            elif value is not None:
                                writers[at](number, at, value)
        with path.open("rb") as content:
            while part := content.read(_PIECE_BYTES):
                yield part


def _write_text(sheet: "Worksheet", row: int, column: int, text: str, *form: Any) -> None:
    # XlsxWriter takes what looks like its own rich text for that, and writes it unescaped.
    is_like_rich = text.startswith("<r>") and text.endswith("</r>")
    cell = f'<r><t xml:space="preserve">{escape(text)}</t></r>' if is_like_rich else text
    if _NO_XML.search(text) or sheet.write_string(row, column, cell, *form):
        raise BadInput(
            f"A text of {len(text):,} letters does not fit into a cell.",
            cause=f"It is in row {row:,}, column {column + 1:,}; Excel's cells have {LETTERS_MAX:,} letters, "
            "none of them U+FFFE or U+FFFF.",
            remedy="Export CSV, JSON Lines or Parquet.",
        )


def _writer(book: "Workbook", sheet: "Worksheet", at: int, kind: pa.DataType) -> Callable[..., Any]:
    """Return what writes the values of a column that are no text."""
    write: Callable[..., Any] = sheet.write_boolean if pa.types.is_boolean(kind) else sheet.write_number
    form = None
    is_date = pa.types.is_date(kind)
    if is_date or pa.types.is_timestamp(kind):
        write = sheet.write_datetime
        form = book.add_format({"num_format": "yyyy-mm-dd" if is_date else "yyyy-mm-dd hh:mm:ss"})
        sheet.set_column(at, at, 11 if is_date else 20)
    elif pa.types.is_decimal(kind) and kind.scale > 0:
        form = book.add_format({"num_format": "0." + "0" * kind.scale})
    return write if form is None else lambda row, column, value: write(row, column, value, form)


def _cells(column: pa.ChunkedArray, as_text: Texts) -> list[Any]:
    """Return the values as they are written; text for those that are no other kind of Excel's."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return list(column.to_pylist())
    if pa.types.is_integer(kind):
        return [value if value is None or abs(value) < _SAFE else str(value) for value in column.to_pylist()]
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return [_moment(value) for value in python_values(column, moment_text)]
    texts = as_text(column).to_pylist()
    if pa.types.is_floating(kind):
        pairs = zip(column.to_pylist(), texts, strict=True)
        return [value if value is not None and math.isfinite(value) else text for value, text in pairs]
    if pa.types.is_decimal(kind):
        pairs = zip(column.to_pylist(), texts, strict=True)
        return [value if value is None or _digits(value) <= _DIGITS_MAX else text for value, text in pairs]
    return list(texts)


def _digits(value: Any) -> int:
    """Return the number of a decimal's digits, without the zeros at the ends of its fraction."""
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return len(text.lstrip("-0.").replace(".", ""))


def _moment(value: Any) -> Any:
    if isinstance(value, datetime):
        naive = value.replace(tzinfo=None)  # Arrow gives those with a zone in UTC
        return naive if naive.date() >= _FIRST_DAY else str(value)
    if isinstance(value, date):
        return value if value >= _FIRST_DAY else value.isoformat()
    return value
