"""The rows of a run's streams, kept in one temporary file until all of the tap's output has been read.

Each stream holds a batch of rows in memory. A batch that is full is written as one segment of text
columns; the types are settled at the end, once every value is known. The file has no name: whatever ends
the process, nothing stays.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, BinaryIO

import pyarrow as pa

from freezeframe.errors import InvalidOption, NullKeyError, SchemaDriftError
from freezeframe.script.formats.json_columns import JsonNumber, UnkeptValue, value_text
from freezeframe.script.types.known_types import declared_type, type_alternatives
from freezeframe.script.types.typed_columns import ColumnRule, KnownTypes, Left, declared_rule, exact_reading
from freezeframe.singer.messages import RecordMessage, SchemaMessage, unreadable

_DIGITS = 38
# Numbers beyond a double whose digits are not declared.
_LONG_NUMBER = pa.decimal128(_DIGITS, 18)
_JSON_TYPES = {bool: "boolean", str: "string", dict: "object", list: "array"}


def allowed_types(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the JSON types that a property's schema names, without ``null``; empty if it names none."""
    return frozenset(name for _, names in type_alternatives(schema) for name in names) - {"null"}


def json_type(value: Any) -> str:
    """Return the JSON type of a value that is not null; one of ``integer`` is a ``number`` as well."""
    if isinstance(value, JsonNumber):
        return "integer" if value.is_integer else "number"
    return _JSON_TYPES[type(value)]


def is_allowed(value: Any, types: frozenset[str]) -> bool:
    """Return whether a non-null value is of one of the types; a number may be an integer with a point."""
    return (
        not types or json_type(value) in types or (isinstance(value, JsonNumber) and bool(types & _NUMBERS))
    )


def column_rule(name: str, schema: Mapping[str, Any], stored: pa.Schema | None) -> ColumnRule:
    """Return how a column's cells become values: of the stored type if all fit, else of the declared one."""
    declared = _declared_rule(schema)
    known = KnownTypes(stored).rule(name, declared.ways)
    return declared if pa.types.is_null(known.kind_without_values) else known


def wider_rule() -> ColumnRule:
    """Return how numbers that no double or usual decimal holds are read: in the scale that they need."""
    return ColumnRule(
        tuple(exact_reading(pa.decimal128(_DIGITS, scale)) for scale in range(_DIGITS + 1)), pa.null()
    )


def must_be_number(schema: Mapping[str, Any]) -> bool:
    """Return whether the column is refused where no type of numbers holds all of its values."""
    types = allowed_types(schema)
    return bool(types) and types <= _NUMBERS


def _declared_rule(schema: Mapping[str, Any]) -> ColumnRule:
    declared = declared_type(schema)
    if declared is None:
        return ColumnRule((), pa.null())
    rule = declared_rule(declared)
    if pa.types.is_floating(declared):
        rule = replace(rule, ways=(*rule.ways, exact_reading(_LONG_NUMBER)))
    decimals = [exact_reading(kind) for kind in _decimal_types(schema)]
    if not decimals:
        return rule
    return ColumnRule((*decimals, *rule.ways), decimals[0].kind)


def _decimal_types(schema: Mapping[str, Any]) -> Iterator[pa.DataType]:
    """Yield the decimal that ``multipleOf`` means, or the format ``singer.decimal``; nothing without them."""
    step = schema.get("multipleOf")
    if isinstance(step, JsonNumber) and "number" in allowed_types(schema):
        scale = _scale(step)
        if 0 < scale < _DIGITS:
            yield pa.decimal128(_DIGITS, scale)
    digits, scale_text = schema.get("precision"), schema.get("scale")
    if schema.get("format") == "singer.decimal" and isinstance(scale_text, JsonNumber):
        precision = int(digits) if isinstance(digits, JsonNumber) and digits.isdigit() else _DIGITS
        if scale_text.isdigit() and int(scale_text) <= precision <= _DIGITS:
            yield pa.decimal128(precision, int(scale_text))


def _scale(step: JsonNumber) -> int:
    try:
        exponent = Decimal(step).normalize().as_tuple().exponent
    except InvalidOperation:
        return 0
    return -exponent if isinstance(exponent, int) else 0


