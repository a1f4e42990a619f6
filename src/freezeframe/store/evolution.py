"""How a stream's columns change with a batch: what may be added or widened, and what is refused (pure).

The rule is that no value ever changes: a batch's values take the stored type if every one of
them fits it exactly; else the stored type is widened if *its* values all fit the batch's; else
the update is refused before anything is written. Columns are never guessed into another kind
(text stays text, numbers stay numbers), and the type of a key column is fixed when the stream
is made. Source: ``docs/reference/semantics.md``, "int -> float, int -> str …".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from freezeframe.engine.python_values import date_texts, python_values
from freezeframe.errors import BadInput, SchemaDriftError
from freezeframe.store.comparison import exact_cast
from freezeframe.store.types import (
    Range,
    common_nested,
    has_exact_text,
    may_take,
    settled,
    shared_decimal,
    widens,
)

UNDECIDED = b"freezeframe.undecided"
_SHOWN_MAX = 3
_LOOKED_AT_MAX = 10_000

# The range of a column's stored values, where their statistics tell it.
Ranges = Mapping[str, Range]


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """What may happen to a stream's columns: nothing at all (``frozen``), or text in place of an error.

    ``drift_to_text`` concerns columns whose values have one exact text: whole numbers, decimals,
    booleans, dates and text itself.
    """

    frozen: bool = False
    drift_to_text: bool = False


EVOLVE = SchemaRules()


@dataclass(frozen=True, slots=True)
class Evolution:
    """The columns after an update, and the batch in their types.

    ``target`` has all columns, those without any value yet marked undecided; ``batch`` has the
    decided ones that it came with, in the target's types and order.
    """

    target: pa.Schema
    batch: pa.Table
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    widened: tuple[str, ...]

    @property
    def changes_schema(self) -> bool:
        """Whether the table's metadata changes."""
        return bool(self.added or self.dropped or self.widened)

    @property
    def changes_stored_files(self) -> bool:
        """Whether files must be rewritten even if no row changes."""
        return bool(self.dropped or self.widened)


def is_undecided(field: pa.Field) -> bool:
    """Whether a column has had no value so far, so that its type is still open."""
    return UNDECIDED in (field.metadata or {})


def evolve(
    stored: pa.Schema | None,
    batch: pa.Table,
    *,
    key: Sequence[str] = (),
    drop: Sequence[str] = (),
    ranges: Ranges | None = None,
    values_known: bool = True,
    rules: SchemaRules = EVOLVE,
) -> Evolution:
    """What an update of a stream with the columns ``stored`` (None: a new one) does to them.

    Args:
        stored: the stream's columns, undecided ones marked.
        batch: the rows; a column of Arrow's null type has no type yet.
        key: names whose type may not change.
        drop: names that leave the stream; unknown ones are ignored.
        ranges: smallest and largest stored value by column, where known.
        rules: what the caller allows to happen to the columns.
        values_known: false if ``batch`` has the types alone: then the types must decide.

    Raises:
        SchemaDriftError: a column's values do not fit the stored type, nor the other way round.
        BadInput: a name differs from a stored one only by case.
    """
    old = {field.name: field for field in stored or pa.schema([])}
    gone = [name for name in drop if name in old]
    batch = batch.drop_columns([name for name in dict.fromkeys(drop) if name in batch.column_names])
    _refuse_case_twins([name for name in old if name not in gone], batch.column_names)

    fields: dict[str, pa.Field] = {name: field for name, field in old.items() if name not in gone}
    columns: dict[str, pa.ChunkedArray] = {}
    added, widened = [], []
    for name in batch.column_names:
        column = batch[name]
        if name not in fields:
            added.append(name)
            fields[name] = _new_field(name, column.type)
            column = column.cast(fields[name].type)
        elif is_undecided(fields[name]):
            if not pa.types.is_null(column.type):
                widened.append(name)
                fields[name] = _new_field(name, column.type)
                column = column.cast(fields[name].type)
        else:
            kind = _agreed_type(
                fields[name],
                column,
                (ranges or {}).get(name),
                is_key=name in key,
                values_known=values_known,
                rules=rules,
            )
            if kind != fields[name].type:
                widened.append(name)
                fields[name] = pa.field(name, kind)
            column = _cast(column, kind)
        if not is_undecided(fields[name]):
            columns[name] = column
    if rules.frozen and stored is not None and (added or widened):
        raise _frozen(added, widened)
    ordered = {name: columns[name] for name in fields if name in columns}
    types = pa.schema([fields[name].remove_metadata() for name in ordered])
    table = pa.table(ordered, schema=types) if ordered else batch.select([])
    return Evolution(pa.schema(list(fields.values())), table, tuple(added), tuple(gone), tuple(widened))


