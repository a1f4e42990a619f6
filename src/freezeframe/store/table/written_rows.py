"""Rows as the pieces of a file: JSON Lines, CSV or Parquet, or a workbook (``workbook``).

Readers that know the types get every value back. What JSON has no value for is text: decimals, dates, times,
binary (base64), and the numbers that are not numbers (``"NaN"``, ``"Infinity"``). A missing value is
``null``, a map an object, or a list of pairs where its keys are no texts. CSV is as pandas'
``to_csv(index=False)`` writes it, but without its losses.
"""

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freezeframe.engine.frames.python_values import exact_texts, moment_text, python_values, shown_rows
from freezeframe.engine.frames.untyped import parquet_schema
from freezeframe.errors import BadInput
from freezeframe.log.scan.file_statistics import bounded_columns
from freezeframe.nested_types import fold_type
from freezeframe.store.model.json_fields import json_scalar
from freezeframe.store.table.reader import in_schema
from freezeframe.store.table.workbook import workbook_pieces

FileKind = Literal["csv", "parquet", "jsonl", "xlsx"]
PIECE_ROWS = 20_000
GROUP_ROWS = 100_000

Form = Callable[[Any], Any]
"""A value of a column, as Python has it, in the form that is written."""


class StreamingBuffer:
    """A writable file whose content is drained while it is written; not seekable."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return False: ``drain`` returns the content."""
        return False

    def seekable(self) -> bool:
        """Return False: drained content is discarded."""
        return False

    def write(self, content: bytes) -> int:
        """Add bytes."""
        self._pieces.append(bytes(content))
        self.size += len(content)
        return len(content)

    def flush(self) -> None:
        """Do nothing: no content is buffered elsewhere."""

    def close(self) -> None:
        """Do nothing: written content can still be drained."""

    def drain(self) -> bytes:
        """Return all that was written since the last call."""
        content = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return content


def file_pieces(kind: FileKind, rows: pa.RecordBatchReader, columns: pa.Schema) -> Iterator[bytes]:
    """Yield a file of the rows in pieces; ``columns`` are those of a Parquet file."""
    tables = (pa.Table.from_batches([batch]) for batch in rows)
    if kind == "csv":
        yield from csv_pieces(rows.schema, tables, PIECE_ROWS)
    elif kind == "jsonl":
        for table in tables:
            yield from json_lines(table, PIECE_ROWS)
    elif kind == "xlsx":
        yield from workbook_pieces(rows.schema, tables, PIECE_ROWS, _as_text)
    else:
        yield from _parquet_pieces(tables, columns)


def _parquet_pieces(tables: Iterable[pa.Table], columns: pa.Schema) -> Iterator[bytes]:
    """Yield the file; the rows of small tables share a row group."""
    sink, held = StreamingBuffer(), parquet_schema(columns)
    waiting: list[pa.Table] = []
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), held, write_statistics=bounded_columns(held)) as writer:
        for table in tables:
            waiting.append(in_schema(table, held))
            if sum(map(len, waiting)) >= GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting), GROUP_ROWS)
                waiting = []
                yield sink.drain()
        if waiting:
            writer.write_table(pa.concat_tables(waiting), GROUP_ROWS)
    yield sink.drain()


def json_lines(rows: pa.Table, batch_rows: int) -> Iterator[bytes]:
    """Yield the rows, some at a time."""
    for start in range(0, len(rows), batch_rows):
        yield b"".join(map(json_line, json_rows(rows.slice(start, batch_rows))))


def json_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Return the rows with all values in the form of JSON."""
    forms = {field.name: json_form(field.type) for field in rows.schema}
    return [{name: forms[name](value) for name, value in row.items()} for row in shown_rows(rows)]


def json_line(row: dict[str, Any]) -> bytes:
    """Return a row, whose values are in the form of JSON, as a line."""
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _leaf_form(kind: pa.DataType) -> Form:
    is_json = pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    return (lambda value: value) if is_json else json_scalar


def json_form(kind: pa.DataType, leaf: Callable[[pa.DataType], Form] = _leaf_form) -> Form:
    """Return what makes a value of JSON of a value of the type, by ``leaf`` where it is not nested."""
    form: Form = fold_type(kind, functools.partial(_form, leaf=leaf))
    return form


def _form(kind: pa.DataType, inside: list[Form], leaf: Callable[[pa.DataType], Form]) -> Form:
    if pa.types.is_struct(kind):
        forms = dict(zip((field.name for field in kind), inside, strict=True))

        def form(value: Any) -> Any:
            return {name: part(value.get(name)) for name, part in forms.items()}

    elif pa.types.is_map(kind):
        key, item = inside

        def form(value: Any) -> Any:
            named = {name: item(held) for name, held in value} if pa.types.is_string(kind.key_type) else None
            # A list of pairs holds what an object does not: other keys than texts, and a key twice.
            if named is not None and len(named) == len(value):
                return named
            return [[key(name), item(held)] for name, held in value]

    elif inside:
        (element,) = inside

        def form(value: Any) -> Any:
            return [element(item) for item in value]

    else:
        written = leaf(kind)

        def form(value: Any) -> Any:
            return written(value)

    return lambda value: None if value is None else form(value)


# In CSV a missing value is an empty field and the empty text a quoted one, so that both come back; times are
# ISO 8601 with their offset. NaN is ``NaN``, which is not missing. Lists, structs and maps are JSON, as in
# JSON Lines, and binary is base64. Readers that know the types get every value (``written_values``).

_NEEDS_QUOTES = r'[",\r\n]'
_DELIMITERS = r"[;\t|]"


def csv_text(rows: pa.Table) -> str:
    """Return the rows below a header, each line ended by a newline."""
    # A reader takes another delimiter in a header without a comma for that of the file.
    needs_quotes = _NEEDS_QUOTES if rows.num_columns > 1 else f"{_NEEDS_QUOTES}|{_DELIMITERS}"
    names = pa.chunked_array([pa.array(rows.column_names, pa.string())])
    header = ",".join(_quote(names, needs_quotes).to_pylist())
    if not rows.num_columns or not rows.num_rows:
        return f"{header}\n"
    fields = []
    for column in rows.columns:
        text = _as_text(column)
        # No number has a comma, a quote or a newline, nor is its text empty.
        is_plain = pa.types.is_primitive(column.type) or pa.types.is_decimal(column.type)
        fields.append(pc.fill_null(text if is_plain else _quote(text), ""))
    lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*fields, ","), "\n", "")
    return f"{header}\n{''.join(map(_join_texts, lines.chunks))}"


def csv_pieces(schema: pa.Schema, tables: Iterable[pa.Table], piece_rows: int) -> Iterator[bytes]:
    """Yield the file of the rows, some at a time."""
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
    offsets = np.frombuffer(lines.buffers()[1], np.int32)
    first, last = (int(offsets[lines.offset + at]) for at in (0, len(lines)))
    return str(lines.buffers()[2].slice(first, last - first).to_pybytes(), "utf-8")


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
    if pa.types.is_nested(kind):
        return _texts(column, lambda value: json.dumps(value, ensure_ascii=False))
    if pa.types.is_binary(kind):
        return _texts(column, str)
    return exact_texts(column)


def _texts(column: pa.ChunkedArray, write: Callable[[Any], str]) -> pa.ChunkedArray:
    """Return what ``write`` makes of each value in the form of JSON."""
    form = json_form(column.type)
    values = python_values(column, moment_text)
    texts = [None if value is None else write(form(value)) for value in values]
    return pa.chunked_array([pa.array(texts, pa.string())])