_NUMBERS = frozenset({"integer", "number"})


_REFUSED_MARKS = str.maketrans(dict.fromkeys('<>:"/\\|?*', "_"))
DELETED_AT = "_sdc_deleted_at"
"""The column in which taps of databases say when a row was deleted at the source."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How many rows, and bytes of their values, are held in memory for each stream."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Segment:
    offset: int
    size: int
    version: int | None

    def counts_for(self, version: int | None) -> bool:
        """Return whether its rows have the requested version (None: any), or none."""
        return version is None or self.version in (version, None)


class RecordSpool:
    """The rows of one stream, under the newest SCHEMA of it."""

    def __init__(self, file: BinaryIO, schema: SchemaMessage, limits: BatchLimits) -> None:
        self._file = file
        self._limits = limits
        self._segments: list[_Segment] = []
        self._rows: list[dict[str, str | None]] = []
        self._bytes = 0
        self._version: int | None = None
        self._properties: dict[str, Mapping[str, Any]] = {}
        self._types: dict[str, frozenset[str]] = {}
        self._seen: dict[str, set[str]] = {}
        self.stream = stream_name(schema.stream)
        self.key: tuple[str, ...] = ()
        self.count = 0
        """How many records came."""
        self.has_deleted = False
        """Whether a record says that it is deleted at the source (``_sdc_deleted_at``)."""
        self.declare(schema)

    def has_rows(self, version: int | None = None) -> bool:
        """Return whether a record came; with ``version`` one of no other version."""
        self._flush()
        return any(segment.counts_for(version) for segment in self._segments)

    def declare(self, schema: SchemaMessage) -> None:
        """Take another SCHEMA of the stream; columns that it lacks stay as they were."""
        if self.count and set(schema.key) != set(self.key):
            raise InvalidOption(
                f"Line {schema.line}: the stream {self.stream!r} cannot change its key during a run.",
                cause=f"Its records so far have the key {list(self.key)}, this SCHEMA has {list(schema.key)}."
                " Under another key, rows that are two now could become one.",
                remedy="Let the tap use one key for the stream; nothing was written.",
                line=schema.line,
                stream=self.stream,
                key=list(schema.key),
            )
        self.key = schema.key
        self._properties |= schema.properties
        self._types = {name: allowed_types(value) for name, value in self._properties.items()}

    def add(self, message: RecordMessage) -> None:
        """Add a record."""
        lacking = [name for name in self.key if message.record.get(name) is None]
        if lacking:
            raise NullKeyError(
                f"Line {message.line}: a record of the stream {self.stream!r} lacks {' and '.join(lacking)}.",
                cause=f"The key of the stream is {list(self.key)}.",
                remedy="Correct the tap or its key_properties; nothing was written.",
                line=message.line,
                stream=self.stream,
                columns=lacking,
            )
        try:
            row = {name: self._text(message.line, name, value) for name, value in message.record.items()}
        except RecursionError as error:
            raise unreadable(message.line, "A value is nested too deeply.", stream=self.stream) from error
        if message.version != self._version:
            self._flush()
            self._version = message.version
        self.has_deleted = self.has_deleted or row.get(DELETED_AT) is not None
        self.count += 1
        self._rows.append(row)
        self._bytes += sum(len(item) for item in row.values() if item is not None)
        if len(self._rows) >= self._limits.rows or self._bytes >= self._limits.bytes:
            self._flush()

    def reader(self, stored: pa.Schema | None, version: int | None = None) -> pa.RecordBatchReader:
        """Return the rows in the stored or declared types; with ``version`` only those of that version."""
        self._flush()
        segments = [segment for segment in self._segments if segment.counts_for(version)]
        names = dict.fromkeys([*self._properties, *self._seen])
        rules = {name: column_rule(name, self._schema(name), stored) for name in names}
        left = self._left(segments, rules)
        wider = {
            name: wider_rule()
            for name in rules
            if left[name] == ()
            and "number" in allowed_types(self._schema(name))
            and self._is_number(name, stored)
        }
        if wider:
            rules |= wider
            left |= self._left(segments, wider)
        schema = pa.schema([pa.field(name, rule.kind(left[name])) for name, rule in rules.items()])
        self._require_numbers(schema, stored)
        tables = (_to_typed_table(self._table(segment), rules, left, schema) for segment in segments)
        batches = itertools.chain.from_iterable(table.to_batches() for table in tables)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _left(self, segments: Iterable[_Segment], rules: Mapping[str, ColumnRule]) -> dict[str, Left]:
        """Return which ways of each rule read all values of its column."""
        left: dict[str, Left] = dict.fromkeys(rules)
        for table in map(self._table, segments):
            for name in rules.keys() & set(table.column_names):
                left[name], _ = rules[name].narrow(table.column(name), left[name])
        return left

    def _is_number(self, name: str, stored: pa.Schema | None) -> bool:
        """Return whether the column must not become text."""
        index = -1 if stored is None else stored.get_field_index(name)
        was_text = stored is not None and index >= 0 and pa.types.is_string(stored.field(index).type)
        return not was_text and must_be_number(self._schema(name))

    def _text(self, line: int, name: str, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, JsonNumber):
            try:
                value = value.cell
            except UnkeptValue as error:
                raise unreadable(
                    line, f"It cannot be kept: {error}.", stream=self.stream, column=name
                ) from error
        types, is_key = self._types.get(name, frozenset()), name in self.key
        if types and not is_allowed(value, types):
            cause = (
                f"The schema of the stream {self.stream!r} allows {' or '.join(sorted(types))} in "
                f"{name!r}, and the value is of the type {json_type(value)}."
            )
            raise unreadable(line, cause, stream=self.stream, column=name)
        if not types or (is_key and len(types) > 1):
            seen = self._seen.setdefault(name, set())
            seen.add(json_type(value))
            if is_key and "string" in seen and len(seen) > 1:
                cause = f"The key {name!r} has texts and other values; '1' and 1 would be one key."
                raise unreadable(line, cause, stream=self.stream, column=name)
        return value_text(value)

    def _schema(self, name: str) -> Mapping[str, Any]:
        """Return what is declared of a column; where no type is, the types that its values have."""
        if self._types.get(name):
            return self._properties[name]
        return {"type": sorted(self._seen.get(name, ()))}

    def _require_numbers(self, schema: pa.Schema, stored: pa.Schema | None) -> None:
        for name in schema.names:
            if pa.types.is_string(schema.field(name).type) and self._is_number(name, stored):
                raise SchemaDriftError(
                    f"Stream {self.stream!r}: no type holds all numbers of the column {name!r} exactly.",
                    cause="A value has more than 38 digits, or fractions where the schema says integer.",
                    remedy="Have the tap declare the column as a string; nothing was written.",
                    stream=self.stream,
                    columns=[name],
                )

    def _flush(self) -> None:
        if not self._rows:
            return
        names = dict.fromkeys([*self._properties, *itertools.chain.from_iterable(self._rows)])
        columns = {name: pa.array([row.get(name) for row in self._rows], pa.string()) for name in names}
        for name in names:
            self._seen.setdefault(name, set())  # an undeclared column without a value
        table = pa.table(columns)
        offset = self._file.seek(0, os.SEEK_END)
        with pa.ipc.new_stream(self._file, table.schema) as writer:
            writer.write_table(table)
        self._segments.append(_Segment(offset, self._file.tell() - offset, self._version))
        self._file.flush()
        self._rows, self._bytes = [], 0

    def _table(self, segment: _Segment) -> pa.Table:
        # By offset, not from the file's position, because an update reads ahead in another thread.
        return pa.ipc.open_stream(os.pread(self._file.fileno(), segment.size, segment.offset)).read_all()


def _to_typed_table(
    text: pa.Table, rules: Mapping[str, ColumnRule], left: Mapping[str, Left], schema: pa.Schema
) -> pa.Table:
    columns: Iterable[Any] = (
        rules[name].read(text.column(name), left[name])
        if name in text.column_names
        else pa.nulls(len(text), schema.field(name).type)
        for name in schema.names
    )
    return pa.table(list(columns), schema=schema)


def stream_name(name: str) -> str:
    """Return the name under which a tap's stream is stored: forbidden marks become ``_``."""
    return name.translate(_REFUSED_MARKS)
