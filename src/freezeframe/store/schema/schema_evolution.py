"""Schema evolution of a stream: columns added, widened or refused (pure).

The rule is that no value ever changes: a batch's values take the stored type if every one of
them fits it exactly; else the stored type is widened if *its* values all fit the batch's; else
the update is refused before anything is written. Columns are never guessed into another kind
(text stays text, numbers stay numbers), but for whole numbers of a key: they become text where a
batch has keys that are none. Source: ``docs/reference/semantics.md``, "int -> float, int -> str …",
and ``docs/decisions/0026``.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.frames import NULLABLE
from freezeframe.engine.frames.python_values import python_values
from freezeframe.engine.frames.untyped import fit, settled_type
from freezeframe.errors import BadInput, SchemaDriftError
from freezeframe.store.schema.type_compatibility import (
    IntegerTexts,
    Path,
    Range,
    cast_to,
    common_nested,
    exact_cast,
    has_exact_text,
    integer_texts,
    is_local_time,
    is_number,
    may_take,
    part_of,
    shared_decimal,
    widens,
)

_NOT_THE_SAME = "The values would not be the same in the stored type"
_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$"
_SHOWN_MAX = 3
_LOOKED_AT_MAX = 10_000

Pieces = Callable[[], Iterable[pa.ChunkedArray]]
Ranges = Callable[[str | Path], Range | None]
"""Finds the smallest and the largest stored value of a column, or of the part of one at a path."""


@dataclass(frozen=True, slots=True)
class ColumnMeeting:
    """A stored column (``field``, and ``ranges`` to find the range of its values) and the batch's.

    ``pieces`` gives the batch's values, in memory or read from files; None: they are unknown, and the types
    alone decide. ``path`` leads to the part of a nested column that is meant: names of members, ``element``,
    ``key``, ``value``.
    """

    field: pa.Field
    incoming: pa.DataType
    in_memory: bool
    ranges: Ranges | None = None
    is_key: bool = False
    pieces: Pieces | None = None
    path: Path = ()

    @property
    def stored(self) -> pa.DataType:
        """The stored type."""
        return self.field.type

    def stored_range(self) -> Range | None:
        """Return the smallest and the largest stored value; None if they are unknown."""
        name = self.field.name
        return None if self.ranges is None else self.ranges((name, *self.path) if self.path else name)

    def fits(self, kind: pa.DataType) -> bool:
        """Return whether every value of the batch is exact in ``kind``, as far as can be known."""
        if self.pieces is None or not (self.in_memory or may_take(kind, self.incoming)):
            return widens(self.incoming, kind)
        return all(exact_cast(piece, kind) is not None for piece in self.pieces())

    def part(self, stored: pa.DataType, incoming: pa.DataType, path: Path) -> "ColumnMeeting":
        """Return the meeting of parts of the two nested columns."""
        whole = self.pieces
        pieces = None if whole is None else lambda: (part_of(piece, path) for piece in whole())
        return replace(self, field=self.field.with_type(stored), incoming=incoming, pieces=pieces, path=path)

    def texts(self) -> IntegerTexts | None:
        """Return the classification of the batch's texts as integers; None where the values are unknown."""
        return None if self.pieces is None else integer_texts(self.pieces())

    def first_values(self) -> Iterator[tuple[int, Any]]:
        """Return the batch's first values (of its first piece, where it is not in memory) and their rows."""
        for piece in itertools.islice(self.pieces() if self.pieces is not None else (), 1):
            for row in range(min(len(piece), _LOOKED_AT_MAX)):
                if piece[row].is_valid:
                    yield row, piece.slice(row, 1)

    def error(self) -> SchemaDriftError:
        """Return the error for columns without a common type: why, which values show it, and the remedy."""
        rows, cause, remedy = self._text_key() or self._misfit()
        shown = ", ".join(
            f"row {row['row']}: {row['value']}" if "row" in row else row["value"] for row in rows
        )
        kind = "key column" if self.is_key else "column"
        return SchemaDriftError(
            f"The {kind} {self.field.name!r} is stored as {self.stored}, but the batch has {self.incoming}.",
            cause=f"{cause} ({shown or 'see the types'}).",
            remedy=remedy,
            column=self.field.name,
            stored=str(self.stored),
            incoming=str(self.incoming),
            rows=rows,
        )

    def _rows(self, found: Iterable[tuple[int, Any]]) -> list[dict[str, Any]]:
        """Return rows for an error message; a Spark frame's rows have no order, so they have no number."""
        named = (
            {"row": row, "value": repr(python_values(cell)[0])}
            for row, cell in itertools.islice(found, _SHOWN_MAX)
        )
        return list(map(self._without_row_number, named))

    def _without_row_number(self, row: dict[str, Any]) -> dict[str, Any]:
        return row if self.in_memory else {"value": row["value"]}

    def _text_key(self) -> tuple[list[dict[str, Any]], str, str] | None:
        """Explain a key with text on one side and integers on the other: rows, cause and remedy."""
        if not self.is_key:
            return None
        if pa.types.is_string(self.stored) and pa.types.is_integer(self.incoming):
            cause = "A number does not say how its text was written: 7 may be stored as '007'"
            remedy = (
                "Read the column as text, as the source has it (pandas: dtype=str); or, if the numbers' own "
                "digits are the keys, pass on_drift='string'."
            )
            return self._rows(self.first_values()), cause, remedy
        texts = (
            self.texts() if pa.types.is_integer(self.stored) and pa.types.is_string(self.incoming) else None
        )
        if texts is None:
            return None
        if texts.doubtful:
            cause = "Texts that may be meant as stored numbers would become keys beside them"
            remedy = (
                "Cast the column to whole numbers if they are meant; or, if they are other keys, pass "
                "on_drift='string': the key becomes text, its numbers as they print."
            )
            return list(map(self._without_row_number, texts.doubtful)), cause, remedy
        cause = "All values are whole numbers, so nothing asks for the key to become text"
        remedy = (
            f"Cast the column to {self.stored} before the update; or pass on_drift='string', and the key "
            "becomes text, its numbers as they print."
        )
        return self._rows(self.first_values()), cause, remedy

    def _are_numbers(self) -> bool:
        """Return whether each text of the batch is a number, as far as its values are known."""
        pieces = () if self.pieces is None else self.pieces()
        return self.pieces is not None and all(
            pc.all(pc.match_substring_regex(piece, _NUMBER), min_count=0).as_py() for piece in pieces
        )

    def _misfit(self) -> tuple[list[dict[str, Any]], str, str]:
        values, again = itertools.tee(self.first_values())
        # Where each value alone could be converted, the kinds differ and the first values show how.
        rows = self._rows(
            (row, cell) for row, cell in values if exact_cast(cell, self.stored) is None
        ) or self._rows(again)
        if pa.types.is_timestamp(self.stored) and pa.types.is_timestamp(self.incoming):
            return rows, *self._zone_remedy()  # of stored and given times only one has a zone
        remedy = f"Cast the column to {self.stored} before the update"
        if is_number(self.stored) and pa.types.is_string(self.incoming) and self._are_numbers():
            # Their own type would not hold what a fraction or a longer number needs.
            remedy = f'Read the column as numbers, in a CSV file by types={{"{self.field.name}": "double"}}'
        if has_exact_text(self.stored) and has_exact_text(self.incoming):
            remedy += ", or pass on_drift='string' to keep both as text"
        elif pa.types.is_floating(self.stored) and pa.types.is_string(self.incoming) and not self.is_key:
            # A float's text differs between programs, so on_drift leaves the column as it is.
            remedy += (
                f", or make the stored column text: freezeframe stream retype STREAM {self.field.name} string"
                " (on_drift='string' does not do it for floats)."
            )
            return rows, _NOT_THE_SAME, remedy
        remedy += "; freezeframe stream retype changes the stored type where no value is lost."
        return rows, _NOT_THE_SAME, remedy

    def _zone_remedy(self) -> tuple[str, str]:
        """Explain times with a zone on one side only: cause and remedy, with the line to write."""
        name = f'frame["{self.field.name}"]'
        if is_local_time(self.incoming):
            cause = "Times without a zone are a moment only in a zone, and the batch does not name it"
            line = f'{name} = {name}.dt.tz_localize("UTC")'
            where = "in their zone (after Spark's toPandas() that of its session)"
        else:
            cause = "The stored times have no zone, and the batch's are moments"
            line = f'{name} = {name}.dt.tz_convert("UTC").dt.tz_localize(None)'
            where = "in the zone of the stored times"
        return (
            cause,
            f"Write {line} before the update, {where}; or pass on_drift='string' to keep both as text.",
        )