def decided(schema: pa.Schema) -> pa.Schema:
    """The columns that are physically written: those whose type is known."""
    return pa.schema([field for field in schema if not is_undecided(field)])


def _new_field(name: str, kind: pa.DataType) -> pa.Field:
    if pa.types.is_null(kind):
        return pa.field(name, pa.string(), metadata={UNDECIDED: b"true"})
    return pa.field(name, settled(kind))


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


def _agreed_type(
    field: pa.Field,
    column: pa.ChunkedArray,
    stored_range: Range | None,
    *,
    is_key: bool,
    values_known: bool,
    rules: SchemaRules,
) -> pa.DataType:
    """The common type, or text for both sides where the caller prefers text to an error."""
    try:
        return _common_type(field, column, stored_range, is_key=is_key, values_known=values_known)
    except SchemaDriftError:
        exact_as_text = has_exact_text(field.type) and has_exact_text(column.type)
        if is_key or not rules.drift_to_text or not exact_as_text:
            raise
        return pa.string()


def _common_type(
    field: pa.Field,
    column: pa.ChunkedArray,
    stored_range: Range | None,
    *,
    is_key: bool,
    values_known: bool,
) -> pa.DataType:
    """The type that holds both the stored values and the batch's exactly."""
    stored, incoming = field.type, column.type
    if stored == incoming or pa.types.is_null(incoming):
        return stored
    if is_key:
        whole = pa.types.is_integer(stored) and pa.types.is_integer(incoming)
        if whole and (_fits(column, stored) if values_known else widens(incoming, stored)):
            return stored
        raise _drift(field, column, is_key=True)
    takes = _fits(column, stored) if values_known else widens(incoming, stored)
    if takes and may_take(stored, incoming):
        return stored
    if widens(stored, incoming, stored_range):
        return incoming
    shared = shared_decimal(stored, incoming)
    if shared is not None and (_fits(column, shared) or not values_known):
        return shared
    nested = common_nested(stored, incoming) if pa.types.is_nested(stored) else None
    if nested is None:
        raise _drift(field, column, is_key=False)
    return settled(nested)


def _frozen(added: Sequence[str], widened: Sequence[str]) -> SchemaDriftError:
    named = [*(f"{name!r} is new" for name in added), *(f"{name!r} needs another type" for name in widened)]
    return SchemaDriftError(
        "The columns of the batch are not those of the stream.",
        cause=f"{'; '.join(named)}, and schema='frozen' allows neither.",
        remedy="Leave the columns out or cast them, or pass schema='evolve'.",
        added=list(added),
        widened=list(widened),
    )


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_date(column.type) and pa.types.is_string(kind):
        return date_texts(column)
    if not (pa.types.is_decimal(column.type) and pa.types.is_string(kind)):
        return column.cast(kind)
    # Arrow would write a small decimal with an exponent, where Spark, which casts the stored ones, does not.
    texts = [None if value is None else format(value, "f") for value in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, kind)])


def _fits(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    return exact_cast(column, kind) is not None


def _drift(field: pa.Field, column: pa.ChunkedArray, *, is_key: bool) -> SchemaDriftError:
    values = [row for row in range(min(len(column), _LOOKED_AT_MAX)) if column[row].is_valid]
    misfits = [row for row in values if not _fits(column.slice(row, 1), field.type)]
    # Where each value alone could be converted, the kinds differ and the first values show how.
    named = (misfits or values)[:_SHOWN_MAX]
    rows = [{"row": row, "value": repr(python_values(column.slice(row, 1))[0])} for row in named]
    shown = ", ".join(f"row {row['row']}: {row['value']}" for row in rows)
    kind = "key column" if is_key else "column"
    return SchemaDriftError(
        f"The {kind} {field.name!r} is stored as {field.type}, but the batch has {column.type}.",
        cause=f"The values would not be the same in the stored type ({shown or 'see the types'}).",
        remedy="Cast the column to the stored type before the update, "
        "or replace the stream with override=True to give it a new type.",
        column=field.name,
        stored=str(field.type),
        incoming=str(column.type),
        rows=rows,
    )
