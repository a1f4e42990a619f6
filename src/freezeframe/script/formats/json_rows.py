"""Reads JSON Lines in parts of whole lines, and files of one array of objects: types first, then rows.

A column is of its known type if every value is exact in it, else of the values' own (``json_columns``).
"""

import io
import itertools
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from freezeframe.errors import UnreadableInput
from freezeframe.script.formats.csv_file import BYTE_ORDER_MARK
from freezeframe.script.formats.input_parts import (
    PART_BYTES,
    UNLIMITED,
    InputPart,
    Unpacking,
    UnpackLimits,
    divide,
    line_parts,
)
from freezeframe.script.formats.json_columns import (
    ANY_TEXT,
    DIGITS_MAX,
    QUICK,
    STRICT,
    JsonColumn,
    Kind,
    UnkeptValue,
    Values,
    found_kind,
    joined_kinds,
    require_text,
    type_of,
)
from freezeframe.script.formats.row_format import RowFormat
from freezeframe.script.types.typed_columns import ColumnRule, KnownTypes
from freezeframe.storage.read_ahead import reads_of
from freezeframe.store.schema.schema_evolution import require_few_columns

Rows = list[dict[str, Any]]
Numbered = list[tuple[int, dict[str, Any]]]
Columns = Mapping[str, JsonColumn]

_PIECE_BYTES = 2 * 2**20
# Between lines that are parsed at once; no file holds this text, so a line that is not whole is noticed.
_SEAM_TEXT = uuid.uuid4().hex
_SEAM = f',"{_SEAM_TEXT}",'.encode()
_HEAD_BYTES = 4096
# A value of an array that is longer than this is not looked for any further.
_VALUE_SIZE_MAX = 64 * 2**20
_ABSENT = pa.nulls(0)
_BLANKS = re.compile(r"[ \t\r\n]*")
# Least memory of a cell while rows are converted to columns.
_CELL_BYTES = 8


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some rows as columns; one that they lack is not there."""

    rows: int
    arrays: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JsonSurvey:
    """What the rows of a part say of its columns."""

    columns: Columns
    kept: Sequence[_Piece] | None = None
    """The rows, in the types that were found by then."""


@dataclass(frozen=True, slots=True)
class JsonFormat(RowFormat):
    """JSON Lines, and files of one array of objects; an empty file has no columns but ``columns``.

    Lines are read ``piece_bytes`` at a time, and once more in a file whose first rows left the types open.
    """

    columns: pa.Schema | None = None
    limits: UnpackLimits = UNLIMITED
    piece_bytes: int = _PIECE_BYTES

    def parts(self, file: Path, part_bytes: int = PART_BYTES) -> Sequence[InputPart]:
        """Return parts of whole lines; one part where the file is an array, or limits are set."""
        is_whole = self.limits != UNLIMITED or _is_array(file)
        return divide(file, [0]) if is_whole else line_parts(file, part_bytes)

    def survey(self, part: InputPart, known: KnownTypes, *, keeps: bool = False) -> JsonSurvey:
        """Return the types that each column of the part can have."""
        part.require_unchanged()
        columns: dict[str, JsonColumn] = {}
        kept: list[_Piece] = []
        unpacking, count = Unpacking(part.file.name, part.size, self.limits), 0
        for rows in _pieces(part, self.piece_bytes, STRICT):
            shapes = dict.fromkeys(map(tuple, rows))
            names = dict.fromkeys(itertools.chain.from_iterable(shapes))
            count, columns_count = count + len(rows), len(columns.keys() | names)
            require_few_columns(columns_count, f"{str(part.file)!r} has")
            unpacking.expect(count, count * columns_count * _CELL_BYTES)
            arrays = {}
            for name, values in _cells(rows, names, is_even=len(shapes) == 1):
                rule = _rule(known, name)
                columns[name] = columns.get(name, JsonColumn()).with_values(values, rule)
                if keeps:
                    arrays[name] = columns[name].array(values, rule)
            if keeps:
                kept.append(_Piece(len(rows), arrays))
        return JsonSurvey(columns, kept if keeps else None)

    def joined(self, parts: Sequence[InputPart], surveys: Sequence[JsonSurvey], known: KnownTypes) -> Columns:
        """Return the types that the columns of all parts can have."""
        found: dict[str, JsonColumn] = {}
        for survey in surveys:
            for name, column in survey.columns.items():
                found[name] = found.get(name, JsonColumn()).join(column)
        for name, column in found.items():
            rule = _rule(known, name)
            surveyed = ((part, survey.columns) for part, survey in zip(parts, surveys, strict=True))
            if column.left == () and known.is_required(name):
                raise _unfit_error(name, rule, surveyed)
            if column.type(rule) is None:
                raise _mixed_types_error(name, surveyed)
        for name in [] if self.columns is None else self.columns.names:
            found.setdefault(name, JsonColumn())
        return found

    def schema(self, joined: Columns, known: KnownTypes) -> pa.Schema:
        """Return the columns and their types."""
        return pa.schema([pa.field(name, column.type(_rule(known, name))) for name, column in joined.items()])

    def tables(
        self, part: InputPart, survey: JsonSurvey, joined: Columns, known: KnownTypes
    ) -> Iterator[pa.Table]:
        """Yield the rows; what a line lacks is NULL."""
        schema = self.schema(joined, known)
        fitted = [None] if survey.kept is None else [_fitted(piece, schema) for piece in survey.kept]
        tables = [table for table in fitted if table is not None]
        if len(tables) == len(fitted):
            yield from tables
            return
        part.require_unchanged()
        rules = {name: _rule(known, name) for name in joined}
        for rows in _pieces(part, self.piece_bytes, QUICK):
            shapes = dict.fromkeys(map(tuple, rows))
            if not joined.keys() >= set(itertools.chain.from_iterable(shapes)):
                raise part.changed()
            cells = _cells(rows, joined, is_even=shapes.keys() == {tuple(joined)})
            arrays = [joined[name].array(values, rules[name]) for name, values in cells]
            if any(array is None for array in arrays):
                raise part.changed()
            yield pa.table(arrays, schema=schema)

    def line(self, part: InputPart, row: int) -> int | None:
        """Return the line on which an object begins, found from the part's beginning."""
        rows = itertools.chain.from_iterable(_numbered_rows(part, self.piece_bytes, QUICK))
        number, _ = next(itertools.islice(rows, row, None))
        return part.lines_before() + number


