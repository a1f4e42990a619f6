"""Reads JSON Lines in parts of whole lines: types first, then rows.

A column is of its known type if every value is exact in it, else of the values' own (``json_columns``).
"""

from __future__ import annotations

import functools
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from freezeframe.errors import UnreadableInput
from freezeframe.script.formats.csv_lines import BYTE_ORDER_MARK
from freezeframe.script.formats.input_parts import InputPart, divide
from freezeframe.script.formats.json_columns import JsonColumn, found_kind, joined_kinds
from freezeframe.script.formats.unpacking import UNLIMITED, Unpacking, UnpackLimits
from freezeframe.script.types.typed_columns import KnownTypes
from freezeframe.storage.passing_failures import reads_of

Rows = list[dict[str, Any]]
Columns = Mapping[str, JsonColumn]

_PIECE_BYTES = 2 * 2**20
# Files up to this size are parsed once, and their rows are kept until the types are known.
_PARSED_ONCE_BYTES_MAX = 8 * 2**20
# Least memory of a cell while rows are converted to columns.
_CELL_BYTES = 8


def survey_json(part: InputPart, known: KnownTypes, limits: UnpackLimits = UNLIMITED) -> Columns:
    """Survey the values of a part: the types that each of its columns can have.

    Raises:
        TooLarge: with NULL where lines lack a column, it is more than a limit.
        UnreadableInput: a line is not a JSON object; file and line are named.
    """
    part.require_unchanged()
    return _survey(part, _pieces(part, _PIECE_BYTES), known, limits)


def joined_json(
    parts: Sequence[InputPart],
    surveys: Sequence[Columns],
    known: KnownTypes,
    columns: pa.Schema | None = None,
) -> Columns:
    """The joined findings of several parts; ``columns`` are there in any case.

    Raises:
        UnreadableInput: no type holds all values of a column; file, line and column are named.
    """
    found: dict[str, JsonColumn] = {}
    for survey in surveys:
        for name, column in survey.items():
            found[name] = found.get(name, JsonColumn()).join(column)
    for name, column in found.items():
        if column.type(known.rule(name, ())) is None:
            raise _mixed_types_error(name, zip(parts, surveys, strict=True))
    for name in [] if columns is None else columns.names:
        found.setdefault(name, JsonColumn())
    return found


def json_schema(known: KnownTypes, columns: Columns) -> pa.Schema:
    """The columns and types that the survey found."""
    return pa.schema([pa.field(name, column.type(known.rule(name, ()))) for name, column in columns.items()])


def json_tables(part: InputPart, _: Columns, known: KnownTypes, columns: Columns) -> Iterator[pa.Table]:
    """The rows of a part in the columns of all parts that were surveyed; what a line lacks is NULL.

    Raises:
        UnreadableInput: the file was changed since.
    """
    part.require_unchanged()
    return _tables(part, _pieces(part, _PIECE_BYTES), known, columns)


def read_json_files(
    files: Sequence[Path],
    known: KnownTypes,
    columns: pa.Schema | None = None,
    limits: UnpackLimits = UNLIMITED,
    *,
    piece_bytes: int = _PIECE_BYTES,
    parsed_once_bytes_max: int = _PARSED_ONCE_BYTES_MAX,
) -> pa.Table:
    """The rows of several files, in their order; an empty file has no columns.

    Lines are read ``piece_bytes`` at a time, and twice in files of more than ``parsed_once_bytes_max``.

    Raises:
        TooLarge, UnreadableInput: as of ``survey_json`` and ``joined_json``.
    """
    parts = [part for file in files for part in divide(file, [0])]
    is_small = sum(part.size for part in parts) <= parsed_once_bytes_max
    read = functools.partial(_pieces, piece_bytes=piece_bytes)
    parsed = [list(read(part)) for part in parts] if is_small else None

    def pieces() -> Iterator[tuple[InputPart, Iterable[Rows]]]:
        return zip(parts, parsed or map(read, parts), strict=True)

    surveys = [_survey(part, rows, known, limits) for part, rows in pieces()]
    found = joined_json(parts, surveys, known, columns)
    tables = [table for part, rows in pieces() for table in _tables(part, rows, known, found)]
    return pa.concat_tables([json_schema(known, found).empty_table(), *tables])