def frozen_error(added: Sequence[str], widened: Sequence[str]) -> SchemaDriftError:
    """Return the error for added or widened columns under a frozen schema."""
    named = [*(f"{name!r} is new" for name in added), *(f"{name!r} needs another type" for name in widened)]
    return SchemaDriftError(
        "The columns of the batch are not those of the stream.",
        cause=f"{'; '.join(named)}, and schema='frozen' allows neither.",
        remedy="Leave the columns out or cast them, or pass schema='evolve'.",
        added=list(added),
        widened=list(widened),
    )


UNDECIDED = b"freezeframe.undecided"
PRINTED = b"freezeframe.printedIntegers"
"""Marks a text column that held whole numbers before: it accepts whole numbers as they print."""


@dataclass(frozen=True, slots=True)
class BatchValues:
    """Access to a batch's values, beside its columns' types.

    ``known`` is false if only the types of the batch are known: then the types decide. ``pieces`` reads a
    column of such a batch, if its type and the stored one differ.
    """

    known: bool = True
    pieces: Callable[[str], Iterable[pa.ChunkedArray]] | None = None


COLUMNS_MAX = 10_000
"""The maximum number of columns of a stream."""
IN_BATCH = BatchValues()
TYPES_ALONE = BatchValues(known=False)


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """Permitted schema changes: none (``frozen``), or drift to text instead of an error.

    ``drift_to_text`` concerns columns whose values have one exact text: whole numbers, decimals,
    booleans, dates, times and text itself.
    """

    frozen: bool = False
    drift_to_text: bool = False