def _pieces(part: InputPart, piece_bytes: int, decoder: json.JSONDecoder) -> Iterator[Rows]:
    return ([row for _, row in rows] for rows in _numbered_rows(part, piece_bytes, decoder))


def _fitted(piece: _Piece, schema: pa.Schema) -> pa.Table | None:
    """Return the rows in their final types, None if these were not known when they were made."""
    arrays = []
    for field in schema:
        array = piece.arrays.get(field.name, _ABSENT)
        if array is None or array.type not in (pa.null(), field.type):
            return None
        arrays.append(pa.nulls(piece.rows, field.type) if array.type == pa.null() else array)
    return pa.table(arrays, schema=schema)


def _cells(rows: Rows, names: Iterable[str], *, is_even: bool) -> Iterator[tuple[str, Values]]:
    """Return the values of each column; rows are even if each has these names in this order."""
    if is_even:
        return zip(names, zip(*map(dict.values, rows), strict=True), strict=True)
    return ((name, [row.get(name) for row in rows]) for name in names)


def _rule(known: KnownTypes, name: str) -> ColumnRule:
    """Return the known ways to read a column; a column declared as text takes values of several kinds."""
    rule = known.rule(name, ())
    is_text = pa.string() in (known.declared.get(name), known.requested.get(name))
    return replace(rule, ways=(*rule.ways, ANY_TEXT)) if is_text else rule