def _pieces(part: InputPart, piece_bytes: int) -> Iterator[Rows]:
    return ([row for _, row in rows] for rows in _number_lines(part, piece_bytes))


def _survey(part: InputPart, pieces: Iterable[Rows], known: KnownTypes, limits: UnpackLimits) -> Columns:
    columns: dict[str, JsonColumn] = {}
    unpacking, count = Unpacking(part.file.name, part.size, limits), 0
    for rows in pieces:
        names = dict.fromkeys(name for row in rows for name in row)
        count += len(rows)
        unpacking.expect(count, count * len(columns.keys() | names) * _CELL_BYTES)
        for name in names:
            values = [row.get(name) for row in rows]
            columns[name] = columns.get(name, JsonColumn()).with_values(values, known.rule(name, ()))
    return columns


def _tables(
    part: InputPart, pieces: Iterable[Rows], known: KnownTypes, columns: Columns
) -> Iterator[pa.Table]:
    rules = {name: known.rule(name, ()) for name in columns}
    schema = json_schema(known, columns)
    for rows in pieces:
        if not all(row.keys() <= columns.keys() for row in rows):
            raise part.changed()
        arrays = [
            column.array([row.get(name) for row in rows], rules[name]) for name, column in columns.items()
        ]
        if any(array is None for array in arrays):
            raise part.changed()
        yield pa.table(arrays, schema=schema)


def _number_lines(part: InputPart, piece_bytes: int) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """The objects with the numbers of their lines in the part, from 1, some at a time."""
    number = 0
    with reads_of(str(part.file)), io.BufferedReader(part.section()) as content:
        while lines := content.readlines(piece_bytes):
            if part.start == number == 0:
                lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
            rows = []
            for line in lines:
                number += 1
                if line.strip():
                    rows.append((number, _object(part, number, line)))
            yield rows


def _object(part: InputPart, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = _DECODER.decode(line.decode())
        if b"\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()  # a lone UTF-16 surrogate is not text
    except (ValueError, RecursionError) as error:
        number += part.lines_before()
        raise _unreadable(part.file, f"Line {number} is not JSON: {error}.", line=number) from error
    if not isinstance(row, dict):
        number += part.lines_before()
        raise _unreadable(part.file, f"Line {number} is not an object.", line=number)
    return row


def _mixed_types_error(name: str, surveys: Iterable[tuple[InputPart, Columns]]) -> UnreadableInput:
    """The error for the first value that no type holds beside those before it."""
    kind: pa.DataType | None = pa.null()
    for part, survey in surveys:
        after = joined_kinds(kind, survey.get(name, JsonColumn()).kind)
        if after is None:
            return _mixed_part_error(part, name, kind)
        kind = after
    raise AssertionError(name)  # pragma: no cover - called only where the kinds cannot be joined


def _mixed_part_error(part: InputPart, name: str, kind: pa.DataType | None) -> UnreadableInput:
    """The error for a part of which a value cannot be joined with ``kind``, which those before it have."""
    for rows in _number_lines(part, _PIECE_BYTES):
        for number, row in rows:
            kind = joined_kinds(kind, found_kind([row.get(name)]))
            if kind is None:
                line = part.lines_before() + number
                cause = (
                    f"In line {line} the column {name!r} has another kind of value than before it, an integer"
                    " of more than 64 bits, or one beyond 2**53 beside fractions, which no number type holds."
                )
                return _unreadable(part.file, cause, line=line, column=name)
    return part.changed()


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is larger than any double")
    return value


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _unreadable(file: Path, cause: str, **place: Any) -> UnreadableInput:
    return UnreadableInput(
        f"{str(file)!r} cannot be read as JSON Lines.",
        cause=cause,
        remedy="Write one JSON object a line, with one kind of value in each column.",
        file=str(file),
        **place,
    )