EVOLVE = SchemaRules()


@dataclass(frozen=True, slots=True)
class Evolution:
    """The columns after an update, and the batch in their types.

    ``target`` has all columns with their types so far; columns without any value are marked undecided.
    ``batch`` has the decided columns of the rows, in the types of files and the target's order.
    """

    target: pa.Schema
    batch: pa.Table
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    widened: tuple[str, ...]
    """Columns whose type in files changes."""
    missing: tuple[str, ...] = ()
    """Stored columns that the batch lacks; an upsert keeps their values."""
    decided: tuple[str, ...] = ()
    """Columns that got a type, in whole or in part, without a change of the stored files."""

    @property
    def changes_schema(self) -> bool:
        """Whether the table's metadata changes."""
        return bool(self.added or self.dropped or self.widened or self.decided)

    @property
    def changes_stored_files(self) -> bool:
        """Whether files must be rewritten even if no row changes."""
        return bool(self.dropped or self.widened)


def is_undecided(field: pa.Field) -> bool:
    """Return whether a column has had no value so far, so that its type is undecided."""
    return UNDECIDED in (field.metadata or {})


def evolve(
    stored: pa.Schema | None,
    batch: pa.Table,
    *,
    key: Sequence[str] = (),
    drop: Sequence[str] = (),
    ranges: Ranges | None = None,
    values: BatchValues = IN_BATCH,
    rules: SchemaRules = EVOLVE,
) -> Evolution:
    """Compute the columns after an update of a stream with the columns ``stored`` (None: a new one).

    Undecided columns are marked in ``stored``, and of Arrow's null type in the batch. The types of the
    ``key`` change by stricter rules; unknown names in ``drop`` are ignored; ``ranges`` finds the smallest and
    the largest stored value of a column, where they are known.
    """
    old = {field.name: field for field in stored or pa.schema([])}
    gone = {name: None for name in drop if name in old}
    leaving = set(drop)
    batch = batch.select([name for name in batch.column_names if name not in leaving])
    _refuse_case_twins([name for name in old if name not in gone], batch.column_names)
    fields: dict[str, pa.Field] = {name: field for name, field in old.items() if name not in gone}
    columns: dict[str, pa.ChunkedArray] = {}
    added: list[str] = []
    widened: list[str] = []
    decided: list[str] = []
    for name in batch.column_names:
        column = batch[name]
        if name not in fields:
            added.append(name)
            fields[name] = _new_field(batch.schema.field(name))
            column = fit(column, settled_type(column.type))
        elif is_undecided(fields[name]):
            if not pa.types.is_null(column.type):
                decided.append(name)
                fields[name] = _new_field(batch.schema.field(name))
                column = fit(column, settled_type(column.type))
        else:
            meeting = ColumnMeeting(
                fields[name], column.type, values.known, ranges, name in key, _pieces(name, column, values)
            )
            kind = _agreed_type(meeting, rules)
            if kind != fields[name].type:
                is_held = settled_type(kind) == settled_type(fields[name].type)
                (decided if is_held else widened).append(name)
                fields[name] = retype_field(fields[name], kind)
            try:
                column = cast_to(column, settled_type(kind))
            except pa.ArrowInvalid as error:  # types of a Spark frame agreed, and a value of it does not
                raise meeting.error() from error
        if not is_undecided(fields[name]):
            columns[name] = column
    _refuse_many(len(fields), added)
    if rules.frozen and stored is not None and (added or widened or decided):
        raise frozen_error(added, [*widened, *decided])
    ordered = {name: columns[name] for name in fields if name in columns}
    types = pa.schema([(name, settled_type(fields[name].type)) for name in ordered])
    table = pa.table(ordered, schema=types) if ordered else batch.select([])
    lacking = set(fields).difference(batch.column_names)
    missing = tuple(name for name in old if name in lacking)
    target = pa.schema(list(fields.values()))
    return Evolution(target, table, tuple(added), tuple(gone), tuple(widened), missing, tuple(decided))