def _numbered_rows(
    part: InputPart, piece_bytes: int, decoder: json.JSONDecoder = STRICT
) -> Iterator[Numbered]:
    """Yield the objects with the numbers of their lines in the part, from 1, some at a time."""
    with reads_of(str(part.file)):
        if part.start == 0 and _is_array(part.file):
            yield from _array_rows(part, piece_bytes, decoder)
        else:
            yield from _line_rows(part, piece_bytes, decoder)


def _line_rows(part: InputPart, piece_bytes: int, decoder: json.JSONDecoder) -> Iterator[Numbered]:
    before = 0
    with io.BufferedReader(part.section()) as content:
        while lines := content.readlines(piece_bytes):
            if part.start == before == 0:
                lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
            filled = [(number, line) for number, line in enumerate(lines, before + 1) if line.strip()]
            before += len(lines)
            rows = _objects([line for _, line in filled], decoder)
            if rows is None:
                yield [(number, _object(part, number, line, decoder)) for number, line in filled]
            else:
                yield list(zip((number for number, _ in filled), rows, strict=True))


def _objects(lines: Sequence[bytes], decoder: json.JSONDecoder) -> Rows | None:
    """Return the objects of lines, parsed at once; None if not every line is one."""
    try:
        text = _SEAM.join(lines).decode()
        values = decoder.decode(f"[{text}]")
        require_text(text, values)
    except (ValueError, RecursionError):
        return None
    rows = values[::2]
    is_whole = len(rows) == len(lines) and values[1::2] == [_SEAM_TEXT] * (len(lines) - 1)
    return rows if is_whole and set(map(type, rows)) <= {dict} else None


def _object(part: InputPart, number: int, line: bytes, decoder: json.JSONDecoder) -> dict[str, Any]:
    try:
        text = line.decode()
        row = decoder.decode(text)
        require_text(text, row)
    except (ValueError, RecursionError) as error:
        raise _not_json(part, number, error) from error
    if type(row) is not dict:
        raise _no_object(part, number)
    return row


