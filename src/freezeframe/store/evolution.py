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
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import BadInput, SchemaDriftError

UNDECIDED = b"freezeframe.undecided"
_EXACT_IN_DOUBLE = 2**53
_SHOWN_MAX = 3
_LOOKED_AT_MAX = 10_000

# The range of a column's stored values, where their statistics tell it.
Ranges = Mapping[str, tuple[Any, Any]]


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
) -> Evolution:
    """What an update of a stream with the columns ``stored`` (None: a new one) does to them.

    Args:
        stored: the stream's columns, undecided ones marked.
        batch: the rows; a column of Arrow's null type has no type yet.
        key: names whose type may not change.
        drop: names that leave the stream; unknown ones are ignored.
        ranges: smallest and largest stored value by column, where known.
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
        elif is_undecided(fields[name]):
            if not pa.types.is_null(column.type):
                widened.append(name)
                fields[name] = _new_field(name, column.type)
        else:
            kind = _common_type(
                fields[name],
                column,
                (ranges or {}).get(name),
                is_key=name in key,
                values_known=values_known,
            )
            if kind != fields[name].type:
                widened.append(name)
                fields[name] = pa.field(name, kind)
            column = column.cast(kind)
        if not is_undecided(fields[name]):
            columns[name] = column
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
    return pa.field(name, kind)


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


def _common_type(
    field: pa.Field,
    column: pa.ChunkedArray,
    stored_range: tuple[Any, Any] | None,
    *,
    is_key: bool,
    values_known: bool,
) -> pa.DataType:
    """The type that holds both the stored values and the batch's exactly."""
    stored, incoming = field.type, column.type
    if stored == incoming or pa.types.is_null(incoming):
        return stored
    takes = _fits(column, stored) if values_known else _widens(incoming, stored, None)
    if takes and _may_take(stored, incoming, is_key=is_key):
        return stored
    if not is_key and _widens(stored, incoming, stored_range):
        return incoming
    shared = None if is_key else _shared_decimal(stored, incoming)
    if shared is not None and (_fits(column, shared) or not values_known):
        return shared
    raise _drift(field, column, is_key=is_key)


def _may_take(stored: pa.DataType, incoming: pa.DataType, *, is_key: bool) -> bool:
    """Whether values of one type may ever be written as the other; the values decide the rest."""
    whole = bool(pa.types.is_integer(stored) and pa.types.is_integer(incoming))
    if is_key:
        return whole
    return (
        whole
        or (_is_number(stored) and _is_number(incoming) and not _is_binary_to_decimal(incoming, stored))
        or (_is_local_time(stored) and pa.types.is_date(incoming))
    )


def _widens(stored: pa.DataType, incoming: pa.DataType, stored_range: tuple[Any, Any] | None) -> bool:
    """Whether every stored value is exact in the batch's type."""
    if pa.types.is_integer(stored) and pa.types.is_integer(incoming):
        return bool(incoming.bit_width > stored.bit_width)
    if pa.types.is_integer(stored) and pa.types.is_decimal(incoming):
        return bool(incoming.precision - incoming.scale >= _digits(stored))
    if pa.types.is_integer(stored) and pa.types.is_float64(incoming):
        return bool(stored.bit_width < 64 or _within(stored_range, _EXACT_IN_DOUBLE))  # noqa: PLR2004
    if pa.types.is_decimal(stored) and pa.types.is_decimal(incoming):
        return bool(
            incoming.scale >= stored.scale
            and incoming.precision - incoming.scale >= stored.precision - stored.scale
        )
    if pa.types.is_float32(stored) and pa.types.is_float64(incoming):
        return True
    return bool(pa.types.is_date(stored) and _is_local_time(incoming))


def _shared_decimal(stored: pa.DataType, incoming: pa.DataType) -> pa.DataType | None:
    """A decimal for a whole-number or decimal column that meets another decimal, if 38 digits do."""
    scales, wholes = [], []
    for kind in (stored, incoming):
        if pa.types.is_decimal(kind):
            scales.append(kind.scale)
            wholes.append(kind.precision - kind.scale)
        elif pa.types.is_integer(kind):
            scales.append(0)
            wholes.append(_digits(kind))
        else:
            return None
    precision = max(wholes) + max(scales)
    return pa.decimal128(precision, max(scales)) if precision <= pa.decimal128(38).precision else None


def _digits(kind: pa.DataType) -> int:
    return {8: 3, 16: 5, 32: 10, 64: 19}[kind.bit_width]


def _within(stored_range: tuple[Any, Any] | None, limit: int) -> bool:
    return stored_range is not None and -limit <= stored_range[0] and stored_range[1] <= limit


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_binary_to_decimal(incoming: pa.DataType, stored: pa.DataType) -> bool:
    # 0.1 as a double is not the decimal 0.1: which one was meant cannot be known.
    return bool(pa.types.is_floating(incoming) != pa.types.is_floating(stored)) and (
        bool(pa.types.is_decimal(stored) or pa.types.is_decimal(incoming))
    )


def _is_local_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def _fits(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    if pa.types.is_floating(column.type) and pa.types.is_floating(kind):
        # NaN is a value that every float has, but it never equals itself.
        column = pc.if_else(pc.is_nan(column), None, column)
    try:
        return bool(column.cast(kind).cast(column.type).equals(column))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False


def _drift(field: pa.Field, column: pa.ChunkedArray, *, is_key: bool) -> SchemaDriftError:
    values = [row for row in range(min(len(column), _LOOKED_AT_MAX)) if column[row].is_valid]
    misfits = [row for row in values if not _fits(column.slice(row, 1), field.type)]
    # Where each value alone could be converted, the kinds differ and the first values show how.
    named = (misfits or values)[:_SHOWN_MAX]
    rows = [{"row": row, "value": repr(column[row].as_py())} for row in named]
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