def _pieces(name: str, column: pa.ChunkedArray, values: BatchValues) -> Pieces | None:
    if values.known:
        return lambda: (column,)
    return None if values.pieces is None else functools.partial(values.pieces, name)


def retype_field(field: pa.Field, kind: pa.DataType) -> pa.Field:
    """Return the column in another type; text that held integers is marked in its metadata."""
    is_printed = pa.types.is_integer(field.type) and pa.types.is_string(kind) and not is_undecided(field)
    return pa.field(
        field.name, kind, metadata=_nullable_mark(field) | ({PRINTED: b"true"} if is_printed else {})
    )


def _nullable_mark(field: pa.Field) -> dict[bytes, bytes]:
    return {key: value for key, value in (field.metadata or {}).items() if key == NULLABLE}


def decided_columns(schema: pa.Schema) -> pa.Schema:
    """Return the columns that are physically written: those whose type is known."""
    return pa.schema([field for field in schema if not is_undecided(field)])


def _new_field(given: pa.Field) -> pa.Field:
    mark = _nullable_mark(given)
    if pa.types.is_null(given.type):
        return pa.field(given.name, pa.string(), metadata={**mark, UNDECIDED: b"true"})
    return pa.field(given.name, given.type, metadata=mark)


def _refuse_many(count: int, added: Sequence[str]) -> None:
    """Refuse new columns beyond the maximum; a stream that exceeds it already keeps its columns."""
    if added:
        require_few_columns(count, "The stream would have")