def _is_array(file: Path) -> bool:
    """Return whether a file named ``.json`` is an array, and not lines."""
    if file.suffix.casefold() != ".json":
        return False
    with reads_of(str(file)), file.open("rb") as content:
        head = content.read(_HEAD_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip()
        while not head and (more := content.read(_HEAD_BYTES)):
            head = more.lstrip()
    return head.startswith(b"[")


def _array_rows(part: InputPart, piece_bytes: int, decoder: json.JSONDecoder) -> Iterator[Numbered]:
    with io.TextIOWrapper(io.BufferedReader(part.section()), "utf-8-sig", newline="") as content:
        array = _Array(content, piece_bytes, decoder)
        try:
            for rows in array.pieces():
                for number, row in rows:
                    if type(row) is not dict:
                        raise _no_object(part, number)
                yield rows
        except (ValueError, RecursionError) as error:
            raise _not_json(part, array.line, error) from error


class _Array:
    """A JSON array that is read some values at a time; ``line`` is the one that has been reached."""

    def __init__(self, content: io.TextIOBase, piece_size: int, decoder: json.JSONDecoder) -> None:
        self._content, self._piece_size, self._decoder = content, piece_size, decoder
        self._text, self._position, self.line = "", 0, 1

    def pieces(self) -> Iterator[list[tuple[int, Any]]]:
        """Yield the values with their lines."""
        self._take("[")
        rows: list[tuple[int, Any]] = []
        is_open = self._next() != "]" or self._take("]") != "]"
        while is_open:
            self._next()
            position = self._position
            rows.append((self.line, self._value()))
            is_open = self._take(",]") == ","
            if self._position < position:  # the text that was read before is used up
                yield rows
                rows = []
        yield rows
        if self._next():
            raise ValueError("more text follows the array")

    def _next(self) -> str:
        """Return the next letter behind white space, without taking it; empty at the end."""
        while True:
            self._advance(_BLANKS.match(self._text, self._position).end())  # type: ignore[union-attr]  # it matches nothing, too
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._more():
                return ""

    def _take(self, letters: str) -> str:
        found = self._next()
        if not found or found not in letters:
            raise ValueError(f"{' or '.join(letters)} is missing in the array")
        self._advance(self._position + 1)
        return found

    def _value(self) -> Any:
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except ValueError:
                if len(self._text) - self._position > _VALUE_SIZE_MAX or not self._more():
                    raise
            else:
                require_text(self._text[self._position : end], value)
                self._advance(end)
                return value

    def _advance(self, position: int) -> None:
        self.line += self._text.count("\n", self._position, position)
        self._position = position

    def _more(self) -> bool:
        more = self._content.read(max(self._piece_size, len(self._text) - self._position))
        self._text, self._position = self._text[self._position :] + more, 0
        return bool(more)


def _mixed_types_error(name: str, surveys: Iterable[tuple[InputPart, Columns]]) -> UnreadableInput:
    """Return the error for the first value that no type holds beside those before it."""
    kind: Kind | None = pa.null()
    for part, survey in surveys:
        after = joined_kinds(kind, survey.get(name, JsonColumn()).kind)
        if type_of(after) is None:
            for rows in _numbered_rows(part, _PIECE_BYTES):
                for number, row in rows:
                    kind = joined_kinds(kind, found_kind([row.get(name)]))
                    if type_of(kind) is None:
                        line = part.lines_before() + number
                        cause = (
                            f"In line {line} the column {name!r} has another kind of value than before it."
                            if kind is None
                            else f"No type of numbers holds the value of {name!r} in line {line} exactly"
                            f" beside those before it: a decimal has {DIGITS_MAX} digits."
                        )
                        return _unreadable(part.file, cause, line=line, column=name)
            return part.changed()
        kind = after
    raise AssertionError(name)  # pragma: no cover - called only where the kinds cannot be joined


def _unfit_error(
    name: str, rule: ColumnRule, surveys: Iterable[tuple[InputPart, Columns]]
) -> UnreadableInput:
    """Return the error for the first value that is not exact in the requested type."""
    column = JsonColumn()
    for part, survey in surveys:
        if column.join(survey.get(name, JsonColumn())).left == ():
            for rows in _numbered_rows(part, _PIECE_BYTES):
                for number, row in rows:
                    column = column.with_values([row.get(name)], rule)
                    if column.left == ():
                        line = part.lines_before() + number
                        kind = rule.kind_without_values
                        cause = f"In line {line} the column {name!r} has a value that is not exact in {kind}."
                        return _unreadable(part.file, cause, line=line, column=name)
        column = column.join(survey.get(name, JsonColumn()))
    raise AssertionError(name)  # pragma: no cover - called only where a value does not fit


def _not_json(part: InputPart, number: int, error: Exception) -> UnreadableInput:
    line = part.lines_before() + number
    cause = (
        f"Line {line}: {error}." if isinstance(error, UnkeptValue) else f"Line {line} is not JSON: {error}."
    )
    return _unreadable(part.file, cause, line=line)


def _no_object(part: InputPart, number: int) -> UnreadableInput:
    line = part.lines_before() + number
    return _unreadable(part.file, f"Line {line} is not an object.", line=line)


def _unreadable(file: Path, cause: str, *, line: int, **details: Any) -> UnreadableInput:
    is_lines = file.suffix.casefold() != ".json"
    how = "one JSON object a line" if is_lines else "an array of objects, or one object a line"
    return UnreadableInput(
        f"{str(file)!r} cannot be read as {'JSON Lines' if is_lines else 'JSON'}.",
        cause=cause,
        remedy=f"Write {how}, each member once, with one kind of value in each column; a"
        ' column that types={column: "string"} or catalog.json makes a string takes any kind, as text.',
        file=str(file),
        line=line,
        **details,
    )