def require_few_columns(count: int, subject: str) -> None:
    """Refuse more columns than a stream can have; readers of files do so before they look at a value."""
    if count > COLUMNS_MAX:
        raise BadInput(
            f"{subject} {count:,} columns.",
            cause=f"A stream has at most {COLUMNS_MAX:,}.",
            remedy="Turn columns into rows (an unpivot), or keep them as one column of JSON.",
        )


def _refuse_case_twins(stored: Sequence[str], incoming: Sequence[str]) -> None:
    known = {name.casefold(): name for name in stored}
    for name in incoming:
        twin = known.get(name.casefold(), name)
        if twin != name:
            raise BadInput(
                f"The column {name!r} differs from the stored column {twin!r} only by case.",
                cause="Delta tables, and many engines, cannot tell the two apart.",
                remedy=f"Rename it to {twin!r}, or to a name of its own.",
                column=name,
                stored=twin,
            )


def _agreed_type(meeting: ColumnMeeting, rules: SchemaRules) -> pa.DataType:
    """Return the common type, or text for both sides where the caller prefers text to an error."""
    kind = _key_type(meeting) if meeting.is_key else _common_type(meeting)
    if kind is None and rules.drift_to_text and _may_be_text(meeting):
        kind = pa.string()
    if kind is None:
        raise meeting.error()
    return kind


def _may_be_text(meeting: ColumnMeeting) -> bool:
    """Return whether both sides say as text what they are; keys that are numbers never do: 1 equals 1.00."""
    both_numbers = is_number(meeting.stored) and is_number(meeting.incoming)
    return (
        has_exact_text(meeting.stored)
        and has_exact_text(meeting.incoming)
        and not (meeting.is_key and both_numbers)
    )


def _key_type(meeting: ColumnMeeting) -> pa.DataType | None:
    """Return the type that preserves equality and difference of keys; None where it is unknown."""
    stored, incoming = meeting.stored, meeting.incoming
    if stored == incoming or pa.types.is_null(incoming):
        return stored
    if pa.types.is_integer(stored) and pa.types.is_integer(incoming):
        return stored if meeting.fits(stored) or not widens(stored, incoming) else incoming
    if pa.types.is_integer(stored) and pa.types.is_string(incoming):
        texts = meeting.texts()
        return incoming if texts is not None and texts.needs_text else None
    if _takes_printed(meeting) or (is_local_time(stored) and pa.types.is_date(incoming)):
        return stored
    is_same_number = {True, False} == {pa.types.is_integer(stored), pa.types.is_integer(incoming)} and (
        pa.types.is_floating(stored) or pa.types.is_floating(incoming)
    )  # pandas makes floats of integer keys in a merge; 7.0 is the key 7
    if is_same_number or (pa.types.is_date(stored) and pa.types.is_string(incoming)):
        return stored if meeting.fits(stored) else None
    return incoming if pa.types.is_date(stored) and is_local_time(incoming) else None


def _common_type(meeting: ColumnMeeting) -> pa.DataType | None:
    """Return the type that holds both the stored values and the batch's exactly; None if there is none."""
    stored, incoming = meeting.stored, meeting.incoming
    if stored == incoming or pa.types.is_null(incoming) or _takes_printed(meeting):
        return stored
    if pa.types.is_nested(stored) or pa.types.is_nested(incoming):
        return common_nested(stored, incoming, lambda *parts: _common_type(meeting.part(*parts)))
    if may_take(stored, incoming) and meeting.fits(stored):
        return stored
    if widens(stored, incoming, meeting.stored_range):
        return incoming
    shared = shared_decimal(stored, incoming, meeting.stored_range)
    return shared if shared is not None and (meeting.fits(shared) or not meeting.in_memory) else None


def _takes_printed(meeting: ColumnMeeting) -> bool:
    """Return whether whole numbers meet a text column that held such numbers before."""
    return PRINTED in (meeting.field.metadata or {}) and pa.types.is_integer(meeting.incoming)
